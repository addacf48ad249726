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

/// How evenly things that carry a tick arrive.
class ArrivalJitter {
  public:
    /// Difference between the time since the one before and the game time between their ticks, in
    /// microseconds, without sign. Nothing for the first, for one out of order and behind a pause.
    [[nodiscard]] std::optional<std::int64_t> arrived(snapshot::Tick tick, std::int64_t time);

  private:
    struct Last {
        snapshot::Tick tick = 0;
        std::int64_t time = 0;
    };

    std::optional<Last> last_;
};

/// What the arrival of a snapshot says about those before it.
struct Arrival {
    std::uint64_t skipped = 0; ///< ticks since the newest one, beyond the usual step
    std::uint64_t missed = 0;  ///< snapshots that would fill them
    bool reordered = false;    ///< a younger one came first
    std::uint64_t filled = 0;  ///< of a reordered one: the skipped ticks it gives back
    std::optional<std::int64_t> deviation_us;
};

/// The step between the snapshots of one connection, and what falls out of it. Servers send every
/// second tick (or every one, with high bandwidth). Until a client acknowledges a snapshot they send
/// full ones, more rarely: every 10th tick right after the join, every 50th later. So neither a full
/// snapshot nor the one after it counts as late.
/// Source: DDNet CServer::DoSnapshot (SNAPRATE_INIT, SNAPRATE_RECOVER); protocol sheet, section 6.7.
class Cadence {
  public:
    /// Ticks between the full snapshots that servers send until one is acknowledged.
    static constexpr snapshot::Tick kJoinStep = 10;
    static constexpr snapshot::Tick kRecoveryStep = 50;

    /// `time` in nanoseconds. To be called for every complete snapshot that was not there before.
    [[nodiscard]] Arrival arrived(snapshot::Tick tick, std::int64_t time, bool full);

    /// Ticks from one snapshot to the next, mostly; 0 while that is not known.
    [[nodiscard]] std::uint64_t usual_step() const;

    /// Whether the step to this snapshot is the server's own right after a join: to a 10th tick, in
    /// the first second. `shown`: the newest snapshot before it.
    [[nodiscard]] bool is_join_step(snapshot::Tick shown, snapshot::Tick tick) const {
        return first_ && std::int64_t{tick} - *first_ <= kRecoveryStep && tick % kJoinStep == 0 &&
               tick > shown && tick - shown <= kJoinStep;
    }

  private:
    /// Steps longer than this are pauses, not a cadence.
    static constexpr std::size_t kMaxStep = 8;

    std::array<std::uint64_t, kMaxStep + 1> steps_{};
    std::optional<snapshot::Tick> first_;
    std::optional<snapshot::Tick> newest_;
    bool newest_is_full_ = false;
    ArrivalJitter jitter_;
};

/// How evenly a client's inputs arrive, and how early the server says they do.
class InputTracker {
  public:
    void on_input(const wire::InputBody& input, Reporter& reporter);
    static void on_timing(const wire::InputTimingBody& timing, Reporter& reporter);

    /// Ticks start again.
    void restart() { jitter_ = {}; }

  private:
    ArrivalJitter jitter_;
};

/// What the player saw: since when the client has had nothing new to show, and why. A client shows
/// the newest snapshot that it could use; what its inputs acknowledge says which one that was,
/// whatever we made of it, and whatever became of it on the way from here to the client. A cause is
/// named on evidence only, which may come up to `kPatience` after the stall.
///
/// What DDNet's clients and 0.6 do: ticks older than the newest of which a part came are ignored;
/// a wrong checksum drops the snapshot, and after more than 10 of them the client acknowledges -1;
/// without its base it does so at once.
/// Source: protocol sheet, sections 6.2 and 6.7.
class ClientView {
  public:
    /// From here on a stall is reported; shorter ones are only counted.
    static constexpr record::Timestamp kStall = 250'000'000;
    /// Evidence of why it stalled comes within this time, if at all; while the server sends nothing,
    /// within the longer one.
    static constexpr record::Timestamp kPatience = 1'000'000'000;
    static constexpr record::Timestamp kLongPatience = 5'000'000'000;

    /// `server`: what all its sessions know of it; outlives this.
    explicit ClientView(SharedServer& server) : server_{&server} {}

    struct Usable {
        snapshot::Tick tick = 0;
        snapshot::Tick delta_tick = snapshot::kNoBase;
    };

