#pragma once

#include "proxy/wire/direction.h"
#include "proxy/wire/seven.h"

#include <array>
#include <optional>

namespace tw::inspect {

/// What a packet of 0.7 did to the connection.
enum class SevenChange : std::uint8_t {
    none,
    established, ///< both sides completed a handshake
    midway,      ///< two packets in a row fit 0.7 where nothing was known
    closed,      ///< a CLOSE with the receiver's token
};

/// The handshake and tokens of 0.7 on one address pair: TOKEN, TOKEN, CONNECT, ACCEPT (0.7 sheet,
/// section 1.6). An announcement alone changes nothing.
class SevenHandshake {
  public:
    /// `established`: the connection at hand is of 0.7.
    [[nodiscard]] SevenChange on_packet(wire::Direction direction, const wire::SevenPacket& packet,
                                        bool established);
    /// A packet that is laid out as 0.7, seen where nothing is known.
    [[nodiscard]] SevenChange on_fitting(wire::Direction direction,
                                         const wire::SevenPacket& packet);

    /// A connection of 0.6 began.
    void reset() { *this = {}; }

  private:
    [[nodiscard]] SevenChange on_handshake(wire::Direction direction,
                                           const wire::SevenPacket& packet);

    std::optional<wire::Token> client_; ///< announced by the client: what the server writes
    std::optional<wire::Token> server_;
    bool connect_ = false;
    /// The tokens of the connection at hand, by the direction of the packets that carry them.
    std::array<std::optional<wire::Token>, 2> tokens_;
    int fitting_ = 0;
};

} // namespace tw::inspect
