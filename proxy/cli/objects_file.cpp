#include "proxy/cli/objects_file.h"

#include "proxy/base/files.h"
#include "proxy/base/numbers.h"
#include "proxy/cli/settings.h"

#include <initializer_list>
#include <stdexcept>
#include <utility>

#include <boost/json.hpp>
#include <boost/uuid/name_generator_md5.hpp>
#include <boost/uuid/string_generator.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tw::cli {

namespace {

namespace json = boost::json;
using snapshot::Dialect;
using snapshot::FieldKind;
using snapshot::FieldMerge;
using snapshot::FieldSpec;
using snapshot::ObjectSet;
using snapshot::ObjectSpec;
using snapshot::SpecStorage;
using snapshot::Uuid;
using wire::FieldType;
using wire::MessageField;
using wire::MessageSet;
using wire::MessageSpec;

/// The most ints of an item. Snapshots could contain larger items, but no game uses them.
constexpr std::int64_t kMaxItemInts = 255;

/// The largest file. A thousand objects with all their fields take a few hundred KiB.
constexpr std::size_t kMaxObjectsFileBytes = std::size_t{16} << 20U;

/// The most bytes of a name from which a UUID is made.
constexpr std::size_t kMaxUuidNameBytes = 255;

/// The most fields of a message; more than twice as many as any message of the game has.
constexpr std::size_t kMaxMessageFields = 255;

/// The error for a wrong member of `names`.
constexpr const char* kInvalidNames = R"('names' maps numbers to strings: {"0": "red"})";

/// The namespace of UUIDs that are made from names (see uuid_of_name).
constexpr boost::uuids::uuid kUuidNamespace{{0xe0, 0x5d, 0xda, 0xaa, 0xc4, 0xe6, 0x4c, 0xfb, 0xb6,
                                             0x42, 0x5d, 0x48, 0xe8, 0x0c, 0x00, 0x29}};

/// True if a value's name can be written to records without escapes.
bool needs_no_escape(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) {
        return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    });
}

Uuid to_uuid(const boost::uuids::uuid& made) {
    Uuid uuid{};
    std::copy(made.begin(), made.end(), uuid.begin());
    return uuid;
}

/// Reads the members of an object in a JSON file. Every error is a UsageError that names the flag,
/// the file, the wrong entry, and what is expected.
class JsonReader {
  public:
    /// `where`: the prefix of errors, such as "--objects mod.json, object 3".
    JsonReader(std::string where, const json::object& object)
        : where_{std::move(where)}, object_{&object} {}

    template <typename... Args>
    [[noreturn]] void fail(fmt::format_string<Args...> what, Args&&... args) const {
        throw usage_error("{}: {}", where_, fmt::format(what, std::forward<Args>(args)...));
    }

    /// Fails if the object has a key that is not in `keys`.
    void require_known_keys(std::initializer_list<std::string_view> keys) const {
        for (const auto& member : *object_) {
            const std::string_view key{member.key()};
            if (std::ranges::find(keys, key) == keys.end()) {
                fail("unknown key '{}'; known keys are {}", key, fmt::join(keys, ", "));
            }
        }
    }

    [[nodiscard]] bool has(std::string_view key) const { return object_->contains(key); }

    /// The value of a key; null if it is missing.
    [[nodiscard]] const json::value* value(std::string_view key) const {
        return object_->if_contains(key);
    }

    /// Returns a text that must not be empty.
    [[nodiscard]] std::string text(std::string_view key) const {
        const json::value* const found = value(key);
        if (found == nullptr || !found->is_string() || found->get_string().empty()) {
            fail("'{}' must be a string", key);
        }
        return std::string{found->get_string().c_str()};
    }

    /// Returns a text that records and filters can use as a key: letters, digits and '_'.
    [[nodiscard]] std::string name(std::string_view key) const {
        std::string name = text(key);
        const bool is_key =
            std::ranges::all_of(std::string_view{value(key)->get_string()}, [](char c) {
                return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_';
            });
        if (!is_key) {
            fail("'{}' may hold only letters, digits and '_'", key);
        }
        return name;
    }

