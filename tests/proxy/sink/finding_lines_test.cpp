// Covers: proxy/sink/finding_lines.cpp
#include "proxy/sink/finding_lines.h"
#include "tests/support/text.h"

#include <cstdlib>
#include <ctime>

#include <doctest/doctest.h>

using namespace tw;
using record::FindingId;
using sink::FindingLines;

namespace {

constexpr record::Timestamp kOneSecond = 1'000'000'000;

record::FindingRecord wrong_item_finding(std::uint32_t session, record::Timestamp time,
                                         std::string_view field = "x") {
    return {.head = {.time = time, .session = session},
            .id = FindingId::snapshot_crc_mismatch,
            .tick = static_cast<snapshot::Tick>(time / kOneSecond * 50),
            .item = record::FindingItem{.type_id = 9, .id = 2, .type = "character"},
            .field = field};
}

std::vector<std::string> texts(std::vector<FindingLines::Line> lines) {
    std::vector<std::string> texts;
    for (FindingLines::Line& line : lines) {
        texts.push_back(std::move(line.text));
    }
    return texts;
}

/// Sets the local time zone to UTC.
struct UtcTimeZone {
    UtcTimeZone() { set("UTC"); }

    static void set(const char* zone) {
        ::setenv("TZ", zone, 1);
        ::tzset();
    }
};

const UtcTimeZone kInUtc;

} // namespace

TEST_CASE("a finding is shown with time, player and field, and repeated ones are counted") {
    FindingLines findings;
    for (std::uint32_t session = 1; session <= 8; ++session) {
        findings.add_finding(wrong_item_finding(session, 3 * kOneSecond), "ann");
    }
    findings.add_finding(wrong_item_finding(1, 3 * kOneSecond, "y"), "ann");
    const auto lines = texts(findings.take_due_lines(4 * kOneSecond));
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].starts_with("00:00:03 error snapshot.crc_mismatch: session 1 (ann), tick 150, "
                               "character 2 x"));
    CHECK(lines[0].ends_with(" (+7 like this)"));
    CHECK(test::contains(lines[1], "character 2 y"));
    CHECK_FALSE(test::contains(lines[1], "like this"));
    CHECK(findings.num_findings(record::Severity::error) == 9);
    record::FindingRecord other = wrong_item_finding(1, 4 * kOneSecond);
    other.name = "ambiguous"; // findings with another cause are of another kind
    findings.add_finding(other, "ann");
    CHECK(findings.take_due_lines(4 * kOneSecond).size() == 1);
    CHECK(findings.take_due_lines(5 * kOneSecond).empty());
}

TEST_CASE("continuing findings are counted, and shown again after a pause") {
    FindingLines findings;
    std::vector<std::string> lines;
    for (int second = 0; second < 25; ++second) {
        findings.add_finding(wrong_item_finding(1, second * kOneSecond), "");
        for (std::string& line : texts(findings.take_due_lines(second * kOneSecond))) {
            lines.push_back(std::move(line));
        }
    }
    REQUIRE(lines.size() == 3);
    CHECK(test::contains(lines[0], "session 1, tick 0"));
    CHECK(lines[1] == "00:00:10 +10 like this: error snapshot.crc_mismatch, character, x");
    CHECK(lines[2] == "00:00:20 +10 like this: error snapshot.crc_mismatch, character, x");
    lines = texts(findings.take_all_lines());
    REQUIRE(lines.size() == 1);
    CHECK(test::contains(lines[0], "+4 like this"));
    findings.add_finding(wrong_item_finding(1, 90 * kOneSecond), "");
    lines = texts(findings.take_due_lines(90 * kOneSecond));
    REQUIRE(lines.size() == 1);
    CHECK(test::contains(lines[0], "session 1, tick 4500"));
    findings.add_finding(wrong_item_finding(1, -9000 * kOneSecond), ""); // the clock was set back
    CHECK(findings.take_due_lines(-9000 * kOneSecond).size() == 1);
}

TEST_CASE("an explanation replaces its finding's line, follows it, or is ignored") {
    for (const bool was_taken : {false, true}) {
        CAPTURE(was_taken);
        FindingLines findings;
        record::FindingRecord finding = wrong_item_finding(3, kOneSecond);
        findings.add_finding(finding, "");
        findings.add_finding(wrong_item_finding(4, kOneSecond), "");
        if (was_taken) {
            CHECK(findings.take_due_lines(kOneSecond).size() == 1);
        }
        finding.id = FindingId::snapshot_explained;
        finding.value = 5;
        finding.expected = 4;
        for (const std::uint32_t session : {4U, 3U, 3U}) {
            finding.head.session = session;
            findings.add_explanation(finding, "bob");
        }
        const auto lines = texts(findings.take_due_lines(2 * kOneSecond));
        REQUIRE(lines.size() == 1);
        CHECK(lines[0].starts_with("00:00:01 error snapshot.crc_mismatch: session 3 (bob), tick "
                                   "50, character 2 x 5 instead of 4"));
        CHECK(findings.take_due_lines(3 * kOneSecond).empty());
    }
}

