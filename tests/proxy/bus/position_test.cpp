#include "proxy/bus/position.h"

#include <string_view>

#include <doctest/doctest.h>

using namespace tw::bus;

TEST_CASE("a position contains the stream's creation time, the last record, and its batch") {
    const StreamPosition position{
        .created = 1'795'277'730'000'000'001, .last = 42, .batch = "s.c.id"};
    CHECK(position_text(position) == "1795277730000000001 42 s.c.id");
    CHECK(read_position(position_text(position)) == position);
}

TEST_CASE("an invalid position, or one of an earlier version, is rejected") {
    for (const std::string_view text :
         {"", " ", "1", "1 2", "1 2 ", "x 2 id", "1 x id", "1 -2 id", "1  2 id", " 1 2 id",
          "99999999999999999999 2 id", "1 99999999999999999999 id",
          "s.c.id 1795277730000000001 1-9", "01a6-b 1795277730000000001 3-5,9"}) {
        CAPTURE(text);
        CHECK_FALSE(read_position(text));
    }
}