    /// What the head of an input says.
    struct Input {
        snapshot::Tick acked = snapshot::kNoBase; ///< −1: it asks for a full snapshot
        snapshot::Tick intended = 0;              ///< by the client's clock
    };

    /// A part of this tick came.
    void on_part(snapshot::Tick tick) {
        if (tick > newest_) {
            newest_ = tick;
        }
    }

    /// A snapshot that clients can use. `cadence`: of all of them.
    void on_usable(const Usable& snapshot, const Cadence& cadence, Reporter& reporter) {
        const record::Timestamp time = reporter.head().time;
        if (shown_ && snapshot.tick - shown_->tick == step_ && snapshot.tick >= newest_ &&
            refused_ == 0 && errors_ == 0 && time - shown_->time <= overdue()) [[likely]] {
            show(snapshot, time, reporter);
            return;
        }
        follow(snapshot, cadence, reporter);
    }

    /// One came that cannot be used.
    void on_refused(const Usable& snapshot, record::FindingId why, const Reporter& reporter);

    /// The client says what it shows.
    void on_input(const Input& input, const Cadence& cadence, Reporter& reporter) {
        const record::Timestamp time = reporter.head().time;
        alive_ = time;
        inputs_.on_input(input.intended, time);
        settle(reporter);
        if (input.acked == run_.tick && !asks_ && input.acked != snapshot::kNoBase) {
            run_.last = time;
            run_.last_intended = input.intended;
            return;
        }
        if (shown_ && input.acked > run_.tick && input.acked <= shown_->tick && refused_ == 0 &&
            !asks_ && run_.last - run_.first < kStall) [[likely]] {
            run_ = Run::begin(input, time);
            return;
        }
        follow(input, cadence, reporter);
    }

    /// The server says when it read an input.
    void on_input_timing(snapshot::Tick intended, std::int32_t time_left, Reporter& reporter) {
        inputs_.on_answer(intended, time_left, reporter.head().time);
        settle(reporter);
    }

    /// A reliable chunk of the server passed, in order.
    void on_chunk(std::uint16_t sequence, record::Timestamp time) {
        chunks_.on_chunk(sequence, time);
    }

    /// The client has the server's reliable chunks up to this one.
    void on_chunk_ack(std::uint16_t ack, record::Timestamp time) { chunks_.on_ack(ack, time); }

    /// The client told its version, as DDNet counts them.
    void on_version(std::int32_t version) { version_ = version; }

    [[nodiscard]] std::optional<std::int32_t> version() const { return version_; }

    /// The connection is over: what it still waited for counts.
    void finish(Reporter& reporter);

    /// Another map, or copies were lost: what was shown is not known.
    void restart(Reporter& reporter);

    /// Another connection.
    void reset(Reporter& reporter) {
        restart(reporter);
        version_.reset();
    }

  private:
    struct Shown {
        snapshot::Tick tick = 0;
        record::Timestamp time = 0;
        bool is_full = false;
        std::uint64_t losses = 0; ///< of the session by then
    };

    struct Refused {
        Usable snapshot;
        record::Timestamp time = 0; ///< 0: none
    };

    /// Inputs in a row that acknowledge one tick.
    struct Run {
        snapshot::Tick tick = snapshot::kNoBase;
        record::Timestamp first = 0; ///< when they came
        record::Timestamp last = 0;
        snapshot::Tick first_intended = 0;
        snapshot::Tick last_intended = 0;
        bool asked = false; ///< acknowledged nothing in between

        [[nodiscard]] static Run begin(const Input& input, record::Timestamp time) {
            return {.tick = input.acked,
                    .first = time,
                    .last = time,
                    .first_intended = input.intended,
                    .last_intended = input.intended};
        }
    };

    /// A time without anything new to show.
    struct Freeze {
        record::Timestamp time = 0;
        snapshot::Tick since = 0; ///< what was shown
        std::optional<Usable> end{};
        std::uint64_t refused = 0;
        std::string asked{};     ///< how the client asked for a full snapshot
        bool is_by_acks = false; ///< the client's acknowledgements tell it
    };

    /// A stall that waits for the evidence of its cause.
    struct Pending {
        Freeze freeze;
        record::Timestamp from = 0; ///< the snapshots before and after it came
        record::Timestamp to = 0;
        bool is_late = false;  ///< no snapshot is missing
        bool has_hole = false; ///< a part or a reliable chunk of that time is missing
        /// The client's acknowledgement passed then, and the server sends as if it had none; 0: no.
        record::Timestamp acked = 0;
        std::optional<std::size_t> quiet_sessions{}; ///< as in StallEvidence
    };

