#pragma once

#include "proxy/base/archive.h"
#include "proxy/base/clock.h"
#include "proxy/base/endpoint.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/relay/new_client_filter.h"
#include "proxy/relay/ring.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace tw::relay {

/// A datagram's copy, which is stored until the observer is told about the session.
struct DatagramCopy {
    base::Timestamp time = 0;
    Direction direction = Direction::c2s;
    std::vector<std::byte> bytes;
};

auto archive_members(base::MaybeConst<DatagramCopy> auto& copy) {
    return std::tie(copy.time, copy.direction, copy.bytes);
}

/// The data about a session that a handover does not change. Its times are those of base::Clock,
/// which all processes of a machine share.
struct SessionFacts {
    /// The source address of replies, if the listening socket receives at several addresses.
    ReplyControl control{};
    std::uint8_t control_length = 0;
    ClientStanding standing = ClientStanding::player;
    bool counts_against_limit = false; ///< true if the session counts against max_sessions
    bool answered = false;             ///< true if the server has sent a datagram to the client
    bool active = true; ///< true if a datagram was forwarded since the last timer check
    VerificationMemory proof;
    std::uint32_t number = 0;   ///< from 1; the simulated network's random decisions depend on it
    base::Timestamp opened = 0; ///< when the client's first datagram came
    /// How often the client repeated its first datagram before the session began.
    std::uint8_t repeats = 0;
    /// The kernel's drop counter of the upstream socket when it was last read.
    std::uint32_t kernel_drops = 0;
    /// When the session began, or was promoted from `connless`.
    base::Clock::time_point begun;
    /// When a timer check last found the session active.
    base::Clock::time_point last_active;
    std::uint32_t last_heard_ms = 0; ///< when the client's latest datagram came
    /// When the server last showed that the client is playing, or when the session began.
    std::uint32_t played_ms = 0;
};

/// The state of a session that another relay continues. The upstream socket is passed separately.
struct SessionState : SessionFacts {
    base::Endpoint client;
    base::Endpoint server; ///< the address that the upstream socket is connected to
    /// The session's number in the observer's events; 0 if the observer does not know the session.
    std::uint32_t id = 0;
    std::uint32_t listener = 0; ///< index of the listening socket (Relay::listening_sockets)
    std::vector<DatagramCopy> held;
    std::array<std::uint64_t, 2> held_lost{};
};

auto archive_members(base::MaybeConst<SessionState> auto& state) {
    return std::tie(state.control, state.control_length, state.standing, state.counts_against_limit,
                    state.answered, state.active, state.proof, state.number, state.opened,
                    state.repeats, state.kernel_drops, state.begun, state.last_active,
                    state.last_heard_ms, state.played_ms, state.client, state.server, state.id,
                    state.listener, state.held, state.held_lost);
}

/// The state of a server that is handed over to another relay.
struct ServerState {
    Counters counters;
    /// For each listening socket: the kernel's drop counter when it was last read.
    std::vector<std::uint32_t> listener_drops;
    std::vector<SessionState> sessions;
};

auto archive_members(base::MaybeConst<ServerState> auto& state) {
    return std::tie(state.counters, state.listener_drops, state.sessions);
}

/// The data that a relay hands over to another relay.
struct RelayState {
    std::uint32_t last_session = 0; ///< the highest session id assigned so far
    std::uint32_t last_number = 0;
    std::string impairment; ///< text for parse_impairment()
    std::uint64_t impairment_seed = 0;
    std::vector<ServerState> servers;
};

auto archive_members(base::MaybeConst<RelayState> auto& state) {
    return std::tie(state.last_session, state.last_number, state.impairment, state.impairment_seed,
                    state.servers);
}

} // namespace tw::relay
