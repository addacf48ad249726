#pragma once

#include "proxy/base/clock.h"
#include "proxy/base/endpoint.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/listener.h"
#include "proxy/relay/ring.h"
#include "proxy/relay/stranger_filter.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tw::relay {

/// What one relay handed over is not as it has to be, or does not fit the other; what() is one line
/// for the user.
class HandoverError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A copy that the observer has not heard of.
struct KeptCopy {
    base::Timestamp time = 0;
    Direction direction = Direction::c2s;
    std::vector<std::byte> bytes;
};

/// All that makes a session go on in another relay, but its socket, which goes beside it. Times are
/// how long ago something was.
struct SessionState {
    base::Endpoint client;
    std::uint32_t id = 0; ///< as the observer knows it; 0: it does not
    ServerIndex server = 0;
    std::uint32_t number = 0;
    std::uint32_t listener = 0; ///< by which of its server's sockets (Relay::listening_sockets)
    std::vector<std::byte>
        reply; ///< control message that makes replies leave from the right address
    Standing standing = Standing::player;
    bool has_place = false;
    bool answered = false;
    bool own_loopback = false; ///< its address at the server is one of LoopbackAddresses
    ProofMemory proof;
    base::Timestamp opened = 0;
    base::Timestamp told = 0; ///< when the observer first could have heard of it
    std::uint64_t begun_ns = 0;
    std::uint64_t active_ns = 0;
    std::uint32_t heard_ms = 0;
    std::uint32_t played_ms = 0;
    std::uint8_t repeats = 0;
    std::uint32_t kernel_drops = 0;
    std::vector<KeptCopy> held;
    std::array<std::uint64_t, 2> held_lost{};
};

/// What else of a server goes on.
struct ServerState {
    ServerIndex server = 0;
    Counters counters;
    std::vector<std::uint32_t> listener_drops; ///< of each listening socket, as last read
};

/// What else goes on.
struct RelayState {
    std::uint32_t last_session = 0; ///< id
    std::uint32_t last_number = 0;
    Impairment impairment;
};

/// Sockets that a relay listens on for a server, at most: each thread has its own of each address.
inline constexpr std::size_t kMaxListeningSockets = 1024;

void write(std::vector<std::byte>& out, const SessionState& state);
void write(std::vector<std::byte>& out, const ServerState& state);
void write(std::vector<std::byte>& out, const RelayState& state);

/// Errors: throws HandoverError.
[[nodiscard]] SessionState read_session(std::span<const std::byte> in);
[[nodiscard]] ServerState read_server(std::span<const std::byte> in);
[[nodiscard]] RelayState read_relay(std::span<const std::byte> in);

/// For those who hand over addresses beside it.
void archive_endpoint(auto& archive, auto& endpoint) {
    archive.raw(endpoint.address);
    archive.number(endpoint.scope);
    archive.number(endpoint.port);
    archive.flag(endpoint.v6);
}

} // namespace tw::relay
