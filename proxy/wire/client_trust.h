#pragma once

#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tw::wire {

/// How certain it is that a client receives datagrams at its address. Sorted from low to high.
enum class Trust : std::uint8_t {
    connless,   ///< the client sent only connless requests, such as for server info
    unknown,    ///< the client sent garbage, or packets of a connection whose handshake was missed
    unverified, ///< the client started a handshake, which is possible with a forged address
    /// The client returned a secret that the server had sent to the client's address. The server
    /// may still refuse the client.
    verified,
    unverified_player, ///< the client plays (see judge_datagram()), but has not returned a secret
    player,            ///< the client is verified and plays (see judge_datagram())
};

/// The kind of a connless request; `none` for a datagram that is not a connless request.
enum class ConnlessRequest : std::uint8_t {
    none,
    info,
    master, ///< a master server tests whether the game server is reachable
    other,
};

/// The result of judging a datagram of a client or to a client.
struct DatagramJudgement {
    Trust trust = Trust::connless; ///< the trust in the client after this datagram
    ConnlessRequest request = ConnlessRequest::none;
    bool is_answered = false; ///< the datagram is from a client, and servers answer such a datagram
    /// The server sent the datagram, and sends such datagrams only to clients with a slot in the
    /// game.
    bool shows_player = false;
};

/// The state that judge_datagram() stores for each client. Initially all zero.
struct ClientTrustState {
    Trust trust = Trust::connless;
    // Tokens that the server sent and the client must return; zero for a token that was not sent.
    Token token{};        ///< token of DDNet, which the client returns after the payload
    Token header_token{}; ///< token of vanilla 0.6.5, which the client returns after the header
    Token seven_token{};  ///< token of 0.7, which the client returns in the header
    /// Ticks of the empty snapshots with which a server tests a client's address (its anti-spoof
    /// prelude). The client must acknowledge one of them.
    std::array<std::int32_t, 3> ticks{};
    std::uint8_t num_ticks = 0;
    /// The server accepted a handshake without a token. An anti-spoof prelude may follow.
    bool accepted_without_token = false;
};

/// Judges the next datagram from or to a client. Trust never decreases. After Trust::player is
/// reached, the caller may skip datagrams.
///
/// Proof:   the client returns a random secret that the server sent to its address: DDNet's token
///          in any packet but CONNECT and CLOSE; the token of vanilla 0.6.5 or of 0.7 in the
///          header; a tick of the anti-spoof prelude, acknowledged in an INPUT. The game's ticks
///          and sequence numbers prove nothing, because other players of the server know them.
/// Play:    begins when the server sends chunks that are not a prelude. Servers send such chunks
///          only to clients that have a slot. A KEEPALIVE, the only packet that a
///          client receives while it loads a map, shows that the client still has its slot.
/// Source:  DDNet's CNetServer (tokens, anti-spoof prelude), Teeworlds 0.7's CNetTokenManager.
[[nodiscard]] DatagramJudgement judge_datagram(ClientTrustState& state, Direction direction,
                                               std::span<const std::byte> datagram);

} // namespace tw::wire
