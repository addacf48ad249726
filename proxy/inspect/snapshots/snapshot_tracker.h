#pragma once

#include "proxy/inspect/connection/session_checkpoint.h"
#include "proxy/inspect/diagnosis/diagnosis.h"
#include "proxy/inspect/reporter.h"
#include "proxy/inspect/snapshots/client_view.h"
#include "proxy/inspect/snapshots/snapshot_checks.h"
#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/wire/message.h"
#include "snapshot/delta.h"
#include "snapshot/history.h"
#include "snapshot/item.h"
#include "snapshot/parts.h"
#include "snapshot/snapshot.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tw::inspect {

/// Tick of the base that a distance on the wire names: any negative one means none.
struct Base {
    snapshot::Tick tick = snapshot::kNoBase;
    bool odd = false; ///< negative, but not -1
};

[[nodiscard]] inline Base base_tick(snapshot::Tick tick, std::int32_t distance) {
    const std::int64_t base = std::int64_t{tick} - distance;
    if (base < 0) {
        return {.tick = snapshot::kNoBase, .odd = base != snapshot::kNoBase};
    }
    // A negative distance names a base of the future; it will not be found.
    constexpr std::int64_t kLast = std::numeric_limits<snapshot::Tick>::max();
    return {.tick = static_cast<snapshot::Tick>(std::min(base, kLast)), .odd = false};
}

enum class TickClass : std::uint8_t {
    follows,   ///< as the clock lets expect
    stray,     ///< far from every tick before it: not to be believed yet
    restarted, ///< the last few agree with each other: the server counts from here now
};

/// Holds the ticks of snapshots against the clock. A client believes any tick, and ignores all
/// older ones from then on: one forged snapshot of the far future and it stands still until the map
/// changes. Whoever looks on must not.
///
/// Framing:  time in nanoseconds; ticks are 1/50 s.
class TickPlausibility {
  public:
    /// Ticks a snapshot may be away from what the clock says: what the history reaches back.
    static constexpr std::int64_t kSlack = 250;
    /// Strays in a row that agree before they are believed: a server restarted unseen.
    static constexpr int kAgreeing = 3;

    [[nodiscard]] TickClass take(snapshot::Tick tick, std::int64_t time);

    /// The server may have restarted unseen just now: if the next ticks are far from those before
    /// them, that is why.
    void doubt(std::int64_t time) { doubted_ = time; }

    /// The tick that the last stray was measured against.
    [[nodiscard]] snapshot::Tick expected() const { return last_ ? last_->tick : 0; }

    void reset() { *this = {}; }

  private:
    struct Seen {
        snapshot::Tick tick = 0;
        std::int64_t time = 0;
    };

    [[nodiscard]] static bool fits(const Seen& before, snapshot::Tick tick, std::int64_t time);

    [[nodiscard]] TickClass restart(const Seen& seen);

    std::optional<Seen> last_;  ///< newest tick that is believed
    std::optional<Seen> stray_; ///< newest that is not
    int strays_ = 0;
    std::optional<std::int64_t> doubted_; ///< since when
};

/// Knows snapshots of the map before for what they are. They may come until the client enters the game
/// on the new one, or a second longer than the change where it does so at once: any client can.
/// Source: protocol sheet, item 4 of section 10.
class PreviousMapFilter {
  public:
    void leave(snapshot::Tick newest, record::Timestamp now) {
        constexpr record::Timestamp kUnderWay = 1'000'000'000;
        constexpr record::Timestamp kLoading = 10'000'000'000;
        left_ = Left{.newest = newest, .at_least_until = now + kUnderWay, .until = now + kLoading};
    }

    void enter_game(record::Timestamp now) {
        if (left_) {
            left_->until = std::min(left_->until, std::max(now, left_->at_least_until));
        }
    }

    void forget() { left_.reset(); }

    /// `history`: of the new map.
    [[nodiscard]] bool has(const snapshot::Part& part, const snapshot::History& history,
                           record::Timestamp now) const {
        if (!left_ || now >= left_->until) {
            return false;
        }
        const std::int64_t behind = std::int64_t{left_->newest} - part.tick;
        if (behind > TickPlausibility::kSlack || behind < -TickPlausibility::kSlack) {
            return false;
        }
        // Ticks begin again with the map; those of the first second are far below any other.
        return part.delta_tick == snapshot::kNoBase ? part.tick > TickPlausibility::kSlack
                                                    : !history.contains(part.delta_tick);
    }

