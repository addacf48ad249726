#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/inspect/server_silence.h"
#include "proxy/inspect/snapshots/stall_cause.h"
#include "proxy/wire/bodies.h"
#include "snapshot/item.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace tw::inspect {

/// Measures how evenly snapshots or inputs arrive, compared with the ticks in them.
class ArrivalJitter {
  public:
    /// Called when a message arrived. Compares the time since the previous message with the time
    /// between the ticks of both messages. Returns the absolute difference in microseconds. Returns
    /// nullopt for the first message, for a message out of order, and after a pause.
    [[nodiscard]] std::optional<std::int64_t> on_arrival(snapshot::Tick tick, std::int64_t time);

  private:
    struct LastArrival {
        snapshot::Tick tick = 0;
        std::int64_t time = 0;
    };

    std::optional<LastArrival> last_arrival_;
};

/// What the arrival of one snapshot shows about missing and reordered snapshots.
struct SnapshotArrival {
    /// Number of ticks by which the distance to the previous snapshot exceeds the usual distance.
    std::uint64_t num_skipped_ticks = 0;
    /// Number of snapshots that were expected in the skipped ticks.
    std::uint64_t num_missed_snapshots = 0;
    bool is_reordered = false; ///< a newer snapshot arrived before this one
    /// The number of ticks that were wrongly counted as skipped; 0 unless `is_reordered` is true.
    std::uint64_t num_falsely_skipped_ticks = 0;
    std::optional<std::int64_t> deviation_us; ///< see ArrivalJitter::on_arrival()
};

/// Measures the ticks between a connection's snapshots, and finds missing snapshots. Servers send a
/// snapshot every second tick, or every tick with high bandwidth. Until a client acknowledges a
/// snapshot, servers send full snapshots less often: every 10th tick after the join, every 50th
/// tick later. Therefore neither a full snapshot nor the snapshot after it counts as late.
/// Source: DDNet CServer::DoSnapshot (SNAPRATE_INIT, SNAPRATE_RECOVER).
class SnapshotCadence {
  public:
    /// Ticks between full snapshots after the join, until the client acknowledges a snapshot.
    static constexpr snapshot::Tick kJoinInterval = 10;
    /// Ticks between full snapshots later, until the client acknowledges a snapshot.
    static constexpr snapshot::Tick kRecoveryInterval = 50;

    /// Must be called for each complete snapshot that is not a duplicate. `time` is in nanoseconds.
    [[nodiscard]] SnapshotArrival on_arrival(snapshot::Tick tick, std::int64_t time, bool full);

    /// Returns the most frequent distance between two snapshots, in ticks; 0 if not known yet.
    [[nodiscard]] std::uint64_t usual_interval() const;

    /// Whether the distance from `shown` to `tick` is due to the slower rate after a join. In the
    /// first second, servers send a snapshot every 10th tick. `shown`: the tick of the newest
    /// snapshot before `tick`.
    [[nodiscard]] bool is_join_interval(snapshot::Tick shown, snapshot::Tick tick) const {
        return first_tick_ && std::int64_t{tick} - *first_tick_ <= kRecoveryInterval &&
               tick % kJoinInterval == 0 && tick > shown && tick - shown <= kJoinInterval;
    }

  private:
    /// The longest distance between two snapshots (ticks) that is used to find the usual distance.
    /// A longer distance is a pause.
    static constexpr std::size_t kMaxStepTicks = 8;

    std::array<std::uint64_t, kMaxStepTicks + 1> step_counts_{};
    std::optional<snapshot::Tick> first_tick_;
    std::optional<snapshot::Tick> newest_tick_;
    bool is_newest_full_ = false;
    ArrivalJitter jitter_;
};

/// Estimates how long a client had no new snapshot to show (a stall or freeze), and why. A client
/// shows the newest usable snapshot. Its inputs acknowledge that snapshot, so losses between
/// twscope and the client are detected, too. A cause is reported only with evidence, which may
/// arrive some seconds after the stall (see kEvidenceTimeout).
///
/// DDNet and 0.6 clients ignore a snapshot that is older than the newest tick of any received part.
/// They drop a snapshot with a wrong checksum. After more than 10 wrong checksums they acknowledge
/// -1, which requests a full snapshot. If they do not have a delta's base, they acknowledge -1 at
/// once.
/// Source: DDNet CClient, NETMSG_SNAP.
class StallDetector {
  public:
    /// Minimum length of a reported stall (ns). Shorter stalls are only counted.
    static constexpr record::Timestamp kMinStall = 250'000'000;
    /// The longest wait for evidence of a stall's cause after the stall (ns).
    static constexpr record::Timestamp kEvidenceTimeout = 1'000'000'000;
    /// The longest wait for evidence while the server sends no newer snapshot (ns).
    static constexpr record::Timestamp kSilentServerTimeout = 5'000'000'000;

