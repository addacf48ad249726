
#include "proxy/analyze/outcome.h"

#include <doctest/doctest.h>

using tw::analyze::FindingsToFailOn;
using tw::analyze::Outcome;
using tw::analyze::OutcomeCheck;
using tw::record::FindingId;

TEST_CASE("each word of --fail-on is a check that names the finding that occurred") {
    tw::record::SessionStats totals;
    totals.findings[static_cast<std::size_t>(FindingId::snapshot_crc_mismatch)] = 3;
    totals.findings[static_cast<std::size_t>(FindingId::packet_too_short)] = 1;
    const auto fail_on =
        FindingsToFailOn::parse({"warning", "error", "world.inside_solid", "packet.too_short"});
    REQUIRE(fail_on);
    const auto checks = fail_on->make_checks(totals, "--fail-on");
    REQUIRE(checks.size() == 4);
    CHECK(checks[0].actual ==
          "packet.too_short occurred once, snapshot.crc_mismatch occurred 3 times");
    CHECK(checks[1].actual == "snapshot.crc_mismatch occurred 3 times");
    CHECK(checks[2].passed);
    CHECK(checks[3].actual == "packet.too_short occurred once");
}

TEST_CASE("an outcome passes unless a check failed") {
    Outcome outcome;
    CHECK(outcome.passed());
    outcome.checks = {{.flag = "--expect", .text = "ok", .passed = true, .actual = {}},
                      {.flag = "--expect", .text = "x", .passed = false, .actual = "y"}};
    CHECK_FALSE(outcome.passed());
}

TEST_CASE("the summary as text has a line for each check") {
    const Outcome outcome{
        .checks = {{.flag = "--fail-on", .text = "warning", .passed = true, .actual = {}},
                   {.flag = "--expect", .text = "always ok", .passed = false, .actual = "1 of 2"}},
        .totals = "1 sessions",
        .seconds = 2.25};
    CHECK(tw::analyze::outcome_text(outcome) == "FAILED after 2.2 s: 1 sessions\n"
                                                "pass --fail-on warning\n"
                                                "FAIL --expect always ok: 1 of 2\n");
}

TEST_CASE("findings are printed with their colours, and names in them are escaped") {
    std::FILE* const out = std::tmpfile();
    REQUIRE(out != nullptr);
    tw::analyze::FindingPrinter printer{out, {.is_colored = true}};
    const tw::record::FindingRecord finding{.id = tw::record::FindingId::snapshot_crc_mismatch,
                                            .detail = "a\033[2Jb"};
    printer.on_record(tw::record::Record{&finding});
    printer.print_finding_summary(nullptr);
    std::rewind(out);
    std::string text(200, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), out));
    std::fclose(out);
    CHECK(text.starts_with("\033[31m"));
    CHECK(text.find("(a\\u001b[2Jb)\033[0m\n") != std::string::npos);
}

TEST_CASE("the summary as JUnit is valid XML whatever the texts contain") {
    const Outcome outcome{
        .checks = {{.flag = "--expect",
                    .text = R"(size_bytes < 3 and name == "&<b>")",
                    .passed = false,
                    .actual = "seen: \"]]></failure>\" \xef\xbf\xbe \xef\xbf\xbf \xef\xbf\xbd"}},
        .totals = "<nothing>",
        .seconds = 1};
    CHECK(tw::analyze::outcome_junit(outcome) ==
          R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="twscope" tests="1" failures="1" errors="0" skipped="0" time="1.000">
  <testcase classname="twscope.expect" name="size_bytes &lt; 3 and name == &quot;&amp;&lt;b&gt;&quot;">
    <failure message="seen: &quot;]]&gt;&lt;/failure&gt;&quot; � � �"/>
  </testcase>
  <system-out>&lt;nothing&gt;</system-out>
</testsuite>
)");
}
