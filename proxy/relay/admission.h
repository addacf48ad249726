#pragma once

#include "proxy/relay/keyed_hash.h"
#include "proxy/relay/ring.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tw::relay {

/// How far a client has come with the server, and so what it may take. Later is further. A session
/// only ever rises.
enum class Standing : std::uint8_t {
    connless, ///< asks without a connection: a pool of its own, and nobody is told
    stray,    ///< sends what begins nothing: as unproven, but turned away while there is a crowd
    unproven, ///< has begun something: a short stay, and others displace it
    verified, ///< receives at its address, but the server does nothing for it: others displace it
    weak,     ///< the server plays with it without proof of its address: displaced when silent
    player,   ///< verified, and the server plays with it: not displaced while it does
};

/// What a datagram without a connection asks for.
enum class Request : std::uint8_t {
    none,
    common,   ///< what anyone asks for, over and over
    reserved, ///< what few ask for, and rarely: it has a reserve beside the common ones
    other,
};

/// What a datagram means.
struct Verdict {
    Standing standing = Standing::connless; ///< of its session, from now on
    Request request = Request::none;        ///< of a client's
    bool is_answered = false;               ///< a client's: servers are known to answer such
    bool is_play = false;                   ///< a server's: it holds a place for the client
};

/// Room for what a Prove function remembers of one session. Zeros at first.
struct ProofMemory {
    alignas(8) std::array<std::byte, 64> bytes{};
};

/// Looks at each datagram of a session, in order, until the session is a player; then at enough of
/// the server's to see that it still plays with it. The first one is looked at before the session
/// is made. It must not wait or allocate.
using Prove = Verdict (*)(ProofMemory& memory, Direction direction,
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
    /// A server that answers others, but says nothing to a client for this long, holds no place for
    /// it any more. Servers send something every second at least.
    std::chrono::milliseconds forgotten_time{3000};
    /// Datagrams that would begin a session, from one network (see Network), a second, and as many
    /// at once.
    std::uint32_t strangers_rate = 256;
    /// Requests from one network, a second, and at once.
    std::uint32_t requests_rate = 4;
    std::uint32_t requests_burst = 16;
    /// Common requests of all that are passed on to the server, a second, while there is a recent
    /// answer for the others; and those that get that, a second.
    std::uint32_t asked_rate = 32;
    std::uint32_t repeated_rate = 4000;
    /// Reserved requests of all, a second.
    std::uint32_t reserved_rate = 32;
    /// Verified sessions that the observer hears of before the server plays with them, a second,
    /// and at once.
    std::uint32_t verified_rate = 8;
    std::uint32_t verified_burst = 64;
    /// Datagrams of one session, to the server, a second; of one that the server does not play with.
    std::uint32_t session_rate = 10'000;
    std::uint32_t unproven_rate = 128;
    /// Sessions of one IPv4 address or IPv6 /64 that is not loopback; 0: no limit. See
    /// AdmissionPools.
    std::size_t max_per_address = 64;
};

/// The pools of one relay thread, from the size of the whole table.
struct AdmissionPools {
    std::size_t unproven; ///< stray ones, too
    std::size_t verified;
    std::size_t connless;
    std::size_t weak;
    std::size_t per_address; ///< sessions with a place; 0: no limit

    AdmissionPools(std::size_t max_sessions, unsigned threads, std::size_t max_per_address = 0)
        : unproven{part(max_sessions, 4 * threads)}, verified{part(max_sessions, 8 * threads)},
          connless{std::clamp<std::size_t>(max_sessions / 16 / threads, 4, 256)}, weak{part(
                                                                                      max_sessions,
                                                                                      2 * threads)},
          per_address{std::min(max_per_address, part(max_sessions, 2 * threads))} {}

    /// What one network may have of a pool. The wider it is, the more customers share it.
    [[nodiscard]] static std::size_t share(std::size_t pool, const Network& network) noexcept {
        const std::size_t whole = network.width == 0 ? 8 : network.width == 1 ? 4 : 2;
        return part(pool, whole);
    }

  private:
    [[nodiscard]] static std::size_t part(std::size_t all, std::size_t of) noexcept {
        return std::max<std::size_t>(all / of, 1);
    }
};

} // namespace tw::relay
