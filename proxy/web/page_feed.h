#pragma once

#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "proxy/web/status_view.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::web {

/// Data that viewers can look at, in addition to single sessions. The values can be combined.
enum class ViewerTopic : std::uint8_t {
    none = 0,
    world = 1,          ///< the merged snapshots of all sessions
    world_line = 2,     ///< merged snapshots as JSON lines
    log = 4,            ///< records as JSON lines
    traffic_totals = 8, ///< traffic totals by message and item type
};

constexpr ViewerTopic operator|(ViewerTopic a, ViewerTopic b) {
    return static_cast<ViewerTopic>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

/// The sessions and topics that viewers of the page currently look at. The page's thread sets them;
/// workers query them for every record. Without viewers, a query only reads one atomic flag.
class ViewerInterest {
  public:
    /// The maximum number of sessions that viewers can watch at a time.
    static constexpr std::size_t kMaxSessions = 48;

    [[nodiscard]] bool wants_anything() const noexcept {
        return wants_anything_.load(std::memory_order_relaxed);
    }

    [[nodiscard]] bool wants_session(std::uint32_t number) const noexcept;

    [[nodiscard]] bool wants_topic(ViewerTopic topic) const noexcept {
        const auto topics = static_cast<unsigned>(topics_.load(std::memory_order_relaxed));
        return (topics & static_cast<unsigned>(topic)) != 0;
    }

    /// Waits until a viewer watches the merged snapshots, stop_waiting() is called, or the time
    /// `most` has passed.
    void wait_for_world_viewer(std::chrono::milliseconds most);

    /// Makes current and later calls of wait_for_world_viewer() return at once.
    void stop_waiting();

    /// Sets the sessions and topics that viewers look at. Only one thread may call this function.
    /// Session 0 stands for ViewerTopic::world. Only the first kMaxSessions sessions count.
    void set_interest(std::span<const std::uint32_t> sessions, ViewerTopic topics);

  private:
    std::atomic<bool> wants_anything_{false};
    std::atomic<ViewerTopic> topics_{ViewerTopic::none};
    std::array<std::atomic<std::uint32_t>, kMaxSessions> sessions_{}; ///< 0 in unused elements
    std::mutex mutex_;                                                ///< guards is_stopped_
    std::condition_variable topics_changed_; ///< wakes wait_for_world_viewer()
    bool is_stopped_ = false;
};

/// A snapshot that a worker inspected: values for the timeline, and the position of its items in a
/// ViewerBatch. In a merged snapshot of all sessions, `delta_tick` is the tick of the previous
/// merged snapshot, and `parts` is the number of merged sessions.
struct InspectedSnapshot {
    std::uint32_t session = 0; ///< 0 for the merged snapshot of all sessions
    std::int64_t time = 0;     ///< nanoseconds since 1970
    snapshot::Tick tick = 0;
    snapshot::Tick delta_tick = snapshot::kNoBase;
    std::optional<std::int32_t> crc_wanted{};
    std::optional<std::int32_t> crc_got{};
    std::size_t bytes = 0;
    std::int32_t parts = 0;
    bool rebuilt = false;      ///< true if the snapshot could be decoded
    std::size_t first_int = 0; ///< index of the snapshot's items in ViewerBatch::ints
    std::size_t num_items = 0;
    std::size_t num_ints = 0;
};

/// Data from one worker for the viewers.
struct ViewerBatch {
    /// Limits of `ints` and `lines`: about 100 full snapshots, and some thousand lines.
    static constexpr std::size_t kMaxInts = std::size_t{1} << 20U;
    static constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20U;

    std::vector<InspectedSnapshot> snapshots{};
    std::vector<std::int32_t>
        ints{};          ///< the snapshots' items, as SnapshotView::of_block reads them
    std::string lines{}; ///< records as JSON, each followed by a newline
    /// JSON line of the latest merged snapshot; empty if no viewer needs it.
    std::string world_line{};
    /// The server name of the latest merged snapshot; empty if the server has no name. Nullopt if
    /// the batch has no merged snapshot.
    std::optional<std::string> world_server{};
    /// Totals by message and item type; empty if they have not changed.
    std::vector<record::ByteLedgerRow> ledger{};
    std::uint64_t lost_snapshots = 0; ///< number of snapshots that did not fit
    std::uint64_t lost_lines = 0;     ///< number of lines that did not fit

    [[nodiscard]] bool empty() const {
        return snapshots.empty() && lines.empty() && world_line.empty() && ledger.empty() &&
               lost_snapshots == 0 && lost_lines == 0;
    }

    void clear();

    /// Adds a snapshot and copies its items. If they do not fit, counts the snapshot as lost.
    void add_snapshot(InspectedSnapshot seen, const snapshot::SnapshotView& items);

    /// Adds records as JSON, each followed by a newline. If they do not fit, counts them as lost.
    void add_lines(std::string_view more);

    /// Appends a later batch. Returns false, and changes nothing, if it does not fit.
    [[nodiscard]] bool append_batch(const ViewerBatch& later);

    [[nodiscard]] snapshot::SnapshotView items_of(const InspectedSnapshot& seen) const;
};

/// Passes batches from one worker to the page. The worker never waits: if the mailbox is locked or
/// full, the worker tries again later with a larger batch.
class Mailbox {
  public:
    /// Moves the content of `batch` to the mailbox; `batch` receives old data, whose memory can be
    /// reused. Returns false, and changes nothing, if the mailbox is locked or full.
    [[nodiscard]] bool try_put_batch(ViewerBatch& batch);

    /// Moves the batch in the mailbox to `batch`, which must be empty. Returns false if the mailbox
    /// is empty.
    [[nodiscard]] bool take_batch(ViewerBatch& batch);

  private:
    std::mutex mutex_;
    ViewerBatch batch_;
};

/// Connects the workers of a run with the page. Workers never wait: if they cannot pass data on,
/// because the page reads, they try again later.
class PageFeed {
  public:
    explicit PageFeed(std::size_t workers) : mailboxes(workers + 1), views_(workers) {}

    /// Publishes a worker's view. Returns false, and publishes nothing, while the page reads.
    /// `view` receives the worker's previous view, to reuse the memory.
    [[nodiscard]] bool try_publish_view(std::size_t worker, StatusView& view);
    /// Returns the sum of the workers' views.
    [[nodiscard]] StatusView read_merged_view() const;

    /// Passes the batch to Mailbox::try_put_batch() of the mailbox with this index. Wakes the page
    /// if the batch contains snapshots. Other data waits until the page fetches it.
    [[nodiscard]] bool try_put_batch(std::size_t box, ViewerBatch& batch);

    /// Returns the index of the mailbox for merged snapshots.
    [[nodiscard]] std::size_t world_mailbox_index() const { return mailboxes.size() - 1; }

    /// Sets the function that wakes the page, which is called on a worker's thread. The function
    /// must not wait; it may be empty.
    void set_listener(std::function<void()> listener);

    /// Allows the next call of the listener. The page calls this function before it fetches data.
    void rearm_listener() noexcept { is_listener_called_.store(false); }

    ViewerInterest interest;
    std::vector<Mailbox> mailboxes; ///< one for each worker; the last one is for merged snapshots

  private:
    mutable std::mutex views_mutex_;
    std::vector<StatusView> views_;               ///< the latest view of each worker
    std::atomic<bool> is_listener_called_{false}; ///< true since the listener was called
    std::mutex mutex_;                            ///< guards listener_
    std::function<void()> listener_;              ///< wakes the page
};

/// The frame rate of viewers who have not chosen another, in frames a second.
inline constexpr int kDefaultFrameRate = 20;
/// With this frame rate or a higher one, a viewer gets a frame for each snapshot.
inline constexpr int kEveryTickFrameRate = 50;

/// A frame for the viewers with one frame rate, as JSON. `delta` contains the changes since the
/// previous frame of this rate; `full` returns a frame with all items. Both contain a timeline bar
/// for each snapshot since the previous frame. Format: docs/api.md.
struct PageFrame {
    int frame_rate = kDefaultFrameRate;
    std::shared_ptr<const std::string> delta{};
    /// Callable only while the frame is passed to the callback.
    std::function<std::shared_ptr<const std::string>()> full{};
    bool has_only_bars = false; ///< true if `delta` has no items, because no snapshot was decoded
};

/// Makes frames for viewers, at several frame rates, from the snapshots of one session.
class PageFrameMaker {
  public:
    PageFrameMaker(std::uint32_t session, const snapshot::ObjectSet& objects)
        : session_{session}, types_{objects} {}

    void set_frame_rates(const std::vector<int>& frame_rates);

    /// Adds the next snapshot. Calls `show` with each frame that is due.
    void add_snapshot(const InspectedSnapshot& seen, const snapshot::SnapshotView& items,
                      const std::function<void(const PageFrame&)>& show);

    /// Returns the latest snapshot that could be decoded; nullopt before the first one.
    [[nodiscard]] const std::optional<InspectedSnapshot>& latest_snapshot() const {
        return latest_snapshot_;
    }

    [[nodiscard]] snapshot::SnapshotView latest_items() const { return latest_items_.view(); }

    /// Returns the number of snapshots that could be decoded.
    [[nodiscard]] std::uint64_t snapshot_count() const { return snapshot_count_; }

  private:
    /// The maximum number of bars in a frame. This is enough for half a minute between two frames.
    static constexpr std::size_t kMaxTimelineBars = 1500;

    /// The frames of one frame rate.
    struct FrameStream {
        /// Returns whether a frame is due at this time. If so, sets the time of the next frame.
        [[nodiscard]] bool try_start_frame(std::int64_t time);

        int frame_rate = kDefaultFrameRate;
        std::uint64_t number = 0;                 ///< number of the latest frame
        std::int64_t due = 0;                     ///< time of the next frame
        std::optional<snapshot::Snapshot> sent{}; ///< items of the previous frame
        std::string bars{}; ///< the bars since the previous frame, as elements of a JSON array
        std::size_t num_bars = 0;
    };

    [[nodiscard]] std::string frame_json(const FrameStream& stream,
                                         const snapshot::Snapshot* before) const;
    void set_latest_items(const InspectedSnapshot& seen, const snapshot::SnapshotView& items);
    void show_frame(FrameStream& stream, bool has_only_bars,
                    const std::function<void(const PageFrame&)>& show);

    std::uint32_t session_;
    record::ItemTypes types_; ///< the item types of 0.6, because workers translate items of 0.7
    std::optional<InspectedSnapshot> latest_snapshot_;
    snapshot::Snapshot latest_items_;
    std::uint64_t snapshot_count_ = 0;
    std::vector<FrameStream> frame_streams_;
};

} // namespace tw::web
