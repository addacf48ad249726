#pragma once

#include "proxy/inspect/connection/session_checkpoint.h"
#include "proxy/inspect/diagnosis/diagnosis.h"
#include "proxy/inspect/map_tracker.h"
#include "proxy/inspect/reporter.h"
#include "proxy/inspect/snapshots/snapshot_checks.h"
#include "proxy/inspect/snapshots/stall_detector.h"
#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/wire/bodies.h"
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
#include <optional>

namespace tw::inspect {

/// The base of a snapshot's delta, computed from the snapshot's tick and distance.
struct DeltaBase {
    snapshot::Tick tick = snapshot::kNoBase; ///< kNoBase: the snapshot is full
    bool is_invalid = false; ///< the computed tick is negative, but not -1; `tick` is then kNoBase
};

[[nodiscard]] inline DeltaBase compute_delta_base(snapshot::Tick tick, std::int32_t distance) {
    const std::int64_t base = std::int64_t{tick} - distance;
    if (base < 0) {
        return {.tick = snapshot::kNoBase, .is_invalid = base != snapshot::kNoBase};
    }
    // With a negative distance, the base is in the future, where no snapshot will be found.
    constexpr std::int64_t kLast = std::numeric_limits<snapshot::Tick>::max();
    return {.tick = static_cast<snapshot::Tick>(std::min(base, kLast)), .is_invalid = false};
}

enum class TickClass : std::uint8_t {
    plausible,   ///< the tick is plausible for the elapsed time
    implausible, ///< the tick is implausible, so the snapshot is ignored
    restarted,   ///< several implausible ticks fit each other: the server restarted its ticks
};

/// Checks whether the ticks of snapshots are plausible for the elapsed time. A client believes
/// every tick and then ignores older ticks. Therefore, after one forged tick far in the future, the
/// client ignores all snapshots until the map changes. The inspection must not fail in the same
/// way.
///
/// Units:   time in nanoseconds; ticks of 1/50 s.
class TickPlausibility {
  public:
    /// Tolerance in ticks: the time that the snapshot history covers.
    static constexpr std::int64_t kToleranceTicks = 250;
    /// If this many implausible ticks in a row fit each other, the server counts as restarted.
    static constexpr int kMinTicksOfRestart = 3;

    /// Classifies the tick of a snapshot that arrived at `time`.
    [[nodiscard]] TickClass classify_tick(snapshot::Tick tick, std::int64_t time);

    /// Lets the next implausible tick count as a restart. Called when datagrams were lost, because
    /// the server may have restarted its ticks unseen.
    void expect_tick_restart(std::int64_t time) { restart_expected_at_ = time; }

    /// Returns the newest plausible tick, with which the next tick is compared; 0 before the first
    /// tick.
    [[nodiscard]] snapshot::Tick last_plausible_tick() const {
        return last_plausible_ ? last_plausible_->tick : 0;
    }

    void reset() { *this = {}; }

  private:
    struct SeenTick {
        snapshot::Tick tick = 0;
        std::int64_t time = 0;
    };

    [[nodiscard]] static bool is_plausible_after(const SeenTick& before, snapshot::Tick tick,
                                                 std::int64_t time);

    [[nodiscard]] TickClass restart_ticks_from(const SeenTick& seen);

    std::optional<SeenTick> last_plausible_;
    std::optional<SeenTick> last_implausible_;
    int num_fitting_implausible_ = 0;
    /// Time of the newest call of expect_tick_restart().
    std::optional<std::int64_t> restart_expected_at_;
};

/// Recognises late snapshots of the previous map. They may arrive until the client enters the game
/// on the new map, but for at least one second and at most ten seconds after the map change.
class PreviousMapFilter {
  public:
    /// Called when the map changes. `newest`: the newest tick of the previous map.
    void on_map_change(snapshot::Tick newest, record::Timestamp now) {
        constexpr record::Timestamp kUnderWay = 1'000'000'000;
        constexpr record::Timestamp kLoading = 10'000'000'000;
        previous_map_ = PreviousMap{
            .newest_tick = newest, .at_least_until = now + kUnderWay, .until = now + kLoading};
    }

    void on_enter_game(record::Timestamp now) {
        if (previous_map_) {
            previous_map_->until =
                std::min(previous_map_->until, std::max(now, previous_map_->at_least_until));
        }
    }

    void reset() { previous_map_.reset(); }

