// Covers: proxy/wire/message_layouts.cpp
// Covers: proxy/wire/messages_seven.cpp
#include "proxy/wire/message.h"
#include "snapshot/names.h"
#include "tests/proxy/wire/fields_text.h"
#include "tests/support/message_builder.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tw::wire::test {
namespace {

using snapshot::Dialect;
using tw::test::MessageBuilder;

namespace json = boost::json;

const json::object& reference_spec(Dialect dialect = Dialect::six) {
    return spec_file(dialect == Dialect::six ? "gamenet-0.6-ddnet.json" : "gamenet-0.7.json");
}

std::string uuid_text(const snapshot::Uuid& uuid) {
    std::string hex = to_hex(std::as_bytes(std::span{uuid}));
    for (const std::size_t at : {20U, 16U, 12U, 8U}) {
        hex.insert(at, 1, '-');
    }
    return hex;
}

/// Returns type_name_of() for a field of the reference.
std::string expected_type(const json::object& field) {
    static const std::map<std::string, std::string> kinds{{"int", "int"},
                                                          {"int_range", "int"},
                                                          {"enum", "int"},
                                                          {"flags", "int"},
                                                          {"bool", "bool"},
                                                          {"tick", "tick"},
                                                          {"string", "string"},
                                                          {"string_strict", "string"},
                                                          {"string_halfstrict", "string"},
                                                          {"string[until end]", "string[end]"},
                                                          {"uuid", "uuid"},
                                                          {"raw[32]", "sha256"},
                                                          {"raw[rest]", "rest"},
                                                          {"raw[size]", "raw"},
                                                          {"raw[part_size]", "raw"},
                                                          {"int[size/4]", "object"},
                                                          {"object:projectile", "objects"}};
    const std::string kind = kinds.at(text_at(field, "type"));
    const auto* const count = field.if_contains("count");
    if (count == nullptr || kind == "objects") {
        return kind;
    }
    // The number of a message's "by id" parameters depends on the id; no fields follow them.
    const std::string text = text_at(field, "count");
    const bool until_end = text == "until end of message" || text == "by id";
    return kind + (until_end            ? "[end]"
                   : count->is_string() ? "[counted]"
                                        : '[' + json::serialize(*count) + ']');
}

std::string type_name_of(const MessageField& field) {
    switch (field.type) {
    case FieldType::integer:
        return "int";
    case FieldType::boolean:
        return "bool";
    case FieldType::tick:
        return "tick";
    case FieldType::string:
        return "string";
    case FieldType::uuid:
        return "uuid";
    case FieldType::sha256:
        return "sha256";
    case FieldType::raw_until_end:
        return "rest";
    case FieldType::raw:
        return "raw";
    case FieldType::object:
        return "object";
    case FieldType::objects:
        return "objects";
    case FieldType::array:
        return type_name_of({.type = field.element}) +
               (field.count == MessageField::kUntilEnd ? "[end]"
                : field.count == 0                     ? "[counted]"
                                                       : '[' + std::to_string(field.count) + ']');
    default:
        return "?";
    }
}

/// Returns how the reference sanitises a string field. In game messages, the type determines it.
std::uint8_t expected_cleaning(const MessageSpec& spec, const json::object& field) {
    static const std::map<std::string, std::uint8_t> game{
        {"string", 1}, {"string_halfstrict", 2}, {"string_strict", 6}};
    const auto type = text_at(field, "type");
    if (type.rfind("string", 0) != 0) {
        return 0;
    }
    if (!spec.system) {
        return game.at(type);
    }
    const bool map_name = spec.id == MessageId::map_change || spec.id == MessageId::map_details;
    if (map_name && text_at(field, "name") == "name") {
        return 6;
    }
    return spec.name == "rcon_line" ? 1 : 2;
}

void check_field(const MessageSpec& spec, const MessageField& field, const json::object& wanted) {
    CAPTURE(field.name);
    CHECK(field.name == text_at(wanted, "name"));
    CHECK(type_name_of(field) == expected_type(wanted));
    CHECK(field.min == integer_at(wanted, "min", INT32_MIN));
    CHECK(field.max == integer_at(wanted, "max", INT32_MAX));
    if (wanted.contains("flags")) {
        REQUIRE(field.names != nullptr);
        CHECK(field.names->name == text_at(wanted, "flags"));
    }
    if (spec.dialect == Dialect::seven) {
        return; // the reference of 0.7 does not say what follows
    }
    const bool tuning = spec.id == MessageId::sv_tune_params;
    const bool optional = wanted.contains("optional") || wanted.contains("default") || tuning;
    CHECK(field.optional == optional);
    CHECK(field.default_value.has_value() == wanted.contains("default"));
    if (field.default_value) {
        CHECK(*field.default_value == integer_at(wanted, "default", -1));
    }
    CHECK(field.sanitize == expected_cleaning(spec, wanted));
}

/// Returns the messages of 0.7, or those of 0.6 and those with a UUID.
std::vector<const MessageSpec*> messages_of(Dialect dialect) {
    std::vector<const MessageSpec*> own;
    for (const MessageSpec& spec : message_table()) {
        if (spec.dialect == dialect) {
            own.push_back(&spec);
        }
    }
    return own;
}

/// Returns the number of fields that twscope adds after those of the reference: ints that later
/// versions may add to the tunings, and in 0.7 the fields of DDNet.
std::size_t surplus_field_count(const MessageSpec& spec) {
    if (spec.dialect == Dialect::six) {
        return spec.id == MessageId::sv_tune_params ? 1 : 0;
    }
    constexpr std::size_t kTunings = 15; // DDNet's own tunings and the surplus ints
    return spec.id == MessageId::sv_tune_params                                  ? kTunings
           : spec.name == "enter_game" || spec.name == "sv_vote_option_list_add" ? 1
                                                                                 : 0;
}

void check_message(const MessageSpec& spec, bool system, const json::object& wanted) {
    CAPTURE(spec.name);
    static const std::map<std::string, MessageDirection> directions{
        {"c2s", MessageDirection::c2s},
        {"s2c", MessageDirection::s2c},
        {"both", MessageDirection::both},
        {"none", MessageDirection::none},
        {"demo", MessageDirection::none}};
    CHECK(spec.name == text_at(wanted, "name"));
    CHECK(spec.system == system);
    CHECK(spec.number == integer_at(wanted, "id", 0));
    CHECK(spec.direction == directions.at(text_at(wanted, "direction")));
    CHECK(spec.vital == wanted.at("vital").as_bool());
    CHECK((spec.removed_in != 0) == wanted.contains("until"));
    CHECK(spec.uuid_name == text_at(wanted, "uuid_name"));
    if (wanted.contains("uuid")) {
        CHECK(uuid_text(spec.uuid) == text_at(wanted, "uuid"));
    }
    const auto* const listed = wanted.if_contains("fields");
    const json::array fields = listed == nullptr ? json::array{} : listed->as_array();
    REQUIRE(spec.fields.size() == fields.size() + surplus_field_count(spec));
    for (std::size_t i = 0; i < fields.size(); ++i) {
        check_field(spec, spec.fields[i], fields[i].as_object());
    }
    CHECK((surplus_field_count(spec) == 0 || spec.fields.back().optional));
}

/// Returns whether the field is the number of elements of the array after it.
bool counts_next_array(const MessageField& field, const MessageSpec& spec) {
    const auto* const next = &field + 1;
    return next < spec.fields.data() + spec.fields.size() && next->type == FieldType::array &&
           next->count == 0;
}

/// Appends a value of a field: the largest one if `high`, else the smallest.
void append_sample(MessageBuilder& out, const MessageSpec& spec, const MessageField& field,
                   bool high) {
    const bool has_length =
        &field + 1 != spec.fields.data() + spec.fields.size() &&
        ((&field + 1)->type == FieldType::raw || (&field + 1)->type == FieldType::object ||
         (&field + 1)->type == FieldType::objects || counts_next_array(field, spec));
    switch (field.type) {
    case FieldType::integer:
    case FieldType::boolean:
    case FieldType::tick:
        if (has_length) {
            out.number((&field + 1)->type == FieldType::objects || counts_next_array(field, spec)
                           ? 2
                           : 40);
        } else {
            out.number(static_cast<std::int32_t>(high ? field.max : field.min));
        }
        return;
    case FieldType::string:
        out.string(high ? "ab c" : "");
        return;
    case FieldType::raw:
        out.raw(std::vector<std::byte>(40, std::byte{7}));
        return;
    case FieldType::uuid:
        out.raw(std::vector<std::byte>(16, std::byte{9}));
        return;
    case FieldType::sha256:
        out.raw(std::vector<std::byte>(32, std::byte{9}));
        return;
    case FieldType::object:
        for (std::int32_t i = 0; i < 10; ++i) {
            out.number(i);
        }
        return;
    case FieldType::objects:
        for (std::int32_t i = 0; i < 12; ++i) {
            out.number(i);
        }
        return;
    case FieldType::raw_until_end:
        out.raw(std::vector<std::byte>(40, std::byte{7}));
        return;
    case FieldType::array:
        for (int i = 0; i < (field.count % MessageField::kUntilEnd == 0 ? 2 : field.count); ++i) {
            if (field.element == FieldType::string) {
                out.string(high ? "ab c" : "");
            } else {
                out.number(static_cast<std::int32_t>(high ? field.max : field.min));
            }
        }
        return;
    default:
        FAIL("a field type that only connless packets have");
    }
}

} // namespace

