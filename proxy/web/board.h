#pragma once

#include "proxy/inspect/inspector.h"
#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "snapshot/objects.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tw::web {

/// What the page shows of one session.
struct SessionView {
    std::uint32_t number = 0;
    std::string client{};
    std::string server_name{}; ///< of the configuration; empty: it has none
    std::string protocol{};
    std::string map{};
    std::optional<std::array<std::uint8_t, 32>> map_sha256{}; ///< nothing: the map is not here
    std::string name{};                                       ///< the player's; text of a peer
    std::string place{};                                      ///< "(50,32) air"
    bool connected = false; ///< a player is in the game, or was a moment ago
    bool closed = false;    ///< its peers said goodbye; it may come back until it idles out
    std::int64_t opened_ms = 0;
    std::array<std::uint64_t, 2> datagrams{}; ///< c2s, s2c
    std::array<std::uint64_t, 2> bytes{};
    std::array<std::uint64_t, 2> recovered{}; ///< lost, then recovered by retransmission
    std::array<record::Spread, 2> jitter_us{};
    std::uint64_t snapshots = 0;
    std::uint64_t verified = 0;
    std::uint64_t missed = 0;
    std::uint64_t frozen_ms = 0;
    record::Spread ack_lag_ticks{};
    std::int64_t largest_snapshot = 0; ///< bytes
    std::uint64_t findings = 0;        ///< warnings and errors
};

/// A finding as a line for people.
struct FindingLine {
    std::int64_t time_ms = 0;
    std::uint32_t session = 0;
    std::optional<std::int64_t> tick{};
    std::string severity{};
    std::string text{};
};

/// A line about a snapshot says more now: it stands in the place of the one that begins alike, up to
/// the tick.
void explain_line(std::deque<FindingLine>& lines, std::string told);

/// The records around the findings about one snapshot.
struct FindingContext {
    std::uint32_t session = 0;
    std::int64_t tick = 0;
    std::shared_ptr<const std::string> lines; ///< as JSON; the same for every reader
};

/// What was seen of a server that has a name.
struct ServerView {
    std::uint64_t sessions = 0; ///< that are open
    std::uint64_t players = 0;  ///< sessions that are connected
    std::uint64_t findings = 0; ///< warnings and errors so far
};

/// What one worker saw, or all of them together.
struct View {
    /// Sessions of a server beyond this are only counted, those first that are not connected: nobody
    /// reads a longer table.
    static constexpr std::size_t kMaxSessions = 128;
    /// The latest warnings and errors.
    static constexpr std::size_t kMaxFindings = 32;

    record::SessionStats totals{};
    std::size_t sessions_open = 0;
    std::vector<SessionView> sessions{}; ///< by number
    /// The maps of all that are open, however many; nothing: it is not here.
    std::map<std::uint32_t, std::optional<std::array<std::uint8_t, 32>>> maps{};
    std::deque<FindingLine> findings{}; ///< oldest first
    std::vector<FindingContext> accounts{};
    std::map<std::string, ServerView, std::less<>> servers{};  ///< by name
    std::map<std::string, std::uint64_t, std::less<>> items{}; ///< in rebuilt snapshots, by type

    void merge(const View& other);
    /// Leaves so many of each server as a table may have, in order.
    void cut_sessions();
    /// Leaves so many in all.
    void cut_to_table();
};

/// What the workers show and the page reads. A worker never waits here: while somebody reads, it
/// comes again later.
class StatusBoard {
  public:
    explicit StatusBoard(std::size_t workers) : views_(workers) {}

    /// False when a reader was in the way. `view` gets the old one's memory for the next time.
    [[nodiscard]] bool try_publish(std::size_t worker, View& view);

    /// All workers together.
    [[nodiscard]] View read() const;

  private:
    mutable std::mutex mutex_;
    std::vector<View> views_;
};

/// Takes one worker's records and remembers what the page shows of them.
class LiveSink final : public record::RecordSink {
  public:
    /// `objects` has to outlive it.
    explicit LiveSink(const snapshot::ObjectSet& objects);

    void on_record(const record::Record& record) override;

    /// Everything so far, the sessions with the inspector's totals; forgets sessions it no longer
    /// has.
    void fill(View& view, const inspect::Inspector& inspector);

  private:
    /// What only records say of a session.
    struct Known {
        SessionView view{};
        bool connected = false;       ///< its last event was that
        record::Timestamp looked = 0; ///< when the tee was looked for
    };

    void see(const record::SessionRecord& record);
    void see(const record::MapRecord& record);
    void see(const record::SnapshotRecord& record);
    void see(const record::FindingRecord& record);
    void count_items(const record::SnapshotRecord& record);
    void add_session(View& view, std::uint32_t number, const record::SessionStats& stats) const;
    void count_players(View& view) const;

    const snapshot::ObjectSet* objects_;
    std::unordered_map<std::uint32_t, Known> sessions_;
    std::deque<FindingLine> findings_;
    std::map<std::string, std::uint64_t, std::less<>> server_findings_; ///< by its name
    std::vector<std::uint64_t> items_;                                  ///< by ObjectSet::index_of
    std::vector<std::string_view> item_names_;
    std::uint64_t unknown_items_ = 0;
};

} // namespace tw::web
