#pragma once

#include "snapshot/item.h"

#include <array>
#include <cstdint>
#include <optional>

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

} // namespace tw::inspect
