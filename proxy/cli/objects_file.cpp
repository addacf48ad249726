#include "proxy/cli/objects_file.h"

#include "proxy/base/files.h"
#include "proxy/cli/settings.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

namespace json = boost::json;
using snapshot::FieldKind;
using snapshot::FieldMerge;
using snapshot::FieldSpec;
using snapshot::ObjectSet;
using snapshot::ObjectSpec;
using snapshot::SpecStorage;

/// The most ints of an item. Snapshots could contain larger items, but no game does.
constexpr std::int64_t kMaxInts = 255;

/// The largest file. A thousand objects with all their fields take a few hundred KiB.
constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;

/// Returns the known object's field with this name; null without such a field or object.
const FieldSpec* find_field_named(const ObjectSpec* known, std::string_view name) {
    if (known == nullptr) {
        return nullptr;
    }
    const auto found = std::ranges::find(known->fields, name, &FieldSpec::name);
    return found == known->fields.end() ? nullptr : &*found;
}

/// An object that is being read. Its `fields` are set when all its keys were read.
struct CustomObject : ObjectSpec {
    std::vector<FieldSpec> read_fields{};
    bool agreed = false; ///< deltas leave out the size
};

FieldKind find_field_kind(std::string_view word, std::int64_t count) {
    return word == "string" ? FieldKind::int_string
           : word == "tick" ? FieldKind::tick
           : word == "bool" ? FieldKind::boolean
           : count > 1      ? FieldKind::integers
                            : FieldKind::integer;
}

/// Reads a field of an object. Keys that the file leaves out have the values of the known object's
/// field with the same name, if there is one.
FieldSpec parse_field(const JsonReader& in, std::int64_t offset, const ObjectSpec* known_object,
                      SpecStorage& storage) {
    in.require_known_keys({"name", "kind", "count", "names", "flags"});
    const std::string& name = storage.keep(in.name("name"));
    const FieldSpec* const known = find_field_named(known_object, name);
    FieldSpec field = known == nullptr ? FieldSpec{.name = name} : *known;
    if (offset >= kMaxInts) {
        in.fail(fmt::format(
            "an object may have at most {} ints, which the fields before this one use up",
            kMaxInts));
    }
    const std::int64_t count = in.number("count", 1, kMaxInts - offset, field.count);
    field.offset = static_cast<std::uint8_t>(offset);
    if (count > kMaxInts - offset) {
        in.fail(fmt::format("'count' is {} for this field of a known object, but only {} of the {} "
                            "ints of an object are left",
                            count, kMaxInts - offset, kMaxInts));
    }
    const bool is_list = field.kind == FieldKind::int_string || field.kind == FieldKind::integers;
    if (in.has("kind") || (count != field.count && !is_list)) {
        field.kind = find_field_kind(in.word("kind", {"int", "bool", "string", "tick"}), count);
        field.names = nullptr;
    }
    field.count = static_cast<std::uint8_t>(count);
    if (in.has("names")) {
        if (field.count != 1 ||
            (field.kind != FieldKind::integer && field.kind != FieldKind::named)) {
            in.fail("only a single int can have 'names'");
        }
        const bool flags = in.flag("flags");
        if (auto values = parse_value_names(in, storage); !values.empty()) {
            field.kind = FieldKind::named;
            field.names = &storage.keep_names(name, flags, std::move(values));
            field.names_when = 0;
        }
    } else if (in.flag("flags") && field.names == nullptr) {
        in.fail("'flags' needs 'names': the names of the bits");
    }
    return field;
}

/// True if the known object has the field `before` directly before the field `name`.
bool is_next_field(const ObjectSpec& known, std::string_view before, std::string_view name) {
    const FieldSpec* const first = find_field_named(&known, before);
    const FieldSpec* const second = find_field_named(&known, name);
    return first != nullptr && second != nullptr && first->offset + 1 == second->offset;
}

/// Reads the fields of an entry; uses those of the known object if the entry lists none.
void parse_fields(const JsonReader& in, const ObjectSpec* known, CustomObject& object,
                  SpecStorage& storage) {
    const bool is_inherited = known != nullptr && !in.has("fields");
    if (is_inherited) {
        object.read_fields.assign(known->fields.begin(), known->fields.end());
    }
    std::int64_t size = is_inherited ? known->size : 0;
    for (const JsonReader& field_in : in.elements("fields", "field")) {
        FieldSpec field = parse_field(field_in, size, known, storage);
        if (std::ranges::find(object.read_fields, field.name, &FieldSpec::name) !=
            object.read_fields.end()) {
            field_in.fail(fmt::format("the object already has a field '{}'", field.name));
        }
        if (field.names_when != 0 &&
            (object.read_fields.empty() ||
             !is_next_field(*known, object.read_fields.back().name, field.name))) {
            // The meaning of this field's values depends on another field, which must directly
            // precede it.
            field.kind = FieldKind::integer;
            field.names = nullptr;
            field.names_when = 0;
        }
        size += field.count;
        object.read_fields.push_back(field);
    }
    object.size = static_cast<std::uint8_t>(size);
}