TEST_CASE("the message table is the reference's, message by message and field by field") {
    struct Row {
        Dialect dialect;
        std::size_t system, game;
    };

    for (const Row& row : {Row{Dialect::six, 46, 55}, Row{Dialect::seven, 30, 39}}) {
        const auto& system = reference_spec(row.dialect).at("system_messages").as_array();
        const auto& game = reference_spec(row.dialect).at("game_messages").as_array();
        REQUIRE(system.size() == row.system);
        REQUIRE(game.size() == row.game);
        const auto own = messages_of(row.dialect);
        REQUIRE(own.size() == system.size() + game.size());
        for (std::size_t i = 0; i < own.size(); ++i) {
            const bool is_system = i < system.size();
            const auto& wanted = is_system ? system[i] : game[i - system.size()];
            check_message(*own[i], is_system, wanted.as_object());
        }
    }
}

TEST_CASE("every message is found by its number or UUID, and by nothing else") {
    std::set<std::string> uuids;
    for (const auto& spec : message_table()) {
        CAPTURE(spec.name);
        if (spec.number != 0) {
            CHECK(find_message(spec.system, spec.number, spec.dialect) == &spec);
        } else {
            CHECK(find_message(spec.uuid) == &spec);
            CHECK(uuids.insert(uuid_text(spec.uuid)).second);
            auto other = spec.uuid;
            other[15] ^= 1;
            CHECK(find_message(other) == nullptr);
        }
    }
    CHECK(uuids.size() == 44);
    CHECK(find_message(true, 0, Dialect::six) == nullptr);
    CHECK(find_message(false, 0, Dialect::six) == nullptr);
    for (const std::uint16_t number : std::initializer_list<std::uint16_t>{27, 31, 32, 63, 65535}) {
        CAPTURE(number);
        CHECK(find_message(true, number, Dialect::six) == nullptr);
    }
    for (const std::uint16_t number : std::initializer_list<std::uint16_t>{32, 33, 65535}) {
        CHECK(find_message(false, number, Dialect::six) == nullptr);
    }
    for (const auto number : std::initializer_list<std::uint16_t>{0, 31, 40, 63, 64, 65535}) {
        CHECK(find_message(true, number, Dialect::seven) == nullptr);
    }
}

