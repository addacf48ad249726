// Covers: proxy/filter/filter.cpp
#include "proxy/filter/filter.h"

#include <string_view>

#include <doctest/doctest.h>

using tw::filter::Filter;

namespace {

struct Row {
    std::string_view text;
    bool about_messages;
};

constexpr Row kRows[] = {
    {"message", true},
    {"type == message", true},
    {"type ~ mess", true},
    {"message and session == 3", true},
    {"message and (dir == c2s or size > 100)", true},
    {"name == sv_chat and fields.message ~ gg", true},
    {"fields.client_id == -1", true},
    {"message or fields.client_id == -1", true},
    {"vital", true},
    {"message and not finding", true},
    {"name == sv_chat", false}, // findings have a name, too
    {"not message", false},
    {"not fields.client_id == -1", false},
    {"fields.client_id == null", false},
    {"message or finding", false},
    {"type == finding", false},
    {"session == 3", false},
    {"tick > 500", false},
    {"at.game == finish", false},
    {"any(items: character)", false},
    {"count(items: character) >= 2", false},
    {"count(items: character) == 0 or message", false},
    {"message and snapshot", true}, // no record can match
    {"not type != message", false}, // negated conditions are not looked into
};

} // namespace

TEST_CASE("a filter is about messages where nothing else may match") {
    for (const Row& row : kRows) {
        CAPTURE(row.text);
        const auto filter = Filter::parse(row.text);
        REQUIRE(filter.has_value());
        CHECK(tw::filter::matches_only_messages(filter->program()) == row.about_messages);
    }
}
