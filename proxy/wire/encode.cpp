#include "proxy/wire/encode.h"

#include "proxy/wire/chunk.h"

#include <cassert>

namespace tw::wire {

namespace {

[[maybe_unused]] constexpr std::size_t kMaxChunkSize = 1023; // in builds without assertions

using Bytes = std::vector<std::byte>;

void append_u8(Bytes& out, std::uint32_t value) {
    out.push_back(static_cast<std::byte>(value));
}

void append_token(Bytes& out, const Token& token) {
    for (const std::uint8_t value : token) {
        append_u8(out, value);
    }
}

void append_text(Bytes& out, std::string_view text) {
    for (const char c : text) {
        out.push_back(static_cast<std::byte>(c));
    }
}

void append_header(Bytes& out, std::uint32_t flags, std::uint16_t ack, std::uint8_t num_chunks) {
    assert(ack < kSequenceModulus);
    append_u8(out, flags | std::uint32_t{ack} >> 8U);
    append_u8(out, ack & 0xFFU);
    append_u8(out, num_chunks);
}

} // namespace

Bytes encode_packet(const PacketSpec& spec) {
    Bytes payload(spec.chunks.begin(), spec.chunks.end());
    if (spec.token) {
        append_token(payload, *spec.token);
    }
    std::uint32_t flags = (spec.resend ? 0x40U : 0U) | (spec.header_token ? 0x08U : 0U);
    if (spec.compression != Compression::never) {
        Bytes compressed = huffman_compress(payload, spec.ending);
        if (spec.compression == Compression::always || compressed.size() < payload.size()) {
            payload.swap(compressed);
            flags |= 0x80U;
        }
    }
    Bytes out;
    append_header(out, flags, spec.ack, spec.num_chunks);
    if (spec.header_token) {
        append_token(out, *spec.header_token);
    }
    out.insert(out.end(), payload.begin(), payload.end());
    return out;
}

Bytes encode_control(const ControlSpec& spec) {
    Bytes out;
    append_header(out, 0x10U, spec.ack, 0);
    append_u8(out, static_cast<std::uint32_t>(spec.kind));
    if (spec.reason) {
        append_text(out, *spec.reason);
        append_u8(out, 0);
    }
    if (spec.token) {
        if (spec.kind == ControlKind::connect || spec.kind == ControlKind::connectaccept) {
            append_text(out, "TKEN");
        }
        append_token(out, *spec.token);
    }
    return out;
}

void append_chunk(Bytes& out, bool vital, std::uint16_t sequence, bool resend,
                  std::span<const std::byte> payload) {
    assert(payload.size() <= kMaxChunkSize && sequence < kSequenceModulus);
    const auto size = static_cast<std::uint32_t>(payload.size());
    append_u8(out, (resend ? 0x80U : 0U) | (vital ? 0x40U : 0U) | size >> 4U);
    const std::uint32_t sequence_high = vital ? std::uint32_t{sequence} >> 2U & 0xF0U : 0U;
    append_u8(out, sequence_high | (size & 0x0FU));
    if (vital) {
        append_u8(out, sequence & 0xFFU);
    }
    out.insert(out.end(), payload.begin(), payload.end());
}

Bytes encode_connless(std::span<const std::byte> payload, std::optional<Token> extra) {
    Bytes out;
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
