#pragma once

#include "proxy/filter/expectation.h"
#include "proxy/record/stats.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tw::report {

/// One thing a run was asked to prove, and whether it did.
struct Check {
    std::string asked_by; ///< the flag, as whoever ran it wrote it
    std::string text;     ///< as it was asked
    bool passed = true;
    std::string instead; ///< what was seen instead; safe on a terminal
};

/// How a run ended.
struct Outcome {
    std::vector<Check> checks;
    std::string seen; ///< one line of totals
    double seconds = 0;

    [[nodiscard]] bool passed() const;
};

/// Adds a check for each expectation.
void add_checks(std::vector<Check>& checks, std::vector<filter::ExpectationResult> expectations,
                std::string_view asked_by);

[[nodiscard]] Outcome outcome_of(std::vector<Check> checks, const record::SessionStats& totals,
                                 std::uint32_t sessions, double seconds);

/// A line for each check, for people.
[[nodiscard]] std::string outcome_text(const Outcome& outcome);
/// The same as JUnit's XML, which CI systems show: a test case for each check.
[[nodiscard]] std::string outcome_junit(const Outcome& outcome);

} // namespace tw::report
