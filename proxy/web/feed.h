#pragma once

#include "proxy/record/stats.h"
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
#include <vector>

namespace tw::web {

/// What viewers of the page look at. The page's thread says it; the workers ask for every record, which
/// is one load while nobody looks.
class Watch {
  public:
    /// Sessions that are looked at one by one.
    static constexpr std::size_t kMaxSessions = 48;

    [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_relaxed); }

    /// `number` is not 0.
    [[nodiscard]] bool session(std::uint32_t number) const noexcept;

    /// The world of all sessions.
    [[nodiscard]] bool world() const noexcept { return world_.load(std::memory_order_relaxed); }

    /// That as a line of records, too.
    [[nodiscard]] bool world_line() const noexcept {
        return world_line_.load(std::memory_order_relaxed);
    }

    /// Until somebody looks at the world, stop_waiting() was called, or so long has passed.
    void await_world(std::chrono::milliseconds most);

    /// Nobody is to wait for a world any more.
    void stop_waiting();

    [[nodiscard]] bool log() const noexcept { return log_.load(std::memory_order_relaxed); }

    /// Where the bytes go.
    [[nodiscard]] bool bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

    /// By one thread. Session 0 is the world of all. Sessions beyond kMaxSessions are not looked at.
    void set(std::span<const std::uint32_t> sessions, bool log, bool bytes,
             bool world_line = false);

  private:
    std::atomic<bool> any_{false};
    std::atomic<bool> log_{false};
    std::atomic<bool> bytes_{false};
    std::atomic<bool> world_{false};
    std::atomic<bool> world_line_{false};
    std::array<std::atomic<std::uint32_t>, kMaxSessions> sessions_{}; ///< 0: none
    std::mutex mutex_;                                                ///< of who waits for a world
    std::condition_variable told_;                                    ///< somebody looks at it
    bool hurried_ = false;
};

/// A snapshot as it passed: what the timeline says of it, and where its items stand in a batch. Of the
/// world of all sessions `delta_tick` is the tick of the one before, `bytes` its size, `parts` how many
/// sessions' views are in it.
struct SeenSnapshot {
    std::uint32_t session = 0; ///< 0: the world of all
    std::int64_t time = 0;     ///< nanoseconds since 1970
    snapshot::Tick tick = 0;
    snapshot::Tick delta_tick = snapshot::kNoBase;
    std::optional<std::int32_t> crc_wanted{};
    std::optional<std::int32_t> crc_got{};
    std::size_t bytes = 0;
    std::int32_t parts = 0;
    bool rebuilt = false;
    std::size_t block = 0; ///< index into Batch::ints
    std::size_t num_items = 0;
    std::size_t num_ints = 0;
};

/// What a worker saw of what is looked at. Kept for its memory.
struct Batch {
    /// Nothing is added beyond as much: 100 full snapshots, or some thousand lines.
    static constexpr std::size_t kMaxInts = std::size_t{1} << 20U;
    static constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20U;

    std::vector<SeenSnapshot> snapshots{};
    std::vector<std::int32_t> ints{}; ///< as SnapshotView::of_block takes them
    std::string lines{};              ///< records as JSON, each with a newline behind it
    std::string world_line{};         ///< the latest world; empty: nobody asks for it
    /// Whose worlds the latest of them are, by its name; empty: it has none. Nothing: no world came.
    std::optional<std::string> world_server{};
    std::vector<record::LedgerRow> ledger{}; ///< totals; empty: nothing new
    std::uint64_t lost_snapshots = 0;        ///< that had no room
    std::uint64_t lost_lines = 0;

    [[nodiscard]] bool empty() const {
        return snapshots.empty() && lines.empty() && world_line.empty() && ledger.empty() &&
               lost_snapshots == 0 && lost_lines == 0;
    }

    void clear();

    /// Copies the items; counts it as lost where there is no room.
    void add(SeenSnapshot seen, const snapshot::SnapshotView& items);

    /// Puts a later one behind this one. False: there is no room for all of it, and nothing happened.
    [[nodiscard]] bool append(const Batch& later);

    [[nodiscard]] snapshot::SnapshotView items(const SeenSnapshot& seen) const;
};

/// What one worker hands over to the page. It never waits here: when the page is in the way, or what was
/// not fetched fills it, it comes again later with more.
class Mailbox {
  public:
    /// `batch` gets back the memory of one that was read; what is in it then counts for nothing. False:
    /// nothing happened.
    [[nodiscard]] bool try_put(Batch& batch);

    /// `batch` has to be empty. False: there is nothing.
    [[nodiscard]] bool take(Batch& batch);

  private:
    std::mutex mutex_;
    Batch batch_;
};

/// Wakes the page when there is something that it has to show at once.
class Notifier {
  public:
    /// Who hears it: called on the thread of who rings, and must not wait; none: nobody.
    void set_listener(std::function<void()> listener);

    /// Calls the listener, but not again before answer().
    void ring();

    /// By the page, before it fetches what there is.
    void answer() noexcept { rung_.store(false); }

  private:
    std::atomic<bool> rung_{false};
    std::mutex mutex_;
    std::function<void()> listener_;
};

/// Between the workers of a run and the page.
class Feed {
  public:
    explicit Feed(std::size_t workers) : boxes(workers + 1) {}

    /// As Mailbox::try_put, into one of the boxes; snapshots wake the page, all else waits for its turn.
    [[nodiscard]] bool try_put(std::size_t box, Batch& batch);

