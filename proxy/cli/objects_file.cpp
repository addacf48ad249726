#include "proxy/cli/objects_file.h"

#include "proxy/cli/settings.h"
#include "proxy/run/small_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

namespace json = boost::json;

/// Ints of one item; a snapshot of 64 KiB could hold larger ones, no game does.
constexpr std::int64_t kMaxInts = 255;

/// A thousand objects with all their fields take a few hundred KiB.
constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;

constexpr std::array<std::string_view, 3> kKinds{"int", "string", "tick"};

/// Names are keys of records and words of filters; records write them as they are.
bool is_name(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    });
}

/// The same of a value's name, which is text.
bool needs_no_escape(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) {
        return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    });
}

class Reader {
  public:
    Reader(std::string where, const json::object& object)
        : where_{std::move(where)}, object_{&object} {}

    [[noreturn]] void fail(std::string_view what) const {
        throw UsageError{fmt::format("--objects {}: {}", where_, what)};
    }

    void allow(std::initializer_list<std::string_view> keys) const {
        for (const auto& member : *object_) {
            const std::string_view key{member.key().data(), member.key().size()};
            if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
                fail(
                    fmt::format("unknown key '{}'; known keys are {}", key, fmt::join(keys, ", ")));
            }
        }
    }

    [[nodiscard]] bool has(std::string_view key) const { return object_->contains(key); }

    [[nodiscard]] std::string text(std::string_view key) const {
        const json::value* value = object_->if_contains(key);
        if (value == nullptr || !value->is_string() || value->get_string().empty()) {
            fail(fmt::format("'{}' must be a string", key));
        }
        return std::string{value->get_string().c_str()};
    }

    [[nodiscard]] std::string name(std::string_view key) const {
        std::string name = text(key);
        if (!is_name({object_->at(key).get_string()})) {
            fail(fmt::format("'{}' may hold only letters, digits and '_'", key));
        }
        return name;
    }

    [[nodiscard]] std::int64_t number(std::string_view key, std::int64_t min, std::int64_t max,
                                      std::int64_t fallback) const {
        const json::value* value = object_->if_contains(key);
        if (value == nullptr) {
            return fallback;
        }
        if (!value->is_int64() || value->get_int64() < min || value->get_int64() > max) {
            fail(fmt::format("'{}' must be a number from {} to {}", key, min, max));
        }
        return value->get_int64();
    }

    [[nodiscard]] bool flag(std::string_view key) const {
        const json::value* value = object_->if_contains(key);
        if (value != nullptr && !value->is_bool()) {
            fail(fmt::format("'{}' must be true or false", key));
        }
        return value != nullptr && value->get_bool();
    }

    [[nodiscard]] const json::array* array(std::string_view key) const {
        const json::value* value = object_->if_contains(key);
        if (value != nullptr && !value->is_array()) {
            fail(fmt::format("'{}' must be a list", key));
        }
        return value == nullptr ? nullptr : &value->get_array();
    }

    [[nodiscard]] const json::object* object(std::string_view key) const {
        const json::value* value = object_->if_contains(key);
        if (value != nullptr && !value->is_object()) {
            fail(fmt::format("'{}' must be an object", key));
        }
        return value == nullptr ? nullptr : &value->get_object();
    }

    [[nodiscard]] const std::string& where() const { return where_; }

  private:
    std::string where_;
    const json::object* object_;
};

snapshot::Uuid parse_uuid(const Reader& in, const std::string& text) {
    snapshot::Uuid uuid{};
    std::string digits = text;
    digits.erase(std::remove(digits.begin(), digits.end(), '-'), digits.end());
    bool good = digits.size() == 2 * uuid.size();
    for (std::size_t i = 0; good && i < uuid.size(); ++i) {
        const char* at = digits.data() + 2 * i;
        const auto parsed = std::from_chars(at, at + 2, uuid[i], 16);
        good = parsed.ec == std::errc{} && parsed.ptr == at + 2;
    }
    if (!good) {
        in.fail(fmt::format("'{}' is not a UUID", text));
    }
    return uuid;
}

