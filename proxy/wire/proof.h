#pragma once

#include "proxy/wire/direction.h"
#include "proxy/wire/packet.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tw::wire {

/// How sure it is that a client receives at the address it sends from. Later is surer.
enum class Trust : std::uint8_t {
    connless, ///< has only sent connless requests, such as for server info
    stray,    ///< has sent what begins nothing: garbage, or a connection that was joined midway
    unproven, ///< has begun a handshake, which anyone can do in anyone's name
    weak,     ///< the server has taken the client in without a secret to be returned
    proven,   ///< has returned what only the server's answer could tell it
};

/// What is remembered of one client's traffic until it is proven. Starts as zeros.
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

/// Looks at the client's next datagram, or at the server's next one to it, and says how sure its
/// address is by now. What has been reached is never lost again.
///
/// Proof:   what the server draws at random for an address comes back from it: DDNet's token in any
///          packet but CONNECT and CLOSE; the token of vanilla 0.6.5 or of 0.7 in the header; a tick
///          of the anti-spoof prelude, acknowledged in an INPUT. Ticks and sequences of the game
///          prove nothing: who plays elsewhere on the server can tell them.
/// Weak:    the server sends chunks, so it has let the client in, but no secret of its own.
/// Source:  protocol sheet, sections 1.5, 1.7 and item 3 of 10; 0.7 sheet, section 1.5.
[[nodiscard]] Trust judge(ProofState& state, Direction direction,
                          std::span<const std::byte> datagram);

} // namespace tw::wire
