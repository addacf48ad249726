#include "proxy/wire/encode.h"

#include "proxy/wire/chunk.h"

#include <cassert>

namespace tw::wire {

namespace {

/// In builds without assertions nobody asks.
[[maybe_unused]] std::size_t max_chunk_size(Dialect dialect) {
    return (std::size_t{64} << low_size_bits(dialect)) - 1;
}

using Buffer = std::vector<std::byte>;

void append_u8(Buffer& out, std::uint32_t value) {
    out.push_back(static_cast<std::byte>(value));
}

void append_token(Buffer& out, const Token& token) {
    for (const std::uint8_t value : token) {
        append_u8(out, value);
    }
}

void append_text(Buffer& out, std::string_view text) {
    for (const char c : text) {
        out.push_back(static_cast<std::byte>(c));
    }
}

void append_header(Buffer& out, std::uint32_t flags, std::uint16_t ack, std::uint8_t num_chunks) {
    assert(ack < kSequenceModulus);
    append_u8(out, flags | std::uint32_t{ack} >> 8U);
    append_u8(out, ack & 0xFFU);
    append_u8(out, num_chunks);
}

/// What a dialect writes in the first byte of a header.
struct HeaderBits {
    std::uint32_t compressed;
    std::uint32_t resend;
    std::uint32_t control;
    std::uint32_t token; ///< one follows the header
};

constexpr HeaderBits kSixBits{.compressed = 0x80, .resend = 0x40, .control = 0x10, .token = 0x08};
constexpr HeaderBits kSevenBits{.compressed = 0x10, .resend = 0x08, .control = 0x04, .token = 0};

const HeaderBits& bits_of(Dialect dialect) {
    return dialect == Dialect::six ? kSixBits : kSevenBits;
}

std::uint32_t seven_kind(ControlKind kind) {
    constexpr std::uint32_t kAccept = 2;
    constexpr std::uint32_t kToken = 5;
    return kind == ControlKind::accept  ? kAccept
           : kind == ControlKind::token ? kToken
                                        : static_cast<std::uint32_t>(kind);
}

} // namespace

Buffer encode_packet(const PacketSpec& spec) {
    assert(spec.dialect == Dialect::six || spec.header_token);
    const HeaderBits& bits = bits_of(spec.dialect);
    Buffer payload(spec.chunks.begin(), spec.chunks.end());
    if (spec.token) {
        append_token(payload, *spec.token);
    }
    std::uint32_t flags = (spec.resend ? bits.resend : 0U) | (spec.header_token ? bits.token : 0U);
    if (spec.compression != Compression::never) {
        Buffer compressed = huffman_compress(payload, spec.ending);
        if (spec.compression == Compression::always || compressed.size() < payload.size()) {
            payload.swap(compressed);
            flags |= bits.compressed;
        }
    }
    Buffer out;
    append_header(out, flags, spec.ack, spec.num_chunks);
    if (spec.header_token) {
        append_token(out, *spec.header_token);
    }
    out.insert(out.end(), payload.begin(), payload.end());
    return out;
}

Buffer encode_control(const ControlSpec& spec) {
    Buffer out;
    if (spec.seven_token) {
        append_header(out, kSevenBits.control, spec.ack, 0);
        append_token(out, *spec.seven_token);
        append_u8(out, seven_kind(spec.kind));
    } else {
        append_header(out, kSixBits.control, spec.ack, 0);
        append_u8(out, static_cast<std::uint32_t>(spec.kind));
    }
    if (spec.reason) {
        append_text(out, *spec.reason);
        append_u8(out, 0);
    }
    if (spec.token) {
        if (!spec.seven_token &&
            (spec.kind == ControlKind::connect || spec.kind == ControlKind::connectaccept)) {
            append_text(out, "TKEN");
        }
        append_token(out, *spec.token);
    }
    return out;
}

void append_chunk(Buffer& out, bool vital, std::uint16_t sequence, bool resend,
                  std::span<const std::byte> payload, Dialect dialect) {
    assert(payload.size() <= max_chunk_size(dialect) && sequence < kSequenceModulus);
    const unsigned low_bits = low_size_bits(dialect);
    const std::uint32_t low_mask = (1U << low_bits) - 1;
    const auto size = static_cast<std::uint32_t>(payload.size());
    append_u8(out, (resend ? 0x80U : 0U) | (vital ? 0x40U : 0U) | size >> low_bits);
    const std::uint32_t sequence_high =
        vital ? std::uint32_t{sequence} >> 2U & 0xFFU & ~low_mask : 0U;
    append_u8(out, sequence_high | (size & low_mask));
    if (vital) {
        append_u8(out, sequence & 0xFFU);
    }
    out.insert(out.end(), payload.begin(), payload.end());
}

Buffer encode_connless(std::span<const std::byte> payload, std::optional<Token> extra) {
    Buffer out;
    if (extra) {
        append_text(out, "xe");
        append_token(out, *extra);
    } else {
        out.assign(kConnlessHeaderSize, std::byte{0xFF});
    }
    out.insert(out.end(), payload.begin(), payload.end());
    return out;
}

} // namespace tw::wire
