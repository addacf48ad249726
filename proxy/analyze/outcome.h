#pragma once

#include "proxy/filter/expectation.h"
#include "proxy/record/findings.h"
#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "proxy/sink/console.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::analyze {

/// Prints warnings and errors as the live proxy does: with time and player, one line for repeated
/// findings, and a table at the end. Does not print findings about damaged demos, because
/// capture::CaptureRun reports these with the name of the file.
class FindingPrinter final : public record::RecordSink {
  public:
    /// The most lines printed. Further findings appear only in the records and the table.
    static constexpr std::uint64_t kMaxPrintedLines = 20;

    FindingPrinter(std::FILE* out, sink::ConsoleStyle style) : out_{out}, console_{style} {}

    void on_record(const record::Record& record) override;

    /// Prints the findings that were not printed yet, and the table of all findings.
    void print_finding_summary(const sink::FindingLines::ExplainCommandMaker& explain);

  private:
    void print_lines(const std::vector<std::string>& lines);

    std::FILE* out_;
    sink::Console console_;
    sink::ConsoleSink players_{console_};   ///< learns the names of players
    record::Timestamp last_print_time_ = 0; ///< time of the record at which lines were last printed
    std::uint64_t num_printed_lines_ = 0;
};

/// A check requested by the user, and its result.
struct OutcomeCheck {
    std::string flag; ///< the flag, as the user wrote it
    std::string text; ///< the expectation or finding, as the user wrote it
    bool passed = true;
    std::string actual; ///< why the check failed, safe for a terminal; empty if it passed
};

struct Outcome {
    std::vector<OutcomeCheck> checks;
    std::string totals; ///< numbers of sessions, snapshots and findings, in one line
    double seconds = 0;

    [[nodiscard]] bool passed() const;
};

void add_expectation_checks(std::vector<OutcomeCheck>& checks,
                            std::span<const filter::Expectation> expectations,
                            std::string_view flag);

[[nodiscard]] Outcome make_outcome(std::vector<OutcomeCheck> checks,
                                   const record::SessionStats& totals, std::uint32_t sessions,
                                   double seconds);

[[nodiscard]] std::string outcome_text(const Outcome& outcome);
/// Returns the outcome as JUnit XML, which CI systems display. Each check is a test case.
[[nodiscard]] std::string outcome_junit(const Outcome& outcome);

/// The findings that make a command fail. The user selects them by id, or by the lowest severity
/// ("warning" selects warnings and errors).
class FindingsToFailOn {
  public:
    /// Parses ids and severities. The error is the first word that is neither an id nor a severity.
    [[nodiscard]] static tl::expected<FindingsToFailOn, std::string>
    parse(const std::vector<std::string>& words);

    /// Returns for each finding's id whether one of the words selects it.
    [[nodiscard]] std::array<bool, record::kFindingCount> selected_findings() const;

    /// Returns a check for each word. The check passes if none of the word's findings occurred.
    [[nodiscard]] std::vector<OutcomeCheck> make_checks(const record::SessionStats& totals,
                                                        std::string_view flag) const;

  private:
    FindingsToFailOn() = default;

    struct FindingSelector {
        std::string text;
        std::array<bool, record::kFindingCount> selected{};
    };

    std::vector<FindingSelector> selectors_;
};

} // namespace tw::analyze
