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
#include <string_view>

namespace tw::inspect {

/// Measures how evenly messages arrive that carry a tick: snapshots or inputs.
class ArrivalJitter {
  public:
    /// A message arrived. Returns the absolute difference between the elapsed time and the elapsed
    /// game time since the previous message, in microseconds. nullopt for the first message, for a
    /// message out of order, and after a pause.
    [[nodiscard]] std::optional<std::int64_t> arrived(snapshot::Tick tick, std::int64_t time);

  private:
    struct Last {
        snapshot::Tick tick = 0;
        std::int64_t time = 0;
    };

    std::optional<Last> last_;
};

/// What the arrival of a snapshot shows about missing and reordered snapshots.
struct Arrival {
    std::uint64_t skipped = 0; ///< ticks skipped since the newest snapshot
    std::uint64_t missed = 0;  ///< number of snapshots expected in the skipped ticks
    bool reordered = false;    ///< a newer snapshot arrived before this one
    std::uint64_t filled = 0;  ///< if reordered: ticks that were wrongly counted as skipped
    std::optional<std::int64_t> deviation_us;
};

/// Measures the ticks between a connection's snapshots, and finds missing snapshots. Servers send a
/// snapshot every second tick, or every tick with high bandwidth. Until a client acknowledges a
/// snapshot, servers send full snapshots less often: every 10th tick after the join, every 50th
/// tick later. So neither a full snapshot nor the snapshot after it counts as late.
/// Source: DDNet CServer::DoSnapshot (SNAPRATE_INIT, SNAPRATE_RECOVER).
class Cadence {
  public:
    /// Ticks between the full snapshots that servers send until the client acknowledges one: after
    /// the join, and later.
    static constexpr snapshot::Tick kJoinStep = 10;
    static constexpr snapshot::Tick kRecoveryStep = 50;

    /// To be called for each complete snapshot that is no duplicate. `time` in nanoseconds.
    [[nodiscard]] Arrival arrived(snapshot::Tick tick, std::int64_t time, bool full);

    /// The most frequent step in ticks; 0 if not known yet.
    [[nodiscard]] std::uint64_t usual_step() const;

    /// Whether the ticks from `shown` to `tick` are a step of the slower rate after a join: every
    /// 10th tick in the first second. `shown`: tick of the newest snapshot before `tick`.
    [[nodiscard]] bool is_join_step(snapshot::Tick shown, snapshot::Tick tick) const {
        return first_ && std::int64_t{tick} - *first_ <= kRecoveryStep && tick % kJoinStep == 0 &&
               tick > shown && tick - shown <= kJoinStep;
    }

  private:
    /// Longer steps are pauses, which are not used to find the usual step.
    static constexpr std::size_t kMaxStep = 8;

    std::array<std::uint64_t, kMaxStep + 1> steps_{};
    std::optional<snapshot::Tick> first_;
    std::optional<snapshot::Tick> newest_;
    bool newest_is_full_ = false;
    ArrivalJitter jitter_;
};

/// Measures how evenly a client's inputs arrive at this observer, and how early they reach the
/// server.
class InputTracker {
  public:
    void on_input(const wire::InputBody& input, Reporter& reporter);
    static void on_timing(const wire::InputTimingBody& timing, Reporter& reporter);

    /// Ticks start again from zero.
    void restart() { jitter_ = {}; }

  private:
    ArrivalJitter jitter_;
};

/// Estimates how long a client had no new snapshot to show (a stall or freeze), and why. A client
/// shows the newest usable snapshot. Its inputs acknowledge that snapshot, so losses between this
/// observer and the client are detected too. A cause is reported only with evidence, which may
/// arrive up to `kEvidenceTimeout` after the stall.
///
/// DDNet and 0.6 clients ignore snapshots older than the newest tick of any received part. They
/// drop a snapshot with a wrong checksum; after more than 10 of these they acknowledge -1, which
/// requests a full snapshot. If they lack a delta's base, they acknowledge -1 at once.
/// Source: DDNet CClient, NETMSG_SNAP.
class ClientView {
  public:
    /// Minimum length of a reported stall (ns); shorter ones are only counted.
    static constexpr record::Timestamp kStall = 250'000'000;
    /// How long to wait for evidence of a stall's cause (ns): usually, and while the server sends
    /// nothing.
    static constexpr record::Timestamp kEvidenceTimeout = 1'000'000'000;
    static constexpr record::Timestamp kSilentServerTimeout = 5'000'000'000;

    /// `server`: state shared by the server's sessions; must outlive this object.
    explicit ClientView(SharedServer& server) : server_{&server} {}

    struct Usable {
        snapshot::Tick tick = 0;
        snapshot::Tick delta_tick = snapshot::kNoBase;
    };

    /// The ticks at the start of an input message.
    struct Input {
        snapshot::Tick acked = snapshot::kNoBase; ///< −1: requests a full snapshot
        snapshot::Tick intended = 0;              ///< target tick, by the client's clock
    };