  private:
    struct Left {
        snapshot::Tick newest = 0;
        record::Timestamp at_least_until = 0;
        record::Timestamp until = 0;
    };

    std::optional<Left> left_;
};

/// Buffers that decoding needs for the time of one call: shared by all sessions of a worker.
struct SnapshotWorkspace {
    snapshot::Delta delta;
    Rebuilt rebuilt;
    SearchBudget searches;
    /// Where sessions are of one game; else none, and deltas are decoded alone.
    std::unique_ptr<snapshot::SharedDeltas> shared;
};

/// A connection's snapshots: parts are reassembled, deltas applied, checksums compared, the world
/// looked at. What the client would drop is dropped here too, and reported.
class SnapshotTracker {
  public:
    /// `learn_sizes`: sizes that are found to differ from the agreed ones are decoded with.
    /// `shared`: what other sessions of the server named, outlives it; null: nothing is shared.
    /// `arena`: where snapshots are kept, outlives it; null: in one of its own. `server`: what all
    /// its sessions know of it; outlives this.
    SnapshotTracker(const snapshot::ObjectSet& objects, const Observers& observers,
                    bool learn_sizes, LearnedSizes::Server* shared, snapshot::Arena* arena,
                    SharedServer& server)
        : observers_{&observers}, history_{arena == nullptr ? snapshot::History{}
                                                            : snapshot::History{*arena}},
          types_{objects}, client_{server}, diagnosis_{objects.sizes(snapshot::Dialect::six),
                                                       learn_sizes, shared} {}

    /// A snap, snap_single or snap_empty message. `compressed`: its packet was.
    void on_message(const wire::MessageHead& head, bool compressed, Reporter& reporter,
                    SnapshotWorkspace& workspace);
    /// What an input of the client acknowledges, and when it was.
    void on_input(const ClientView::Input& input, Reporter& reporter);

    /// The server says when it read an input.
    void on_input_timing(const wire::InputTimingBody& timing, Reporter& reporter) {
        client_.on_input_timing(timing.input_pred_tick, timing.time_left, reporter);
    }

    /// A reliable chunk of the server passed, in order.
    void on_chunk(std::uint16_t sequence, record::Timestamp time) {
        client_.on_chunk(sequence, time);
    }

    /// The client has the server's reliable chunks up to this one.
    void on_chunk_ack(std::uint16_t ack, record::Timestamp time) {
        client_.on_chunk_ack(ack, time);
    }

    /// The client told its version, as DDNet counts them.
    void on_client_version(std::int32_t version) { client_.on_version(version); }

    [[nodiscard]] snapshot::Dialect dialect() const { return types_.dialect(); }

    /// What comes builds on what did not pass by: nothing can be rebuilt before a full snapshot.
    [[nodiscard]] bool is_blind() const {
        return failure_ && failure_->why == record::FindingId::snapshot_unknown_base &&
               failure_->lost > 1;
    }

    /// Copies were lost: what the client has is not known, and the map may have changed.
    void on_gap(Reporter& reporter) {
        client_.restart(reporter);
        ticks_.doubt(reporter.head().time);
    }

    /// Map change: ticks and items start again, type numbers stay. What is under way of the old map
    /// is known for what it is for a while.
    void change_map(Reporter& reporter);

    /// The client has loaded the map that it was told to.
    void enter_game(record::Timestamp now) { old_map_.enter_game(now); }

    /// The connection is over.
    void restart(Reporter& reporter);
    /// New connection: everything starts again.
    void reset(snapshot::Dialect dialect, Reporter& reporter);

    /// Who plays, where messages tell it: to be kept up by whoever reads them.
    [[nodiscard]] record::Roster& roster() { return roster_; }

    [[nodiscard]] const record::Roster& roster() const { return roster_; }

    void set_world(std::shared_ptr<const record::World> world) { world_ = std::move(world); }

