// Covers: proxy/cli/output_file.cpp
#include "proxy/cli/output_file.h"
#include "tests/support/program.h"

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::cli;

namespace {

std::string record_line(std::string_view type, std::string_view rest,
                        std::string_view time = "2026-11-22T18:59:59.999999Z") {
    return R"({"v":1,"t":")" + std::string{time} + R"(","type":")" + std::string{type} +
           R"(","session":3)" + std::string{rest} + "}";
}

filter::Expectation parse_expectation(std::string_view text) {
    auto parsed = filter::Expectation::parse(text);
    REQUIRE(parsed);
    return *parsed;
}

} // namespace

TEST_CASE(
    "each server has a file for each hour, and no name from the bus leads out of the folder") {
    CHECK(collected_file_name({.server = "eu-1", .line = record_line("map", "")}) ==
          "eu-1/2026-11-22T18Z.jsonl.zst");
    CHECK(collected_file_name({.server = "../etc", .line = record_line("map", "")}) ==
          "other/2026-11-22T18Z.jsonl.zst");
    CHECK(collected_file_name(
              {.server = "eu-1", .line = record_line("map", "", "../../etc/passwd/x")}) ==
          "eu-1/other.jsonl.zst");
    CHECK(collected_file_name({.server = "", .line = "no record"}) == "other/other.jsonl.zst");
}

TEST_CASE("messages that are not one record line are left out, and the others are written") {
    const test::TemporaryFolder folder;
    const std::string path = folder.file("collected.jsonl");
    {
        RecordLineChecks checks{{}};
        CollectedRecordOutput output{path, std::nullopt, checks};
        std::vector<bus::CollectedRecord> records;
        for (const std::string& text :
             {record_line("map", ""), std::string{}, std::string{"hello"},
              record_line("map", "") + '\n' + record_line("map", ""), record_line("map", "") + '\n',
              record_line("map", "").substr(0, 30), record_line("map", ",no JSON"),
              record_line("map", ",\"name\":\"\xff\""), record_line("session", "")}) {
            records.push_back({.server = "one", .line = text});
        }
        CHECK(output.write_batch("first", records) == 0);
        output.confirm_batch();
    }
    CHECK(test::read_text(path) ==
          record_line("map", "") + '\n' + record_line("session", "") + '\n');
}

TEST_CASE("an unconfirmed batch is known, even if no files are written") {
    struct Row {
        std::string_view name;
        std::string_view output;
    };

    for (const Row& row : {Row{"nothing is written", ""}, Row{"a pipe", "/dev/null"}}) {
        CAPTURE(row.name);
        RecordLineChecks checks{{}};
        CollectedRecordOutput output{std::string{row.output}, std::nullopt, checks};
        CHECK(output.unconfirmed_batch().empty());
        const auto counted = [&checks] {
            const auto fails = analyze::FindingsToFailOn::parse({"snapshot.crc_mismatch"});
            REQUIRE(fails);
            return !checks.outcome(*fails, 1).checks.at(0).passed;
        };
        const std::vector<bus::CollectedRecord> records{
            {.server = "one",
             .line =
                 record_line("finding", R"(,"id":"snapshot.crc_mismatch","severity":"error")")}};
        CHECK(output.write_batch("first", records) == 0);
        CHECK(output.unconfirmed_batch() == "first");
        CHECK(output.roll_back_batch() == 0);
        CHECK(output.unconfirmed_batch().empty());
        CHECK_FALSE(counted());
        CHECK(output.write_batch("second", records) == 0);
        CHECK(output.unconfirmed_batch() == "second");
        output.confirm_batch();
        CHECK(output.unconfirmed_batch().empty());
        CHECK(counted());
    }
}

TEST_CASE("expectations give the same result for record lines as for records") {
    struct Row {
        std::string_view text;
        bool met;
        std::string_view instead;
    };

    const Row rows[] = {
        {"snapshot and tick > 500", true, ""},
        {"snapshot and tick > 5000", false, "tick: 100 to 600"},
        {"never finding", false,
         "1 of 4 records matched; the first: session 3, finding at 2026-11-22T18:59:59.999999Z"},
        {"never finding and id == map.not_found", true, ""},
        {"always tick > 50", true, ""},
        {"always ok", false, "1 of 2 records did not match"},
        {"always num_items > 1", false, "no record has a key it names"}};
    for (const Row& row : rows) {
        CAPTURE(row.text);
        auto expectation = parse_expectation(row.text);
        expectation.evaluate_line(record_line("snapshot", R"(,"tick":100,"ok":true)"));
        expectation.evaluate_line(record_line("snapshot", R"(,"tick":600,"ok":false)"));
        expectation.evaluate_line(
            record_line("finding", R"(,"id":"snapshot.crc_mismatch","severity":"error")"));
        expectation.evaluate_line(record_line("message", R"(,"name":"Sv_Chat")"));
        CHECK(expectation.is_met() == row.met);
        CHECK(test::contains(expectation.unmet_reason(), row.instead));
    }
}

TEST_CASE("findings of record lines are counted, including those that the record limit left out") {
    RecordLineChecks checks{{}};
    checks.check_line(
        record_line("finding", R"(,"id":"snapshot.crc_mismatch","severity":"error")"));
    checks.check_line(
        record_line("finding", R"(,"id":"snapshot.crc_mismatch","severity":"error","left_out":7)"));
    checks.check_line(record_line("finding", R"(,"id":"no.such_finding","severity":"error")"));
    checks.check_line("no record");
    const auto fails = analyze::FindingsToFailOn::parse({"snapshot.crc_mismatch", "map.not_found"});
    REQUIRE(fails);
    const auto outcome = checks.outcome(*fails, 1);
    REQUIRE(outcome.checks.size() == 2);
    CHECK_FALSE(outcome.checks[0].passed);
    CHECK(outcome.checks[0].actual == "snapshot.crc_mismatch occurred 9 times");
    CHECK(outcome.checks[1].passed);
}
