#pragma once

#include "proxy/wire/packet.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

/// The packets of Teeworlds 0.7, as far as telling connections apart needs them.
namespace tw::wire {

enum class SevenControl : std::uint8_t { keepalive, connect, accept, close, token, unknown };

/// One datagram of 0.7 that is not connless.
struct SevenPacket {
    bool control = false;
    bool compressed = false;
    bool resend = false;
    std::uint16_t ack = 0;
    std::uint8_t num_chunks = 0;
    Token token{}; ///< of the receiver
    std::span<const std::byte> payload;

    SevenControl kind = SevenControl::unknown; ///< of a control packet
    std::optional<Token> own_token{};          ///< what a CONNECT or TOKEN announces
    std::string_view reason{};                 ///< of a CLOSE; up to the NUL, bytes as they stand
};

/// Reads the header, and the content of a control packet; nothing when it is too short or connless.
///
/// Source: 0.7 sheet, sections 1.2 and 1.4.
[[nodiscard]] std::optional<SevenPacket> decode_seven(std::span<const std::byte> datagram);

/// Whether a packet of chunks is laid out as 0.7 lays it out: its chunks end where it ends. Two
/// such packets are enough to tell a 0.7 session from a 0.6 one that was joined midway (0.7 sheet,
/// section 1.7).
[[nodiscard]] bool fits_seven(const SevenPacket& packet, PacketScratch& scratch);

/// Whether a datagram is a handshake packet of 0.6 that no 0.7 peer would send: what looks like
/// compressed chunks there would have none.
[[nodiscard]] bool is_six_handshake(std::span<const std::byte> datagram);

} // namespace tw::wire