    /// Freezes in a row of one cause, which is the client's: one stall.
    struct Held {
        Freeze freeze;
        StallCause cause = StallCause::unknown;
    };

    /// Of a freeze: what was shown, and for how long.
    struct Counted {
        snapshot::Tick since = snapshot::kNoBase;
        record::Timestamp time = 0;
    };

    static constexpr record::Timestamp kTick = 20'000'000;
    /// Refused snapshots whose arrival is remembered: their acknowledgements come a round trip
    /// later.
    static constexpr std::size_t kArrivals = 16;
    /// Freezes that an acknowledgement may yet be about.
    static constexpr std::size_t kCounted = 4;

    /// Half a step behind its time, a snapshot is overdue.
    [[nodiscard]] record::Timestamp overdue() const { return step_ * kTick * 3 / 2; }

    /// Chunks and parts that never came, or came only when they were sent again.
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

    /// Tells what waits, if its cause is known by now.
    void settle(Reporter& reporter) {
        if (pending_ || held_) [[unlikely]] {
            settle_waiting(reporter);
        }
    }

    void follow(const Usable& snapshot, const Cadence& cadence, Reporter& reporter);
    void follow(const Input& input, const Cadence& cadence, Reporter& reporter);
    /// It has something new to show.
    void take(const Usable& snapshot, record::Timestamp time, const Cadence& cadence,
              Reporter& reporter);
    /// It stood still until now; `usable`: what ended that.
    void count_freeze(record::Timestamp frozen, const std::optional<Usable>& usable,
                      Reporter& reporter);
    /// The server sent full snapshots at a slower rate, since it had no acknowledgement: why that is.
    /// False: that is not what happened.
    [[nodiscard]] bool tell_slower_rate(const Freeze& freeze, record::Timestamp to,
                                        Reporter& reporter);
    /// How many sessions the server sent nothing to from the snapshot that is shown until `to`; nullopt
    /// if it sent something to any.
    [[nodiscard]] std::optional<std::size_t> quiet_sessions(record::Timestamp to,
                                                            bool has_ended) const;
    void settle_waiting(Reporter& reporter);
    void settle_pending(bool is_final, Reporter& reporter);
    [[nodiscard]] StallEvidence evidence_of(const Pending& stall,
                                            const SharedServer::Pause* pause) const;
    void tell_held(Reporter& reporter);
    /// Tells what waits, with the cause as far as it is known.
    void flush(Reporter& reporter);
    /// The inputs that acknowledge one tick are over.
    void end_run(std::optional<snapshot::Tick> next, record::Timestamp end, Reporter& reporter);
    [[nodiscard]] StallVerdict judge_run(std::optional<snapshot::Tick> next,
                                         record::Timestamp end) const;
    static void count(const Freeze& freeze, Reporter& reporter);
    void tell(const Freeze& freeze, const StallVerdict& verdict, Reporter& reporter) const;
    /// It acknowledges a snapshot that was refused here.
    void take_refused(snapshot::Tick tick, const Cadence& cadence, Reporter& reporter);

    std::optional<Shown> shown_;                      ///< the newest that the client could use
    snapshot::Tick step_ = 2;                         ///< from one snapshot to the next, mostly
    snapshot::Tick newest_ = snapshot::kNoBase;       ///< of which a part came
    std::uint64_t refused_ = 0;                       ///< since `shown_`
    snapshot::Tick refused_tick_ = snapshot::kNoBase; ///< the newest of them
    std::array<Refused, kArrivals> arrivals_{};       ///< of them, in a ring
    std::size_t num_arrivals_ = 0;
    record::FindingId why_ = record::FindingId::count;
    /// As DDNet's client counts: up by a wrong checksum, down by a right one.
    std::uint32_t errors_ = 0;
    std::uint32_t errors_at_reset_ = 0;
    bool gave_up_ = false; ///< acknowledged nothing since then
    bool asks_ = false;    ///< its last input acknowledged nothing
    Run run_;
    std::array<Counted, kCounted> counted_{}; ///< in a ring
    std::size_t num_counted_ = 0;
    record::Timestamp alive_ = 0; ///< its last input
    std::optional<std::int32_t> version_;
    SharedServer* server_;
    InputReceipts inputs_;
    ChunkReceipts chunks_;
    std::optional<Pending> pending_;
    std::optional<Held> held_;
};

} // namespace tw::inspect
