#include "proxy/report/outcome.h"

#include "proxy/record/terminal_text.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tw::report {

namespace {

/// Text in an attribute or element. What comes in is UTF-8 and free of control characters
/// (terminal_text); of the rest XML does not have U+FFFE and U+FFFF.
std::string xml(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text.substr(at).starts_with("\xef\xbf\xbe") ||
            text.substr(at).starts_with("\xef\xbf\xbf")) {
            out += "\xef\xbf\xbd"; // the replacement character
            at += 2;
            continue;
        }
        switch (const char character = text[at]) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '"':
            out += "&quot;";
            break;
        default:
            out += character;
        }
    }
    return out;
}

std::uint64_t count_of(const record::SessionStats& totals, record::Severity severity) {
    std::uint64_t count = 0;
    for (const record::FindingInfo& info : record::finding_table()) {
        if (info.severity == severity) {
            count += totals.findings[static_cast<std::size_t>(info.id)];
        }
    }
    return count;
}

} // namespace

bool Outcome::passed() const {
    return std::all_of(checks.begin(), checks.end(),
                       [](const Check& check) { return check.passed; });
}

void add_checks(std::vector<Check>& checks, std::vector<filter::ExpectationResult> expectations,
                std::string_view asked_by) {
    for (filter::ExpectationResult& result : expectations) {
        checks.push_back({.asked_by = std::string{asked_by},
                          .text = record::terminal_text(result.text),
                          .passed = result.met,
                          .instead = std::move(result.instead)});
    }
}

Outcome outcome_of(std::vector<Check> checks, const record::SessionStats& totals,
                   std::uint32_t sessions, double seconds) {
    return {.checks = std::move(checks),
            .seen = fmt::format("{} sessions, {} snapshots, {} verified, {} warnings, {} errors",
                                sessions, totals.snapshots, totals.verified,
                                count_of(totals, record::Severity::warning),
                                count_of(totals, record::Severity::error)),
            .seconds = seconds};
}

std::string outcome_text(const Outcome& outcome) {
    std::string out = fmt::format("{} after {:.1f} s: {}\n", outcome.passed() ? "PASSED" : "FAILED",
                                  outcome.seconds, outcome.seen);
    for (const Check& check : outcome.checks) {
        out += fmt::format("{} {} {}{}{}\n", check.passed ? "pass" : "FAIL", check.asked_by,
                           check.text, check.passed ? "" : ": ", check.instead);
    }
    return out;
}

std::string outcome_junit(const Outcome& outcome) {
    const auto failures = std::count_if(outcome.checks.begin(), outcome.checks.end(),
                                        [](const Check& check) { return !check.passed; });
    std::string out = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                  "<testsuite name=\"twscope\" tests=\"{}\" failures=\"{}\" "
                                  "errors=\"0\" skipped=\"0\" time=\"{:.3f}\">\n",
                                  outcome.checks.size(), failures, outcome.seconds);
    for (const Check& check : outcome.checks) {
        const auto name = std::min(check.asked_by.find_first_not_of('-'), check.asked_by.size());
        out += fmt::format(R"(  <testcase classname="twscope.{}" name="{}")",
                           xml(check.asked_by.substr(name)), xml(check.text));
        out += check.passed ? "/>\n"
                            : fmt::format(">\n    <failure message=\"{}\"/>\n  </testcase>\n",
                                          xml(check.instead));
    }
    out += fmt::format("  <system-out>{}</system-out>\n</testsuite>\n", xml(outcome.seen));
    return out;
}

} // namespace tw::report