    /// `cadence`: the cadence of the connection's snapshots. `server`: the server's activity. Both
    /// must outlive this object.
    StallDetector(const SnapshotCadence& cadence, ServerActivity& server)
        : cadence_{&cadence}, server_activity_{&server} {}

    /// The ticks of a snapshot and of its base.
    struct SnapshotTicks {
        snapshot::Tick tick = 0;
        snapshot::Tick delta_tick = snapshot::kNoBase;
    };

    void on_snapshot_part(snapshot::Tick tick) {
        if (tick > newest_part_tick_) {
            newest_part_tick_ = tick;
        }
    }

    void on_usable_snapshot(const SnapshotTicks& snapshot, Reporter& reporter) {
        const record::Timestamp time = reporter.head().time;
        if (displayed_ && snapshot.tick - displayed_->tick == usual_interval_ &&
            snapshot.tick >= newest_part_tick_ && num_rejected_ == 0 && checksum_errors_ == 0 &&
            time - displayed_->time <= overdue_delay()) [[likely]] {
            set_displayed_snapshot(snapshot, time, reporter);
            return;
        }
        handle_snapshot(snapshot, reporter);
    }

    /// Called when a snapshot arrived that the client cannot use.
    void on_rejected_snapshot(const SnapshotTicks& snapshot, record::FindingId why,
                              const Reporter& reporter);

    /// Called when the client sent an input, which acknowledges the snapshot that the client shows.
    void on_input(const wire::InputBody& input, Reporter& reporter) {
        const record::Timestamp time = reporter.head().time;
        last_input_time_ = time;
        input_timing_.on_input(input.intended_tick, time);
        check_waiting_stalls(reporter);
        if (input.ack_tick == repeated_acks_.tick && !requests_full_snapshot_ &&
            input.ack_tick != snapshot::kNoBase) {
            repeated_acks_.last_time = time;
            repeated_acks_.last_intended = input.intended_tick;
            return;
        }
        if (displayed_ && input.ack_tick > repeated_acks_.tick &&
            input.ack_tick <= displayed_->tick && num_rejected_ == 0 && !requests_full_snapshot_ &&
            repeated_acks_.last_time - repeated_acks_.first_time < kMinStall) [[likely]] {
            repeated_acks_ = RepeatedAcks::begin(input, time);
            return;
        }
        handle_input(input, reporter);
    }

    /// Called when the server sent an INPUTTIMING, which tells when the server read an input.
    void on_input_timing(const wire::InputTimingBody& timing, Reporter& reporter) {
        input_timing_.on_answer(timing.input_pred_tick, timing.time_left, reporter.head().time);
        check_waiting_stalls(reporter);
    }

    /// Called when the server sent a vital chunk in order.
    void on_chunk(std::uint16_t sequence, record::Timestamp time) {
        chunk_acks_.on_chunk(sequence, time);
    }

    /// Called when the client acknowledged the server's vital chunks up to `ack`.
    void on_chunk_ack(std::uint16_t ack, record::Timestamp time) { chunk_acks_.on_ack(ack, time); }

    void on_client_version(std::int32_t version) { client_version_ = version; }

    [[nodiscard]] std::optional<std::int32_t> client_version() const { return client_version_; }

    /// Reports the stalls that still wait for evidence. Called when the connection ended.
    void report_remaining_stalls(Reporter& reporter);

    /// Reports the stalls that wait for evidence, and forgets which snapshot the client shows.
    /// Called when the map changed or copies of datagrams were lost.
    void forget_displayed_snapshot(Reporter& reporter);

    /// Forgets the stalls that wait for evidence, and which snapshot the client shows. Called when
    /// the time stepped back.
    void on_clock_step_back() {
        const auto version = client_version_;
        *this = StallDetector{*cadence_, *server_activity_};
        client_version_ = version;
    }

