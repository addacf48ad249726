#pragma once

#include "proxy/base/keyed_hash.h"
#include "proxy/web/http_server.h"
#include "proxy/web/page_data.h"
#include "proxy/web/page_feed.h"
#include "proxy/web/record_requests.h"
#include "proxy/web/sockets.h"

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

/// Serves the viewers of the live page, and the API requests that wait for a snapshot or for
/// records. Fetches data from the workers only while a viewer is connected or a request waits. Used
/// only on the HTTP server's thread.
class Viewers {
  public:
    using Clock = std::chrono::steady_clock;

    static constexpr std::size_t kMaxViewers = 32;
    /// The maximum number of viewers from one IPv4 address or IPv6 /64.
    static constexpr std::size_t kMaxViewersPerPeer = 24;
    /// The maximum number of requests that wait for a snapshot or for records.
    static constexpr std::size_t kMaxWaitingRequests = 16;
    /// The maximum number of one peer's waiting requests for snapshots, and of its waiting requests
    /// for records.
    static constexpr std::size_t kMaxWaitingRequestsPerPeer = 8;

    /// `data` must outlive the object. `state_json`: returns the state that viewers see.
    Viewers(ViewerData& data, std::function<std::string()> state_json)
        : data_{&data}, state_json_{std::move(state_json)} {}

    /// Returns true if another viewer from this peer may connect.
    [[nodiscard]] bool has_room_for(const base::Network& peer) const;

    /// Adds a viewer. `token`: number of the token that the viewer used; 0 if none was needed.
    void add_viewer(const std::shared_ptr<WebSocket>& socket, const base::Network& peer,
                    std::uint32_t token = 0);

    /// Disconnects the viewers that used a token with another number than `token`.
    void disconnect_viewers_with_other_token(std::uint32_t token);

    /// Responds with the session's next snapshot as a JSON line. If `session` is 0, responds with
    /// the next merged snapshot of all sessions. Responds with an error if no snapshot arrives in
    /// time.
    void request_snapshot(std::uint32_t session, const base::Network& peer, Respond respond);

    /// Collects records for the time `wait`, then responds with the newest records that match the
    /// filter, at most `limit`.
    void request_records(LineFilter filter, std::chrono::milliseconds wait, std::size_t limit,
                         const base::Network& peer, Respond respond);

    /// Fetches new data from the workers and sends it to the viewers. Returns false if no viewer is
    /// connected and no request waits.
    bool update_viewers(Clock::time_point now = Clock::now());

    /// Removes all viewers and all waiting requests. The requests are not answered.
    void clear();

    [[nodiscard]] std::size_t size() const { return viewers_.size(); }

    /// Returns the number of messages dropped because viewers were too slow.
    [[nodiscard]] std::uint64_t num_dropped_messages() const { return dropped_messages_; }

  private:
    struct Viewer {
        std::weak_ptr<WebSocket> socket{};
        base::Network peer{};
        std::uint32_t token = 0;
        std::uint32_t watched_session = ViewerMessage::kNoSession;
        int frame_rate = kDefaultFrameRate;
        bool needs_full_frame = true;
        bool wants_traffic = false;
        bool wants_log = false;
        LineFilter log_filter{};
        /// Number of the latest log line that was filtered for the viewer.
        std::uint64_t last_filtered_line = 0;
        /// Number of lost log lines that were not yet reported to the viewer.
        std::uint64_t unreported_lost_lines = 0;
        /// The value of Viewers::lines_lost_in_batches_ that unreported_lost_lines includes.
        std::uint64_t lines_lost_in_batches = 0;
        std::uint64_t lost_frames = 0; ///< number of frames dropped because the viewer was too slow
        /// Value of frames_lost_in_batches_ when the viewer connected.
        std::uint64_t frames_lost_before = 0;
    };

    struct SnapshotRequest {
        std::uint32_t session;
        std::uint64_t count_before; ///< number of the session's snapshots when the request arrived
        Clock::time_point until;
        base::Network peer;
        Respond respond;
    };

    void handle_message(Viewer& viewer, std::string_view text);
    void send_error(Viewer& viewer, std::string_view about, const InputError& error);
    bool send(Viewer& viewer, std::shared_ptr<const std::string> text);
    void update_interest();
    void fetch_batches();
    void fetch_batch(std::size_t worker);
    void send_frame(std::uint32_t source, const PageFrame& frame);
    void send_log();
    void send_log(Viewer& viewer, Clock::time_point until);
    void send_state();
    [[nodiscard]] std::uint64_t snapshot_count(std::uint32_t session) const;
    [[nodiscard]] std::string latest_snapshot_line(std::uint32_t session) const;
    void answer_snapshot_requests(Clock::time_point now);

    ViewerData* data_;
    std::function<std::string()> state_json_;
    std::vector<std::shared_ptr<Viewer>> viewers_;
    std::vector<SnapshotRequest> snapshot_requests_;
    RecordRequests record_requests_;
    std::map<std::uint32_t, PageFrameMaker> frame_makers_; ///< by watched session
    LogRing log_;
    /// JSON line of the latest merged snapshot that arrived while a request waited for it.
    std::string world_line_;
    std::uint64_t world_line_count_ = 0;
    /// Name of the server whose merged snapshots are shown; empty if the server has no name, or no
    /// merged snapshot has arrived.
    std::string world_server_;
    std::vector<std::vector<record::ByteLedgerRow>> ledgers_; ///< traffic totals of each worker
    ViewerBatch batch_;
    std::uint64_t dropped_messages_ = 0;
    /// Number of frames that were lost because a worker's batch was full.
    std::uint64_t frames_lost_in_batches_ = 0;
    /// Number of log lines that were lost because a worker's batch was full.
    std::uint64_t lines_lost_in_batches_ = 0;
    Clock::time_point state_sent_at_{};
    Clock::time_point log_sent_at_{};
    std::size_t first_log_viewer_ = 0; ///< index of the viewer whose log is filtered next
};

} // namespace tw::web
