#include "proxy/sink/console.h"

#include <string>

#include <doctest/doctest.h>

namespace tw::sink {

TEST_CASE("a status line is cut to the terminal's width, and its colours end there") {
    struct Row {
        std::string_view line;
        std::size_t columns;
        std::string_view cut;
    };

    const Row rows[] = {
        {"", 0, ""},
        {"ann", 3, "ann"},
        {"ann", 2, "an"},
        {"\u00e4nn", 2, "\u00e4n"},    // two bytes, one column
        {"\u540d\u524d", 3, "\u540d"}, // two columns each
        {"\033[32mann\033[0m", 3, "\033[32mann\033[0m"},
        {"\033[32mann\033[0m", 2, "\033[32man\033[0m"},
        {"\033[32ma\033[0mnn", 2, "\033[32ma\033[0mn"},
        {"a\033", 9, "a\033"}, // no such line is made; it is not read past its end
        {"a\xff\x80", 1, "a"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.line);
        CAPTURE(row.columns);
        CHECK(cut_to_columns(row.line, row.columns) == row.cut);
    }
}

TEST_CASE("a notice is shown once, before the findings, and is none of them") {
    Console console{false};
    console.add_finding("error snapshot.crc_mismatch", record::Severity::error);
    console.add_notice("the server does not answer", record::Severity::warning);
    const auto lines = console.lines(0, 1);
    REQUIRE(lines.size() == 3);
    CHECK(lines[0] == "the server does not answer");
    CHECK(lines[1] == "error snapshot.crc_mismatch");
    CHECK(lines[2].find("1 finding") != std::string::npos);
    CHECK(console.lines(0, 1).size() == 1);
}

TEST_CASE("what explains a finding stands in its place, or after it if it was shown") {
    for (const bool was_shown : {false, true}) {
        CAPTURE(was_shown);
        Console console{false};
        ConsoleSink sink{console};
        record::FindingRecord finding{.head = {.session = 3},
                                      .id = record::FindingId::snapshot_crc_mismatch,
                                      .tick = 12,
                                      .candidates = record::CandidateList{.count = 7},
                                      .name = "ambiguous"};
        sink.on_record(record::Record{&finding});
        if (was_shown) {
            CHECK(console.lines(0, 1).front().find(", 7 candidates, ambiguous.") !=
                  std::string::npos);
        }
        const record::FindingRecord explained{
            .head = {.session = 3},
            .id = record::FindingId::snapshot_explained,
            .tick = 12,
            .item = record::FindingItem{.type_id = 9, .id = 2, .type = "character"},
            .field = "x",
            .value = 5,
            .expected = 4,
            .name = "exact"};
        sink.on_record(record::Record{&explained});
        const auto lines = console.lines(0, 1);
        REQUIRE(lines.size() == 2);
        CHECK(lines[0].starts_with("error snapshot.crc_mismatch: session 3, tick 12, character 2 x "
                                   "5 instead of 4, exact. "));
        CHECK(lines[1].find("1 finding") != std::string::npos);
    }
}

} // namespace tw::sink
