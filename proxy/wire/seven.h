#pragma once

#include "proxy/wire/packet.h"

#include <cstddef>
#include <optional>
#include <span>

/// What the packets of Teeworlds 0.7 have of their own: two headers, and the numbers of the control
/// packets. All behind it is as in 0.6: the same Huffman tree, the same rules for chunks.
namespace tw::wire {

inline constexpr std::size_t kSevenHeaderSize = 7;

/// Bytes before a packet's payload, which are never compressed.
[[nodiscard]] inline std::size_t header_size(const Packet& packet) {
    return packet.dialect == Dialect::seven ? kSevenHeaderSize
                                            : kHeaderSize + (packet.header_token ? kTokenSize : 0);
}

/// Decompressed: what DDNet writes and libtw2 reads. Vanilla drops the last two bytes' worth.
inline constexpr std::size_t kSevenMaxPayloadSize = kMaxDatagramSize - kSevenHeaderSize;

/// Reads one datagram of 0.7.
///
/// Layout: 0.7 sheet, sections 1.2 (header) and 1.3 (connless).
/// Errors: too_short, huffman_truncated, huffman_overflow, control_empty.
[[nodiscard]] Result<Packet> decode_seven(std::span<const std::byte> datagram,
                                          PacketScratch& scratch);

/// The header alone: the payload stays as it came. Nothing when it is too short or connless.
[[nodiscard]] std::optional<Packet> decode_seven_header(std::span<const std::byte> datagram);

/// A control packet's content (section 1.4). Precondition: packet.dialect is seven.
[[nodiscard]] Control decode_seven_control(const Packet& packet);

/// Whether a datagram is a packet of chunks as 0.7 lays it out: its chunks end where it ends. Two
/// such packets are enough to tell a 0.7 session from a 0.6 one that was joined midway (section
/// 1.7).
[[nodiscard]] bool fits_seven(std::span<const std::byte> datagram, PacketScratch& scratch);

/// Whether a datagram is a handshake packet of 0.6 that no 0.7 peer would send: what looks like
/// compressed chunks there would have none.
[[nodiscard]] bool is_six_handshake(std::span<const std::byte> datagram);

} // namespace tw::wire
