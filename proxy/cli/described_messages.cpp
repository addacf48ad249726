#include "proxy/cli/described_messages.h"

#include "proxy/cli/described_names.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tw::cli {

namespace json = boost::json;
using wire::CustomMessage;
using wire::FieldType;
using wire::MessageSet;
using wire::MessageSpec;

namespace {

/// No message of the game has half as many.
constexpr std::size_t kMaxFields = 255;

/// What `kind` can say of a field. The first one is that of a field without it.
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

CustomMessage::Field parse_field(const JsonReader& in, const CustomMessage& message) {
    in.allow({"name", "kind", "optional", "secret", "names", "flags"});
    CustomMessage::Field field{.name = in.name("name"),
                               .type = parse_kind(in),
                               .optional = in.flag("optional"),
                               .secret = in.flag("secret")};
    const CustomMessage::Field* const before =
        message.fields.empty() ? nullptr : &message.fields.back();
    if (std::ranges::find(message.fields, field.name, &CustomMessage::Field::name) !=
        message.fields.end()) {
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
        field.flags = in.flag("flags");
        field.names = parse_value_names(in);
    } else if (in.flag("flags")) {
        in.fail("'flags' needs 'names': the names of the bits");
    }
    return field;
}

void parse_identifier(const JsonReader& in, CustomMessage& message) {
    if (in.has("number") == in.has("uuid")) {
        in.fail("give either 'number' or 'uuid' (a UUID, or the name it is made of)");
    }
    if (in.has("uuid")) {
        if (in.has("protocol")) {
            in.fail("'protocol' is only for numbers: a message with a UUID is the same in 0.6 and "
                    "0.7");
        }
        NamedUuid uuid = parse_uuid(in, "uuid");
        message.uuid = uuid.uuid;
        message.uuid_name = std::move(uuid.name);
        return;
    }
    message.number = static_cast<std::uint16_t>(in.number("number", 1, UINT16_MAX, 0));
    message.dialect = in.word("protocol", {"0.6", "0.7"}) == "0.7" ? snapshot::Dialect::seven
                                                                   : snapshot::Dialect::six;
}

CustomMessage parse_message(const JsonReader& in) {
    in.allow({"name", "number", "uuid", "protocol", "system", "from", "secret", "fields"});
    CustomMessage message{.name = in.name("name")};
    parse_identifier(in, message);
    message.system = in.flag("system");
    message.secret = in.flag("secret");
    const std::string from = in.word("from", {"both", "server", "client"});
    message.direction = from == "server"   ? wire::Who::s2c
                        : from == "client" ? wire::Who::c2s
                                           : wire::Who::both;
    const json::array* const fields = in.array("fields");
    if (fields != nullptr && fields->size() > kMaxFields) {
        in.fail(fmt::format("a message may have at most {} fields", kMaxFields));
    }
    for (std::size_t i = 0; fields != nullptr && i < fields->size(); ++i) {
        message.fields.push_back(parse_field(in.element("fields", "field", i), message));
    }
    return message;
}

bool is_same(const MessageSpec& spec, const CustomMessage& message) {
    return spec.number == message.number && spec.uuid == message.uuid &&
           (message.number == 0 ||
            (spec.system == message.system && spec.dialect == message.dialect));
}

bool is_of_one_protocol(const MessageSpec& spec, const CustomMessage& message) {
    return spec.number == 0 || message.number == 0 || spec.dialect == message.dialect;
}

void check_name(const JsonReader& in, const CustomMessage& message, const MessageSet& messages) {
    for (const auto& list : {wire::message_table(), messages.custom()}) {
        const bool is_taken = std::ranges::any_of(list, [&](const MessageSpec& spec) {
            return spec.name == message.name && is_of_one_protocol(spec, message) &&
                   !is_same(spec, message);
        });
        if (is_taken) {
            in.fail(fmt::format("the name '{}' is that of another message; give each its own",
                                message.name));
        }
    }
}

} // namespace

void add_message(const JsonReader& in, MessageSet& messages) {
    const CustomMessage message = parse_message(in);
    const auto custom = messages.custom();
    const auto twin = std::ranges::find_if(
        custom, [&](const MessageSpec& spec) { return is_same(spec, message); });
    if (twin != custom.end()) {
        in.fail(fmt::format("already exists: message {} has the same {}", twin - custom.begin(),
                            message.number == 0 ? "UUID" : "number"));
    }
    check_name(in, message, messages);
    if (custom.size() == MessageSet::kMaxCustom) {
        in.fail(fmt::format("a file may describe at most {} messages", MessageSet::kMaxCustom));
    }
    if (!messages.add(message)) {
        in.fail("twscope itself reads the message of this number or UUID, so it cannot be "
                "described anew");
    }
}

} // namespace tw::cli
