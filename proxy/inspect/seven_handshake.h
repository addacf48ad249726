#pragma once

#include "proxy/wire/direction.h"
#include "proxy/wire/packet.h"

#include <array>
#include <optional>

namespace tw::inspect {

/// What a packet of 0.7 did to the connection.
enum class SevenChange : std::uint8_t {
    none,
    established, ///< both sides completed a handshake
    midway,      ///< packets fit a 0.7 connection of which nothing was known
};

/// The handshake and tokens of 0.7 on one address pair: TOKEN, TOKEN, CONNECT, ACCEPT (0.7 sheet,
/// section 1.6). Each side draws a token, and every packet carries its receiver's. An announcement
/// alone changes nothing.
class SevenHandshake {
  public:
    /// A control packet of the handshake.
    [[nodiscard]] SevenChange on_control(wire::Direction direction, const wire::Packet& packet,
                                         const wire::Control& control);
    /// A packet that is laid out as 0.7, seen where nothing is known.
    [[nodiscard]] SevenChange on_fitting(wire::Direction direction, wire::Token token);
    /// No server was heard: what its client's packets agree on is a connection of which one side was
    /// seen.
    [[nodiscard]] SevenChange take_one_side() const;
    /// A packet of chunks that is not of the connection at hand. Once both sides agree, they are of
    /// one whose handshake passed unseen.
    [[nodiscard]] SevenChange on_stranger(wire::Direction direction, wire::Token token);

    /// Whether a packet of the connection at hand carries its receiver's token.
    [[nodiscard]] bool token_fits(wire::Direction direction, const wire::Packet& packet);
    /// Whether a CLOSE is about a connection that does not exist yet: a server that is full answers
    /// so, and a client that gives up may not know the server's token.
    [[nodiscard]] bool refuses(wire::Direction direction, const wire::Packet& packet) const;

    /// The server took chunks of the connection at hand, or it is over: the same handshake begins
    /// another one now.
    void settle() { fresh_ = false; }

    /// The server that accepted is one of DDNet: it puts its token behind the ACCEPT.
    [[nodiscard]] bool accepted_by_ddnet() const { return ddnet_; }

    /// Another observer knew whether the server is one of DDNet.
    void take_up(bool ddnet) { ddnet_ = ddnet; }

    /// A connection of 0.6 began.
    void reset() { *this = {}; }

  private:
    using Tokens = std::array<std::optional<wire::Token>, 2>;

    std::optional<wire::Token> client_; ///< announced by the client: what the server writes
    /// Announced by the server, which draws another every 16 seconds: the last two.
    std::optional<wire::Token> server_;
    std::optional<wire::Token> server_before_;
    std::optional<wire::Token> connect_; ///< the one that the client's CONNECT carries
    bool ddnet_ = false;
    /// The tokens of the connection at hand, by the direction of the packets that carry them.
    Tokens tokens_;
    std::array<int, 2> fitting_{}; ///< packets in a row that fit, with one token
    bool fresh_ = false;           ///< the server has no chunks of the connection at hand
    /// Tokens that are not the connection's, and how often they came in a row.
    Tokens strangers_;
    std::array<int, 2> strange_{};
};

} // namespace tw::inspect
