
#include "proxy/wire/message_set.h"
#include "tests/support/message_builder.h"

#include <string>

#include <doctest/doctest.h>

namespace tw::wire {
namespace {

using tw::test::MessageBuilder;

CustomMessage tile() {
    CustomMessage message;
    message.uuid[0] = 0xab;
    message.name = "tile";
    message.direction = MessageDirection::s2c;
    message.fields = {{.name = "x"},
                      {.name = "on", .type = FieldType::boolean},
                      {.name = "mood", .names = {{0, "calm"}, {1, "angry"}}},
                      {.name = "why", .type = FieldType::string, .optional = true, .secret = true}};
    return message;
}

MessageBuilder builder(const CustomMessage& message) {
    return MessageBuilder{
        MessageSpec{.number = message.number, .system = message.system, .uuid = message.uuid}};
}

} // namespace

TEST_CASE("a mod's message is decoded as it was described") {
    MessageSet set;
    {
        const CustomMessage message = tile();
        REQUIRE(set.add(message));
    } // the set keeps what it was given
    const auto bytes = builder(tile()).number(7).number(1).number(1).string("so").bytes();
    const auto unknown = decode_message_head(bytes, snapshot::Dialect::six);
    REQUIRE(unknown.has_value());
    CHECK(unknown->spec == nullptr);
    for (const auto dialect : {snapshot::Dialect::six, snapshot::Dialect::seven}) {
        const auto head = decode_message_head(bytes, dialect, set);
        REQUIRE(head.has_value());
        REQUIRE(head->spec == set.custom().data());
        DecodedFields fields;
        decode_fields(*head->spec, head->body, fields);
        REQUIRE(fields.values.size() == 4);
        CHECK(fields.values[0].name == "x");
        CHECK(fields.values[0].integer == 7);
        CHECK(fields.values[1].kind == FieldValue::Kind::boolean);
        CHECK(fields.values[2].names->find(1) == "angry");
        CHECK(fields.values[3].secrecy == Secrecy::secret);
        CHECK_FALSE(fields.error.has_value());
        CHECK(is_expected(*head->spec, false, Direction::s2c, false));
        CHECK_FALSE(is_expected(*head->spec, false, Direction::c2s, false));
    }
    const auto odd = builder(tile()).number(7).number(2).number(1).bytes();
    CHECK_FALSE(
        is_flawless(set.custom()[0], decode_message_head(odd, snapshot::Dialect::six, set)->body));
}

TEST_CASE("a number that the game uses may be a mod's own, unless the program acts on it") {
    struct Row {
        std::string_view name;
        std::uint16_t number;
        bool system;
        snapshot::Dialect dialect;
        bool taken;
    };

    const Row rows[] = {
        {"an unused number", 60, false, snapshot::Dialect::six, true},
        {"beyond all numbers", 65535, true, snapshot::Dialect::seven, true},
        {"one that is only named", 26, false, snapshot::Dialect::six, true},
        {"chat", 3, false, snapshot::Dialect::six, false},
        {"of the system", 9, true, snapshot::Dialect::six, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        MessageSet set;
        CustomMessage message{.number = row.number, .name = "own", .system = row.system};
        message.dialect = row.dialect;
        CHECK(set.add(message) == row.taken);
        CHECK_FALSE(set.add(message)); // not twice
        const auto head = decode_message_head(builder(message).bytes(), row.dialect, set);
        REQUIRE(head.has_value());
        CHECK((head->spec != nullptr && head->spec->name == "own") == row.taken);
    }
}

TEST_CASE("a set of messages is bounded") {
    MessageSet set;
    CustomMessage message{.number = 100, .name = "own"};
    while (set.add(message)) {
        ++message.number;
    }
    CHECK(set.custom().size() == MessageSet::kMaxCustom);
    CHECK(MessageSet::standard().custom().empty());
}

} // namespace tw::wire
