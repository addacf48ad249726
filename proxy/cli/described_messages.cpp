#include "proxy/base/numbers.h"
#include "proxy/cli/objects_file.h"
#include "proxy/cli/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/uuid/name_generator_md5.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace json = boost::json;

namespace {

/// True for letters, digits and '_', which records can contain without escapes.
bool is_record_key(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    });
}

} // namespace

void JsonReader::fail(std::string_view what) const {
    throw UsageError{fmt::format("{}: {}", where_, what)};
}

void JsonReader::require_known_keys(std::initializer_list<std::string_view> keys) const {
    for (const auto& member : *object_) {
        const std::string_view key{member.key().data(), member.key().size()};
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
            fail(fmt::format("unknown key '{}'; known keys are {}", key, fmt::join(keys, ", ")));
        }
    }
}

std::string JsonReader::text(std::string_view key) const {
    const json::value* found = value(key);
    if (found == nullptr || !found->is_string() || found->get_string().empty()) {
        fail(fmt::format("'{}' must be a string", key));
    }
    return std::string{found->get_string().c_str()};
}

std::string JsonReader::name(std::string_view key) const {
    std::string name = text(key);
    if (!is_record_key({object_->at(key).get_string()})) {
        fail(fmt::format("'{}' may hold only letters, digits and '_'", key));
    }
    return name;
}

std::string JsonReader::word(std::string_view key,
                             std::initializer_list<std::string_view> words) const {
    if (!has(key)) {
        return std::string{*words.begin()};
    }
    std::string word = text(key);
    if (std::find(words.begin(), words.end(), word) == words.end()) {
        fail(fmt::format("'{}' must be one of {}", key, fmt::join(words, ", ")));
    }
    return word;
}

std::int64_t JsonReader::number(std::string_view key, std::int64_t min, std::int64_t max,
                                std::int64_t fallback) const {
    const json::value* found = value(key);
    if (found == nullptr) {
        return fallback;
    }
    if (!found->is_int64() || found->get_int64() < min || found->get_int64() > max) {
        fail(fmt::format("'{}' must be a number from {} to {}", key, min, max));
    }
    return found->get_int64();
}

bool JsonReader::flag(std::string_view key) const {
    const json::value* found = value(key);
    if (found != nullptr && !found->is_bool()) {
        fail(fmt::format("'{}' must be true or false", key));
    }
    return found != nullptr && found->get_bool();
}

const json::object* JsonReader::object(std::string_view key) const {
    const json::value* found = value(key);
    if (found != nullptr && !found->is_object()) {
        fail(fmt::format("'{}' must be an object", key));
    }
    return found == nullptr ? nullptr : &found->get_object();
}

std::vector<JsonReader> JsonReader::elements(std::string_view key, std::string_view what) const {
    std::vector<JsonReader> elements;
    const json::value* const found = value(key);
    if (found == nullptr) {
        return elements;
    }
    if (!found->is_array() || !std::ranges::all_of(found->get_array(), &json::value::is_object)) {
        fail(fmt::format("'{}' must be a list of objects", key));
    }
    for (const json::value& each : found->get_array()) {
        elements.emplace_back(fmt::format("{}, {} {}", where_, what, elements.size()),
                              each.get_object());
    }
    return elements;
}

namespace {

/// The namespace of UUIDs that are made from names (see uuid_of_name).
constexpr snapshot::Uuid kNamespace{0xe0, 0x5d, 0xda, 0xaa, 0xc4, 0xe6, 0x4c, 0xfb,
                                    0xb6, 0x42, 0x5d, 0x48, 0xe8, 0x0c, 0x00, 0x29};

/// The most bytes of a name.
constexpr std::size_t kMaxUuidName = 255;

/// True if a value's name can be written to records without escapes.
bool needs_no_escape(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) {
        return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    });
}

std::int64_t parse_value(const JsonReader& in, std::string_view text) {
    const auto value = base::parse_number<std::int64_t>(text);
    if (!value) {
        in.fail(R"('names' maps numbers to strings: {"0": "red"})");
    }
    if (*value < INT32_MIN || *value > UINT32_MAX) {
        in.fail(fmt::format("'names': {} is not a number of 32 bits", *value));
    }
    return *value;
}

} // namespace

snapshot::Uuid uuid_of_name(std::string_view name) {
    boost::uuids::uuid space{};
    std::copy(kNamespace.begin(), kNamespace.end(), space.begin());
    const boost::uuids::uuid made =
        boost::uuids::name_generator_md5{space}(name.data(), name.size());
    snapshot::Uuid uuid{};
    std::copy(made.begin(), made.end(), uuid.begin());
    return uuid;
}

