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

/// The data about a session that a handover does not change.
struct SessionFacts {
    /// The source address of replies, if the listening socket receives at several addresses.
    ReplyControl control{};
    std::uint8_t control_length = 0;
    ClientStanding standing = ClientStanding::player;
    bool counts_against_limit = false; ///< true if the session counts against max_sessions
    bool answered = false;             ///< true if the server has sent a datagram to the client
    VerificationMemory proof;
    std::uint32_t number = 0;   ///< from 1; the simulated network's random decisions depend on it
    base::Timestamp opened = 0; ///< when the client's first datagram came
    /// How often the client repeated its first datagram before the session began.
    std::uint8_t repeats = 0;
    /// The kernel's drop counter of the upstream socket when it was last read.
    std::uint32_t kernel_drops = 0;
};

/// The state of a session that another relay continues. The upstream socket is passed separately.
/// Members that end in _ms or _ns are ages: the time from an event to the handover.
struct SessionState : SessionFacts {
    base::Endpoint client;
    /// The session's number in the observer's events; 0 if the observer does not know the session.
    std::uint32_t id = 0;
    ServerIndex server = 0;
    std::uint32_t listener = 0;  ///< index of the listening socket (Relay::listening_sockets)
    bool own_loopback = false;   ///< LoopbackAddresses assigned the upstream socket's local address
    base::Timestamp told = 0;    ///< when the session began, as reported to the observer
    std::uint64_t begun_ns = 0;  ///< time since Session::begun
    std::uint64_t active_ns = 0; ///< time since Session::last_active
    std::uint32_t heard_ms = 0;  ///< time since Session::last_heard_ms
    std::uint32_t played_ms = 0; ///< time since Session::played_ms
    std::vector<DatagramCopy> held;
    std::array<std::uint64_t, 2> held_lost{};
};

auto archive_members(base::MaybeConst<SessionState> auto& state) {
    return std::tie(state.client, state.id, state.server, state.number, state.listener,
                    state.control, state.control_length, state.standing, state.counts_against_limit,
                    state.answered, state.own_loopback, state.proof, state.opened, state.told,
                    state.begun_ns, state.active_ns, state.heard_ms, state.played_ms, state.repeats,
                    state.kernel_drops, state.held, state.held_lost);
}

/// The state of a server that is handed over to another relay, without the server's sessions.
struct ServerState {
    ServerIndex server = 0;
    Counters counters;
    /// For each listening socket: the kernel's drop counter when it was last read.
    std::vector<std::uint32_t> listener_drops;
};

auto archive_members(base::MaybeConst<ServerState> auto& state) {
    return std::tie(state.server, state.counters, state.listener_drops);
}

/// The data that a relay hands over to another relay: the state of the relay, its servers and
/// their sessions.
struct RelayState {
    std::uint32_t last_session = 0; ///< the highest session id assigned so far
    std::uint32_t last_number = 0;
    std::string impairment; ///< text for parse_impairment()
    std::uint64_t impairment_seed = 0;
    std::vector<ServerState> servers;
    std::vector<SessionState> sessions;
};

auto archive_members(base::MaybeConst<RelayState> auto& state) {
    return std::tie(state.last_session, state.last_number, state.impairment, state.impairment_seed,
                    state.servers, state.sessions);
}

} // namespace tw::relay
