#pragma once

#include "proxy/record/records.h"

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

/// True if `explain` explains single findings of this name.
[[nodiscard]] bool is_explainable(std::string_view id);

/// Turns findings into lines for users. Findings are of one kind if they have the same id, cause, item
/// type and field. The first finding of a kind is shown; later ones are only counted ("+7 like this").
/// Informational findings are ignored.
class FindingLines {
  public:
    /// The time during which findings of a kind are counted before their number is shown.
    static constexpr std::chrono::seconds kCountingTime{10};
    /// If a kind of finding was not seen for this time, its next finding is shown again.
    static constexpr std::chrono::seconds kQuietTime{60};
    /// The most kinds of findings that are distinguished. All further kinds of an id count as one.
    static constexpr std::size_t kMaxKinds = 64;
    /// The most sessions that are counted for an id; the table then shows "1024+".
    static constexpr std::size_t kMaxSessions = 1024;

    struct Line {
        std::string text;
        record::Severity severity = record::Severity::info;
        record::Timestamp time = 0; ///< the time in the text
    };

    /// Adds a finding. `player`: name of the session's player; empty if unknown.
    void add(const record::FindingRecord& finding, std::string_view player);
    /// Adds the explanation of an earlier finding. If that finding's line was not taken yet, the
    /// explanation replaces it; if it was taken, the explanation follows as another line. If the finding
    /// was only counted, the explanation is left out.
    void explain(const record::FindingRecord& explained, std::string_view player);

    /// Returns the lines that have become due since the last call, by time.
    [[nodiscard]] std::vector<Line> take(record::Timestamp now);
    /// Returns all lines at once, without waiting for more findings of a kind.
    [[nodiscard]] std::vector<Line> take_all();

    /// The number of findings that are not informational.
    [[nodiscard]] std::uint64_t total() const { return total_; }

    /// Returns the command that explains the finding of a session at a tick.
    using ExplainCommand = std::function<std::string(std::uint32_t session, snapshot::Tick tick)>;

    /// Returns a table of findings, the most important first: how many, when, in how many sessions, and
    /// the command that explains the first one. `explain`: null if there is no such command.
    [[nodiscard]] std::vector<std::string> table(const ExplainCommand& explain) const;

  private:
    /// The common properties of findings of one kind. The texts are empty beyond kMaxKinds.
    struct Kind {
        record::FindingId id = record::FindingId::count;
        std::string item{};
        std::string field{};
        std::string name{}; ///< the cause of the findings, or a name of what they are about

        friend auto operator<=>(const Kind&, const Kind&) = default;
    };

    struct Shown {
        std::string line{}; ///< empty after it was taken
        record::Severity severity = record::Severity::info;
        std::uint32_t session = 0;            ///< session of the finding that is shown
        std::optional<snapshot::Tick> tick{}; ///< tick of the finding that is shown
        std::uint64_t more = 0;               ///< number of findings since the last line
        record::Timestamp counted_from = 0;   ///< time of the last line
        record::Timestamp last = 0;
    };

    struct Total {
        std::uint64_t count = 0;
        record::Timestamp first = 0;
        record::Timestamp last = 0;
        std::set<std::uint32_t> sessions{};
        std::uint32_t session = 0; ///< session of the first finding
        std::optional<snapshot::Tick> tick{};
    };

    [[nodiscard]] Kind kind_of(const record::FindingRecord& finding) const;
    [[nodiscard]] std::vector<Line> take_lines(record::Timestamp now, bool all);
    void count(const record::FindingRecord& finding);

    std::map<Kind, Shown> kinds_;
    std::map<record::FindingId, Total> totals_;
    std::uint64_t total_ = 0;
};

} // namespace tw::sink