    [[nodiscard]] const record::TypeNames& types() const { return types_; }

    /// The newest that was rebuilt; valid until the next message.
    [[nodiscard]] std::optional<snapshot::SnapshotView> newest() const {
        const auto tick = history_.newest();
        return tick ? history_.find(*tick) : std::nullopt;
    }

    /// What grows with what comes: histories and parts.
    [[nodiscard]] std::size_t memory_bytes() const {
        return history_.memory_bytes() + parts_.memory_bytes() + diagnosis_.memory_bytes();
    }

    /// Gives back what a client that acknowledged as much is not sent deltas on any more.
    void trim() {
        if (acked_) {
            history_.trim(*acked_ - kTrimSlack);
        }
    }

    /// Gives back all of it.
    void shed(Reporter& reporter);

    /// Adds what the next deltas may build on, and their parts that came.
    void save(SessionCheckpoint& checkpoint) const;

    /// Nothing was rebuilt, or the other observer went on since.
    [[nodiscard]] bool is_behind(const SessionCheckpoint& checkpoint) const {
        const auto newest = history_.newest();
        return !newest ||
               (!checkpoint.snapshots.empty() && checkpoint.snapshots.back().tick > *newest);
    }

    /// Goes on with that. Precondition: it is sound.
    void restore(const SessionCheckpoint& checkpoint);

  private:
    /// The map before: its newest tick, and when it went.
    /// Inputs that overtake each other acknowledge older ticks again.
    static constexpr snapshot::Tick kTrimSlack = 25;

    struct Failure {
        snapshot::Tick since = 0;
        std::uint64_t lost = 0;
        record::FindingId why = record::FindingId::count;
    };

    /// Whether the tick can be the server's; what cannot is reported.
    [[nodiscard]] bool believes(snapshot::Tick tick, Reporter& reporter);
    void forget(Reporter& reporter);
    /// Whether this tick was reported as lost for want of its base, and the base is still not
    /// there: it came twice.
    [[nodiscard]] bool is_lost(snapshot::Tick tick, snapshot::Tick base) const;
    [[nodiscard]] PartFate add_part(const snapshot::Part& part, Reporter& reporter);
    void on_empty(snapshot::Tick tick, snapshot::Tick base, Reporter& reporter);
    [[nodiscard]] DeltaFate on_delta(const snapshot::AssembledDelta& delta, Reporter& reporter,
                                     SnapshotWorkspace& workspace);
    void refuse(record::SnapshotRecord& record, const snapshot::AssembledDelta& delta,
                Reporter& reporter, SnapshotWorkspace& workspace);

    /// The snapshot that was right last, while it is there.
    [[nodiscard]] std::optional<snapshot::SnapshotView> newest_right() const {
        return previous_ ? history_.find(*previous_) : std::nullopt;
    }

    static void count_base(const record::SnapshotRecord& record, Reporter& reporter);
    void note_arrival(const record::SnapshotRecord& record, Reporter& reporter);
    /// The history has it.
    void accept(record::SnapshotRecord& record, Reporter& reporter);
    void fail(record::SnapshotRecord& record, record::FindingRecord finding, Reporter& reporter);

    const Observers* observers_;
    snapshot::PartAssembler parts_;
    snapshot::History history_;
    TickPlausibility ticks_;
    record::TypeNames types_;
    record::Roster roster_; ///< of 0.7
    std::shared_ptr<const record::World> world_;
    std::optional<snapshot::Tick> previous_; ///< tick of the last rebuilt snapshot
    std::optional<snapshot::Tick> acked_;    ///< by the client, of a snapshot that was there
    std::uint64_t ordinal_ = 0;
    std::optional<Failure> failure_;
    PreviousMapFilter old_map_;
    /// The last ticks without a base; duplicates come close behind.
    static constexpr std::size_t kLostTicks = 16;
    std::array<std::optional<snapshot::Tick>, kLostTicks> lost_{};
    std::size_t num_lost_ = 0;
    std::optional<record::Timestamp> last_arrival_;
    Cadence cadence_;
    SnapshotChecks checks_;
    ClientView client_;
    Diagnosis diagnosis_;
};

} // namespace tw::inspect
