// Covers: proxy/filter/line_record.cpp
#include "proxy/filter/filter.h"
#include "proxy/filter/line_record.h"

#include <random>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::filter;

TEST_CASE("a part is found wherever it stands") {
    std::mt19937 random{4}; // NOLINT(cert-msc32-c,cert-msc51-cpp): the same every time
    for (int round = 0; round < 20'000; ++round) {
        std::string text(random() % 80, ' ');
        for (char& each : text) {
            each = static_cast<char>('a' + random() % 2);
        }
        std::string part(2 + random() % 6, ' ');
        for (char& each : part) {
            each = static_cast<char>('a' + random() % 2);
        }
        CAPTURE(text);
        CAPTURE(part);
        CHECK(contains_text(text, part) == (text.find(part) != std::string::npos));
    }
}

TEST_CASE("a filter knows what no line can do without") {
    struct Row {
        std::string_view filter;
        std::string_view line;
        bool may;
    };

    const std::string_view snapshot =
        R"({"type":"snapshot","tick":5,"items":[{"type":"character","at":{"tile":[1,2]},"player":"ann"}]})";
    const Row rows[] = {
        {"items.player == ann", snapshot, true},
        {"items.player == bob", snapshot, false},
        {"items.player == bob", R"({"items":[{"player":"b\u006fb"}]})",
         true}, // as it may be written, too
        {"items.player != bob", snapshot, true},
        {"items.player ~ BO", snapshot, true},
        {"items.fields.x > 3", snapshot, false},
        {"items.at.tile.x > 3", snapshot, true}, // the first of a list
        {"items.at.tile.x > 3", R"({"items":[{"at":{"x":1}}]})", false},
        {"items.fields.x == null", snapshot, true},
        {"items.fields.x != null", snapshot, false},
        {"not items.fields.x > 3", snapshot, true},
        {"any(items: fields.x > 3 and player == ann)", snapshot, false},
        {"count(items: fields.x > 3) == 0", snapshot, true},
        {"count(items) == 0", R"({"type":"message"})", false},
        {"items.player == bob or tick == 5", snapshot, true},
        {"items.player == bob or items.player == cid", snapshot, true},
        {"items.fields.x == 1 or items.fields.y == 2", snapshot, false},
        {"tick == 5", snapshot, true},
        {"tick == 5", R"({"type":"message"})", false},
        {"findings.snapshot.crc_mismatch == 0", R"({"type":"summary","findings":{}})", true},
        {"findings.snapshot.crc_mismatch == 0", snapshot, false},
        {"severity >= warning", R"({"severity":"error"})", true},
    };
    for (const Row& row : rows) {
        CAPTURE(row.filter);
        CAPTURE(row.line);
        const auto filter = Filter::parse(row.filter);
        REQUIRE(filter.has_value());
        CHECK(RequiredTexts{filter->program()}.are_all_in(row.line) == row.may);
    }
}