    /// A part of this tick's snapshot arrived.
    void on_part(snapshot::Tick tick) {
        if (tick > newest_) {
            newest_ = tick;
        }
    }

    /// A snapshot arrived that the client can use. `cadence`: the cadence of the connection's
    /// snapshots.
    void on_usable(const Usable& snapshot, const Cadence& cadence, Reporter& reporter) {
        const record::Timestamp time = reporter.head().time;
        if (shown_ && snapshot.tick - shown_->tick == step_ && snapshot.tick >= newest_ &&
            refused_ == 0 && errors_ == 0 && time - shown_->time <= overdue()) [[likely]] {
            show(snapshot, time, reporter);
            return;
        }
        follow(snapshot, cadence, reporter);
    }

    /// A snapshot arrived that the client cannot use.
    void on_refused(const Usable& snapshot, record::FindingId why, const Reporter& reporter);

    /// The client sent an input, which acknowledges the snapshot it shows.
    void on_input(const Input& input, const Cadence& cadence, Reporter& reporter) {
        const record::Timestamp time = reporter.head().time;
        last_input_ = time;
        inputs_.on_input(input.intended, time);
        settle(reporter);
        if (input.acked == run_.tick && !requests_full_ && input.acked != snapshot::kNoBase) {
            run_.last = time;
            run_.last_intended = input.intended;
            return;
        }
        if (shown_ && input.acked > run_.tick && input.acked <= shown_->tick && refused_ == 0 &&
            !requests_full_ && run_.last - run_.first < kStall) [[likely]] {
            run_ = Run::begin(input, time);
            return;
        }
        follow(input, cadence, reporter);
    }

    /// The server sent an INPUTTIMING, which tells how long before tick `intended` it read the
    /// input for that tick. `time_left` in milliseconds.
    void on_input_timing(snapshot::Tick intended, std::int32_t time_left, Reporter& reporter) {
        inputs_.on_answer(intended, time_left, reporter.head().time);
        settle(reporter);
    }

    /// The server sent a vital chunk, in order.
    void on_chunk(std::uint16_t sequence, record::Timestamp time) {
        chunks_.on_chunk(sequence, time);
    }

    /// The client acknowledged the server's vital chunks up to `ack`.
    void on_chunk_ack(std::uint16_t ack, record::Timestamp time) { chunks_.on_ack(ack, time); }

    /// The client announced its DDNet version.
    void on_version(std::int32_t version) { version_ = version; }

    [[nodiscard]] std::optional<std::int32_t> version() const { return version_; }

    /// The connection ended: reports stalls that still wait for evidence.
    void finish(Reporter& reporter);

    /// The map changed or copies of datagrams were lost: it is unknown which snapshot the client
    /// shows.
    void restart(Reporter& reporter);

    /// A new connection.
    void reset(Reporter& reporter) {
        restart(reporter);
        version_.reset();
    }

  private:
    struct Shown {
        snapshot::Tick tick = 0;
        record::Timestamp time = 0;
        bool is_full = false;
        std::uint64_t losses = 0; ///< losses() when the snapshot arrived
    };

    struct Refused {
        Usable snapshot;
        record::Timestamp time = 0; ///< time of arrival; 0: empty slot
    };

    /// A run of inputs that acknowledge the same tick.
    struct Run {
        snapshot::Tick tick = snapshot::kNoBase;
        record::Timestamp first = 0; ///< arrival of the first and last input
        record::Timestamp last = 0;
        snapshot::Tick first_intended = 0;
        snapshot::Tick last_intended = 0;
        bool asked = false; ///< the client requested a full snapshot during the run

        [[nodiscard]] static Run begin(const Input& input, record::Timestamp time) {
            return {.tick = input.acked,
                    .first = time,
                    .last = time,
                    .first_intended = input.intended,
                    .last_intended = input.intended};
        }
    };

    /// A time in which the client had nothing new to show.
    struct Freeze {
        record::Timestamp time = 0;
        snapshot::Tick since = 0; ///< tick of the shown snapshot
        std::optional<Usable> end{};
        std::uint64_t refused = 0;
        std::string asked{};
        bool is_by_acks = false; ///< detected because the client acknowledged no newer snapshot
    };

    /// A stall that waits for evidence of its cause.
    struct Pending {
        Freeze freeze;
        record::Timestamp from = 0; ///< arrival of the snapshots before and after the stall
        record::Timestamp to = 0;
        bool is_late = false;  ///< no snapshot is missing: the next one arrived late
        bool has_hole = false; ///< a snapshot part or a vital chunk of that time is missing
        /// When the client acknowledged a snapshot, if the server then ignored it; else 0.
        record::Timestamp acked = 0;
        std::optional<std::size_t> quiet_sessions{}; ///< see StallEvidence::quiet_sessions
    };

    /// Consecutive freezes with the same client-side cause, reported as one stall.
    struct Held {
        Freeze freeze;
        StallCause cause = StallCause::unknown;
    };

    /// A freeze that was counted: the tick the client showed, and the duration.
    struct Counted {
        snapshot::Tick since = snapshot::kNoBase;
        record::Timestamp time = 0;
    };

