#pragma once

#include "proxy/relay/counters.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tw::relay {

inline constexpr unsigned kMaxThreads = 64;

/// A server of a relay, counted from 0 in order of appearance; a number is never used again.
using ServerIndex = std::uint16_t;

/// Servers that a relay may have in its life. Sessions and records refer to them by number.
inline constexpr std::size_t kMaxServers = 128;

/// What a relay lets its observer see beside the rings. Zeroed shared memory is a fresh one.
/// What an observer gone mad writes into it harms nothing but what is shown.
struct Observation {
    /// Which observer looks, by a number that is never used again; 0: none (see Tap).
    std::atomic<std::uint32_t> observer{0};
    std::atomic<std::uint32_t> more_servers{0}; ///< there ever were, beside the first
    /// By relay thread, of the first server; then those of the second, and so on. What is no
    /// server's stands with the first.
    std::array<LiveCounters, kMaxThreads * kMaxServers> counters{};

    [[nodiscard]] LiveCounters& of(ServerIndex server, unsigned thread) noexcept {
        return counters[server * std::size_t{kMaxThreads} + thread];
    }
};

/// Totals over all threads and servers; from any thread of either process at any time.
[[nodiscard]] Counters totals(const Observation& observation) noexcept;

/// The same of one server.
[[nodiscard]] Counters totals_of(const Observation& observation, ServerIndex server) noexcept;

} // namespace tw::relay