    /// Returns the value for the key's word in `words`; the first value if the key is missing.
    template <typename Value>
    [[nodiscard]] Value
    choice(std::string_view key,
           std::initializer_list<std::pair<std::string_view, Value>> words) const {
        using Word = std::pair<std::string_view, Value>;
        const auto* const word =
            has(key) ? std::ranges::find(words, text(key), &Word::first) : words.begin();
        if (word == words.end()) {
            std::vector<std::string_view> known;
            std::ranges::transform(words, std::back_inserter(known), &Word::first);
            fail("'{}' must be one of {}", key, fmt::join(known, ", "));
        }
        return word->second;
    }

    [[nodiscard]] std::int64_t number(std::string_view key, std::int64_t min, std::int64_t max,
                                      std::int64_t fallback) const {
        const json::value* const found = value(key);
        if (found == nullptr) {
            return fallback;
        }
        if (!found->is_int64() || found->get_int64() < min || found->get_int64() > max) {
            fail("'{}' must be a number from {} to {}", key, min, max);
        }
        return found->get_int64();
    }

    /// Returns a true or false value; false if the key is missing.
    [[nodiscard]] bool flag(std::string_view key) const {
        const json::value* const found = value(key);
        if (found != nullptr && !found->is_bool()) {
            fail("'{}' must be true or false", key);
        }
        return found != nullptr && found->get_bool();
    }

    [[nodiscard]] const json::object* object(std::string_view key) const {
        const json::value* const found = value(key);
        if (found != nullptr && !found->is_object()) {
            fail("'{}' must be an object", key);
        }
        return found == nullptr ? nullptr : &found->get_object();
    }

    /// Returns a reader for each object of a list; empty if the key is missing. Errors name an
    /// object by `what` and its index.
    [[nodiscard]] std::vector<JsonReader> elements(std::string_view key,
                                                   std::string_view what) const {
        std::vector<JsonReader> elements;
        const json::value* const found = value(key);
        if (found == nullptr) {
            return elements;
        }
        if (!found->is_array() ||
            !std::ranges::all_of(found->get_array(), &json::value::is_object)) {
            fail("'{}' must be a list of objects", key);
        }
        for (const json::value& each : found->get_array()) {
            elements.emplace_back(fmt::format("{}, {} {}", where_, what, elements.size()),
                                  each.get_object());
        }
        return elements;
    }

    [[nodiscard]] const std::string& where() const { return where_; }

  private:
    std::string where_;
    const json::object* object_;
};

/// How a file identifies an object or a message: by a number of a protocol, or by a UUID.
struct TypeIdentifier {
    std::uint16_t number = 0; ///< 0 if there is a UUID
    Dialect dialect = Dialect::six;
    Uuid uuid{};
    std::string uuid_name{}; ///< the name that the UUID was made from; empty if there is none
};

/// Reads a UUID, or a name from which a UUID is made.
TypeIdentifier parse_uuid(const JsonReader& in) {
    const std::string text = in.text("uuid");
    if (text.find('@') != std::string::npos) {
        if (text.size() > kMaxUuidNameBytes || !needs_no_escape(text)) {
            in.fail("'uuid' is not the name of a UUID: at most {} bytes, without quotes, "
                    "backslashes and control characters",
                    kMaxUuidNameBytes);
        }
        return {.uuid = uuid_of_name(text), .uuid_name = text};
    }
    try {
        return {.uuid = to_uuid(boost::uuids::string_generator{}(text))};
    } catch (const std::runtime_error&) {
        in.fail("'{}' is not a UUID (32 hexadecimal digits), nor the name of one, like "
                "object@infclass",
                text);
    }
}