    /// Whether the part belongs to the previous map. `history`: the snapshots of the new map.
    [[nodiscard]] bool belongs_to_previous_map(const snapshot::Part& part,
                                               const snapshot::History& history,
                                               record::Timestamp now) const {
        if (!previous_map_ || now >= previous_map_->until) {
            return false;
        }
        const std::int64_t behind = std::int64_t{previous_map_->newest_tick} - part.tick;
        if (behind > TickPlausibility::kToleranceTicks ||
            behind < -TickPlausibility::kToleranceTicks) {
            return false;
        }
        // The ticks of a new map start at 0, so they are far below those of the previous map.
        return part.delta_tick == snapshot::kNoBase ? part.tick > TickPlausibility::kToleranceTicks
                                                    : !history.contains(part.delta_tick);
    }

  private:
    struct PreviousMap {
        snapshot::Tick newest_tick = 0;
        record::Timestamp at_least_until = 0;
        record::Timestamp until = 0;
    };

    std::optional<PreviousMap> previous_map_;
};

/// Reads the snapshots of a connection: reassembles parts, applies deltas, compares checksums, and
/// checks the items. Drops and reports the snapshots that the client drops.
class SnapshotTracker {
  public:
    /// `learn_sizes`: whether to decode with learned item sizes. `shared`: sizes that sessions of
    /// the server learned; null: nothing is shared. `arena`: memory for the snapshots; null: the
    /// tracker makes an arena. `maps`: the connection's map. `server`: the server's activity. All
    /// arguments must outlive this object.
    SnapshotTracker(const snapshot::ObjectSet& objects, const Observers& observers,
                    bool learn_sizes, LearnedSizeTable::ServerSizes* shared, snapshot::Arena* arena,
                    const MapTracker& maps, ServerActivity& server)
        : observers_{&observers}, map_tracker_{&maps}, history_{arena == nullptr
                                                                    ? snapshot::History{}
                                                                    : snapshot::History{*arena}},
          item_types_{objects}, stall_detector_{cadence_, server}, diagnosis_{item_types_,
                                                                              learn_sizes, shared} {
    }

    /// Reads a snap, snap_single or snap_empty message. `compressed`: whether the message came in a
    /// compressed packet.
    void on_message(const wire::SnapshotBody& body, wire::MessageId id, bool compressed,
                    Reporter& reporter, SnapshotWorkspace& workspace);
    void on_input(const wire::InputBody& input, Reporter& reporter);
    /// Called when the server sent an INPUTTIMING, which tells how early the server read an input.
    void on_input_timing(const wire::InputTimingBody& timing, Reporter& reporter);

    [[nodiscard]] StallDetector& stall_detector() { return stall_detector_; }

    [[nodiscard]] snapshot::Dialect dialect() const { return item_types_.dialect(); }

    /// Whether the history does not contain the bases of the server's deltas. Then no snapshot can
    /// be rebuilt before the next full snapshot.
    [[nodiscard]] bool needs_full_snapshot() const {
        return failed_snapshots_ &&
               failed_snapshots_->reason == record::FindingId::snapshot_unknown_base &&
               failed_snapshots_->num_failed > 1;
    }

    /// Called when copies of datagrams were lost. The client's state is then unknown, and the map
    /// may have changed.
    void on_missed_datagrams(Reporter& reporter) {
        stall_detector_.forget_displayed_snapshot(reporter);
        tick_plausibility_.expect_tick_restart(reporter.head().time);
    }

    /// Called when the map changed. The ticks start again and all items are new, but type numbers
    /// keep their meaning. For some seconds, late snapshots of the previous map are recognised.
    void on_map_change(Reporter& reporter);

    /// Called when the client has loaded the new map.
    void on_enter_game(record::Timestamp now) { previous_map_filter_.on_enter_game(now); }

    /// Forgets the connection's snapshots, and reports pending findings. Called when the connection
    /// ended.
    void end_snapshot_sequence(Reporter& reporter);
    /// Forgets all state of the previous connection. Called when a new connection begins.
    void begin_connection(snapshot::Dialect dialect, Reporter& reporter);

    /// Returns the players of a 0.7 server. The session updates them from the server's messages.
    [[nodiscard]] record::Roster& roster() { return roster_; }

    [[nodiscard]] const record::ItemTypes& types() const { return item_types_; }

    /// Returns the newest snapshot in the history, valid until the next message; nullopt if the
    /// history is empty.
    [[nodiscard]] std::optional<snapshot::SnapshotView> newest_snapshot() const {
        const auto tick = history_.newest();
        return tick ? history_.find(*tick) : std::nullopt;
    }