/// Returns a field with a single int.
/// Errors: UsageError if there is no such field, or it is a text or a list.
FieldSpec& int_field(const JsonReader& in, CustomObject& object, std::string_view role,
                     std::string_view name) {
    const auto found = std::ranges::find(object.read_fields, name, &FieldSpec::name);
    if (found == object.read_fields.end()) {
        in.fail(fmt::format("{}: there is no field '{}'", role, name));
    }
    if (found->count != 1 || found->kind == FieldKind::int_string) {
        in.fail(fmt::format("{}: the field '{}' must be a single int", role, name));
    }
    return *found;
}

/// Returns the offset in `object` of the field at `offset` in `known`; nullopt without this field.
std::optional<std::uint8_t> new_offset_of(const ObjectSpec& known, std::uint8_t offset,
                                          const CustomObject& object) {
    const auto of_known = std::ranges::find(known.fields, offset, &FieldSpec::offset);
    if (of_known == known.fields.end()) {
        return std::nullopt;
    }
    const auto found = std::ranges::find(object.read_fields, of_known->name, &FieldSpec::name);
    return found == object.read_fields.end() || found->count != 1 ? std::nullopt
                                                                  : std::optional{found->offset};
}

/// Copies from the known object which fields are its position and its client, if the new object has
/// these fields.
void inherit_roles(const ObjectSpec& known, CustomObject& object) {
    if (known.position) {
        const auto x = new_offset_of(known, known.position->x, object);
        const auto y = new_offset_of(known, known.position->y, object);
        if (x && y) {
            object.position = snapshot::PositionSpec{*x, *y, known.position->per_unit};
        }
    }
    if (known.client && !known.client->field) {
        object.client = known.client;
    } else if (known.client) {
        const auto client = new_offset_of(known, *known.client->field, object);
        object.client = client ? std::optional{snapshot::ClientSpec{client}} : std::nullopt;
    }
}

/// Reads what differs for each viewer: the whole object, or a list of fields.
void parse_per_viewer(const JsonReader& in, CustomObject& object) {
    const json::value* const value = in.value("per_viewer");
    if (value == nullptr || value->is_bool()) {
        object.merge.per_session = object.merge.per_session || in.flag("per_viewer");
        return;
    }
    if (!value->is_array()) {
        in.fail("'per_viewer' must be true, or a list of fields");
    }
    for (const json::value& name : value->get_array()) {
        const auto field = name.is_string() ? std::ranges::find(object.read_fields,
                                                                std::string_view{name.get_string()},
                                                                &FieldSpec::name)
                                            : object.read_fields.end();
        if (field == object.read_fields.end()) {
            in.fail("'per_viewer' lists names of the object's fields");
        }
        field->merge = FieldMerge::per_viewer;
    }
}

void parse_roles(const JsonReader& in, CustomObject& object) {
    if (const json::object* position = in.object("position"); position != nullptr) {
        const JsonReader at{in.where() + ", position", *position};
        at.require_known_keys({"x", "y", "per_unit"});
        const auto offset = [&](std::string_view key) {
            return int_field(in, object, "position", at.text(key)).offset;
        };
        object.position = snapshot::PositionSpec{
            .x = offset("x"),
            .y = offset("y"),
            .per_unit = static_cast<std::uint8_t>(at.number("per_unit", 1, 100, 1))};
    }
    const bool is_id = in.flag("id_is_client");
    if (is_id && in.has("client")) {
        in.fail("give either 'client' (a field) or 'id_is_client'");
    }
    if (is_id) {
        object.client = snapshot::ClientSpec{};
    } else if (in.has("client")) {
        FieldSpec& field = int_field(in, object, "client", in.text("client"));
        field.merge = FieldMerge::client;
        object.client = snapshot::ClientSpec{field.offset};
    }
    parse_per_viewer(in, object);
}

/// Reads the identifier of an entry. Returns the standard object with that identifier; null if
/// there is none.
const ObjectSpec* parse_object_identifier(const JsonReader& in, CustomObject& object,
                                          SpecStorage& storage) {
    const TypeIdentifier id =
        parse_identifier(in, "type", snapshot::kFirstUuidType - 1, "an object");
    object.type = id.number;
    object.dialect = id.dialect;
    object.uuid = id.uuid;
    object.uuid_name = storage.keep(id.uuid_name);
    return in.has("uuid") ? snapshot::find_object(object.uuid)
                          : snapshot::find_object(object.type, object.dialect);
}

