#include "proxy/verdict.h"

#include "proxy/commands.h"
#include "proxy/record/console.h"
#include "proxy/settings.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

namespace tw {

namespace {

/// Text in an attribute or element. What comes in is free of control characters (terminal_text).
std::string xml(std::string_view text) {
    std::string out;
    for (const char character : text) {
        switch (character) {
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

std::uint64_t count_of(const inspect::SessionStats& totals, inspect::Severity severity) {
    std::uint64_t count = 0;
    for (const inspect::FindingInfo& info : inspect::finding_table()) {
        if (info.severity == severity) {
            count += totals.findings[static_cast<std::size_t>(info.id)];
        }
    }
    return count;
}

} // namespace

bool Verdict::passed() const {
    return std::all_of(checks.begin(), checks.end(),
                       [](const Check& check) { return check.passed; });
}

Verdict judge(const record::Expectations& expectations, const FailOn& fail_on,
              const inspect::SessionStats& totals, std::uint32_t sessions, double seconds) {
    Verdict verdict{.checks = fail_on.checks(totals),
                    .seen = fmt::format("{} sessions, {} snapshots, {} verified, {} warnings, {} "
                                        "errors",
                                        sessions, totals.snapshots, totals.verified,
                                        count_of(totals, inspect::Severity::warning),
                                        count_of(totals, inspect::Severity::error)),
                    .seconds = seconds};
    for (record::ExpectationResult& result : expectations.report()) {
        verdict.checks.push_back({.flag = "expect",
                                  .text = record::terminal_text(result.text),
                                  .passed = result.met,
                                  .instead = std::move(result.instead)});
    }
    return verdict;
}

std::string verdict_text(const Verdict& verdict) {
    std::string out = fmt::format("{} after {:.1f} s: {}\n", verdict.passed() ? "PASSED" : "FAILED",
                                  verdict.seconds, verdict.seen);
    for (const Check& check : verdict.checks) {
        out += fmt::format("{} --{} {}{}{}\n", check.passed ? "pass" : "FAIL", check.flag,
                           check.text, check.passed ? "" : ": ", check.instead);
    }
    return out;
}

std::string verdict_junit(const Verdict& verdict) {
    const auto failures = std::count_if(verdict.checks.begin(), verdict.checks.end(),
                                        [](const Check& check) { return !check.passed; });
    std::string out = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                  "<testsuite name=\"twscope\" tests=\"{}\" failures=\"{}\" "
                                  "errors=\"0\" skipped=\"0\" time=\"{:.3f}\">\n",
                                  verdict.checks.size(), failures, verdict.seconds);
    for (const Check& check : verdict.checks) {
        out += fmt::format("  <testcase classname=\"twscope.{}\" name=\"{}\"", check.flag,
                           xml(check.text));
        out += check.passed ? "/>\n"
                            : fmt::format(">\n    <failure message=\"{}\"/>\n  </testcase>\n",
                                          xml(check.instead));
    }
    out += fmt::format("  <system-out>{}</system-out>\n</testsuite>\n", xml(verdict.seen));
    return out;
}

void check_summary_file(const std::string& file) {
    if (!file.empty() && !std::ofstream{file, std::ios::binary | std::ios::app}) {
        throw UsageError{fmt::format(
            "--summary {}: cannot be written; name a file in a folder that exists and may be "
            "written",
            file)};
    }
}

int conclude(const Verdict& verdict, const std::string& file) {
    for (const Check& check : verdict.checks) {
        if (!check.passed) {
            fmt::print(stderr, "twscope: --{} {}: {}\n", check.flag, check.text, check.instead);
        }
    }
    if (!file.empty()) {
        std::ofstream out{file, std::ios::binary};
        out << (file.ends_with(".xml") ? verdict_junit(verdict) : verdict_text(verdict));
        out.close();
        if (!out) {
            fmt::print(stderr, "twscope: --summary {}: cannot be written\n", file);
            return kExitFailed;
        }
    }
    return verdict.passed() ? 0 : kExitFinding;
}

} // namespace tw