    static constexpr record::Timestamp kTick = 20'000'000;
    /// Number of rejected snapshots whose arrival is remembered: their acknowledgements arrive a
    /// round trip later.
    static constexpr std::size_t kArrivals = 16;
    /// Number of freezes that a later acknowledgement may still refer to.
    static constexpr std::size_t kCounted = 4;

    /// Time after which the next snapshot is overdue: one and a half steps.
    [[nodiscard]] record::Timestamp overdue() const { return step_ * kTick * 3 / 2; }

    /// Number of chunks and snapshot parts that did not arrive, or only when they were resent.
    [[nodiscard]] static std::uint64_t losses(const Reporter& reporter) {
        const record::DirectionStats& stats =
            reporter.stats.directions[wire::index_of(wire::Direction::s2c)];
        return stats.gaps + stats.recovered + reporter.stats.incomplete;
    }

    void show(const Usable& snapshot, record::Timestamp time, const Reporter& reporter) {
        shown_ = Shown{.tick = snapshot.tick,
                       .time = time,
                       .is_full = snapshot.delta_tick == snapshot::kNoBase,
                       .losses = losses(reporter)};
    }

    /// Reports stalls that waited for evidence and whose cause is known now.
    void settle(Reporter& reporter) {
        if (pending_ || held_) [[unlikely]] {
            settle_waiting(reporter);
        }
    }

    void follow(const Usable& snapshot, const Cadence& cadence, Reporter& reporter);
    void follow(const Input& input, const Cadence& cadence, Reporter& reporter);
    /// The client has a new snapshot to show.
    void take(const Usable& snapshot, record::Timestamp time, const Cadence& cadence,
              Reporter& reporter);
    /// A freeze ended. `usable`: the snapshot that ended it.
    void count_freeze(record::Timestamp frozen, const std::optional<Usable>& usable,
                      Reporter& reporter);
    /// If the freeze is due to the slower rate at which servers send full snapshots until the
    /// client acknowledges one, reports why the client acknowledged none. Returns false if it is
    /// not.
    [[nodiscard]] bool tell_slower_rate(const Freeze& freeze, record::Timestamp to,
                                        Reporter& reporter);
    /// If the server sent nothing to any session from the shown snapshot until `to`: the number of
    /// sessions it was sending to before. nullopt if it sent something to at least one session.
    [[nodiscard]] std::optional<std::size_t> quiet_sessions(record::Timestamp to,
                                                            bool has_ended) const;
    void settle_waiting(Reporter& reporter);
    void settle_pending(bool is_final, Reporter& reporter);
    [[nodiscard]] StallEvidence evidence_of(const Pending& stall,
                                            const SharedServer::Pause* pause) const;
    void report_held_stall(Reporter& reporter);
    /// Reports all stalls that wait for evidence, with their cause as far as it is known.
    void flush(Reporter& reporter);
    /// Ends the current run of inputs. `next`: the tick that the following inputs acknowledge.
    void end_run(std::optional<snapshot::Tick> next, record::Timestamp end, Reporter& reporter);
    [[nodiscard]] StallVerdict judge_run(std::optional<snapshot::Tick> next,
                                         record::Timestamp end) const;
    static void count(const Freeze& freeze, Reporter& reporter);
    void tell(const Freeze& freeze, const StallVerdict& verdict, Reporter& reporter) const;
    /// The client acknowledged a snapshot that was taken for unusable here.
    void take_refused(snapshot::Tick tick, const Cadence& cadence, Reporter& reporter);

    std::optional<Shown> shown_;                ///< newest snapshot the client could use
    snapshot::Tick step_ = 2;                   ///< most frequent step between snapshots
    snapshot::Tick newest_ = snapshot::kNoBase; ///< newest tick of any received part
    std::uint64_t refused_ = 0;                 ///< number of rejected snapshots since `shown_`
    snapshot::Tick refused_tick_ = snapshot::kNoBase; ///< tick of the newest rejected snapshot
    std::array<Refused, kArrivals> arrivals_{};       ///< rejected snapshots, ring buffer
    std::size_t num_arrivals_ = 0;
    record::FindingId refusal_reason_ = record::FindingId::count;
    /// The counter of DDNet's client: a wrong checksum increments it, a right one decrements it.
    std::uint32_t errors_ = 0;
    std::uint32_t errors_at_reset_ = 0;
    bool requested_after_errors_ = false; ///< `errors_` made the client request a full snapshot
    bool requests_full_ = false;          ///< the client's last input requested a full snapshot
    Run run_;
    std::array<Counted, kCounted> counted_{}; ///< last counted freezes, ring buffer
    std::size_t num_counted_ = 0;
    record::Timestamp last_input_ = 0; ///< time of the client's last input
    std::optional<std::int32_t> version_;
    SharedServer* server_;
    InputReceipts inputs_;
    ChunkReceipts chunks_;
    std::optional<Pending> pending_;
    std::optional<Held> held_;
};

} // namespace tw::inspect
