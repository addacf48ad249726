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
/// second tick (or every one, with high bandwidth), and more rarely while the client lacks a base:
/// full snapshots therefore never count as late.
class Cadence {
  public:
    /// `time` in nanoseconds. To be called for every complete snapshot that was not there before.
    [[nodiscard]] Arrival arrived(snapshot::Tick tick, std::int64_t time, bool full);

    /// Ticks from one snapshot to the next, mostly; 0 while that is not known.
    [[nodiscard]] std::uint64_t usual_step() const;

  private:
    /// Steps longer than this are pauses, not a cadence.
    static constexpr std::size_t kMaxStep = 8;

    std::array<std::uint64_t, kMaxStep + 1> steps_{};
    std::optional<snapshot::Tick> newest_;
    ArrivalJitter jitter_;
};

} // namespace tw::inspect