    /// Of who makes worlds.
    [[nodiscard]] std::size_t world_box() const { return boxes.size() - 1; }

    [[nodiscard]] Mailbox& world() { return boxes[world_box()]; }

    Watch watch;
    std::vector<Mailbox> boxes; ///< by worker; the last one: of who makes worlds
    Notifier bell;
};

/// One snapshot on the timeline.
struct Bar {
    std::uint32_t session = 0;
    std::int64_t time = 0; ///< nanoseconds since 1970
    snapshot::Tick tick = 0;
    snapshot::Tick delta_tick = snapshot::kNoBase;
    std::size_t bytes = 0; ///< of the delta
    std::int32_t parts = 0;
    std::size_t size = 0; ///< of the snapshot, as the server counts it
    enum class Fate : std::uint8_t { verified, unverified, mismatched } fate = Fate::verified;
};

/// What viewers are told of one moment: an item is [object, id, ints...], where the object is its place
/// in /api/objects, or -1 - type for one that nobody knows. docs/api.md describes it.
struct FrameHead {
    std::uint32_t session = 0; ///< 0: the world of all sessions
    std::uint64_t number = 0;  ///< counts frames of one pace
    std::int64_t time = 0;     ///< nanoseconds since 1970
    snapshot::Tick tick = 0;
};

/// Gives a type's place among the objects.
class ObjectPlaces {
  public:
    explicit ObjectPlaces(const snapshot::ObjectSet& objects) : objects_{&objects} {}

    /// Reads what a snapshot says of UUID types. True: a number stands for another type than before, as
    /// where a server was started again.
    [[nodiscard]] bool learn(const snapshot::SnapshotView& items);

    [[nodiscard]] std::int32_t place(std::uint16_t type) const;

  private:
    struct Known {
        std::uint16_t type = 0;
        std::int32_t place = 0;
    };

    /// As record::TypeNames: servers have at most 64.
    static constexpr std::size_t kMaxTypes = 512;

    const snapshot::ObjectSet* objects_;
    std::vector<Known> uuids_;
};

/// The items of `now` that differ from those of `before`, and the keys that are gone; all of `now` when
/// there is no `before`. Items that only name types are left out.
[[nodiscard]] std::string frame_json(const FrameHead& head, const snapshot::SnapshotView& now,
                                     const std::optional<snapshot::SnapshotView>& before,
                                     std::span<const Bar> bars, const ObjectPlaces& places);

/// Of snapshots that could not be rebuilt, while there is nothing new to show.
[[nodiscard]] std::string bars_json(std::uint32_t session, std::span<const Bar> bars);

/// Frames a second that a viewer can ask for; kEveryTick and more: a frame for each snapshot.
inline constexpr int kUsualPace = 20;
inline constexpr int kEveryTick = 50;

/// A frame, as what changed since the one before of its pace and, made when somebody needs it, as all
/// there is.
struct Frame {
    int pace = kUsualPace;
    std::shared_ptr<const std::string> delta{};
    std::function<std::shared_ptr<const std::string>()> full{}; ///< for as long as the call lasts
    bool bars_only = false; ///< nothing new to show: `delta` has the bars of what was not rebuilt
};

/// A snapshot as one block of ints.
struct KeptSnapshot {
    std::vector<std::int32_t> ints{};
    std::size_t num_items = 0;
    std::size_t num_ints = 0;
};

/// The latest snapshot of one session, and frames of it for each pace that somebody asked for.
class Scene {
  public:
    Scene(std::uint32_t session, const snapshot::ObjectSet& objects)
        : session_{session}, places_{objects} {}

    /// From now on frames are made at these paces, and at no others.
    void set_paces(const std::vector<int>& paces);

    /// Takes the next snapshot, and shows each frame that is due.
    void take(const SeenSnapshot& seen, const snapshot::SnapshotView& items,
              const std::function<void(const Frame&)>& show);

    /// The latest one that was rebuilt; nothing until there is one.
    [[nodiscard]] const std::optional<SeenSnapshot>& latest() const { return latest_; }

    [[nodiscard]] snapshot::SnapshotView items() const { return view_of(now_); }

    /// Counts those that were rebuilt.
    [[nodiscard]] std::uint64_t taken() const { return taken_; }

  private:
    /// Snapshots between two frames: half a minute's, if none can be rebuilt.
    static constexpr std::size_t kMaxBars = 1500;

    struct Channel {
        /// Whether a frame is to be made of what came at this time; then the next one is due later.
        [[nodiscard]] bool take_turn(std::int64_t time);

        int pace = kUsualPace;
        std::uint64_t number = 0;
        std::int64_t due = 0; ///< when its next frame is
        std::optional<KeptSnapshot> sent{};
        std::vector<Bar> bars{};
    };

    [[nodiscard]] static snapshot::SnapshotView view_of(const KeptSnapshot& kept) {
        return snapshot::SnapshotView::of_block(kept.ints, kept.num_items, kept.num_ints);
    }

    void show_bars(Channel& channel, const std::function<void(const Frame&)>& show) const;
    void show_frame(Channel& channel, const std::function<void(const Frame&)>& show);

    std::uint32_t session_;
    ObjectPlaces places_;
    std::optional<SeenSnapshot> latest_;
    KeptSnapshot now_;
    std::uint64_t taken_ = 0;
    std::vector<Channel> channels_;
};

} // namespace tw::web
