// Covers: proxy/wire/message_layouts.cpp
#include "proxy/wire/message.h"
#include "snapshot/names.h"
#include "tests/proxy/wire/fields_text.h"
#include "tests/proxy/wire/vectors.h"
#include "tests/support/message_builder.h"
#include "tests/support/test_data.h"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include <doctest/doctest.h>

namespace tw::wire::test {
namespace {

using tw::test::MessageBuilder;

namespace json = boost::json;

const json::object& reference() {
    static const json::object all = [] {
        std::ifstream file{tw::test::test_data("spec/gamenet-0.6-ddnet.json")};
        const std::string text{std::istreambuf_iterator<char>{file}, {}};
        return json::parse(text).as_object();
    }();
    return all;
}

/// Returns the fields of a message in the reference; empty if the reference lists none.
json::array reference_fields(const json::object& message) {
    const auto* const fields = message.if_contains("fields");
    return fields == nullptr ? json::array{} : fields->as_array();
}

std::string string_or(const json::object& object, std::string_view key,
                      std::string_view otherwise) {
    const auto* const found = object.if_contains(key);
    return std::string{found == nullptr ? otherwise : std::string_view{found->as_string()}};
}

std::int64_t integer_or(const json::object& object, std::string_view key, std::int64_t otherwise) {
    const auto* const found = object.if_contains(key);
    return found == nullptr ? otherwise : found->as_int64();
}

std::string uuid_text(const snapshot::Uuid& uuid) {
    std::string hex = to_hex(std::as_bytes(std::span{uuid}));
    for (const std::size_t at : {20U, 16U, 12U, 8U}) {
        hex.insert(at, 1, '-');
    }
    return hex;
}

FieldType expected_type(const json::object& field) {
    static const std::map<std::string, FieldType> types{
        {"int", FieldType::integer},
        {"int_range", FieldType::integer},
        {"bool", FieldType::boolean},
        {"tick", FieldType::tick},
        {"string", FieldType::string},
        {"string_strict", FieldType::string},
        {"string_halfstrict", FieldType::string},
        {"uuid", FieldType::uuid},
        {"raw[32]", FieldType::sha256},
        {"raw[size]", FieldType::raw},
        {"raw[part_size]", FieldType::raw},
        {"int[size/4]", FieldType::object},
        {"object:projectile", FieldType::objects},
        {"string[until end]", FieldType::strings_until_end},
    };
    if (string_or(field, "count", "") == "until end of message") {
        return FieldType::integers_until_end;
    }
    return types.at(string_or(field, "type", ""));
}

/// Returns how the reference sanitises a string field. In game messages, the type determines it.
std::uint8_t expected_cleaning(const MessageSpec& spec, const json::object& field) {
    static const std::map<std::string, std::uint8_t> game{
        {"string", 1}, {"string_halfstrict", 2}, {"string_strict", 6}};
    const auto type = string_or(field, "type", "");
    if (type.rfind("string", 0) != 0) {
        return 0;
    }
    if (!spec.system) {
        return game.at(type);
    }
    const bool map_name = spec.id == MessageId::map_change || spec.id == MessageId::map_details;
    if (map_name && string_or(field, "name", "") == "name") {
        return 6;
    }
    return spec.name == "rcon_line" ? 1 : 2;
}

void check_field(const MessageSpec& spec, const MessageField& field, const json::object& wanted) {
    CAPTURE(field.name);
    CHECK(field.name == string_or(wanted, "name", ""));
    CHECK(field.type == expected_type(wanted));
    CHECK(field.min == integer_or(wanted, "min", INT32_MIN));
    CHECK(field.max == integer_or(wanted, "max", INT32_MAX));
    const bool tuning = spec.id == MessageId::sv_tune_params;
    const bool optional = wanted.contains("optional") || wanted.contains("default") || tuning;
    CHECK(field.optional == optional);
    CHECK(field.default_value.has_value() == wanted.contains("default"));
    if (field.default_value) {
        CHECK(*field.default_value == integer_or(wanted, "default", -1));
    }
    CHECK(field.sanitize == expected_cleaning(spec, wanted));
}

/// Returns the messages of 0.6 and those with a UUID. seven_messages_test.cpp tests those of 0.7.
std::span<const MessageSpec> of_six() {
    const auto table = message_table();
    const auto end = std::ranges::find_if(
        table, [](const MessageSpec& spec) { return spec.dialect == snapshot::Dialect::seven; });
    return {table.begin(), end};
}

void check_message(const MessageSpec& spec, bool system, const json::object& wanted) {
    CAPTURE(spec.name);
    static const std::map<std::string, MessageDirection> directions{
        {"c2s", MessageDirection::c2s},
        {"s2c", MessageDirection::s2c},
        {"both", MessageDirection::both},
        {"none", MessageDirection::none}};
    CHECK(spec.name == string_or(wanted, "name", ""));
    CHECK(spec.system == system);
    CHECK(spec.number == integer_or(wanted, "id", 0));
    CHECK(spec.direction == directions.at(string_or(wanted, "direction", "")));
    CHECK(spec.vital == wanted.at("vital").as_bool());
    CHECK((spec.removed_in != 0) == wanted.contains("until"));
    CHECK(spec.uuid_name == string_or(wanted, "uuid_name", ""));
    if (wanted.contains("uuid")) {
        CHECK(uuid_text(spec.uuid) == string_or(wanted, "uuid", ""));
    }
    const auto fields = reference_fields(wanted);
    // The table also has a field for ints that later versions may add to the tunings.
    const std::size_t surplus = spec.id == MessageId::sv_tune_params ? 1 : 0;
    REQUIRE(spec.fields.size() == fields.size() + surplus);
    for (std::size_t i = 0; i < fields.size(); ++i) {
        check_field(spec, spec.fields[i], fields[i].as_object());
    }
}

/// Whether the field is the length of the array after it.
bool counts_next(const MessageField& field, const MessageSpec& spec) {
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
         (&field + 1)->type == FieldType::objects || counts_next(field, spec));
    switch (field.type) {
    case FieldType::integer:
    case FieldType::boolean:
    case FieldType::tick:
        if (has_length) {
            out.number((&field + 1)->type == FieldType::objects || counts_next(field, spec) ? 2
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
    case FieldType::integers_until_end:
        out.number(0).number(1);
        return;
    case FieldType::strings_until_end:
        out.string("a").string("b");
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
        for (int i = 0; i < (field.count == 0 ? 2 : field.count); ++i) {
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
    const auto& system = reference().at("system_messages").as_array();
    const auto& game = reference().at("game_messages").as_array();
    REQUIRE(system.size() == 46);
    REQUIRE(game.size() == 55);
    const auto table = of_six();
    REQUIRE(table.size() == system.size() + game.size());
    for (std::size_t i = 0; i < table.size(); ++i) {
        const bool is_system = i < system.size();
        const auto& wanted = is_system ? system[i] : game[i - system.size()];
        check_message(table[i], is_system, wanted.as_object());
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
    CHECK(find_message(true, 0, tw::snapshot::Dialect::six) == nullptr);
    CHECK(find_message(false, 0, tw::snapshot::Dialect::six) == nullptr);
    for (const std::uint16_t number : std::initializer_list<std::uint16_t>{27, 31, 32, 63, 65535}) {
        CAPTURE(number);
        CHECK(find_message(true, number, tw::snapshot::Dialect::six) == nullptr);
    }
    for (const std::uint16_t number : std::initializer_list<std::uint16_t>{32, 33, 65535}) {
        CHECK(find_message(false, number, tw::snapshot::Dialect::six) == nullptr);
    }
}

TEST_CASE("names behind ints are the reference's enums and flags") {
    std::map<std::string, const snapshot::NameTable*> used;
    for (const auto& spec : of_six()) {
        for (const auto& field : spec.fields) {
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
        auto wanted = table->flags            ? reference().at("flags").at(name).as_object()
                      : name == "kill_weapon" ? reference().at("enums").at("weapon").as_object()
                                              : reference().at("enums").at(name).as_object();
        if (name == "kill_weapon") {
            for (const auto& special : reference().at("enums").at("weapon_special").as_object()) {
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
            const auto head = decode_message_header(message.bytes(), spec.dialect);
            REQUIRE(head);
            CHECK(head->spec == &spec);
            decode_fields(spec, head->body, fields);
            CAPTURE(to_text(fields));
            CHECK_FALSE(fields.error);
            CHECK(fields.trailing.empty());
            CHECK(is_balanced(fields));
            CHECK(std::ranges::none_of(fields.values,
                                       [](const FieldValue& value) { return value.out_of_range; }));
        }
    }
}

TEST_CASE("one past a bound is marked and kept") {
    DecodedFields fields;
    int bounds = 0;
    for (const auto& spec : message_table()) {
        for (const auto& field : spec.fields) {
            for (const bool high : {false, true}) {
                const std::int64_t value = high ? field.max + 1 : field.min - 1;
                if (value < INT32_MIN || value > INT32_MAX || field.type == FieldType::string ||
                    field.type == FieldType::array) {
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