    /// Forgets everything about the client. Called when a new connection begins.
    void forget_client(Reporter& reporter) {
        forget_displayed_snapshot(reporter);
        client_version_.reset();
    }

  private:
    /// The snapshot that the client displays: the newest one that it can use.
    struct DisplayedSnapshot {
        snapshot::Tick tick = 0;
        record::Timestamp time = 0;
        bool is_full = false;
        std::uint64_t num_losses = 0; ///< result of count_losses() when the snapshot arrived
    };

    struct RejectedSnapshot {
        SnapshotTicks snapshot;
        record::Timestamp time = 0; ///< time of arrival; 0: empty slot
    };

    /// Consecutive inputs that acknowledge the same tick.
    struct RepeatedAcks {
        snapshot::Tick tick = snapshot::kNoBase;
        record::Timestamp first_time = 0;
        record::Timestamp last_time = 0;
        snapshot::Tick first_intended = 0;
        snapshot::Tick last_intended = 0;
        /// True if an input after the first one requested a full snapshot.
        bool requested_full_snapshot = false;

        [[nodiscard]] static RepeatedAcks begin(const wire::InputBody& input,
                                                record::Timestamp time) {
            return {.tick = input.ack_tick,
                    .first_time = time,
                    .last_time = time,
                    .first_intended = input.intended_tick,
                    .last_intended = input.intended_tick};
        }
    };

    /// A time in which the client had no new snapshot to show.
    struct Freeze {
        record::Timestamp duration = 0;    ///< duration (ns)
        snapshot::Tick displayed_tick = 0; ///< tick of the snapshot that the client showed
        std::optional<SnapshotTicks> next_snapshot{}; ///< the snapshot that ended the freeze
        std::uint64_t num_rejected = 0;
        /// Text about the client's request for a full snapshot; empty if there was none.
        std::string request_text{};
        /// True if the freeze was detected because the client acknowledged no newer snapshot.
        bool is_detected_by_acks = false;
    };

    /// A stall that waits for evidence of its cause.
    struct PendingStall {
        Freeze freeze;
        record::Timestamp begin = 0; ///< arrival of the snapshot before the stall
        record::Timestamp end = 0;   ///< arrival of the snapshot after the stall
        /// When the client acknowledged the shown full snapshot (ns); 0: not acknowledged.
        record::Timestamp ack_time = 0;
        StallEvidence evidence{}; ///< the evidence that does not depend on later datagrams
    };

    /// Consecutive freezes that the client caused in the same way. They are reported as one stall.
    struct PostponedStall {
        Freeze freeze;
        StallCause cause = StallCause::unknown;
    };

    /// A freeze that was counted: the tick that the client showed, and the duration.
    struct CountedFreeze {
        snapshot::Tick displayed_tick = snapshot::kNoBase;
        record::Timestamp duration = 0;
    };

    /// The number of rejected snapshots that are remembered. The client may acknowledge one of them
    /// a round trip later.
    static constexpr std::size_t kStoredRejectedSnapshots = 16;
    /// How many counted freezes are remembered, so that none of them is counted twice.
    static constexpr std::size_t kStoredFreezes = 4;

    /// Returns the time after which the next snapshot is overdue (ns): 1.5 times the usual distance
    /// between snapshots.
    [[nodiscard]] record::Timestamp overdue_delay() const {
        return usual_interval_ * record::kTickDuration * 3 / 2;
    }

    /// Returns how many of the server's chunks and snapshot parts were lost at least once.
    [[nodiscard]] static std::uint64_t count_losses(const Reporter& reporter) {
        const record::DirectionStats& stats =
            reporter.stats.directions[wire::index_of(wire::Direction::s2c)];
        return stats.gaps + stats.recovered + reporter.stats.incomplete;
    }

    void set_displayed_snapshot(const SnapshotTicks& snapshot, record::Timestamp time,
                                const Reporter& reporter) {
        displayed_ = DisplayedSnapshot{.tick = snapshot.tick,
                                       .time = time,
                                       .is_full = snapshot.delta_tick == snapshot::kNoBase,
                                       .num_losses = count_losses(reporter)};
    }

    /// Reports the stalls that waited for evidence and whose cause is known by now.
    void check_waiting_stalls(Reporter& reporter) {
        if (pending_stall_ || postponed_stall_) [[unlikely]] {
            report_stalls_with_known_cause(reporter);
        }
    }

