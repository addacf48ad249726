#pragma once

#include "proxy/filter/expectation.h"
#include "proxy/record/findings.h"
#include "proxy/record/records.h"
#include "proxy/record/stats.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::analyze {

/// Prints the first warnings and errors as they come, a line each. Why a demo ends it leaves to who
/// reads the file, who knows its name.
class FindingPrinter final : public record::RecordSink {
  public:
    /// More than these are in the records and the totals only.
    static constexpr std::uint64_t kMaxShown = 20;

    explicit FindingPrinter(std::FILE* out) : out_{out} {}

    void on_record(const record::Record& record) override;

  private:
    std::FILE* out_;
    std::uint64_t seen_ = 0;
};

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

/// The findings that make a run fail: ids or severities ("warning" means warning and worse).
class FailOn {
  public:
    /// Errors: the word that is neither.
    [[nodiscard]] static tl::expected<FailOn, std::string>
    parse(const std::vector<std::string>& words);

    /// Those findings.
    [[nodiscard]] std::array<bool, record::kFindingCount> findings() const;

    /// One check a word: whether none of its findings occurred.
    [[nodiscard]] std::vector<Check> checks(const record::SessionStats& totals,
                                            std::string_view asked_by) const;

  private:
    FailOn() = default;

    struct Word {
        std::string text;
        std::array<bool, record::kFindingCount> fails{};
    };

    std::vector<Word> words_;
};

} // namespace tw::analyze
