#pragma once

#include "proxy/record/records.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tw::sink {

/// Returns a local time for people, such as "12:00:03", or with the date as in log files:
/// "2026-11-21T12:00:03+01:00".
[[nodiscard]] std::string clock_text(record::Timestamp time, bool has_date);

/// Returns whether the command `twscope explain` can explain findings with this id.
[[nodiscard]] bool is_explainable(std::string_view id);

/// Turns findings into lines for users. Findings are of one kind if they have the same id, cause,
/// item type and field. The first finding of a kind gets a line; later findings are only counted
/// ("+7 like this"). Ignores informational findings.
class FindingLines {
  public:
    /// How long findings of a kind are counted before a line with their number is due.
    static constexpr std::chrono::seconds kCountingTime{10};
    /// If no finding of a kind was added for this time, the kind's next finding gets a line again.
    static constexpr std::chrono::seconds kQuietTime{60};
    /// The most kinds that are distinguished. All further kinds of an id count as one kind.
    static constexpr std::size_t kMaxKinds = 64;
    /// The most sessions that are counted for a finding's id. For more, the table shows "1024+".
    static constexpr std::size_t kMaxSessions = 1024;

    /// `has_dates`: times are shown with the date.
    explicit FindingLines(bool has_dates = false) : has_dates_{has_dates} {}

    struct Line {
        std::string text;
        record::Severity severity = record::Severity::info;
        record::Timestamp time = 0; ///< the time that `text` shows
    };

    /// Adds a finding. `player`: the name of the session's player; empty if unknown.
    void add_finding(const record::FindingRecord& finding, std::string_view player);
    /// Adds the explanation of an earlier finding. If take_due_lines() has not returned that
    /// finding's line yet, the explanation replaces the line. Otherwise the explanation becomes a
    /// further line. Ignores the explanation if the finding was only counted.
    void add_explanation(const record::FindingRecord& explained, std::string_view player);

    /// Returns the lines that have become due since the last call of take_due_lines(), sorted by
    /// time.
    [[nodiscard]] std::vector<Line> take_due_lines(record::Timestamp now);
    /// Returns all lines at once, without waiting for more findings of a kind.
    [[nodiscard]] std::vector<Line> take_all_lines();

    /// Returns the number of findings of this severity; 0 for informational findings.
    [[nodiscard]] std::uint64_t num_findings(record::Severity severity) const {
        return num_by_severity_.at(static_cast<std::size_t>(severity));
    }

    /// A function that returns the command line that explains a session's finding at a tick.
    using ExplainCommandMaker =
        std::function<std::string(std::uint32_t session, snapshot::Tick tick)>;

    /// Returns the lines of a table of all finding ids, the most important first. For each id, the
    /// table shows the number, the times and the sessions of the findings, and the command that
    /// explains the first finding. `explain`: empty if no command can explain findings.
    [[nodiscard]] std::vector<std::string> make_table(const ExplainCommandMaker& explain) const;

  private:
    /// The common properties of a kind's findings. The texts are empty for kinds beyond kMaxKinds.
    struct FindingKindKey {
        record::FindingId id = record::FindingId::count;
        std::string item{};
        std::string field{};
        std::string name{}; ///< the cause of the findings, or the name of what is affected

        friend auto operator<=>(const FindingKindKey&, const FindingKindKey&) = default;
    };

    struct ShownFinding {
        std::string line{}; ///< empty after take_due_lines() has returned it
        record::Severity severity = record::Severity::info;
        std::uint32_t session = 0;            ///< session of the finding in the line
        std::optional<snapshot::Tick> tick{}; ///< tick of the finding in the line
        std::uint64_t num_since_line = 0;   ///< number of findings of this kind since its last line
        record::Timestamp counted_from = 0; ///< time of the last line
        record::Timestamp last_time = 0;    ///< time of the last finding
    };

    struct FindingIdTotal {
        std::uint64_t count = 0;
        record::Timestamp first_time = 0;
        record::Timestamp last_time = 0;
        std::set<std::uint32_t> sessions{};
        std::uint32_t session = 0;            ///< session of the first finding
        std::optional<snapshot::Tick> tick{}; ///< record::fault_begin_tick() of the first finding
    };

    [[nodiscard]] std::string line_of(const record::FindingRecord& finding, std::string line,
                                      std::string_view player) const;
    [[nodiscard]] FindingKindKey kind_of(const record::FindingRecord& finding) const;
    [[nodiscard]] std::vector<Line> take_lines(record::Timestamp now, bool all);
    void count_finding(const record::FindingRecord& finding);

    bool has_dates_;
    std::map<FindingKindKey, ShownFinding> kinds_;
    std::map<record::FindingId, FindingIdTotal> totals_by_id_;
    std::array<std::uint64_t, 3> num_by_severity_{}; ///< indexed by severity
};

} // namespace tw::sink
