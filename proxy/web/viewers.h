#pragma once

#include "proxy/base/keyed_hash.h"
#include "proxy/record/interface.h"
#include "proxy/web/feed.h"
#include "proxy/web/http_server.h"
#include "proxy/web/http_stream.h"
#include "proxy/web/record_requests.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tw::web {

/// The snapshots and records that viewers see.
class ViewData : public record::Interface {
  public:
    /// Returns the workers' batches; null if traffic is not inspected.
    [[nodiscard]] virtual PageFeed* page_feed() = 0;
    [[nodiscard]] virtual const snapshot::ObjectSet& objects() const = 0;
    /// Compiles a filter expression of a user.
    [[nodiscard]] virtual tl::expected<LineFilter, InputError>
    make_filter(const std::string& text) const = 0;
    /// Returns the JSON line of a session's snapshot with all items.
    [[nodiscard]] virtual std::string snapshot_line(const InspectedSnapshot& seen,
                                                    const snapshot::SnapshotView& items) const = 0;
};

/// Serves the viewers of the live page, and the API requests that wait for a snapshot or for
/// records. Fetches data from the workers only while a viewer is connected or a request waits. Used
/// only on the HTTP server's thread.
class Viewers {
  public:
    using Clock = std::chrono::steady_clock;

    static constexpr std::size_t kMaxViewers = 32;
    /// The maximum number of viewers from one IPv4 address or IPv6 /64.
    static constexpr std::size_t kMaxOfPeer = 24;
    /// The maximum number of requests that wait for a snapshot or for records.
    static constexpr std::size_t kMaxWaiting = 16;
    /// The maximum number of one peer's waiting requests for snapshots, and of its waiting requests
    /// for records.
    static constexpr std::size_t kMaxWaitingOfPeer = 8;

    /// `data` must outlive the object. `state_json`: returns the state that viewers see.
    Viewers(ViewData& data, std::function<std::string()> state_json)
        : data_{&data}, state_json_{std::move(state_json)} {}

    /// Returns true if another viewer from this peer may connect.
    [[nodiscard]] bool has_room_for(const base::Network& peer) const;

    /// Adds a viewer. `token`: number of the token that the viewer used; 0 if it needed none.
    void add_viewer(const std::shared_ptr<WebSocket>& socket, const base::Network& peer,
                    std::uint32_t token = 0);

    /// Disconnects the viewers that used another token than the one with this number.
    void disconnect_viewers_with_other_token(std::uint32_t token);

    /// Responds with the JSON line of the session's next snapshot; of the next merged snapshot of
    /// all sessions if `session` is 0. If no snapshot arrives in time, the response says so.
    void request_snapshot(std::uint32_t session, const base::Network& peer, Respond respond);
    /// Collects records for the time `wait`, then responds with those that match the filter.
    void request_records(LineFilter filter, std::chrono::milliseconds wait, std::size_t limit,
                         const base::Network& peer, Respond respond);

    /// Fetches new data from the workers and sends it to the viewers. Returns false if no viewer is
    /// connected and no request waits.
    bool fetch_and_send(Clock::time_point now = Clock::now());

    /// Removes all viewers and all waiting requests. The requests are not answered.
    void clear();

    [[nodiscard]] std::size_t size() const { return viewers_.size(); }

    /// Returns the number of messages dropped because viewers were too slow.
    [[nodiscard]] std::uint64_t dropped_message_count() const { return lost_; }

  private:
    struct Viewer {
        std::weak_ptr<WebSocket> socket{};
        base::Network peer{};
        /// Number of the token that the viewer used; 0 if no token was needed.
        std::uint32_t token = 0;
        std::uint32_t watch = ViewerRequests::kNothing;
        int pace = kUsualPace;
        bool whole = true; ///< the viewer's next frame must contain all items
        bool bytes = false;
        bool log = false;
        LineFilter filter{};
        /// Number of the latest log line that was filtered for the viewer.
        std::uint64_t log_seen = 0;
        /// Number of lost log lines that were not yet reported to the viewer.
        std::uint64_t log_lost = 0;
        /// Value of lines_lost_on_the_way_ at the latest update of log_lost.
        std::uint64_t lines_way = 0;
        std::uint64_t lost = 0;     ///< number of frames dropped because the viewer was too slow
        std::uint64_t lost_way = 0; ///< value of frames_lost_on_the_way_ when the viewer connected
    };

    struct WaitingForSnapshot {
        std::uint32_t session;
        std::uint64_t known; ///< number of the session's snapshots when the request arrived
        Clock::time_point until;
        base::Network peer;
        Respond respond;
    };

    void handle_message(Viewer& viewer, std::string_view text);
    void send_error(Viewer& viewer, std::string_view about, const InputError& error);
    bool send(Viewer& viewer, std::shared_ptr<const std::string> text);
    void update_interest();
    void drop_stale_data();
    void fetch_batches();
    void fetch_batch(std::size_t worker);
    void send_frame(std::uint32_t source, const Frame& frame);
    void send_log();
    void send_log(Viewer& viewer, Clock::time_point until);
    void send_state();
    void send_traffic_totals();
    /// Returns the number of the session's snapshots so far.
    [[nodiscard]] std::uint64_t snapshot_count(std::uint32_t session) const;
    [[nodiscard]] std::string latest_snapshot_line(std::uint32_t session) const;
    void answer_snapshot_requests(Clock::time_point now);

    ViewData* data_;
    std::function<std::string()> state_json_;
    std::vector<std::shared_ptr<Viewer>> viewers_;
    std::vector<WaitingForSnapshot> snapshots_;
    RecordRequests records_;
    std::map<std::uint32_t, FrameMaker> scenes_; ///< makes the frames of each watched session
    LogRing log_;
    /// JSON line of the latest merged snapshot that arrived while a viewer needed it.
    std::string world_line_;
    std::uint64_t world_lines_ = 0;
    /// Name of the server whose merged snapshots are shown; empty if it has no name or no snapshot
    /// has arrived.
    std::string world_server_;
    std::vector<std::vector<record::LedgerRow>> ledgers_; ///< traffic totals of each worker
    ViewerBatch batch_;
    std::uint64_t lost_ = 0;
    /// Numbers of frames and lines lost because a worker's batch was full.
    std::uint64_t frames_lost_on_the_way_ = 0;
    std::uint64_t lines_lost_on_the_way_ = 0;
    Clock::time_point stated_{};
    Clock::time_point logged_{};
    std::size_t log_turn_ = 0; ///< index of the viewer whose log is filtered first
};

} // namespace tw::web
