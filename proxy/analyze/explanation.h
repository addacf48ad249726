#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

namespace tw::analyze {

/// Selects the finding to explain; an empty member matches any value.
struct FindingSelection {
    std::optional<std::int64_t> session{};
    std::optional<std::int64_t> tick{};
};

/// Collects from the records of a run what happened around one finding about snapshots: the requested one,
/// otherwise the first error, or the first warning if there is no error. The records are JSON lines, so
/// captures and recordings give the same result. For each session, the object keeps one item of each key,
/// and some lines of text.
class Explanation {
  public:
    /// The items of a snapshot as in records, by type number and id.
    using Items = std::map<std::pair<std::int64_t, std::int64_t>, boost::json::object>;

    explicit Explanation(const FindingSelection& wanted) : wanted_{wanted} {}

    /// Reads a line. Ignores lines that are not records or not relevant.
    void on_line(std::string_view line);
    /// Reads several lines, each with its newline.
    void on_lines(std::string_view lines);

    [[nodiscard]] bool found() const { return !finding_.empty(); }

    /// A finding that could be explained.
    struct Choice {
        std::int64_t session = 0;
        std::optional<std::int64_t> tick{};
        std::string id;

        friend bool operator==(const Choice&, const Choice&) = default;
    };

    /// The first warnings and errors; at most one for each tick of a session.
    [[nodiscard]] const std::vector<Choice>& choices() const { return choices_; }

    [[nodiscard]] std::uint64_t num_choices() const { return num_choices_; }

    /// The selection that was requested.
    [[nodiscard]] const FindingSelection& wanted() const { return wanted_; }

    [[nodiscard]] std::size_t num_sessions() const { return sessions_.size(); }

    /// The record of the finding that is explained.
    [[nodiscard]] const boost::json::object& finding() const { return finding_; }

    /// The record of the later finding that explains that finding; empty if there is none.
    [[nodiscard]] const boost::json::object& explained() const { return explained_; }

    /// The item that the finding is about, as far as known; null if unknown.
    [[nodiscard]] const boost::json::object* item() const;

    /// The item in the last snapshot before the finding; null if there is no such snapshot or item.
    [[nodiscard]] const boost::json::object* item_before() const { return item_in(before_); }

    [[nodiscard]] const boost::json::object* item_after() const {
        return after_tick_ ? item_in(after_) : nullptr;
    }

    [[nodiscard]] std::optional<std::int64_t> before_tick() const { return before_tick_; }

    [[nodiscard]] std::optional<std::int64_t> after_tick() const { return after_tick_; }

    /// The events around the finding with their times, one line each.
    [[nodiscard]] const std::vector<std::string>& events() const { return events_; }

    /// Describes the session: "session 3, 127.0.0.1:50000 at 127.0.0.1:8303, 0.6+ddnet, map dm1".
    [[nodiscard]] const std::string& title() const { return title_; }

  private:
    static constexpr std::int64_t kNobody = 0;

    struct Session {
        std::string who;
        std::string map;
        Items items;
        std::optional<std::int64_t> tick; ///< tick of `items`
        std::int64_t acked = 0;
        std::deque<std::string> recent;
    };

    void forget(std::int64_t number, Session& session);
    static void on_session(const boost::json::object& record, Session& session);
    void on_snapshot(const boost::json::object& record, std::int64_t number, Session& session);
    void on_finding(const boost::json::object& record, std::int64_t number, Session& session);
    void on_input(const boost::json::object& record, std::int64_t number, Session& session);
    void tell(const boost::json::object& record, std::int64_t number, Session& session,
              const std::string& what);
    void note_choice(const boost::json::object& record, std::int64_t number);
    [[nodiscard]] bool is_wanted(const boost::json::object& record, std::int64_t number) const;
    [[nodiscard]] const boost::json::object* item_in(const Items& items) const;

    FindingSelection wanted_;
    std::map<std::int64_t, Session> sessions_;
    /// The number of the finding's session; kNobody before the finding and after its explanation is
    /// complete.
    std::int64_t number_ = kNobody;
    boost::json::object finding_;
    boost::json::object explained_;
    Items before_;
    Items after_;
    std::optional<std::int64_t> before_tick_;
    std::optional<std::int64_t> after_tick_;
    std::vector<std::string> events_;
    int acks_told_ = 0; ///< number of acknowledgements listed after the finding
    std::string title_;
    std::vector<Choice> choices_;
    std::uint64_t num_choices_ = 0;
    std::pair<std::int64_t, std::optional<std::int64_t>> last_choice_{};
};

/// Lists the findings that can be explained. Used if the selection matched none.
[[nodiscard]] std::string explainable_findings_text(const Explanation& story);

/// Returns the explanation as one page of text.
[[nodiscard]] std::string explanation_text(const Explanation& story);

/// Returns the explanation as a JSON object; without one, the findings that can be explained.
[[nodiscard]] boost::json::object explanation_json(const Explanation& story);

/// Returns the explanation from a few record lines. If they do not contain the finding, returns
/// explainable_findings_text().
[[nodiscard]] std::string explanation_of_lines(std::string_view lines, std::int64_t session,
                                               std::int64_t tick);

} // namespace tw::analyze