/// Reads an identifier from the keys `number` and "protocol", or from the key "uuid". `number`: the
/// name of the key with the number. `max`: the largest valid number.
TypeIdentifier parse_identifier(const JsonReader& in, std::string_view number, std::uint16_t max) {
    if (in.has(number) == in.has("uuid")) {
        in.fail("give either '{}' or 'uuid' (a UUID, or the name it is made of)", number);
    }
    if (!in.has("uuid")) {
        return {.number = static_cast<std::uint16_t>(in.number(number, 1, max, 0)),
                .dialect = in.choice<Dialect>("protocol",
                                              {{"0.6", Dialect::six}, {"0.7", Dialect::seven}})};
    }
    if (in.has("protocol")) {
        in.fail("'protocol' is only for numbers: what has a UUID is the same in 0.6 and 0.7");
    }
    return parse_uuid(in);
}

std::int64_t parse_value(const JsonReader& in, std::string_view text) {
    const auto value = base::parse_number<std::int64_t>(text);
    if (!value) {
        in.fail("{}", kInvalidNames);
    }
    if (*value < INT32_MIN || *value > UINT32_MAX) {
        in.fail("'names': {} is not a number of 32 bits", *value);
    }
    return *value;
}

/// Reads the keys `names` and `flags` of a field. Returns true if there are names, and then sets
/// `names`.
bool parse_names(const JsonReader& in, std::string_view field, bool is_int,
                 const snapshot::NameTable*& names, SpecStorage& storage) {
    const bool flags = in.flag("flags");
    const json::object* const members = in.object("names");
    if (members == nullptr) {
        if (flags && names == nullptr) {
            in.fail("'flags' needs 'names': the names of the bits");
        }
        return false;
    }
    if (!is_int) {
        in.fail("only a single int can have 'names'");
    }
    std::vector<snapshot::NamedValue> values;
    for (const auto& member : *members) {
        const std::int64_t value = parse_value(in, member.key());
        if (!member.value().is_string()) {
            in.fail("{}", kInvalidNames);
        }
        const std::string_view name{member.value().get_string()};
        if (!needs_no_escape(name)) {
            in.fail("'names' may not hold quotes, backslashes or control characters");
        }
        values.push_back({value, storage.keep(std::string{name})});
    }
    if (values.empty()) {
        return false;
    }
    names = &storage.keep(snapshot::NameTable{field, flags, storage.keep(std::move(values))});
    return true;
}

bool has_same_identifier(const ObjectSpec& a, const ObjectSpec& b) {
    return a.type == b.type && a.uuid == b.uuid && (a.type == 0 || a.dialect == b.dialect);
}

bool has_same_identifier(const MessageSpec& a, const MessageSpec& b) {
    return a.number == b.number && a.uuid == b.uuid &&
           (a.number == 0 || (a.system == b.system && a.dialect == b.dialect));
}

/// Fails if the file has already described the identifier of `spec`. Also fails if another spec of
/// the file or of the game has the same name in the same protocol. `known`: the game's specs.
/// `number`: the member with a spec's number in its protocol, which is 0 for a spec with a UUID.
template <typename Spec, typename Set>
void check_spec_is_new(const JsonReader& in, std::string_view what, const Spec& spec,
                       std::uint16_t Spec::*number, const Set& added, std::span<const Spec> known) {
    const std::span<const Spec> custom = added.custom();
    const auto twin = std::ranges::find_if(
        custom, [&](const Spec& other) { return has_same_identifier(other, spec); });
    if (twin != custom.end()) {
        in.fail("is the same as {} {}, which is described already", what, twin - custom.begin());
    }
    for (const auto& list : {known, custom}) {
        for (const Spec& other : list) {
            const bool shares_protocol =
                spec.*number == 0 || other.*number == 0 || spec.dialect == other.dialect;
            if (other.name == spec.name && shares_protocol && !has_same_identifier(other, spec)) {
                in.fail("the name '{}' is that of another {}; give each its own", spec.name, what);
            }
        }
    }
    if (custom.size() == Set::kMaxCustom) {
        in.fail("a file may describe at most {} {}s", Set::kMaxCustom, what);
    }
}

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
    bool has_agreed_size = false; ///< deltas leave out the size of the object's items
};

