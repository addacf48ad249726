#include "proxy/sink/console.h"

#include <string>

#include <doctest/doctest.h>

namespace tw::sink {

TEST_CASE("a notice is shown once, before the findings, and is none of them") {
    Console console{false};
    console.add_finding("error snapshot.crc_mismatch", record::Severity::error);
    console.add_notice("the server does not answer", record::Severity::warning);
    const auto lines = console.lines(0, 1);
    REQUIRE(lines.size() == 3);
    CHECK(lines[0] == "the server does not answer");
    CHECK(lines[1] == "error snapshot.crc_mismatch");
    CHECK(lines[2].find("1 findings") != std::string::npos);
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
        CHECK(lines[1].find("1 findings") != std::string::npos);
    }
}

} // namespace tw::sink
