// Covers: proxy/wire/message.cpp
#include "proxy/wire/message.h"
#include "tests/support/message_builder.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::test {

TEST_CASE("messages of numbers, texts and arrays of them are written as they are read") {
    const auto* const chat = wire::find_message(false, 3, snapshot::Dialect::six);
    const auto* const game = wire::find_message(false, 21, snapshot::Dialect::seven);
    REQUIRE(chat != nullptr);
    REQUIRE(game != nullptr);
    const auto table = wire::message_table();
    const auto race = std::ranges::find_if(table, [](const wire::MessageSpec& spec) {
        return spec.name == "sv_race_finish" && spec.number == 0;
    });
    REQUIRE(race != table.end());

    struct Row {
        std::string_view name;
        snapshot::Dialect dialect;
        std::vector<std::byte> bytes;
    };

    const Row rows[] = {
        {"numbers and a text", snapshot::Dialect::six,
         MessageBuilder{*chat}.number(0).number(-1).string("hello").bytes()},
        {"an empty text", snapshot::Dialect::six,
         MessageBuilder{*chat}.number(0).number(127).string("").bytes()},
        {"a UUID", snapshot::Dialect::six,
         MessageBuilder{*race}.number(5).number(1234).number(-7).number(1).number(0).bytes()},
        {"an array to the end", snapshot::Dialect::seven,
         MessageBuilder{*game}.number(9).number(1).number(2).number(70000).bytes()},
        {"an empty array", snapshot::Dialect::seven, MessageBuilder{*game}.number(0).bytes()},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto head = wire::decode_message_head(row.bytes, row.dialect);
        REQUIRE(head);
        REQUIRE(head->spec != nullptr);
        wire::DecodedFields fields;
        wire::decode_fields(*head->spec, head->body, fields);
        CHECK_FALSE(fields.error);
        CHECK(wire::encode_message(*head->spec, fields.values) == row.bytes);
    }
}

} // namespace tw::test