/// True if deltas leave out the object's size. If the entry does not say so, the table of sizes
/// that servers and clients know (snapshot::AgreedSizes) decides.
bool parse_agreed(const JsonReader& in, const CustomObject& object) {
    const bool can_be = object.type != 0 && object.type < snapshot::AgreedSizes{}.size();
    const bool agreed =
        in.has("agreed_size")
            ? in.flag("agreed_size")
            : can_be &&
                  snapshot::agreed_size(object.type, snapshot::agreed_sizes(object.dialect)) != 0;
    if (agreed && !can_be) {
        in.fail("'agreed_size' is only for numbers below 64: clients have no room for others");
    }
    if (agreed && object.size == 0) {
        in.fail("an agreed size needs 'fields': it is the number of their ints");
    }
    return agreed;
}

CustomObject parse_object(const JsonReader& in, SpecStorage& storage) {
    in.require_known_keys({"name", "type", "uuid", "protocol", "agreed_size", "fields", "position",
                           "client", "id_is_client", "per_viewer"});
    CustomObject object;
    const ObjectSpec* const known = parse_object_identifier(in, object, storage);
    object.name = known == nullptr || in.has("name") ? storage.keep(in.name("name")) : known->name;
    parse_fields(in, known, object, storage);
    object.agreed = parse_agreed(in, object);
    if (known != nullptr) {
        object.kind = known->kind;
        object.merge = known->merge;
        inherit_roles(*known, object);
    }
    parse_roles(in, object);
    object.fields = storage.keep(std::move(object.read_fields));
    return object;
}

/// Checks that no other object has this name. Each protocol may have one object of a name.
void check_name(const JsonReader& in, const CustomObject& object, const ObjectSet& objects) {
    const auto same_protocol = [&](const ObjectSpec& other) {
        return object.type == 0 || other.type == 0 || other.dialect == object.dialect;
    };
    const auto custom = objects.custom();
    const auto twin = std::ranges::find_if(custom, [&](const ObjectSpec& other) {
        return other.name == object.name && same_protocol(other);
    });
    if (twin != custom.end()) {
        in.fail(fmt::format("the name '{}' is that of object {} already; give each its own",
                            object.name, twin - custom.begin()));
    }
    const auto table = snapshot::object_table();
    const auto known = std::ranges::find_if(table, [&](const ObjectSpec& other) {
        const bool redefines = other.type == object.type && other.uuid == object.uuid;
        return other.name == object.name && same_protocol(other) && !redefines;
    });
    if (known != table.end()) {
        in.fail(fmt::format("the name '{}' is that of a known object; give this one another",
                            object.name));
    }
}

void add_object(const JsonReader& in, wire::ModDescription& mod) {
    const CustomObject object = parse_object(in, mod.storage);
    const auto custom = mod.objects.custom();
    const auto twin = std::ranges::find_if(custom, [&](const ObjectSpec& other) {
        return other.type == object.type && other.uuid == object.uuid &&
               (object.type == 0 || other.dialect == object.dialect);
    });
    if (twin != custom.end()) {
        in.fail(fmt::format("already exists: object {} has the same {}", twin - custom.begin(),
                            object.type == 0 ? "UUID" : "type"));
    }
    check_name(in, object, mod.objects);
    if (custom.size() == ObjectSet::kMaxCustom) {
        in.fail(fmt::format("a file may describe at most {} objects", ObjectSet::kMaxCustom));
    }
    if (!mod.objects.add(object, object.agreed)) {
        in.fail("cannot be added: numbers are 1 to 16383, and only those below 64 can have an "
                "agreed size");
    }
}

} // namespace

void add_objects_flag(Command& command, std::string& file, const std::string& use) {
    command.add("--objects", &file, "FILE",
                "JSON file describing a mod's objects and messages" + use +
                    " (snapshot/OBJECTS.md)");
}

void read_objects_file(const std::string& path, wire::ModDescription& mod) {
    if (path.empty()) {
        return;
    }
    const auto text = base::read_small_file(path, kMaxBytes);
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
    const JsonReader top{"--objects " + path, root.get_object()};
    top.require_known_keys({"objects", "messages"});
    if (!top.has("objects") && !top.has("messages")) {
        top.fail("has no 'objects' and no 'messages'");
    }
    for (const JsonReader& object : top.elements("objects", "object")) {
        add_object(object, mod);
    }
    for (const JsonReader& message : top.elements("messages", "message")) {
        add_message(message, mod);
    }
}

} // namespace tw::cli
