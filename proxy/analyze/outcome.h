#pragma once

#include "proxy/filter/expectation.h"
#include "proxy/record/findings.h"
#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "proxy/sink/console.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::analyze {

/// Prints warnings and errors as a live run does: with time and player, repeated findings folded into one
/// line, and a table at the end. Does not print findings about damaged demos, because the reader of the
/// file reports these with its name.
class FindingPrinter final : public record::RecordSink {
  public:
    /// The most lines printed; further findings are only in the records and the table.
    static constexpr std::uint64_t kMaxShown = 20;

    FindingPrinter(std::FILE* out, bool colours) : out_{out}, console_{colours} {}

    void on_record(const record::Record& record) override;

    /// Prints the findings that were not printed yet, and the table of all findings.
    void finish(const sink::FindingLines::ExplainCommand& explain);

  private:
    void print(const std::vector<std::string>& lines);

    std::FILE* out_;
    sink::Console console_;
    sink::ConsoleSink players_{console_}; ///< learns the names of players
    record::Timestamp printed_ = 0;       ///< the records' time when lines were last printed
    std::uint64_t shown_ = 0;
};

/// A check requested by the user, and its result.
struct OutcomeCheck {
    std::string flag; ///< the flag, as the user wrote it
    std::string text; ///< the expectation or finding, as the user wrote it
    bool passed = true;
    std::string actual; ///< what occurred, if the check failed; safe for a terminal
};

struct Outcome {
    std::vector<OutcomeCheck> checks;
    std::string totals; ///< the totals in one line
    double seconds = 0;

    [[nodiscard]] bool passed() const;
};

void add_checks(std::vector<OutcomeCheck>& checks,
                std::vector<filter::ExpectationResult> expectations, std::string_view flag);

[[nodiscard]] Outcome make_outcome(std::vector<OutcomeCheck> checks,
                                   const record::SessionStats& totals, std::uint32_t sessions,
                                   double seconds);

/// Returns a line for each check.
[[nodiscard]] std::string outcome_text(const Outcome& outcome);
/// Returns the result as JUnit XML, which CI systems show. Each check is a test case.
[[nodiscard]] std::string outcome_junit(const Outcome& outcome);

/// The findings that make a run fail, given by ids or severities. "warning" selects warnings and errors.
class FailOn {
  public:
    /// Parses ids and severities. Errors: the first word that is neither an id nor a severity.
    [[nodiscard]] static tl::expected<FailOn, std::string>
    parse(const std::vector<std::string>& words);

    /// The selected findings.
    [[nodiscard]] std::array<bool, record::kFindingCount> findings() const;

    /// Returns a check for each word. The check passes if none of the word's findings occurred.
    [[nodiscard]] std::vector<OutcomeCheck> checks(const record::SessionStats& totals,
                                                   std::string_view flag) const;

  private:
    FailOn() = default;

    struct SelectedFindings {
        std::string text;
        std::array<bool, record::kFindingCount> fails{};
    };

    std::vector<SelectedFindings> words_;
};

} // namespace tw::analyze