namespace {

/// Reads a UUID, or a name from which a UUID is made.
TypeIdentifier parse_uuid(const JsonReader& in) {
    const std::string text = in.text("uuid");
    if (text.find('@') != std::string::npos) {
        if (text.size() > kMaxUuidName || !needs_no_escape(text)) {
            in.fail(fmt::format("'uuid' is not the name of a UUID: at most {} bytes, without "
                                "quotes, backslashes and control characters",
                                kMaxUuidName));
        }
        return {.uuid = uuid_of_name(text), .uuid_name = text};
    }
    TypeIdentifier found;
    std::string digits = text;
    digits.erase(std::remove(digits.begin(), digits.end(), '-'), digits.end());
    bool good = digits.size() == 2 * found.uuid.size();
    for (std::size_t i = 0; good && i < found.uuid.size(); ++i) {
        const char* at = digits.data() + 2 * i;
        const auto parsed = std::from_chars(at, at + 2, found.uuid[i], 16);
        good = parsed.ec == std::errc{} && parsed.ptr == at + 2;
    }
    if (!good) {
        in.fail(fmt::format("'{}' is not a UUID (32 hexadecimal digits), nor the name of one, like "
                            "object@infclass",
                            text));
    }
    return found;
}

} // namespace

TypeIdentifier parse_identifier(const JsonReader& in, std::string_view number, std::uint16_t max,
                                std::string_view what) {
    if (in.has(number) == in.has("uuid")) {
        in.fail(
            fmt::format("give either '{}' or 'uuid' (a UUID, or the name it is made of)", number));
    }
    if (in.has("uuid") && in.has("protocol")) {
        in.fail(fmt::format("'protocol' is only for numbers: {} with a UUID is the same in 0.6 and "
                            "0.7",
                            what));
    }
    if (in.has("uuid")) {
        return parse_uuid(in);
    }
    return {.number = static_cast<std::uint16_t>(in.number(number, 1, max, 0)),
            .dialect = in.word("protocol", {"0.6", "0.7"}) == "0.7" ? snapshot::Dialect::seven
                                                                    : snapshot::Dialect::six};
}

std::vector<snapshot::NamedValue> parse_value_names(const JsonReader& in,
                                                    snapshot::SpecStorage& storage) {
    std::vector<snapshot::NamedValue> names;
    const json::object* const members = in.object("names");
    for (const auto& member : *members) {
        const std::int64_t value = parse_value(in, {member.key().data(), member.key().size()});
        if (!member.value().is_string()) {
            in.fail(R"('names' maps numbers to strings: {"0": "red"})");
        }
        const std::string_view name{member.value().get_string()};
        if (!needs_no_escape(name)) {
            in.fail("'names' may not hold quotes, backslashes or control characters");
        }
        names.push_back({value, storage.keep(std::string{name})});
    }
    return names;
}

using snapshot::SpecStorage;
using wire::FieldType;
using wire::MessageField;
using wire::MessageSet;
using wire::MessageSpec;