TEST_CASE("names behind ints are the reference's enums and flags") {
    std::map<std::string, const snapshot::NameTable*> used;
    for (const MessageSpec* const spec : messages_of(Dialect::six)) {
        for (const auto& field : spec->fields) {
            // The reference mentions these names only in its notes. message_test.cpp tests them.
            const bool in_notes = field.names == &snapshot::names::chat_team ||
                                  field.names == &snapshot::names::rcontypeflag;
            if (field.names != nullptr && !in_notes) {
                used[std::string{field.names->name}] = field.names;
            }
        }
    }
    CHECK(used.size() >= 8);
    for (const auto& entry : used) {
        const std::string& name = entry.first;
        const auto* const table = entry.second;
        CAPTURE(name);
        auto wanted = table->flags ? reference_spec().at("flags").at(name).as_object()
                      : name == "kill_weapon"
                          ? reference_spec().at("enums").at("weapon").as_object()
                          : reference_spec().at("enums").at(name).as_object();
        if (name == "kill_weapon") {
            for (const auto& special :
                 reference_spec().at("enums").at("weapon_special").as_object()) {
                wanted.insert(special);
            }
        }
        CHECK(table->values.size() == wanted.size());
        for (const auto& value : table->values) {
            CAPTURE(value.name);
            REQUIRE(wanted.contains(value.name));
            CHECK(wanted.at(value.name).as_int64() == value.value);
        }
    }
}

TEST_CASE("every message decodes what its table row says, up to its bounds") {
    DecodedFields fields;
    for (const auto& spec : message_table()) {
        for (const bool high : {false, true}) {
            CAPTURE(spec.name);
            CAPTURE(high);
            MessageBuilder message{spec};
            for (const auto& field : spec.fields) {
                append_sample(message, spec, field, high);
            }
            const auto head = decode_message_header(message.bytes(), spec.dialect).value();
            CHECK(head.spec == &spec);
            decode_fields(spec, head.body, fields);
            CAPTURE(to_text(fields));
            CHECK_FALSE(fields.error);
            CHECK(fields.trailing.empty());
            CHECK(is_balanced(fields));
            CHECK(std::ranges::none_of(fields.values,
                                       [](const FieldValue& value) { return value.out_of_range; }));
        }
    }
}

TEST_CASE("a value out of range is marked") {
    DecodedFields fields;
    int bounds = 0;
    for (const auto& spec : message_table()) {
        for (const auto& field : spec.fields) {
            for (const bool high : {false, true}) {
                const std::int64_t value = high ? field.max + 1 : field.min - 1;
                const bool of_several =
                    field.type == FieldType::array && field.count != MessageField::kUntilEnd;
                if (value < INT32_MIN || value > INT32_MAX || field.type == FieldType::string ||
                    of_several) {
                    continue;
                }
                CAPTURE(spec.name);
                CAPTURE(field.name);
                MessageBuilder body;
                for (const auto& other : spec.fields) {
                    if (&other == &field) {
                        body.number(static_cast<std::int32_t>(value));
                    } else {
                        append_sample(body, spec, other, high);
                    }
                }
                decode_fields(spec, body.bytes(), fields);
                CHECK_FALSE(fields.error);
                const auto marked = std::ranges::count_if(
                    fields.values, [](const FieldValue& v) { return v.out_of_range; });
                CHECK(marked == 1);
                ++bounds;
            }
        }
    }
    CHECK(bounds >= 77);
}

} // namespace tw::wire::test
