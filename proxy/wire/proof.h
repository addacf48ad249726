#pragma once

#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tw::wire {

/// How far a client has come with a server. Later is further.
enum class Trust : std::uint8_t {
    connless, ///< has only sent connless requests, such as for server info
    stray,    ///< has sent what begins nothing: garbage, or a connection that was joined midway
    unproven, ///< has begun a handshake, which anyone can do in anyone's name
    verified, ///< has returned what only the server's answer could tell it; the server may hold no
              ///< place for it
    weak,     ///< the server plays with it, but has not asked for a secret to be returned
    player,   ///< verified, and the server plays with it
};

/// A request without a connection.
enum class Request : std::uint8_t {
    none,
    info,   ///< for server info
    master, ///< from a master server, which wants to know whether the game server can be reached
    other,
};

/// What is known of one client, and what its datagram, or the server's to it, means.
struct Judgement {
    Trust trust = Trust::connless; ///< the client's, from now on
    Request request = Request::none;
    bool is_answered = false; ///< the client's datagram is one that servers are known to answer
    bool is_play = false; ///< the server's datagram: only one that it holds a place for gets such
};

/// What is remembered of one client's traffic. Starts as zeros.
struct ProofState {
    Trust trust = Trust::connless;
    /// Secrets that the server told: each is returned in its own way. Zeros: none.
    Token token{};                       ///< DDNet's, behind the payload
    Token header_token{};                ///< vanilla 0.6.5's, behind the header
    Token seven_token{};                 ///< 0.7's
    std::array<std::int32_t, 3> ticks{}; ///< of the anti-spoof prelude, to be acknowledged
    std::uint8_t num_ticks = 0;
    bool tokenless = false; ///< the server accepted without a token; its prelude may follow
};

/// Looks at the client's next datagram, or at the server's next one to it. The trust that has been
/// reached is never lost again. From Trust::player on, datagrams may be left out.
///
/// Proof:   what the server draws at random for an address comes back from it: DDNet's token in any
///          packet but CONNECT and CLOSE; the token of vanilla 0.6.5 or of 0.7 in the header; a tick
///          of the anti-spoof prelude, acknowledged in an INPUT. Ticks and sequences of the game
///          prove nothing: who plays elsewhere on the server can tell them.
/// Play:    a packet with chunks that is not a prelude, from the server. It sends such packets to
///          clients that it holds a place for, and to no others. A KEEPALIVE keeps a place, too,
///          but begins no play: a client whose map takes long to load gets nothing else.
/// Source:  protocol sheet, sections 1.3 to 1.5, 1.7 and item 3 of 10; 0.7 sheet, section 1.5.
[[nodiscard]] Judgement judge(ProofState& state, Direction direction,
                              std::span<const std::byte> datagram);

} // namespace tw::wire
