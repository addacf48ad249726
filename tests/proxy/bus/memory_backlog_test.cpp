// Covers: proxy/bus/backlog.cpp
#include "proxy/bus/backlog.h"

#include <doctest/doctest.h>

using namespace tw::bus;

TEST_CASE("lines are numbered from 1 and can be read from any number on") {
    MemoryBacklog backlog{"run", "server"};
    RecordLines lines;
    CHECK_FALSE(backlog.read_lines(1, lines));
    backlog.append("a\nb\n");
    backlog.append("");
    backlog.append("c\n");
    CHECK(backlog.last_line() == 3);
    REQUIRE(backlog.read_lines(1, lines));
    CHECK(lines.first == 1);
    CHECK(lines.text == "a\nb\n");
    REQUIRE(backlog.read_lines(2, lines));
    CHECK(lines.first == 1);
    REQUIRE(backlog.read_lines(3, lines));
    CHECK(lines.first == 3);
    CHECK(lines.text == "c\n");
    CHECK_FALSE(backlog.read_lines(4, lines));
}

TEST_CASE("settled lines are removed in whole blocks") {
    MemoryBacklog backlog{"run", "server"};
    CHECK_FALSE(backlog.settled_sequence());
    backlog.append("a\nb\n");
    backlog.append("c\n");
    backlog.settle_lines(1, 7);
    CHECK(backlog.settled_sequence() == 7);
    CHECK(backlog.waiting_bytes() == 6);
    backlog.settle_lines(2, 8);
    CHECK(backlog.waiting_bytes() == 2);
    RecordLines lines;
    REQUIRE(backlog.read_lines(3, lines));
    CHECK(lines.first == 3);
    backlog.settle_lines(3, 9);
    CHECK(backlog.waiting_bytes() == 0);
    CHECK(backlog.last_settled() == 3);
    CHECK_FALSE(backlog.read_lines(3, lines));
    backlog.append("d\n");
    REQUIRE(backlog.read_lines(4, lines));
    CHECK(lines.first == 4);
}

TEST_CASE("memory is limited; settling lines makes room") {
    MemoryBacklog backlog{"run", "server", 8};
    CHECK(backlog.has_room());
    backlog.append("abcdefg\n");
    CHECK_FALSE(backlog.has_room());
    backlog.settle_lines(1, 1);
    CHECK(backlog.has_room());
}
