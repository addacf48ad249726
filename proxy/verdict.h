#pragma once

#include "proxy/inspect/stats.h"
#include "proxy/record/expectation.h"
#include "proxy/record_flags.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tw {

/// One --expect or one word of --fail-on, and how it ended.
struct Check {
    std::string flag; ///< "expect", "fail-on"
    std::string text;
    bool passed = true;
    std::string instead; ///< what was seen instead; safe on a terminal
};

/// How a run ended.
struct Verdict {
    std::vector<Check> checks;
    std::string seen; ///< one line of totals
    double seconds = 0;

    [[nodiscard]] bool passed() const;
};

[[nodiscard]] Verdict judge(const record::Expectations& expectations, const FailOn& fail_on,
                            const inspect::SessionStats& totals, std::uint32_t sessions,
                            double seconds);

/// A line for each check, for people.
[[nodiscard]] std::string verdict_text(const Verdict& verdict);
/// The same as JUnit's XML, which CI systems show: a test case for each check.
[[nodiscard]] std::string verdict_junit(const Verdict& verdict);

/// To be called before a long run: a summary that cannot be written afterwards is no use then.
/// Errors: UsageError.
void check_summary_file(const std::string& file);

/// Tells on standard error what failed, and writes `file` (JUnit when it ends with .xml; empty:
/// none). Returns the exit code.
[[nodiscard]] int conclude(const Verdict& verdict, const std::string& file);

} // namespace tw
