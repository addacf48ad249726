#pragma once

#include "proxy/wire/error.h"
#include "proxy/wire/packet_scratch.h"
#include "snapshot/objects.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::wire {

inline constexpr std::size_t kMaxDatagramSize = 1400;
inline constexpr std::size_t kHeaderSize = 3;
inline constexpr std::size_t kMaxPayloadSize = kMaxDatagramSize - kHeaderSize;
inline constexpr std::size_t kConnlessHeaderSize = 6;
inline constexpr std::size_t kTokenSize = 4;

using Token = std::array<std::uint8_t, kTokenSize>;
inline constexpr Token kTokenUnknown{0xff, 0xff, 0xff, 0xff}; ///< "not known yet"
inline constexpr Token kTokenUnsupported{0, 0, 0, 0};

using snapshot::Dialect;

enum class PacketKind : std::uint8_t { chunks, control, connless };

/// `token` is of 0.7, `connectaccept` of 0.6.
enum class ControlKind : std::uint8_t {
    keepalive,
    connect,
    connectaccept,
    accept,
    close,
    unknown,
    token,
};

/// What the caller knows of the session a datagram belongs to.
enum class Protocol : std::uint8_t { unknown, six, seven };

/// One datagram as a packet. Spans point into the datagram or into the caller's scratch buffer.
struct Packet {
    PacketKind kind = PacketKind::chunks;
    Dialect dialect = Dialect::six;
    bool compressed = false;
    bool resend = false;   ///< the sender asks for a resend of unacknowledged vital chunks
    std::uint16_t ack = 0; ///< 0..1023
    std::uint8_t num_chunks = 0;
    /// Vanilla 0.6.5: behind the header. 0.7: the receiver's, in every packet.
    std::optional<Token> header_token;
    bool seven_header = false; ///< 0.7's header, seven bytes of it, of a packet of 0.6
    /// Decompressed; with DDNet's token still at the end. Connless: what follows the header.
    std::span<const std::byte> payload;
    std::span<const std::byte> connless_extra; ///< bytes 2..5 of an extended ("xe") connless header
};

/// The header's bit 0x08: 0.6.5's token follows, or it means nothing (DDNet before 19.4).
enum class HeaderTokenBit : std::uint8_t { read, ignored };

/// Whether the header has a bit that not all receivers of 0.6 read alike.
[[nodiscard]] inline bool has_disputed_bits(std::span<const std::byte> datagram) {
    constexpr std::uint32_t kConnless = 0x20;
    constexpr std::uint32_t kDisputed = 0x0c;
    return !datagram.empty() && (std::to_integer<std::uint32_t>(datagram[0]) & kConnless) == 0 &&
           (std::to_integer<std::uint32_t>(datagram[0]) & kDisputed) != 0;
}

/// Bytes in front of a connless packet's payload.
[[nodiscard]] constexpr std::size_t connless_header_size(Dialect dialect) {
    return dialect == Dialect::six ? kConnlessHeaderSize : 1 + 2 * kTokenSize;
}

/// Reads one datagram, of 0.6 or of 0.7 (seven.h).
///
/// Layout: protocol sheet, sections 1.2 (header), 1.3 (connless), 1.7 (token of 0.6.5), 1.8 (0.7).
/// Errors: too_short, too_long, huffman_truncated, huffman_overflow, control_empty.
[[nodiscard]] Result<Packet> decode_packet(std::span<const std::byte> datagram, Protocol known,
                                           PacketScratch& scratch,
                                           HeaderTokenBit token_bit = HeaderTokenBit::read);

/// The compressed payload of a datagram whose session is not known, as its header shows it; empty
/// where there is none. Headers of 0.6 and of 0.7 do not tell for sure which they are.
[[nodiscard]] CompressedPayload compressed_payload(std::span<const std::byte> datagram);

/// Reads a control packet under 0.7's header as DDNet's servers do that have a 0.6 connection with
/// its sender. Nothing: it is none. What is compressed stays so; they refuse it.
[[nodiscard]] std::optional<Packet> decode_control_under_seven(std::span<const std::byte> datagram);

/// A control packet's content, tokens taken apart as far as its form shows (section 1.4 to 1.7).
struct Control {
    ControlKind kind = ControlKind::unknown;
    std::uint8_t raw_kind = 0;
    bool has_token_magic = false; ///< "TKEN" stands behind the kind
    /// DDNet's token, or the one inside a 0.6.5 CONNECT/CONNECTACCEPT; of 0.7 what a CONNECT or
    /// TOKEN announces as its sender's own, and what DDNet's servers put behind an ACCEPT.
    std::optional<Token> token;
    bool vanilla_token = false; ///< the token is 0.6.5's
    std::string_view reason;    ///< of a CLOSE; up to the NUL, bytes as they stand
};

/// "keepalive", "close"; empty for unknown ones.
[[nodiscard]] std::string_view control_name(ControlKind kind);

/// `known_token`: the connection's token, to tell an empty reason with token from a short reason.
[[nodiscard]] Control decode_control(const Packet& packet, std::optional<Token> known_token);

} // namespace tw::wire
