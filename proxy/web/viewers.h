#pragma once

#include "proxy/base/keyed_hash.h"
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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::web {

/// What viewers are shown, besides what the workers hand over.
struct ViewSources {
    Feed* feed = nullptr; ///< null: nothing is inspected
    const snapshot::ObjectSet* objects = &snapshot::ObjectSet::standard();
    MakeLineFilter make_filter{};
    std::function<std::string()> state_json{};
    /// A session's snapshot as a line of records, with all its items.
    std::function<std::string(const SeenSnapshot&, const snapshot::SnapshotView&)> snapshot_line{};
};

/// Everybody who looks at the live page, or asks for what only is there while somebody looks. All of it
/// on the server's thread; nothing is fetched from the workers while nobody looks.
class Viewers {
  public:
    using Clock = std::chrono::steady_clock;

    static constexpr std::size_t kMaxViewers = 32;
    /// Of them, those of one IPv4 address or IPv6 /64: some places are left for others.
    static constexpr std::size_t kMaxOfPeer = 24;
    /// Requests that wait for a snapshot or for records.
    static constexpr std::size_t kMaxWaiting = 16;
    /// Of them, of each kind, those of one peer.
    static constexpr std::size_t kMaxWaitingOfPeer = 8;

    explicit Viewers(ViewSources sources) : sources_{std::move(sources)} {}

    /// Whether one more of this peer may come.
    [[nodiscard]] bool has_room_for(const base::Source& peer) const;

    /// `token`: which one let it in; 0: it needed none.
    void welcome(const std::shared_ptr<WebSocket>& socket, const base::Source& peer,
                 std::uint32_t token = 0);

    /// Ends those whom another token let in.
    void keep_token(std::uint32_t token);

    /// Answers with the session's next snapshot, or with 0 the next world of all, as a line of records;
    /// or that none came. What was there already is not the next one.
    void ask_snapshot(std::uint32_t session, const base::Source& peer, Respond respond);
    /// Answers after `wait` with the records that passed by then and match, as lines.
    void ask_records(LineFilter filter, std::chrono::milliseconds wait, std::size_t limit,
                     const base::Source& peer, Respond respond);

    /// Fetches and shows what is new. False: nobody looks any more.
    bool turn(Clock::time_point now = Clock::now());

    /// Forgets everybody, answers nobody.
    void clear();

    [[nodiscard]] std::size_t size() const { return viewers_.size(); }

    /// Frames and lines that viewers were too slow for.
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

  private:
    struct Viewer {
        std::weak_ptr<WebSocket> socket{};
        base::Source peer{};
        std::uint32_t token = 0; ///< that let it in; 0: it needed none
        std::uint32_t watch = ViewerRequests::kNothing;
        int pace = kUsualPace;
        bool whole = true; ///< its next frame has to be
        bool bytes = false;
        bool log = false;
        LineFilter filter{};
        std::uint64_t log_seen = 0;  ///< number of the last line looked at for it
        std::uint64_t log_lost = 0;  ///< lines that it is to be told are missing
        std::uint64_t lines_way = 0; ///< lines_lost_on_the_way_ as it was told of
        std::uint64_t lost = 0;      ///< frames it was too slow for
        std::uint64_t lost_way = 0;  ///< frames_lost_on_the_way_ when it came
    };

    struct WaitingForSnapshot {
        std::uint32_t session;
        std::uint64_t known; ///< snapshots or worlds that were there when it asked
        Clock::time_point until;
        base::Source peer;
        Respond respond;
    };

    void obey(Viewer& viewer, std::string_view text);
    void print_error(Viewer& viewer, std::string_view about, const Complaint& complaint);
    bool send(Viewer& viewer, std::shared_ptr<const std::string> text);
    void look_at_what_is_wanted();
    void drop_what_waits();
    void fetch();
    void fetch(std::size_t worker);
    void show(std::uint32_t source, const Frame& frame);
    void show_log();
    void show_log(Viewer& viewer, Clock::time_point until);
    void show_state();
    void show_bytes();
    /// Counts what line_of would tell.
    [[nodiscard]] std::uint64_t count_of(std::uint32_t session) const;
    [[nodiscard]] std::string line_of(std::uint32_t session) const;
    void answer_snapshots(Clock::time_point now);

    ViewSources sources_;
    std::vector<std::shared_ptr<Viewer>> viewers_;
    std::vector<WaitingForSnapshot> snapshots_;
    RecordRequests records_;
    std::map<std::uint32_t, Scene> scenes_; ///< by session
    LogRing log_;
    std::string world_line_; ///< the latest that came while somebody asked
    std::uint64_t world_lines_ = 0;
    std::string world_server_; ///< whose world is shown; empty: it has no name, or none was
    std::vector<std::vector<record::LedgerRow>> ledgers_; ///< by worker
    Batch batch_;
    std::uint64_t lost_ = 0;
    std::uint64_t frames_lost_on_the_way_ = 0; ///< by workers that found no room
    std::uint64_t lines_lost_on_the_way_ = 0;
    Clock::time_point stated_{};
    Clock::time_point logged_{};
    std::size_t log_turn_ = 0; ///< of the viewers, whose log is looked at first
};

} // namespace tw::web