snapshot::CustomObject::Field parse_field(const Reader& in, std::int64_t offset) {
    in.allow({"name", "kind", "count", "names", "flags"});
    snapshot::CustomObject::Field field{.name = in.name("name")};
    const std::string kind = in.has("kind") ? in.text("kind") : std::string{kKinds[0]};
    if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) {
        in.fail(fmt::format("'kind' must be one of {}", fmt::join(kKinds, ", ")));
    }
    if (offset >= kMaxInts) {
        in.fail(fmt::format(
            "an object may have at most {} ints, which the fields before this one use up",
            kMaxInts));
    }
    const std::int64_t count = in.number("count", 1, kMaxInts - offset, 1);
    field.offset = static_cast<std::uint8_t>(offset);
    field.count = static_cast<std::uint8_t>(count);
    field.kind = kind == "string" ? snapshot::FieldKind::int_string
                 : kind == "tick" ? snapshot::FieldKind::tick
                 : count > 1      ? snapshot::FieldKind::integers
                                  : snapshot::FieldKind::integer;
    field.flags = in.flag("flags");
    if (const json::object* names = in.object("names"); names != nullptr) {
        if (field.count != 1 || field.kind != snapshot::FieldKind::integer) {
            in.fail("only a single int can have 'names'");
        }
        for (const auto& member : *names) {
            const std::string key{member.key().data(), member.key().size()};
            std::int64_t value = 0;
            const auto parsed = std::from_chars(key.data(), key.data() + key.size(), value);
            if (parsed.ec != std::errc{} || parsed.ptr != key.data() + key.size() ||
                !member.value().is_string()) {
                in.fail(R"('names' maps numbers to strings: {"0": "red"})");
            }
            if (!needs_no_escape({member.value().get_string()})) {
                in.fail("'names' may not hold quotes, backslashes or control characters");
            }
            field.names.emplace_back(value, member.value().get_string().c_str());
        }
    }
    return field;
}

auto find_field(const snapshot::CustomObject& object, const std::string& name) {
    return std::find_if(object.fields.begin(), object.fields.end(),
                        [&](const auto& field) { return field.name == name; });
}

std::uint8_t field_offset(const Reader& in, const snapshot::CustomObject& object,
                          const std::string& name) {
    const auto found = find_field(object, name);
    if (found == object.fields.end()) {
        in.fail(fmt::format("position: there is no field '{}'", name));
    }
    return found->offset;
}

snapshot::CustomObject parse_object(const Reader& in) {
    in.allow({"name", "type", "uuid", "protocol", "agreed_size", "fields", "position"});
    snapshot::CustomObject object{.name = in.name("name")};
    if (in.has("type") == in.has("uuid")) {
        in.fail("give either 'type' (a number) or 'uuid'");
    }
    if (in.has("uuid")) {
        object.uuid = parse_uuid(in, in.text("uuid"));
    } else {
        object.type =
            static_cast<std::uint16_t>(in.number("type", 1, snapshot::kFirstUuidType - 1, 0));
    }
    object.agreed = in.flag("agreed_size");
    if (in.has("protocol")) {
        const std::string protocol = in.text("protocol");
        if (protocol != "0.6" && protocol != "0.7") {
            in.fail(R"('protocol' is "0.6" or "0.7")");
        }
        object.dialect = protocol == "0.7" ? snapshot::Dialect::seven : snapshot::Dialect::six;
    }
    std::int64_t offset = 0;
    if (const json::array* fields = in.array("fields"); fields != nullptr) {
        for (const json::value& value : *fields) {
            const std::string where = fmt::format("{}, field {}", in.where(), object.fields.size());
            if (!value.is_object()) {
                in.fail("'fields' must be a list of objects");
            }
            const Reader field_in{where, value.get_object()};
            auto field = parse_field(field_in, offset);
            if (find_field(object, field.name) != object.fields.end()) {
                field_in.fail(fmt::format("the object already has a field '{}'", field.name));
            }
            object.fields.push_back(std::move(field));
            offset += object.fields.back().count;
        }
    }
    object.size = static_cast<std::uint8_t>(offset);
    if (const json::object* position = in.object("position"); position != nullptr) {
        const Reader at{in.where() + ", position", *position};
        at.allow({"x", "y", "per_unit"});
        object.position = snapshot::PositionSpec{
            .x = field_offset(at, object, at.text("x")),
            .y = field_offset(at, object, at.text("y")),
            .per_unit = static_cast<std::uint8_t>(at.number("per_unit", 1, 100, 1))};
    }
    return object;
}

} // namespace

void read_objects_file(const std::string& path, snapshot::ObjectSet& objects) {
    const auto text = run::read_small_file(path, kMaxBytes);
    if (!text) {
        throw UsageError{fmt::format("--objects {}: {}; name a file with {{\"objects\": [...]}}",
                                     path, text.error().message())};
    }
    boost::system::error_code error;
    const json::value root = json::parse(*text, error);
    if (error || !root.is_object()) {
        throw UsageError{fmt::format("--objects {}: {}; expected {{\"objects\": [...]}}", path,
                                     error ? error.message() : "is not a JSON object")};
    }
    const Reader top{path, root.get_object()};
    top.allow({"objects"});
    const json::array* list = top.array("objects");
    if (list == nullptr) {
        top.fail("has no 'objects'");
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
        const std::string where = fmt::format("{}, object {}", path, i);
        if (!(*list)[i].is_object()) {
            top.fail("'objects' must be a list of objects");
        }
        const Reader in{where, (*list)[i].get_object()};
        if (!objects.add(parse_object(in))) {
            in.fail("already exists, or cannot be added: numbers are 1 to 16383, and only those "
                    "below 64 can have an agreed size");
        }
    }
}

} // namespace tw::cli