/// Reads a field of an object. Keys that the file leaves out have the values of the known object's
/// field with the same name, if there is one.
FieldSpec parse_object_field(const JsonReader& in, std::int64_t offset,
                             const ObjectSpec* known_object, SpecStorage& storage) {
    in.require_known_keys({"name", "kind", "count", "names", "flags"});
    const std::string& name = storage.keep(in.name("name"));
    const FieldSpec* const known = find_field_named(known_object, name);
    FieldSpec field = known == nullptr ? FieldSpec{.name = name} : *known;
    if (offset >= kMaxItemInts) {
        in.fail("an object may have at most {} ints, which the fields before this one use up",
                kMaxItemInts);
    }
    const std::int64_t count = in.number("count", 1, kMaxItemInts - offset, field.count);
    field.offset = static_cast<std::uint8_t>(offset);
    if (count > kMaxItemInts - offset) {
        in.fail("'count' is {} for this field of a known object, but only {} of the {} ints of an "
                "object are left",
                count, kMaxItemInts - offset, kMaxItemInts);
    }
    const bool is_list = field.kind == FieldKind::int_string || field.kind == FieldKind::integers;
    if (in.has("kind") || (count != field.count && !is_list)) {
        field.kind = in.choice<FieldKind>("kind", {{"int", FieldKind::integer},
                                                   {"bool", FieldKind::boolean},
                                                   {"string", FieldKind::int_string},
                                                   {"tick", FieldKind::tick}});
        if (field.kind == FieldKind::integer && count > 1) {
            field.kind = FieldKind::integers;
        }
        field.names = nullptr;
    }
    field.count = static_cast<std::uint8_t>(count);
    const bool is_int =
        field.count == 1 && (field.kind == FieldKind::integer || field.kind == FieldKind::named);
    if (parse_names(in, name, is_int, field.names, storage)) {
        field.kind = FieldKind::named;
        field.names_when = 0;
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
        FieldSpec field = parse_object_field(field_in, size, known, storage);
        if (std::ranges::find(object.read_fields, field.name, &FieldSpec::name) !=
            object.read_fields.end()) {
            field_in.fail("the object already has a field '{}'", field.name);
        }
        if (field.names_when != 0 &&
            (object.read_fields.empty() ||
             !is_next_field(*known, object.read_fields.back().name, field.name))) {
            // The known object explains this field's values by the field directly before it. That
            // field is not there, so the values remain plain integers.
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
FieldSpec& find_int_field(const JsonReader& in, CustomObject& object, std::string_view role,
                          std::string_view name) {
    const auto found = std::ranges::find(object.read_fields, name, &FieldSpec::name);
    if (found == object.read_fields.end()) {
        in.fail("{}: there is no field '{}'", role, name);
    }
    if (found->count != 1 || found->kind == FieldKind::int_string) {
        in.fail("{}: the field '{}' must be a single int", role, name);
    }
    return *found;
}

/// Returns the offset in `object` of the field that `known` has at `offset`; nullopt if `object`
/// has no field of that name.
std::optional<std::uint8_t> find_new_offset(const ObjectSpec& known, std::uint8_t offset,
                                            const CustomObject& object) {
    const auto of_known = std::ranges::find(known.fields, offset, &FieldSpec::offset);
    if (of_known == known.fields.end()) {
        return std::nullopt;
    }
    const auto found = std::ranges::find(object.read_fields, of_known->name, &FieldSpec::name);
    return found == object.read_fields.end() || found->count != 1 ? std::nullopt
                                                                  : std::optional{found->offset};
}

/// Makes the same fields the position and the client as in the known object, if the new object has
/// these fields.
void inherit_roles(const ObjectSpec& known, CustomObject& object) {
    if (known.position) {
        const auto x = find_new_offset(known, known.position->x, object);
        const auto y = find_new_offset(known, known.position->y, object);
        if (x && y) {
            object.position = snapshot::PositionSpec{*x, *y, known.position->per_unit};
        }
    }
    if (known.client && !known.client->field) {
        object.client = known.client;
    } else if (known.client) {
        const auto client = find_new_offset(known, *known.client->field, object);
        object.client = client ? std::optional{snapshot::ClientIdSpec{client}} : std::nullopt;
    }
}

/// Reads the key `per_viewer`. It is true if all values of the object depend on the viewer.
/// Otherwise it lists the fields whose values depend on the viewer.
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
            return find_int_field(in, object, "position", at.text(key)).offset;
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
        object.client = snapshot::ClientIdSpec{};
    } else if (in.has("client")) {
        FieldSpec& field = find_int_field(in, object, "client", in.text("client"));
        field.merge = FieldMerge::client_id;
        object.client = snapshot::ClientIdSpec{field.offset};
    }
    parse_per_viewer(in, object);
}

/// Reads the identifier of an entry. Returns the standard object with that identifier; null if
/// there is none.
const ObjectSpec* parse_object_identifier(const JsonReader& in, CustomObject& object,
                                          SpecStorage& storage) {
    const TypeIdentifier id = parse_identifier(in, "type", snapshot::kFirstUuidType - 1);
    object.type = id.number;
    object.dialect = id.dialect;
    object.uuid = id.uuid;
    object.uuid_name = storage.keep(id.uuid_name);
    return in.has("uuid") ? snapshot::find_object(object.uuid)
                          : snapshot::find_object(object.type, object.dialect);
}

/// True if deltas leave out the object's size. If the entry does not say, the table of sizes that
/// servers and clients know (snapshot::AgreedSizes) decides.
bool parse_has_agreed_size(const JsonReader& in, const CustomObject& object) {
    const bool can_be = object.type != 0 && object.type < snapshot::AgreedSizes{}.size();
    const bool has_agreed_size =
        in.has("agreed_size")
            ? in.flag("agreed_size")
            : can_be &&
                  snapshot::agreed_size(object.type, snapshot::agreed_sizes(object.dialect)) != 0;
    if (has_agreed_size && !can_be) {
        in.fail("'agreed_size' is only for numbers below 64: clients have no room for others");
    }
    if (has_agreed_size && object.size == 0) {
        in.fail("an agreed size needs 'fields': it is the number of their ints");
    }
    return has_agreed_size;
}

CustomObject parse_object(const JsonReader& in, SpecStorage& storage) {
    in.require_known_keys({"name", "type", "uuid", "protocol", "agreed_size", "fields", "position",
                           "client", "id_is_client", "per_viewer"});
    CustomObject object;
    const ObjectSpec* const known = parse_object_identifier(in, object, storage);
    object.name = known == nullptr || in.has("name") ? storage.keep(in.name("name")) : known->name;
    parse_fields(in, known, object, storage);
    object.has_agreed_size = parse_has_agreed_size(in, object);
    if (known != nullptr) {
        object.kind = known->kind;
        object.merge = known->merge;
        inherit_roles(*known, object);
    }
    parse_roles(in, object);
    object.fields = storage.keep(std::move(object.read_fields));
    return object;
}

void add_object(const JsonReader& in, wire::ModDescription& mod) {
    const CustomObject object = parse_object(in, mod.storage);
    check_spec_is_new<ObjectSpec>(in, "object", object, &ObjectSpec::type, mod.objects,
                                  snapshot::object_table());
    if (!mod.objects.add(object, object.has_agreed_size)) {
        in.fail("cannot be added: numbers are 1 to 16383, and only those below 64 can have an "
                "agreed size");
    }
}

bool fills_rest_of_message(FieldType type) {
    return type == FieldType::array || type == FieldType::raw_until_end;
}

MessageField parse_message_field(const JsonReader& in, const std::vector<MessageField>& fields,
                                 SpecStorage& storage) {
    constexpr auto kUntilEnd = MessageField::kUntilEnd;
    in.require_known_keys({"name", "kind", "optional", "secret", "names", "flags"});
    auto field = in.choice<MessageField>(
        "kind",
        {{"int", {}},
         {"bool", {.type = FieldType::boolean, .min = 0, .max = 1}}, // as in game programs
         {"tick", {.type = FieldType::tick}},
         {"string", {.type = FieldType::string}},
         {"uuid", {.type = FieldType::uuid}},
         {"bytes", {.type = FieldType::raw}},
         {"ints", {.type = FieldType::array, .count = kUntilEnd}},
         {"strings", {.type = FieldType::array, .element = FieldType::string, .count = kUntilEnd}},
         {"rest", {.type = FieldType::raw_until_end}}});
    field.name = storage.keep(in.name("name"));
    field.optional = in.flag("optional");
    field.secrecy = in.flag("secret") ? wire::Secrecy::secret : wire::Secrecy::open;
    const MessageField* const before = fields.empty() ? nullptr : &fields.back();
    if (std::ranges::find(fields, field.name, &MessageField::name) != fields.end()) {
        in.fail("the message already has a field '{}'", field.name);
    }
    if (before != nullptr && fills_rest_of_message(before->type)) {
        in.fail("nothing can follow '{}', which takes all that is left", before->name);
    }
    if (before != nullptr && before->optional && !field.optional) {
        in.fail("follows the optional '{}', so it must be optional, too", before->name);
    }
    if (field.type == FieldType::raw && (before == nullptr || before->type != FieldType::integer)) {
        in.fail("bytes need an int directly before them, which says how many they are");
    }
    static_cast<void>(
        parse_names(in, field.name, field.type == FieldType::integer, field.names, storage));
    return field;
}

MessageSpec parse_message(const JsonReader& in, SpecStorage& storage) {
    using wire::MessageDirection;
    in.require_known_keys(
        {"name", "number", "uuid", "protocol", "system", "from", "secret", "fields"});
    MessageSpec message{.name = storage.keep(in.name("name"))};
    const TypeIdentifier id = parse_identifier(in, "number", UINT16_MAX);
    message.number = id.number;
    message.dialect = id.dialect;
    message.uuid = id.uuid;
    message.uuid_name = storage.keep(id.uuid_name);
    message.system = in.flag("system");
    message.secrecy = in.flag("secret") ? wire::Secrecy::secret : wire::Secrecy::open;
    message.direction = in.choice<MessageDirection>("from", {{"both", MessageDirection::both},
                                                             {"server", MessageDirection::s2c},
                                                             {"client", MessageDirection::c2s}});
    const std::vector<JsonReader> fields = in.elements("fields", "field");
    if (fields.size() > kMaxMessageFields) {
        in.fail("a message may have at most {} fields", kMaxMessageFields);
    }
    std::vector<MessageField> specs;
    for (const JsonReader& field : fields) {
        specs.push_back(parse_message_field(field, specs, storage));
    }
    message.fields = storage.keep(std::move(specs));
    return message;
}

void add_message(const JsonReader& in, wire::ModDescription& mod) {
    const MessageSpec message = parse_message(in, mod.storage);
    check_spec_is_new(in, "message", message, &MessageSpec::number, mod.messages,
                      wire::message_table());
    if (!mod.messages.add(message)) {
        in.fail("twscope itself reads the message of this number or UUID, so it cannot be "
                "described anew");
    }
}

} // namespace

Uuid uuid_of_name(std::string_view name) {
    return to_uuid(boost::uuids::name_generator_md5{kUuidNamespace}(name.data(), name.size()));
}

void add_objects_flag(Command& command, std::string& file, const std::string& use) {
    command.add("--objects", &file, "FILE",
                "JSON file describing a mod's objects and messages" + use +
                    " (snapshot/OBJECTS.md)");
}

void read_objects_file(const std::string& path, wire::ModDescription& mod) {
    if (path.empty()) {
        return;
    }
    const auto text = base::read_small_file(path, kMaxObjectsFileBytes);
    if (!text) {
        throw usage_error("--objects {}: {}; name a file with {{\"objects\": [...]}}", path,
                          text.error().message());
    }
    boost::system::error_code error;
    const json::value root = json::parse(*text, error);
    if (error || !root.is_object()) {
        throw usage_error("--objects {}: {}; expected {{\"objects\": [...]}}", path,
                          error ? error.message() : "is not a JSON object");
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
