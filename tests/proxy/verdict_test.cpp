#include "proxy/verdict.h"

#include <string>

#include <doctest/doctest.h>

using tw::Check;
using tw::FailOn;
using tw::Verdict;
using tw::inspect::FindingId;

TEST_CASE("each word of --fail-on is a check, and names what occurred") {
    tw::inspect::SessionStats totals;
    totals.findings[static_cast<std::size_t>(FindingId::snapshot_crc_mismatch)] = 3;
    totals.findings[static_cast<std::size_t>(FindingId::packet_too_short)] = 1;
    const FailOn fail_on{{"warning", "error", "world.inside_solid", "packet.too_short"}};
    const auto checks = fail_on.checks(totals);
    REQUIRE(checks.size() == 4);
    CHECK(checks[0].instead ==
          "packet.too_short occurred once, snapshot.crc_mismatch occurred 3 times");
    CHECK(checks[1].instead == "snapshot.crc_mismatch occurred 3 times");
    CHECK(checks[2].passed);
    CHECK(checks[3].instead == "packet.too_short occurred once");
}

TEST_CASE("a verdict without checks is passed, one with a failed check is not") {
    Verdict verdict;
    CHECK(verdict.passed());
    verdict.checks = {{.flag = "expect", .text = "ok", .passed = true, .instead = {}},
                      {.flag = "expect", .text = "x", .passed = false, .instead = "y"}};
    CHECK_FALSE(verdict.passed());
}

TEST_CASE("the summary as text has a line for each check") {
    const Verdict verdict{
        .checks = {{.flag = "fail-on", .text = "warning", .passed = true, .instead = {}},
                   {.flag = "expect", .text = "always ok", .passed = false, .instead = "1 of 2"}},
        .seen = "1 sessions",
        .seconds = 2.25};
    CHECK(tw::verdict_text(verdict) == "FAILED after 2.2 s: 1 sessions\n"
                                       "pass --fail-on warning\n"
                                       "FAIL --expect always ok: 1 of 2\n");
}

TEST_CASE("the summary as JUnit keeps its markup whatever the texts hold") {
    const Verdict verdict{.checks = {{.flag = "expect",
                                      .text = R"(size_bytes < 3 and name == "&<b>")",
                                      .passed = false,
                                      .instead = R"(seen: "]]></failure>")"}},
                          .seen = "<nothing>",
                          .seconds = 1};
    CHECK(tw::verdict_junit(verdict) ==
          R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="twscope" tests="1" failures="1" errors="0" skipped="0" time="1.000">
  <testcase classname="twscope.expect" name="size_bytes &lt; 3 and name == &quot;&amp;&lt;b&gt;&quot;">
    <failure message="seen: &quot;]]&gt;&lt;/failure&gt;&quot;"/>
  </testcase>
  <system-out>&lt;nothing&gt;</system-out>
</testsuite>
)");
}
