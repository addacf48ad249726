#pragma once

#include "proxy/wire/huffman.h"
#include "proxy/wire/packet.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

// Writers for tests and tools: they script sessions. The caller is trusted; the proxy itself never
// writes packets.
namespace tw::wire {

enum class Compression : std::uint8_t {
    never,
    if_shorter, ///< what senders do
    always,     ///< legal for readers, though no sender would when it grows
};

/// A packet of chunks.
struct PacketSpec {
    std::uint16_t ack = 0;
    bool resend = false; ///< ask the receiver for a resend
    std::uint8_t num_chunks = 0;
    std::span<const std::byte> chunks{}; ///< made with append_chunk
    std::optional<Token> token{};        ///< DDNet's: behind the chunks, compressed with them
    std::optional<Token> header_token{}; ///< vanilla 0.6.5's: behind the header; of 0.7: needed
    Compression compression = Compression::never;
    HuffmanEnding ending = HuffmanEnding::without_zero_byte;
    Dialect dialect = Dialect::six;
};

[[nodiscard]] std::vector<std::byte> encode_packet(const PacketSpec& spec);

/// A control packet.
struct ControlSpec {
    ControlKind kind = ControlKind::keepalive;
    std::uint16_t ack = 0;
    /// DDNet's; CONNECT and CONNECTACCEPT get "TKEN" in front of it.
    std::optional<Token> token{};
    /// Of a CLOSE: text that gets its NUL; nothing leaves out both.
    std::optional<std::string_view> reason{};
    /// 0.7: the receiver's token, in the header. `token` is then the sender's own.
    std::optional<Token> seven_token{};
};

[[nodiscard]] std::vector<std::byte> encode_control(const ControlSpec& spec);

/// Appends one chunk. Preconditions: sequence below kSequenceModulus, payload at most 1023 bytes
/// (4095 in 0.7).
void append_chunk(std::vector<std::byte>& out, bool vital, std::uint16_t sequence, bool resend,
                  std::span<const std::byte> payload, Dialect dialect);

/// A connless packet: six header bytes, then the payload (which starts with ff ff ff ff and the
/// magic). With `extra` the extended header "xe".
[[nodiscard]] std::vector<std::byte> encode_connless(std::span<const std::byte> payload,
                                                     std::optional<Token> extra = std::nullopt);

} // namespace tw::wire
