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
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace tw::web {

/// The data that the page shows about one session.
struct SessionView {
    std::uint32_t number = 0;
    std::string client{};
    std::string server_name{}; ///< server name in the configuration; empty if the server has none
    std::string protocol{};
    std::string map{};
    /// The map file's checksum; nullopt if the file is not available.
    std::optional<std::array<std::uint8_t, 32>> map_sha256{};
    std::string name{};  ///< the player's name, as the peer sent it
    std::string place{}; ///< position of the player's tee, such as "(50,32) air"
    std::optional<std::int32_t> score{};
    bool is_score_time = false; ///< true if the score is a time in milliseconds, or -1 for none
    bool has_player = false;    ///< true if a player is in the game, or was a moment ago
    /// True if a peer closed the connection. The client may reconnect until the session times out.
    bool is_closed = false;
    std::int64_t opened_ms = 0;
    std::array<std::uint64_t, 2> datagrams{}; ///< c2s, s2c
    std::array<std::uint64_t, 2> bytes{};
    /// Number of datagrams that were lost and later recovered by retransmission.
    std::array<std::uint64_t, 2> recovered{};
    std::array<record::Distribution, 2> jitter_us{};
    std::uint64_t snapshots = 0;
    std::uint64_t verified = 0; ///< number of snapshots with a correct checksum
    std::uint64_t missed = 0;   ///< number of snapshots that were due and did not arrive
    std::uint64_t frozen_ms = 0;
    record::Distribution ack_lag_ticks{};
    std::int64_t largest_snapshot = 0; ///< the size of the largest snapshot in bytes
    std::uint64_t findings = 0;        ///< number of warnings and errors
};

/// A finding as a line of text for users.
struct FindingLine {
    std::int64_t time_ms = 0;
    std::uint32_t session = 0;
    std::optional<std::int64_t> tick{};
    std::string severity{};
    std::string text{};
};

/// Finds the latest line that has the same beginning as `longer`, up to and including the tick.
/// Replaces the text of that line with `longer`. Does nothing if there is no such line.
void replace_finding_line(std::deque<FindingLine>& lines, std::string longer);

/// The records around a finding about one snapshot.
struct FindingContext {
    std::uint32_t session = 0;
    std::int64_t tick = 0;
    std::shared_ptr<const std::string> lines; ///< records as JSON lines, shared by all readers
};

/// The totals of a server that has a name in the configuration.
struct ServerView {
    std::uint64_t sessions = 0; ///< number of open sessions
    std::uint64_t players = 0;  ///< number of sessions with a player in the game
    /// Number of sessions that a peer has closed; they end when they time out.
    std::uint64_t closed = 0;
    std::uint64_t findings = 0; ///< number of warnings and errors since the start
};

/// The sessions, totals and findings of one worker, or of all workers, for the page.
struct StatusView {
    /// The maximum number of sessions of a server in `sessions`. Further sessions are only counted.
    static constexpr std::size_t kMaxSessions = 128;
    /// The maximum number of findings kept: the latest warnings and errors.
    static constexpr std::size_t kMaxFindings = 32;

    record::SessionStats totals{};
    std::size_t sessions_open = 0;
    /// Number of open sessions that a peer has closed; they end by a timeout.
    std::size_t sessions_closed = 0;
    std::size_t players = 0;             ///< number of open sessions with a player in the game
    std::vector<SessionView> sessions{}; ///< ordered by session number
    /// The checksum of each open session's map file; nullopt if the file is not available.
    std::map<std::uint32_t, std::optional<std::array<std::uint8_t, 32>>> maps{};
    std::deque<FindingLine> findings{}; ///< oldest first
    std::vector<FindingContext> finding_contexts{};
    std::map<std::string, ServerView, std::less<>> servers{}; ///< totals by server name
    /// The number of items in decoded snapshots, by the name of the item type.
    std::map<std::string, std::uint64_t, std::less<>> items{};

    void merge_with(const StatusView& other);
    /// Keeps at most kMaxSessions sessions of each server, or of all servers together. Removes
    /// sessions without a player first.
    void limit_sessions(bool limit_each_server);
};

/// Collects from one worker's records the data that the page shows.
class StatusCollector final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        std::visit([this](const auto* each) { handle_record(*each); }, record);
    }

    /// Fills `view` with the collected data and with the inspector's totals of each session.
    /// Forgets sessions that the inspector has closed.
    void fill_view(StatusView& view, const inspect::Inspector& inspector);

  private:
    struct KnownSession {
        SessionView view{};
        record::Timestamp last_lookup = 0; ///< time at which the tee's position was last looked up
    };

    void handle_record(const record::SessionRecord& record);
    void handle_record(const record::MapRecord& record);
    void handle_record(const record::SnapshotRecord& record);
    void handle_record(const record::FindingRecord& record);

    template <typename OtherRecord>
    void handle_record(const OtherRecord& /*record*/) {}

    void count_items(const record::SnapshotRecord& record);
    void add_session(StatusView& view, std::uint32_t number,
                     const record::SessionStats& stats) const;
    void add_server_totals(StatusView& view) const;

    std::unordered_map<std::uint32_t, KnownSession> sessions_;
    std::deque<FindingLine> findings_;
    /// Number of findings by server name.
    std::map<std::string, std::uint64_t, std::less<>> server_findings_;
    /// The number of items of each object; the key null stands for all unknown types.
    std::unordered_map<const snapshot::ObjectSpec*, std::uint64_t> items_;
};

} // namespace tw::web
