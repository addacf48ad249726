#pragma once

#include "proxy/relay/counters.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tw::relay {

inline constexpr unsigned kMaxThreads = 64;

/// What a relay lets its observer see beside the rings. Zeroed shared memory is a fresh one.
/// What an observer gone mad writes into it harms nothing but what is shown.
struct Observation {
    /// Which observer looks, by a number that is never used again; 0: none (see Tap).
    std::atomic<std::uint32_t> observer{0};
    std::array<LiveCounters, kMaxThreads> counters{}; ///< by relay thread
};

/// Totals over all threads; from any thread of either process at any time.
[[nodiscard]] Counters totals(const Observation& observation) noexcept;

} // namespace tw::relay
