#include "proxy/wire/seven.h"

#include "proxy/wire/huffman.h"

#include <algorithm>
#include <cstring>

namespace tw::wire {

namespace {

constexpr std::uint32_t kConnlessBit = 0x20;
constexpr std::uint32_t kCompressedBit = 0x10;
constexpr std::uint32_t kResendBit = 0x08;
constexpr std::uint32_t kControlBit = 0x04;
constexpr std::uint32_t kAckHighBits = 0x03;
constexpr std::size_t kSevenHeaderSize = 7;
/// What a peer writes where the own token of a CONNECT belongs: DDNet's client repeats itself so.
constexpr Token kNotAToken{'T', 'K', 'E', 'N'};

std::uint32_t byte_at(std::span<const std::byte> data, std::size_t index) {
    return std::to_integer<std::uint32_t>(data[index]);
}

Token token_at(std::span<const std::byte> data, std::size_t offset) {
    Token token{};
    std::memcpy(token.data(), data.data() + offset, token.size());
    return token;
}

SevenControl control_kind(std::uint32_t raw) {
    switch (raw) {
    case 0:
        return SevenControl::keepalive;
    case 1:
        return SevenControl::connect;
    case 2:
        return SevenControl::accept;
    case 4:
        return SevenControl::close;
    case 5:
        return SevenControl::token;
    default:
        return SevenControl::unknown;
    }
}

void decode_control(SevenPacket& packet) {
    if (packet.payload.empty()) {
        return;
    }
    packet.kind = control_kind(byte_at(packet.payload, 0));
    const auto data = packet.payload.subspan(1);
    const bool announces =
        packet.kind == SevenControl::connect || packet.kind == SevenControl::token;
    if (announces && data.size() >= kTokenSize && token_at(data, 0) != kNotAToken) {
        packet.own_token = token_at(data, 0);
    } else if (packet.kind == SevenControl::close) {
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here
        const std::string_view text{reinterpret_cast<const char*>(data.data()), data.size()};
        packet.reason = text.substr(0, text.find('\0'));
    }
}

} // namespace

std::optional<SevenPacket> decode_seven(std::span<const std::byte> datagram) {
    if (datagram.size() < kSevenHeaderSize || (byte_at(datagram, 0) & kConnlessBit) != 0) {
        return std::nullopt;
    }
    const std::uint32_t first = byte_at(datagram, 0);
    SevenPacket packet{
        .control = (first & kControlBit) != 0,
        .compressed = (first & kCompressedBit) != 0,
        .resend = (first & kResendBit) != 0,
        .ack = static_cast<std::uint16_t>((first & kAckHighBits) << 8U | byte_at(datagram, 1)),
        .num_chunks = std::to_integer<std::uint8_t>(datagram[2]),
        .token = token_at(datagram, 3),
        .payload = datagram.subspan(kSevenHeaderSize)};
    if (packet.control) {
        decode_control(packet);
    }
    return packet;
}

bool fits_seven(const SevenPacket& packet, PacketScratch& scratch) {
    if (packet.control || packet.num_chunks == 0) {
        return false;
    }
    auto payload = packet.payload;
    if (packet.compressed) {
        const auto plain = std::span{scratch}.first(kMaxPayloadSize);
        const auto size = huffman_decompress(payload, plain);
        if (!size) {
            return false;
        }
        payload = plain.first(*size);
    }
    std::size_t at = 0;
    for (unsigned i = 0; i < packet.num_chunks; ++i) {
        if (payload.size() - at < 2) {
            return false;
        }
        const std::uint32_t high = byte_at(payload, at);
        const bool vital = (high & 0x40U) != 0;
        const std::size_t size = (high & 0x3FU) << 6U | (byte_at(payload, at + 1) & 0x3FU);
        const std::size_t header = vital ? 3 : 2;
        if (payload.size() - at < header + size) {
            return false;
        }
        at += header + size;
    }
    return at == payload.size();
}

bool is_six_handshake(std::span<const std::byte> datagram) {
    constexpr std::size_t kKind = kHeaderSize;
    constexpr std::uint32_t kSixControl = 0x10;
    if (datagram.size() <= kKind || (byte_at(datagram, 0) & ~kAckHighBits) != kSixControl ||
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