namespace {

/// The most fields of a message; more than twice as many as any message of the game has.
constexpr std::size_t kMaxFields = 255;

/// The values of `kind`. The first one is the default.
constexpr std::array<std::pair<std::string_view, FieldType>, 9> kKinds{{
    {"int", FieldType::integer},
    {"bool", FieldType::boolean},
    {"tick", FieldType::tick},
    {"string", FieldType::string},
    {"uuid", FieldType::uuid},
    {"bytes", FieldType::raw},
    {"ints", FieldType::integers_until_end},
    {"strings", FieldType::strings_until_end},
    {"rest", FieldType::raw_until_end},
}};

bool takes_the_rest(FieldType type) {
    return type == FieldType::integers_until_end || type == FieldType::strings_until_end ||
           type == FieldType::raw_until_end;
}

FieldType parse_kind(const JsonReader& in) {
    if (!in.has("kind")) {
        return kKinds.front().second;
    }
    const std::string word = in.text("kind");
    const auto* const found =
        std::ranges::find(kKinds, word, &std::pair<std::string_view, FieldType>::first);
    if (found == kKinds.end()) {
        std::string known;
        for (const auto& [kind, type] : kKinds) {
            known += known.empty() ? "" : ", ";
            known += kind;
        }
        in.fail(fmt::format("'kind' must be one of {}", known));
    }
    return found->second;
}

MessageField parse_field(const JsonReader& in, const std::vector<MessageField>& fields,
                         SpecStorage& storage) {
    in.require_known_keys({"name", "kind", "optional", "secret", "names", "flags"});
    MessageField field{.name = storage.keep(in.name("name")),
                       .type = parse_kind(in),
                       .optional = in.flag("optional"),
                       .secrecy = in.flag("secret") ? wire::Secrecy::secret : wire::Secrecy::open};
    if (field.type == FieldType::boolean) { // other values are invalid, as in game programs
        field.min = 0;
        field.max = 1;
    }
    const MessageField* const before = fields.empty() ? nullptr : &fields.back();
    if (std::ranges::find(fields, field.name, &MessageField::name) != fields.end()) {
        in.fail(fmt::format("the message already has a field '{}'", field.name));
    }
    if (before != nullptr && takes_the_rest(before->type)) {
        in.fail(fmt::format("nothing can follow '{}', which takes all that is left", before->name));
    }
    if (before != nullptr && before->optional && !field.optional) {
        in.fail(
            fmt::format("follows the optional '{}', so it must be optional, too", before->name));
    }
    if (field.type == FieldType::raw && (before == nullptr || before->type != FieldType::integer)) {
        in.fail("bytes need an int directly before them, which says how many they are");
    }
    if (in.has("names")) {
        if (field.type != FieldType::integer) {
            in.fail("only an int can have 'names'");
        }
        const bool flags = in.flag("flags");
        if (auto values = parse_value_names(in, storage); !values.empty()) {
            field.names = &storage.keep_names(field.name, flags, std::move(values));
        }
    } else if (in.flag("flags")) {
        in.fail("'flags' needs 'names': the names of the bits");
    }
    return field;
}

MessageSpec parse_message(const JsonReader& in, SpecStorage& storage) {
    in.require_known_keys(
        {"name", "number", "uuid", "protocol", "system", "from", "secret", "fields"});
    MessageSpec message{.name = storage.keep(in.name("name"))};
    const TypeIdentifier id = parse_identifier(in, "number", UINT16_MAX, "a message");
    message.number = id.number;
    message.dialect = id.dialect;
    message.uuid = id.uuid;
    message.uuid_name = storage.keep(id.uuid_name);
    message.system = in.flag("system");
    message.secrecy = in.flag("secret") ? wire::Secrecy::secret : wire::Secrecy::open;
    const std::string from = in.word("from", {"both", "server", "client"});
    message.direction = from == "server"   ? wire::MessageDirection::s2c
                        : from == "client" ? wire::MessageDirection::c2s
                                           : wire::MessageDirection::both;
    const std::vector<JsonReader> fields = in.elements("fields", "field");
    if (fields.size() > kMaxFields) {
        in.fail(fmt::format("a message may have at most {} fields", kMaxFields));
    }
    std::vector<MessageField> specs;
    for (const JsonReader& field : fields) {
        specs.push_back(parse_field(field, specs, storage));
    }
    message.fields = storage.keep(std::move(specs));
    return message;
}

bool has_same_identifier(const MessageSpec& spec, const MessageSpec& message) {
    return spec.number == message.number && spec.uuid == message.uuid &&
           (message.number == 0 ||
            (spec.system == message.system && spec.dialect == message.dialect));
}

bool shares_protocol(const MessageSpec& spec, const MessageSpec& message) {
    return spec.number == 0 || message.number == 0 || spec.dialect == message.dialect;
}

void check_name(const JsonReader& in, const MessageSpec& message, const MessageSet& messages) {
    for (const auto& list : {wire::message_table(), messages.custom()}) {
        const bool is_taken = std::ranges::any_of(list, [&](const MessageSpec& spec) {
            return spec.name == message.name && shares_protocol(spec, message) &&
                   !has_same_identifier(spec, message);
        });
        if (is_taken) {
            in.fail(fmt::format("the name '{}' is that of another message; give each its own",
                                message.name));
        }
    }
}

} // namespace

void add_message(const JsonReader& in, wire::ModDescription& mod) {
    const MessageSpec message = parse_message(in, mod.storage);
    const auto custom = mod.messages.custom();
    const auto twin = std::ranges::find_if(
        custom, [&](const MessageSpec& spec) { return has_same_identifier(spec, message); });
    if (twin != custom.end()) {
        in.fail(fmt::format("already exists: message {} has the same {}", twin - custom.begin(),
                            message.number == 0 ? "UUID" : "number"));
    }
    check_name(in, message, mod.messages);
    if (custom.size() == MessageSet::kMaxCustom) {
        in.fail(fmt::format("a file may describe at most {} messages", MessageSet::kMaxCustom));
    }
    if (!mod.messages.add(message)) {
        in.fail("twscope itself reads the message of this number or UUID, so it cannot be "
                "described anew");
    }
}

} // namespace tw::cli
