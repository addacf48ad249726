#include "proxy/filter/expectation.h"
#include "tests/proxy/sink/sample_records.h"
#include "tests/support/text.h"

#include <doctest/doctest.h>

using tw::filter::Expectation;
using tw::filter::Expectations;
using tw::record::Record;
using tw::test::contains;
using tw::test::SampleRecords;

namespace {

Expectation parse_expectation(std::string_view text) {
    auto expectation = Expectation::parse(text);
    INFO("expectation: ", text);
    REQUIRE_MESSAGE(expectation.has_value(),
                    (expectation ? std::string{} : expectation.error().message));
    return *expectation;
}

} // namespace

TEST_CASE("expectations are met or name the values that occurred instead") {
    constexpr std::string_view kAt = "session 3, snapshot at 2026-01-01T00:00:00.123456Z, tick 500";
    const SampleRecords samples;

    struct Row {
        std::string_view text;
        bool met;
        std::string instead;
    };

    const std::string at{kAt};
    const Row rows[] = {
        {"snapshot", true, ""},
        {"any(items: character and at.game == finish)", true, ""},
        {"count(items: character) >= 2", true, ""},
        {"never snapshot and size_bytes > 49152", true, ""},
        {"always ok", true, ""},
        {"always\tok", true, ""},
        {" never(snapshot and size_bytes > 49152)", true, ""},
        {"never\n(snapshot and parts > 1)", false,
         "1 of 15 records matched; the first: " + at + "; seen: type: snapshot; parts: 2"},
        {"always snapshot and ok", true, ""},
        {"always tick >= 500", true, ""},
        {"any(items: character and at.game == start)", false,
         "none of 15 records matched; seen: items.type: character, player_info, client_info, "
         "\"\"; items.at.game: finish, air"},
        {"snapshot and tick > 1000", false,
         "none of 15 records matched; seen: type: session, message, map, snapshot, finding, "
         "summary, impairment, records_lost and more; tick: 500"},
        {"tick > 1000", false, "none of 15 records matched; seen: tick: 500 to 600"},
        {"count(items: character) > 2", false,
         "none of 15 records matched; seen: items.type: character, player_info, client_info, "
         "\"\"; count(items): 2"},
        {"seq > 5 and name == sv_motd", false,
         "none of 15 records matched; seen: seq: 12; name: sv_chat"},
        {"map and sessions > 5", false,
         "none of 15 records matched; seen: type: session, message, map, snapshot, finding, "
         "summary, impairment, records_lost and more; sessions: nothing"},
        {"never snapshot and parts > 1", false,
         "1 of 15 records matched; the first: " + at + "; seen: type: snapshot; parts: 2"},
        {"always parts < 2", false,
         "1 of 1 record did not match; the first: " + at + "; seen: parts: 2"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        Expectation expectation = parse_expectation(row.text);
        for (const Record& record : samples.all()) {
            expectation.evaluate_record(record);
        }
        CHECK(expectation.is_met() == row.met);
        CHECK(expectation.unmet_reason() == row.instead);
    }
}

TEST_CASE("without records, once and always fail, and never is met") {
    CHECK(parse_expectation("snapshot").unmet_reason() == "there were no records");
    CHECK(parse_expectation("always ok").unmet_reason() == "no record has a key it names");
    CHECK(parse_expectation("never finding").is_met());
}

TEST_CASE("the results of several threads are added") {
    const SampleRecords samples;
    const std::vector<Expectation> asked{parse_expectation("tick > 1000"),
                                         parse_expectation("finding"),
                                         parse_expectation("never finding")};
    Expectations first{asked};
    Expectations second{asked};
    first.on_record(&samples.snapshot);
    second.on_record(&samples.finding);
    std::vector<Expectation> all = first.list();
    tw::filter::add_results(all, second.list());
    REQUIRE(all.size() == 3);
    CHECK(all[0].text() == "tick > 1000");
    CHECK(all[0].unmet_reason() == "none of 2 records matched; seen: tick: 500 to 600");
    CHECK(all[1].is_met());
    CHECK_FALSE(all[2].is_met());
    CHECK(all[2].unmet_reason() ==
          "1 of 2 records matched; the first: session 3, finding at 2026-01-01T00:00:00.123456Z, "
          "snapshot.crc_mismatch; seen: type: finding");
}

TEST_CASE("offsets of errors are relative to the whole text of an expectation") {
    const auto expectation = Expectation::parse("  never tikc > 5");
    REQUIRE_FALSE(expectation.has_value());
    CHECK(expectation.error().offset == 8);
    // "never" alone is not a condition, and a longer word that begins with it is a key.
    CHECK(contains(Expectation::parse("never").error().message, "expected a condition"));
    CHECK(contains(Expectation::parse("nevermore").error().message, "nevermore"));
}

TEST_CASE("texts from peers are limited and escaped in reports") {
    SampleRecords samples;
    Expectation expectation = parse_expectation("detail == never");
    const std::string evil = "\x1b[2J" + std::string(1000, 'x');
    for (int i = 0; i < 100; ++i) {
        const std::string detail = std::to_string(i) + evil;
        samples.finding.detail = detail;
        expectation.evaluate_record(&samples.finding);
    }
    const std::string instead = expectation.unmet_reason();
    CHECK(instead.find('\x1b') == std::string::npos);
    CHECK(instead.ends_with(" and more"));
    CHECK(instead.size() < 800);
}
