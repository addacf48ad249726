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

/// Turns findings into lines for people. Two findings are of one kind if their id, cause, item type
/// and field are the same. The first of a kind is shown; later ones are only counted ("+7 like
/// this"). Informational findings are ignored.
class FindingLines {
  public:
    /// The time in which findings of a kind are counted before their number is shown.
    static constexpr std::chrono::seconds kCountingTime{10};
    /// A finding of a kind that was not seen for this long is shown again.
    static constexpr std::chrono::seconds kQuietTime{60};
    /// The most kinds of findings that are told apart; further kinds of an id are counted as one.
    static constexpr std::size_t kMaxKinds = 64;
    /// The most sessions that are counted for a finding; the table then shows "1024+".
    static constexpr std::size_t kMaxSessions = 1024;

    struct Line {
        std::string text;
        record::Severity severity = record::Severity::info;
    };

    /// Adds a finding. `player`: the session's player; empty if unknown.
    void add(const record::FindingRecord& finding, std::string_view player);
    /// Adds the explanation of an earlier finding. It replaces that finding's line if that was not
    /// taken yet, follows it if it was, and is left out if the finding was only counted.
    void explain(const record::FindingRecord& explained, std::string_view player);

    /// Returns the lines since the last call.
    [[nodiscard]] std::vector<Line> take(record::Timestamp now);
    /// As take(), without waiting for more findings of a kind.
    [[nodiscard]] std::vector<Line> take_all();

    /// The number of findings that are not informational.
    [[nodiscard]] std::uint64_t total() const { return total_; }

    /// Returns the command that explains the finding of a session at a tick.
    using ExplainCommand = std::function<std::string(std::uint32_t session, snapshot::Tick tick)>;

    /// Returns a table of all findings: how often, when, in how many sessions, and the command that
    /// explains the first one. `explain`: null if nothing could explain findings.
    [[nodiscard]] std::vector<std::string> table(const ExplainCommand& explain) const;

  private:
    /// What findings of one kind have in common. The texts are empty beyond kMaxKinds.
    struct Kind {
        record::FindingId id = record::FindingId::count;
        std::string item{};
        std::string field{};
        std::string name{}; ///< the cause, or what else the finding is about

        friend auto operator<=>(const Kind&, const Kind&) = default;
    };

    struct Shown {
        std::string line{}; ///< empty once taken
        record::Severity severity = record::Severity::info;
        std::uint32_t session = 0;            ///< of the finding that is shown
        std::optional<snapshot::Tick> tick{}; ///< of the finding that is shown
        std::uint64_t more = 0;               ///< findings counted since the last line
        record::Timestamp counted_from = 0;   ///< when the last line was made
        record::Timestamp last = 0;
    };

    struct Total {
        std::uint64_t count = 0;
        record::Timestamp first = 0;
        record::Timestamp last = 0;
        std::set<std::uint32_t> sessions{};
        std::uint32_t session = 0; ///< of the first one
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
