#pragma once

#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tw::wire {

/// How far it is verified that a client receives datagrams at its address, in ascending order.
enum class Trust : std::uint8_t {
    connless, ///< the client sent only connless requests, such as for server info
    stray,    ///< the client sent garbage, or packets of a connection whose start was not seen
    unproven, ///< the client began a handshake, which is possible with a forged address
    /// The client returned a secret that the server had sent to the client's address. The server may
    /// still refuse the client.
    verified,
    weak,   ///< the client plays (see judge()), but has not returned a secret
    player, ///< the client is verified and plays (see judge())
};

/// The kind of a connless request.
enum class Request : std::uint8_t {
    none,
    info,
    master, ///< a master server tests whether the game server is reachable
    other,
};

/// The result of judging a datagram of a client or to a client.
struct Judgement {
    Trust trust = Trust::connless; ///< the trust in the client after this datagram
    Request request = Request::none;
    bool is_answered = false; ///< a client's datagram: servers answer such a datagram
    bool is_play = false;     ///< a server's datagram: it shows that the client has a slot
};

/// The state kept for each client. Initially all zero.
struct ProofState {
    Trust trust = Trust::connless;
    // Tokens that the server sent and the client must return; zero if the server did not send one.
    Token token{};        ///< token of DDNet, which the client returns after the payload
    Token header_token{}; ///< token of vanilla 0.6.5, which the client returns after the header
    Token seven_token{};  ///< token of 0.7, which the client returns in the header
    /// Ticks of the server's anti-spoof prelude. The client must acknowledge one of them.
    std::array<std::int32_t, 3> ticks{};
    std::uint8_t num_ticks = 0;
    /// The server accepted a handshake without a token. It may send an anti-spoof prelude next.
    bool tokenless = false;
};

/// Judges the next datagram of a client or to a client. Trust never decreases. After Trust::player,
/// datagrams may be skipped.
///
/// Proof:   the client returns a random secret that the server sent to its address: DDNet's token
///          in any packet but CONNECT and CLOSE; the token of vanilla 0.6.5 or of 0.7 in the
///          header; a tick of the anti-spoof prelude, acknowledged in an INPUT. The game's ticks and
///          sequence numbers prove nothing, because other players of the server know them.
/// Play:    a packet with chunks from the server that is not a prelude. Servers send such packets
///          only to clients that have a slot. A KEEPALIVE shows that the client keeps its slot, but
///          it does not begin play: a client that loads a map for long receives nothing else.
/// Source:  DDNet's CNetServer (tokens, anti-spoof prelude), Teeworlds 0.7's CNetTokenManager.
[[nodiscard]] Judgement judge(ProofState& state, Direction direction,
                              std::span<const std::byte> datagram);

} // namespace tw::wire