    /// Returns the size of the memory that grows with the traffic, in bytes.
    [[nodiscard]] std::size_t memory_bytes() const {
        return history_.memory_bytes() + part_assembler_.memory_bytes() + diagnosis_.memory_bytes();
    }

    /// Frees snapshots older than the one that the client acknowledged. The server does not use
    /// them as bases again.
    void free_spare_memory() {
        if (acked_tick_) {
            history_.trim(*acked_tick_ - kKeptTicksBeforeAck);
        }
    }

    void free_all_snapshots(Reporter& reporter);

    /// Saves the snapshots that later deltas may be based on, and the parts received so far.
    void save_to_checkpoint(SessionCheckpoint& checkpoint) const;

    /// Whether the checkpoint has a newer snapshot than this tracker, or this tracker has none.
    [[nodiscard]] bool is_older_than(const SessionCheckpoint& checkpoint) const {
        const auto newest = history_.newest();
        return !newest ||
               (!checkpoint.snapshots.empty() && checkpoint.snapshots.back().tick > *newest);
    }

    /// Continues from the checkpoint's snapshots. Precondition: checkpoint.is_consistent().
    void restore_snapshots(const SessionCheckpoint& checkpoint);

  private:
    /// Snapshots that are at most this many ticks older than the acknowledged one are kept, because
    /// inputs may arrive out of order and acknowledge an older tick again.
    static constexpr snapshot::Tick kKeptTicksBeforeAck = 25;

    /// Snapshots in a row that could not be rebuilt or verified.
    struct FailedSnapshots {
        snapshot::Tick first_tick = 0;
        std::uint64_t num_failed = 0;
        record::FindingId reason = record::FindingId::count;
    };

    /// Returns whether the tick is plausible. Reports an implausible tick.
    [[nodiscard]] bool is_plausible(snapshot::Tick tick, Reporter& reporter);
    void forget_snapshots(Reporter& reporter);
    /// Whether a delta with this tick was already reported as a delta without its base, and the
    /// base is still missing.
    [[nodiscard]] bool is_reported_without_base(snapshot::Tick tick, snapshot::Tick base) const;
    [[nodiscard]] SnapMessageOutcome add_part(const snapshot::Part& part, Reporter& reporter);
    void on_empty_snapshot(snapshot::Tick tick, snapshot::Tick base, Reporter& reporter);
    [[nodiscard]] DeltaOutcome on_delta(const snapshot::AssembledDelta& delta, Reporter& reporter,
                                        SnapshotWorkspace& workspace);

    /// Returns the newest verified snapshot; nullopt if the history has already removed it.
    [[nodiscard]] std::optional<snapshot::SnapshotView> newest_verified_snapshot() const {
        return verified_tick_ ? history_.find(*verified_tick_) : std::nullopt;
    }

    static void count_full_or_delta(const record::SnapshotRecord& record, Reporter& reporter);
    void count_arrival(const record::SnapshotRecord& record, Reporter& reporter);
    /// Handles a verified snapshot that the history contains.
    void accept_snapshot(record::SnapshotRecord& record, Reporter& reporter);
    void report_failed_snapshot(record::SnapshotRecord& record, record::FindingRecord finding,
                                Reporter& reporter);

    const Observers* observers_;
    const MapTracker* map_tracker_;
    snapshot::PartAssembler part_assembler_;
    snapshot::History history_;
    TickPlausibility tick_plausibility_;
    record::ItemTypes item_types_;
    record::Roster roster_;                       ///< the players; used for 0.7 only
    std::optional<snapshot::Tick> verified_tick_; ///< tick of the newest verified snapshot
    /// The tick that the client acknowledged last. Ticks newer than all stored snapshots are
    /// ignored.
    std::optional<snapshot::Tick> acked_tick_;
    std::uint64_t num_accepted_snapshots_ = 0;
    std::optional<FailedSnapshots> failed_snapshots_;
    PreviousMapFilter previous_map_filter_;
    /// How many ticks of deltas without a base are remembered, to recognise duplicates of them.
    static constexpr std::size_t kMaxTicksWithoutBase = 16;
    std::array<std::optional<snapshot::Tick>, kMaxTicksWithoutBase> ticks_without_base_{};
    std::size_t num_ticks_without_base_ = 0;
    std::optional<record::Timestamp> last_accepted_time_;
    SnapshotCadence cadence_;
    ArrivalJitter input_jitter_;
    SnapshotChecks snapshot_checks_;
    StallDetector stall_detector_;
    SnapshotDiagnosis diagnosis_;
};

} // namespace tw::inspect
