#include "proxy/wire/seven.h"

#include "proxy/wire/bytes.h"
#include "proxy/wire/chunk.h"

#include <cstring>

namespace tw::wire {

namespace {

constexpr std::uint32_t kSevenCompressedBit = 0x10;
constexpr std::uint32_t kSevenResendBit = 0x08;
constexpr std::uint32_t kSevenControlBit = 0x04;
constexpr std::uint32_t kSevenAckHighBits = 0x03;
/// What a peer writes where the own token of a CONNECT belongs: DDNet's client repeats itself so.
constexpr Token kNotAToken{'T', 'K', 'E', 'N'};

ControlKind control_kind(std::uint32_t raw) {
    switch (raw) {
    case 0:
        return ControlKind::keepalive;
    case 1:
        return ControlKind::connect;
    case 2:
        return ControlKind::accept;
    case 4:
        return ControlKind::close;
    case 5:
        return ControlKind::token;
    default:
        return ControlKind::unknown;
    }
}

Result<Packet> decode_seven_connless(std::span<const std::byte> datagram) {
    const std::size_t header = connless_header_size(Dialect::seven);
    if (datagram.size() < header) {
        return tl::unexpected{WireError{WireErrc::too_short, datagram.size()}};
    }
    Packet packet;
    packet.kind = PacketKind::connless;
    packet.dialect = Dialect::seven;
    packet.header_token = token_at(datagram, 1);
    packet.payload = datagram.subspan(header);
    return packet;
}

void read_header(std::span<const std::byte> datagram, Packet& packet) {
    const std::uint32_t first = byte_at(datagram, 0);
    packet.kind = (first & kSevenControlBit) != 0 ? PacketKind::control : PacketKind::chunks;
    packet.dialect = Dialect::seven;
    packet.compressed = (first & kSevenCompressedBit) != 0;
    packet.resend = (first & kSevenResendBit) != 0;
    packet.ack =
        static_cast<std::uint16_t>((first & kSevenAckHighBits) << 8U | byte_at(datagram, 1));
    packet.num_chunks = std::to_integer<std::uint8_t>(datagram[2]);
    packet.header_token = token_at(datagram, 3);
    packet.payload = datagram.subspan(kSevenHeaderSize);
}

} // namespace

std::optional<Packet> decode_seven_header(std::span<const std::byte> datagram) {
    if (datagram.size() < kSevenHeaderSize || (byte_at(datagram, 0) & kConnlessBit) != 0) {
        return std::nullopt;
    }
    std::optional<Packet> packet{std::in_place};
    read_header(datagram, *packet);
    return packet;
}

Result<Packet> decode_seven(std::span<const std::byte> datagram, PacketScratch& scratch) {
    if (!datagram.empty() && (byte_at(datagram, 0) & kConnlessBit) != 0) {
        return decode_seven_connless(datagram);
    }
    if (datagram.size() < kSevenHeaderSize) {
        return tl::unexpected{WireError{WireErrc::too_short, datagram.size()}};
    }
    Result<Packet> packet{tl::in_place};
    read_header(datagram, *packet);
    if (packet->compressed) {
        const auto plain = scratch.decompress({packet->payload, kSevenMaxPayloadSize});
        if (!plain) {
            const WireError& error = plain.error();
            packet = tl::unexpected{WireError{error.code, kSevenHeaderSize + error.offset}};
            return packet;
        }
        packet->payload = *plain;
    }
    if (packet->kind == PacketKind::control && packet->payload.empty()) {
        packet = tl::unexpected{WireError{WireErrc::control_empty, kSevenHeaderSize}};
    }
    return packet;
}

Control decode_seven_control(const Packet& packet) {
    Control control;
    if (packet.payload.empty()) {
        return control;
    }
    control.raw_kind = std::to_integer<std::uint8_t>(packet.payload[0]);
    control.kind = control_kind(control.raw_kind);
    const auto data = packet.payload.subspan(1);
    const bool announces =
        control.kind == ControlKind::connect || control.kind == ControlKind::token;
    if (announces && data.size() >= kTokenSize) {
        control.has_token_magic = token_at(data, 0) == kNotAToken;
        if (!control.has_token_magic) {
            control.token = token_at(data, 0);
        }
    } else if (control.kind == ControlKind::accept && data.size() == kTokenSize) {
        control.token = token_at(data, 0);
    } else if (control.kind == ControlKind::close) {
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here
        const std::string_view text{reinterpret_cast<const char*>(data.data()), data.size()};
        control.reason = text.substr(0, text.find('\0'));
    }
    return control;
}

bool fits_seven(std::span<const std::byte> datagram, PacketScratch& scratch) {
    constexpr std::uint32_t kSixFlags = 0xC0; // compression and resend of 0.6
    if (datagram.empty() || (byte_at(datagram, 0) & kSixFlags) != 0) {
        return false;
    }
    const auto packet = decode_seven(datagram, scratch);
    if (!packet || packet->kind != PacketKind::chunks || packet->num_chunks == 0) {
        return false;
    }
    ChunkReader reader{packet->payload, packet->num_chunks, Dialect::seven};
    while (reader.next()) {
    }
    return !reader.error() && reader.rest().empty();
}

bool is_six_handshake(std::span<const std::byte> datagram) {
    constexpr std::size_t kKind = kHeaderSize;
    constexpr std::uint32_t kSixControl = 0x10;
    if (datagram.size() <= kKind || (byte_at(datagram, 0) & ~kSevenAckHighBits) != kSixControl ||
        byte_at(datagram, 2) != 0) {
        return false;
    }
    const std::uint32_t kind = byte_at(datagram, kKind);
    const bool magic = datagram.size() >= kKind + 1 + 2 * kTokenSize &&
                       token_at(datagram, kKind + 1) == kNotAToken;
    switch (static_cast<ControlKind>(kind)) {
    case ControlKind::connect: // of 0.6.5 with 512 bytes of padding
        return magic || datagram.size() == kKind + 1 || datagram.size() == kKind + 1 + 512;
    case ControlKind::connectaccept:
        return magic || datagram.size() == kKind + 1;
    case ControlKind::accept:
        return datagram.size() == kKind + 1 + kTokenSize;
    default:
        return false;
    }
}

} // namespace tw::wire