    void handle_snapshot(const SnapshotTicks& snapshot, Reporter& reporter);
    void handle_input(const wire::InputBody& input, Reporter& reporter);
    /// Handles a new snapshot that the client can show. Counts the freeze that it ended.
    void display_new_snapshot(const SnapshotTicks& snapshot, record::Timestamp time,
                              Reporter& reporter);
    /// Counts a freeze, if the times are reliable. `usable`: the snapshot that ended it; nullopt if
    /// the connection ended.
    void count_freeze(record::Timestamp frozen, const std::optional<SnapshotTicks>& usable,
                      Reporter& reporter);
    /// Returns whether the freeze is due to the slower rate at which servers send snapshots until
    /// the client acknowledges a full snapshot. If so, reports the freeze, or postpones the report
    /// until the client acknowledges snapshots again.
    [[nodiscard]] bool report_slower_rate(const Freeze& freeze, record::Timestamp to,
                                          Reporter& reporter);
    /// If the server sent nothing to any session from the shown snapshot until `to`, returns the
    /// number of sessions to which it was sending before. Otherwise returns nullopt.
    [[nodiscard]] std::optional<std::size_t> count_quiet_sessions(record::Timestamp to,
                                                                  bool has_ended) const;
    void report_stalls_with_known_cause(Reporter& reporter);
    void judge_pending_stall(bool is_final, Reporter& reporter);
    [[nodiscard]] StallEvidence collect_evidence(const PendingStall& stall,
                                                 const ServerActivity::Pause* pause) const;
    void report_postponed_stall(Reporter& reporter);
    /// Reports all stalls that wait for evidence, without waiting any longer.
    void report_stalls_without_waiting(Reporter& reporter);
    /// Reports a stall if the client has acknowledged the same tick for too long. `next`: the tick
    /// that the next inputs acknowledge; nullopt if no inputs follow.
    void end_repeated_acks(std::optional<snapshot::Tick> next, record::Timestamp end,
                           Reporter& reporter);
    [[nodiscard]] StallVerdict judge_repeated_acks(std::optional<snapshot::Tick> next,
                                                   record::Timestamp end) const;
    static void add_freeze_to_totals(const Freeze& freeze, Reporter& reporter);
    void report_stall(const Freeze& freeze, const StallVerdict& verdict, Reporter& reporter) const;
    void on_rejected_snapshot_acknowledged(snapshot::Tick tick, Reporter& reporter);

    std::optional<DisplayedSnapshot> displayed_; ///< the newest snapshot that the client can use
    snapshot::Tick usual_interval_ = 2;          ///< the usual distance between snapshots, in ticks
    snapshot::Tick newest_part_tick_ = snapshot::kNoBase;
    std::uint64_t num_rejected_ = 0; ///< number of rejected snapshots since `displayed_`
    /// Tick of the newest rejected snapshot.
    snapshot::Tick newest_rejected_tick_ = snapshot::kNoBase;
    /// A ring buffer of rejected snapshots.
    std::array<RejectedSnapshot, kStoredRejectedSnapshots> rejected_snapshots_{};
    std::size_t num_stored_rejected_ = 0;
    record::FindingId rejection_reason_ = record::FindingId::count;
    /// A copy of a counter in DDNet's client. A wrong checksum increments it, a right checksum
    /// decrements it, and the client's request for a full snapshot resets it.
    std::uint32_t checksum_errors_ = 0;
    std::uint32_t errors_at_reset_ = 0; ///< value of `checksum_errors_` when the client reset it
    /// True if the client has requested a full snapshot since the arrival of `displayed_`.
    bool requested_after_errors_ = false;
    bool requests_full_snapshot_ = false; ///< the client's newest input requested a full snapshot
    RepeatedAcks repeated_acks_;
    /// A ring buffer of the most recently counted freezes.
    std::array<CountedFreeze, kStoredFreezes> counted_freezes_{};
    std::size_t num_counted_freezes_ = 0;
    record::Timestamp last_input_time_ = 0;
    std::optional<std::int32_t> client_version_;
    const SnapshotCadence* cadence_;
    ServerActivity* server_activity_;
    InputTimingTracker input_timing_;
    ChunkAcknowledgements chunk_acks_;
    std::optional<PendingStall> pending_stall_;
    std::optional<PostponedStall> postponed_stall_;
};

} // namespace tw::inspect
