#include "proxy/sink/console.h"

#include <algorithm>
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
    const record::FindingRecord finding{.head = {.session = 1},
                                        .id = record::FindingId::snapshot_crc_mismatch};
    console.set_tee(1, {.name = "ann", .place = "(1,2) air", .state = {}});
    ConsoleSink sink{console};
    sink.on_record(record::Record{&finding});
    console.add_notice("the server does not answer", record::Severity::warning);
    const auto lines = console.take_lines(0);
    REQUIRE(lines.size() == 2);
    CHECK(lines[0] == "the server does not answer");
    CHECK(lines[1].find("error snapshot.crc_mismatch: session 1 (ann). ") != std::string::npos);
    CHECK(console.take_status(0, 1, "", 200).find("1 finding |") != std::string::npos);
    CHECK(console.take_lines(0).empty());
}

TEST_CASE("the status says who plays, what was verified, and what is recorded where") {
    struct Row {
        std::uint64_t snapshots;
        std::uint64_t verified;
        std::string_view says;
    };

    const Row rows[] = {
        {0, 0,
         "1 player, 1 joining, 0 snapshots/s, 0 findings | recording to a | ann (1,2) air | "
         "session 2 connecting"},
        {100, 100, "50 snapshots/s, 100% verified, "},
        {100'000, 99'999, "50000 snapshots/s, 99.9% verified, "},
        {10, 0, "5 snapshots/s, 0.0% verified, "},
    };
    for (const Row& row : rows) {
        CAPTURE(row.says);
        Console console{false};
        console.set_tee(1, {.name = "ann", .place = "(1,2) air", .state = {}});
        console.set_tee(2, {.name = {}, .place = {}, .state = "connecting"});
        console.count_snapshots(row.snapshots, row.verified);
        CHECK(console.take_status(0, 2, "recording to a", 200).find(row.says) != std::string::npos);
    }
}

TEST_CASE("players for whom the status has no space are counted") {
    struct Row {
        std::size_t columns;
        std::string_view end;
    };

    const Row rows[] = {
        {200, "findings | p0 (1,2) | p1 (1,2) | p2 (1,2)"},
        {79, "findings | p0 (1,2) | p1 (1,2) | p2 (1,2)"},
        {78, "findings | p0 (1,2) | and 2 more"},
        {60, "findings | and 3 more"},
        {30, "3 players, 0 snapsho"},
    };
    Console console{false};
    for (std::uint32_t tee = 0; tee < 3; ++tee) {
        console.set_tee(tee, {.name = "p" + std::to_string(tee), .place = "(1,2)", .state = {}});
    }
    for (const Row& row : rows) {
        CAPTURE(row.columns);
        const std::string status = console.take_status(0, 1, "", row.columns);
        CHECK(status.size() <= row.columns);
        CHECK(status.substr(status.size() - std::min(status.size(), row.end.size())) == row.end);
    }
}

} // namespace tw::sink
