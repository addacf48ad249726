#include "proxy/wire/packet.h"

#include "proxy/wire/bytes.h"
#include "proxy/wire/seven.h"

#include <algorithm>

namespace tw::wire {

namespace {

// Byte 0 of a connection-oriented 0.6 header.
constexpr std::uint32_t kCompressedBit = 0x80;
constexpr std::uint32_t kResendBit = 0x40;
constexpr std::uint32_t kControlBit = 0x10;
constexpr std::uint32_t kHeaderTokenBit = 0x08;
constexpr std::uint32_t kSevenBit = 0x04;
constexpr std::uint32_t kAckHighBits = 0x03;

/// Low bits of a connless 0.7 packet's first byte: its version, where 0.6 has nothing.
constexpr std::uint32_t kSevenConnlessVersion = 1;

bool is_seven(std::uint32_t first, std::span<const std::byte> datagram, Protocol known) {
    if ((first & kConnlessBit) != 0) {
        return (first & kAckHighBits) == kSevenConnlessVersion;
    }
    // Every 0.7 control packet has this bit and no 0.6 writer sets it, so it means 0.7 even where a
    // 0.6 connection is known; and a client that hops servers shakes hands anew either way.
    return (first & kSevenBit) != 0 || (known == Protocol::seven && !is_six_handshake(datagram));
}

Result<Packet> decode_connless(std::span<const std::byte> datagram) {
    if (datagram.size() < kConnlessHeaderSize) {
        return tl::unexpected{WireError{WireErrc::too_short, datagram.size()}};
    }
    Packet packet;
    packet.kind = PacketKind::connless;
    packet.payload = datagram.subspan(kConnlessHeaderSize);
    if (byte_at(datagram, 0) == 'x' && byte_at(datagram, 1) == 'e') {
        packet.connless_extra = datagram.subspan(2, kConnlessHeaderSize - 2);
    }
    return packet;
}

/// The hot path: built in place, since a result is large enough for copies to show.
Result<Packet> decode_connected(std::span<const std::byte> datagram, PacketScratch& scratch,
                                HeaderTokenBit token_bit) {
    const std::uint32_t first = byte_at(datagram, 0);
    Result<Packet> packet{tl::in_place};
    packet->kind = (first & kControlBit) != 0 ? PacketKind::control : PacketKind::chunks;
    packet->compressed = (first & kCompressedBit) != 0;
    packet->resend = (first & kResendBit) != 0;
    packet->ack = static_cast<std::uint16_t>((first & kAckHighBits) << 8U | byte_at(datagram, 1));
    packet->num_chunks = std::to_integer<std::uint8_t>(datagram[2]);
    std::size_t header_size = kHeaderSize;
    if ((first & kHeaderTokenBit) != 0 && token_bit == HeaderTokenBit::read) {
        if (datagram.size() < kHeaderSize + kTokenSize) {
            packet = tl::unexpected{WireError{WireErrc::too_short, datagram.size()}};
            return packet;
        }
        packet->header_token = token_at(datagram, kHeaderSize);
        header_size += kTokenSize;
    }
    packet->payload = datagram.subspan(header_size);
    if (packet->compressed) {
        const auto plain = scratch.decompress({packet->payload, kMaxPayloadSize});
        if (!plain) {
            const WireError& error = plain.error();
            packet = tl::unexpected{WireError{error.code, header_size + error.offset}};
            return packet;
        }
        packet->payload = *plain;
    }
    if (packet->kind == PacketKind::control && packet->payload.empty()) {
        packet = tl::unexpected{WireError{WireErrc::control_empty, header_size}};
    }
    return packet;
}

} // namespace

Result<Packet> decode_packet(std::span<const std::byte> datagram, Protocol known,
                             PacketScratch& scratch, HeaderTokenBit token_bit) {
    if (datagram.size() < kHeaderSize) {
        return tl::unexpected{WireError{WireErrc::too_short, datagram.size()}};
    }
    if (datagram.size() > kMaxDatagramSize) {
        return tl::unexpected{WireError{WireErrc::too_long, kMaxDatagramSize}};
    }
    const std::uint32_t first = byte_at(datagram, 0);
    if (is_seven(first, datagram, known)) {
        return decode_seven(datagram, scratch);
    }
    if ((first & kConnlessBit) != 0) {
        return decode_connless(datagram);
    }
    return decode_connected(datagram, scratch, token_bit);
}

CompressedPayload compressed_payload(std::span<const std::byte> datagram) {
    if (datagram.size() < kHeaderSize + kTokenSize || datagram.size() > kMaxDatagramSize) {
        return {};
    }
    const std::uint32_t first = byte_at(datagram, 0);
    if ((first & (kConnlessBit | kSevenBit)) != 0) {
        return {};
    }
    if ((first & kCompressedBit) != 0) {
        const std::size_t token = (first & kHeaderTokenBit) != 0 ? kTokenSize : 0;
        return {datagram.subspan(kHeaderSize + token), kMaxPayloadSize};
    }
    const auto seven = decode_seven_header(datagram);
    return seven && seven->compressed ? CompressedPayload{seven->payload, kSevenMaxPayloadSize}
                                      : CompressedPayload{};
}

std::optional<Packet> decode_control_under_seven(std::span<const std::byte> datagram) {
    // Flags of 0.7's header; the acknowledgement stands where 0.6 has it.
    constexpr std::uint32_t kSevenResendBit = 0x08;
    constexpr std::uint32_t kSevenCompressedBit = 0x10;
    if (datagram.size() <= kSevenHeaderSize || datagram.size() > kMaxDatagramSize) {
        return std::nullopt;
    }
    const std::uint32_t first = byte_at(datagram, 0);
    if ((first & kConnlessBit) != 0 || (first & kSevenBit) == 0) {
        return std::nullopt;
    }
    Packet packet;
    packet.kind = PacketKind::control;
    packet.seven_header = true;
    packet.compressed = (first & kSevenCompressedBit) != 0;
    packet.resend = (first & kSevenResendBit) != 0;
    packet.ack = static_cast<std::uint16_t>((first & kAckHighBits) << 8U | byte_at(datagram, 1));
    packet.num_chunks = std::to_integer<std::uint8_t>(datagram[2]);
    packet.payload = datagram.subspan(kSevenHeaderSize);
    return packet;
}

} // namespace tw::wire
