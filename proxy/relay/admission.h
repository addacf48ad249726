#pragma once

#include "proxy/relay/ring.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tw::relay {

/// How sure it is that a client receives at the address it sends from, and so what it may take.
/// Later is surer. A session only ever rises.
enum class Standing : std::uint8_t {
    connless, ///< asks without a connection: a pool of its own, and nobody is told
    stray,    ///< sends what begins nothing: as unproven, but turned away while there is a crowd
    unproven, ///< has begun something: a short stay, and the oldest leaves for the next
    weak,     ///< the server took it in without asking for proof: leaves only when silent
    proven,   ///< never displaced
};

/// Room for what a Prove function remembers of one session. Zeros at first.
struct ProofMemory {
    alignas(8) std::array<std::byte, 64> bytes{};
};

/// Looks at each datagram of a session, in order, until the session is proven, and says how it
/// stands. The first one is looked at before the session is made. It must not wait or allocate.
using Prove = Standing (*)(ProofMemory& memory, Direction direction,
                           std::span<const std::byte> datagram);

/// What strangers may take. The defaults are for a game's sessions, which take a second to begin
/// and a hundred datagrams a second to play.
struct AdmissionLimits {
    std::chrono::milliseconds unproven_time{3000}; ///< a handshake with all its repetitions
    std::chrono::milliseconds connless_time{2000}; ///< for the answer; counts from the last request
    /// An unproven session can live this long whatever comes: the longest round trip that gets in.
    std::chrono::milliseconds least_time{250};
    /// A client that is not answered repeats itself after this long. While there is a crowd, only
    /// who does is let in.
    std::chrono::milliseconds earliest_repetition{450};
    std::chrono::milliseconds latest_repetition{600};
    /// Who was let in and proved nothing is let in again after this long, while there is a crowd.
    std::chrono::milliseconds second_chance{30'000};
    /// Datagrams of no session from one IPv4 address or IPv6 /64, a second, and as many at once.
    std::uint32_t strangers_rate = 256;
    /// Datagrams of one session, to the server, a second; of one that is not proven yet.
    std::uint32_t session_rate = 10'000;
    std::uint32_t unproven_rate = 128;
    /// Sessions of one IPv4 address or IPv6 /64 that is not loopback; 0: no limit.
    std::size_t max_per_address = 64;
};

/// The pools of one relay thread, from the size of the whole table.
struct AdmissionPools {
    std::size_t unproven;             ///< stray ones, too
    std::size_t unproven_per_address; ///< of an address that is not loopback
    std::size_t connless;
    std::size_t weak;

    AdmissionPools(std::size_t max_sessions, unsigned threads)
        : unproven{std::max<std::size_t>(max_sessions / 4 / threads, 1)},
          unproven_per_address{std::max<std::size_t>(unproven / 8, 1)},
          connless{std::clamp<std::size_t>(max_sessions / 16 / threads, 4, 256)},
          weak{std::max<std::size_t>(max_sessions / 2 / threads, 1)} {}
};

} // namespace tw::relay