TEST_CASE("any number of kinds and sessions takes bounded memory, and each finding is counted") {
    FindingLines findings;
    constexpr std::uint32_t kManySessions = 5000;
    for (std::uint32_t i = 0; i < kManySessions; ++i) {
        record::FindingRecord finding = wrong_item_finding(i + 1, kOneSecond);
        finding.item->type = {};
        finding.item->type_id = static_cast<std::uint16_t>(i);
        findings.add_finding(finding, "");
    }
    CHECK(findings.take_due_lines(kOneSecond).size() <= FindingLines::kMaxKinds + 1);
    CHECK(findings.num_findings(record::Severity::error) == kManySessions);
    const auto table = findings.make_table(nullptr);
    REQUIRE(table.size() == 2);
    CHECK(test::contains(table[1], "5000  00:00:01  00:00:01     1024+"));
}

TEST_CASE("the table shows the count, the times, the sessions and the explaining command") {
    FindingLines findings;
    const auto explain = [](std::uint32_t session, snapshot::Tick tick) {
        return "explain " + std::to_string(session) + " at " + std::to_string(tick);
    };
    CHECK(findings.make_table(explain).empty());
    findings.add_finding(wrong_item_finding(2, 3 * kOneSecond), "");
    findings.add_finding(wrong_item_finding(1, 7 * kOneSecond), "");
    findings.add_finding(
        {.head = {.time = 5 * kOneSecond, .session = 1}, .id = FindingId::map_not_found}, "");
    findings.add_finding(
        {.head = {.time = 5 * kOneSecond, .session = 1}, .id = FindingId::packet_too_short}, "");
    const std::vector<std::string> expected{
        "finding                        reported  first     last      sessions",
        "snapshot.crc_mismatch                 2  00:00:03  00:00:07         2",
        "    explain 2 at 150",
        "packet.too_short                      1  00:00:05  00:00:05         1",
        "'twscope explain NAME' says what a finding means, and what causes it."};
    CHECK(findings.make_table(explain) == expected);
    CHECK(findings.make_table(nullptr).size() == 3);
    CHECK(findings.num_findings(record::Severity::error) == 2);
    CHECK(findings.num_findings(record::Severity::warning) == 1);
    CHECK(findings.num_findings(record::Severity::info) ==
          0); // informational findings are not counted
}

TEST_CASE("findings caused by an object of another size are one line, and the table begins with "
          "the cause") {
    FindingLines findings;
    record::Timestamp time = 3 * kOneSecond;
    const auto add = [&](FindingId id, std::uint16_t type, std::string_view name) {
        findings.add_finding({.head = {.time = ++time, .session = 1},
                              .id = id,
                              .tick = 10,
                              .item = record::FindingItem{.type_id = type, .type = name},
                              .since_tick = 4},
                             "");
    };
    add(FindingId::snapshot_unknown_base, 0, "");
    for (const std::uint16_t misread : {std::uint16_t{1005}, std::uint16_t{0}, std::uint16_t{77}}) {
        add(FindingId::snapshot_size_out_of_range, misread, "");
    }
    add(FindingId::snapshot_size_differs, 9, "character");
    add(FindingId::snapshot_type_out_of_range, 0, "");
    const auto lines = texts(findings.take_due_lines(4 * kOneSecond));
    REQUIRE(lines.size() == 4);
    CHECK(test::contains(lines[0], "snapshot.unknown_base")); // lines are sorted by time
    CHECK(test::contains(lines[1], "misread as type 1005"));
    CHECK(lines[1].ends_with(" (+2 like this)"));
    CHECK(test::contains(lines[2], "snapshot.size_differs"));
    CHECK(test::contains(lines[3], "snapshot.type_out_of_range"));
    const auto table = findings.make_table(nullptr);
    REQUIRE(table.size() == 5);
    CHECK(table[1].starts_with("snapshot.size_differs "));
    CHECK(table[4].starts_with("snapshot.unknown_base "));
    const auto commands =
        findings.make_table([](auto, auto tick) { return "at " + std::to_string(tick); });
    CHECK(commands[2] == "    at 4"); // the first tick with the size
    CHECK(commands[4] == "    at 10");
}

TEST_CASE("the table says that its times are local if they differ from UTC") {
    struct Row {
        const char* zone;
        bool has_dates;
        std::string_view time;
        std::string_view last_line; ///< empty if there is none
    };

    const Row rows[] = {
        {"UTC", false, "00:00:03", ""},
        {"CET-1", false, "01:00:03", "Times are local (UTC+0100); those of records are UTC."},
        {"NST3:30", false, "20:30:03", "Times are local (UTC-0330); those of records are UTC."},
        {"no such zone", false, "00:00:03", ""},
        {"UTC", true, "1970-01-01T00:00:03+00:00", ""},
        {"NST3:30", true, "1969-12-31T20:30:03-03:30", ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.zone);
        UtcTimeZone::set(row.zone);
        FindingLines findings{row.has_dates};
        findings.add_finding(wrong_item_finding(2, 3 * kOneSecond), "");
        CHECK(texts(findings.take_due_lines(kOneSecond)).at(0).starts_with(row.time));
        const auto table = findings.make_table(nullptr);
        REQUIRE(table.size() == (row.last_line.empty() ? 2 : 3));
        CHECK(test::contains(table[1], row.time));
        CHECK(table[0].size() == table[1].size());
        CHECK((row.last_line.empty() || table[2] == row.last_line));
        UtcTimeZone::set("UTC");
    }
}
