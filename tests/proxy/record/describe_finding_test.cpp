// Covers: proxy/record/records.cpp
#include "proxy/record/records.h"

#include <string>

#include <doctest/doctest.h>

namespace tw::record {

TEST_CASE("a finding is one line that says what, where and by how much") {
    FindingRecord record;
    record.head.session = 3;
    record.id = FindingId::snapshot_crc_mismatch;
    const FindingInfo& info = finding_info(record.id);
    const std::string sentence{info.sentence};
    CHECK(describe(record) == "error snapshot.crc_mismatch: session 3. " + sentence);

    record.tick = 4711;
    record.item = FindingItem{.type_id = 9, .id = 2, .type = "character"};
    record.crc_wanted = 100;
    record.crc_got = -5;
    record.detail = "since tick 4700";
    CHECK(describe(record) ==
          "error snapshot.crc_mismatch: session 3, tick 4711, character 2, checksum -5 instead of "
          "100. " +
              sentence + " (since tick 4700)");
    record.item->type = {};
    CHECK(describe(record).find(", type 9 2, ") != std::string::npos);
}

TEST_CASE("a type of another size is told with both sizes") {
    FindingRecord record{.id = FindingId::snapshot_size_differs,
                         .item = FindingItem{.type_id = 4, .id = 33, .type = "pickup"},
                         .value = 5,
                         .limit = 4};
    CHECK(describe(record).find(", pickup has 5 ints instead of 4 (seen in pickup 33). ") !=
          std::string::npos);
    record.value = 0;
    CHECK(
        describe(record).find(", pickup states its number of ints in each delta instead of 4 (") !=
        std::string::npos);
}

TEST_CASE("a name that repeats the id is not shown, nor the detail that repeats the sentence") {
    FindingRecord record{.id = FindingId::snapshot_size_out_of_range,
                         .item = FindingItem{.type_id = 529},
                         .name = "size_out_of_range",
                         .detail = "The size of an updated item is negative."};
    CHECK(describe(record) == "error snapshot.size_out_of_range: session 0, misread as type 529. " +
                                  std::string{finding_info(record.id).sentence});
    record = {.id = FindingId::snapshot_crc_mismatch, .name = "unknown", .detail = "a detail"};
    const std::string line = describe(record);
    CHECK(line.find(", wrong value unknown. ") != std::string::npos);
    CHECK(line.ends_with(" (a detail)"));
    CHECK(shown_name("map.not_found", "not_found") == "not_found");
}

TEST_CASE("a silent server is a warning, and its next answer is information") {
    for (const FindingId id : {FindingId::session_server_silent, FindingId::session_unanswered}) {
        FindingRecord record{.id = id, .detail = "began"};
        CHECK(severity_of(record) == Severity::warning);
        CHECK(describe(record).starts_with("warning session."));
        record.detail = "ended";
        CHECK(severity_of(record) == Severity::info);
        CHECK(describe(record).starts_with("info session."));
    }
    const FindingRecord other{.id = FindingId::snapshot_crc_mismatch, .detail = "ended"};
    CHECK(severity_of(other) == Severity::error);
}

TEST_CASE("candidates are counted, the likeliest named") {
    FindingRecord record;
    record.id = FindingId::snapshot_crc_mismatch;
    const Candidate likeliest{.item = {.type_id = 9, .id = 2, .type = "character"}, .field = "x"};
    record.candidates = CandidateList{.count = 7, .likeliest = {&likeliest, 1}};
    CHECK(describe(record).starts_with("error snapshot.crc_mismatch: session 0, 7 candidates (the "
                                       "likeliest: character 2 x). "));
    record.candidates->count = 1;
    CHECK(describe(record).find(", 1 candidate (") != std::string::npos);
}

TEST_CASE("what is explained is told as the finding that it explains") {
    FindingRecord record;
    record.id = FindingId::snapshot_explained;
    record.item = FindingItem{.type_id = 9, .id = 2, .type = "character"};
    record.field = "x";
    record.value = 5;
    record.expected = 4;
    CHECK(describe(record).starts_with(
        "info snapshot.explained: session 0, character 2 x 5 instead of 4. "));
    CHECK(describe_explained(record).starts_with(
        "error snapshot.crc_mismatch: session 0, character 2 x 5 instead of 4. "));
}

TEST_CASE("what a peer chose to say cannot steer the terminal") {
    FindingRecord record;
    record.id = FindingId::packet_too_short;
    record.name = "\x1b[2J";
    record.detail = "a\nb";
    const std::string line = describe(record);
    CHECK(line.find(", \\u001b[2J.") != std::string::npos);
    CHECK(line.find("(a\\u000ab)") != std::string::npos);
}

} // namespace tw::record
