#pragma once

#include "proxy/wire/error.h"
#include "proxy/wire/huffman.h"
#include "snapshot/objects.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::wire {

/// A compressed payload, and the maximum size of its decompressed form.
struct CompressedPayload {
    std::span<const std::byte> bytes;
    std::size_t most = 0;
};

/// Buffers for decompressing packets. If the next datagram is known already, its payload is
/// decompressed together with the current one, which is faster than one after the other. A wrong
/// announcement costs time only.
class PacketScratch {
  public:
    /// `datagram` will be decoded now, and `next` after it; `next` is empty if unknown. Both must
    /// stay unchanged until the next call.
    void begin(std::span<const std::byte> datagram, std::span<const std::byte> next);

    /// Returns the decompressed payload, valid until the next call of this function or `begin`.
    /// Errors: as huffman_decompress.
    [[nodiscard]] Result<std::span<const std::byte>> decompress(const CompressedPayload& payload);

  private:
    struct Ahead {
        CompressedPayload payload;
        Result<std::size_t> size;
    };

    /// Large enough for every payload.
    using Room = std::array<std::byte, 1400>;

    [[nodiscard]] Result<std::span<const std::byte>> shown(const Result<std::size_t>& size) const;

    std::array<Room, 2> rooms_{};
    std::size_t current_ = 0; ///< buffer of the current datagram; the other one is for the next
    std::span<const std::byte> next_;
    std::optional<Ahead> ahead_; ///< result for the next datagram
};

inline constexpr std::size_t kMaxDatagramSize = 1400;
inline constexpr std::size_t kHeaderSize = 3;
inline constexpr std::size_t kMaxPayloadSize = kMaxDatagramSize - kHeaderSize;
inline constexpr std::size_t kConnlessHeaderSize = 6;
inline constexpr std::size_t kTokenSize = 4;

using Token = std::array<std::uint8_t, kTokenSize>;
inline constexpr Token kTokenUnknown{0xff, 0xff, 0xff, 0xff}; ///< means "not known yet"
inline constexpr Token kTokenUnsupported{0, 0, 0, 0};

using snapshot::Dialect;

enum class PacketKind : std::uint8_t { chunks, control, connless };

/// `token` exists in 0.7 only, `connectaccept` in 0.6 only.
enum class ControlKind : std::uint8_t {
    keepalive,
    connect,
    connectaccept,
    accept,
    close,
    unknown,
    token,
};

/// The protocol of a datagram's session, as far as the caller knows.
enum class Protocol : std::uint8_t { unknown, six, seven };

/// A decoded datagram. Spans point into the datagram or into the caller's scratch buffer.
struct Packet {
    PacketKind kind = PacketKind::chunks;
    Dialect dialect = Dialect::six;
    bool compressed = false;
    bool resend = false;   ///< the sender requests a resend of unacknowledged vital chunks
    std::uint16_t ack = 0; ///< 0..1023
    std::uint8_t num_chunks = 0;
    /// Vanilla 0.6.5: the token after the header. 0.7: the receiver's token, in each packet.
    std::optional<Token> header_token;
    bool seven_header = false; ///< a 0.6 packet with 0.7's seven-byte header
    /// Decompressed payload, including DDNet's token at the end. Connless: the bytes after the
    /// header.
    std::span<const std::byte> payload;
    std::span<const std::byte> connless_extra; ///< bytes 2..5 of an extended ("xe") connless header
};

/// How to read the header's bit 0x08: 0.6.5's token follows, or no meaning (DDNet before 19.4).
enum class HeaderTokenBit : std::uint8_t { read, ignored };

/// Whether the header has a bit that 0.6 receivers interpret differently.
[[nodiscard]] inline bool has_disputed_bits(std::span<const std::byte> datagram) {
    constexpr std::uint32_t kConnless = 0x20;
    constexpr std::uint32_t kDisputed = 0x0c;
    return !datagram.empty() && (std::to_integer<std::uint32_t>(datagram[0]) & kConnless) == 0 &&
           (std::to_integer<std::uint32_t>(datagram[0]) & kDisputed) != 0;
}

/// Number of bytes before a connless packet's payload.
[[nodiscard]] constexpr std::size_t connless_header_size(Dialect dialect) {
    return dialect == Dialect::six ? kConnlessHeaderSize : 1 + 2 * kTokenSize;
}

/// Decodes one datagram of 0.6 or 0.7.
///
/// Layout: protocol sheet, sections 1.2 (header), 1.3 (connless), 1.7 (token of 0.6.5), 1.8 (0.7).
/// Errors: too_short, too_long, huffman_truncated, huffman_overflow, control_empty.
[[nodiscard]] Result<Packet> decode_packet(std::span<const std::byte> datagram, Protocol known,
                                           PacketScratch& scratch,
                                           HeaderTokenBit token_bit = HeaderTokenBit::read);

/// The compressed payload of a datagram of an unknown session, judged by the header; empty if there
/// is none. Headers of 0.6 and 0.7 cannot be distinguished with certainty.
[[nodiscard]] CompressedPayload compressed_payload(std::span<const std::byte> datagram);

/// Decodes a control packet with a 0.7 header the way DDNet servers do if they have a 0.6
/// connection with its sender. nullopt if it is none. A compressed payload stays compressed; DDNet
/// servers reject it.
[[nodiscard]] std::optional<Packet> decode_control_under_seven(std::span<const std::byte> datagram);

/// The content of a control packet, with tokens separated as far as its form allows (section 1.4 to
/// 1.7).
struct Control {
    ControlKind kind = ControlKind::unknown;
    std::uint8_t raw_kind = 0;
    bool has_token_magic = false; ///< "TKEN" follows the kind
    /// DDNet's token, or the token inside a 0.6.5 CONNECT or CONNECTACCEPT. 0.7: the sender's own
    /// token in a CONNECT or TOKEN, or the one DDNet servers append to an ACCEPT.
    std::optional<Token> token;
    bool vanilla_token = false; ///< the token is 0.6.5's
    std::string_view reason;    ///< reason of a CLOSE, up to the NUL; unchanged bytes
};

/// The kind's name, such as "keepalive" or "close"; empty if unknown.
[[nodiscard]] std::string_view control_name(ControlKind kind);

/// `known_token`: the connection's token; it distinguishes an empty reason with a token from a
/// short reason.
[[nodiscard]] Control decode_control(const Packet& packet, std::optional<Token> known_token);

/// This bit is set in the first byte of each connless packet of 0.6 and 0.7.
inline constexpr std::uint32_t kConnlessBit = 0x20;

/// The byte at an index, as a number for bit operations. Precondition: the index is valid.
[[nodiscard]] inline std::uint32_t byte_at(std::span<const std::byte> data, std::size_t index) {
    return std::to_integer<std::uint32_t>(data[index]);
}

/// The token at an offset. Precondition: the data is long enough.
[[nodiscard]] inline Token token_at(std::span<const std::byte> data, std::size_t offset) {
    Token token{};
    std::ranges::transform(data.subspan(offset, kTokenSize), token.begin(),
                           [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
    return token;
}

/// A text view of bytes.
[[nodiscard]] inline std::string_view text_of(std::span<const std::byte> bytes) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline constexpr std::uint16_t kSequenceModulus = 1024;

/// Distance between two sequence numbers, with wrap-around.
[[nodiscard]] constexpr unsigned sequence_steps(std::uint16_t from, std::uint16_t to) {
    return (unsigned{to} - from) % kSequenceModulus;
}

struct Chunk {
    bool vital = false;
    bool resend = false;
    std::uint16_t sequence = 0;         ///< vital chunks only
    std::size_t header_size = 2;        ///< 2, or 3 for vital ones
    std::size_t offset = 0;             ///< offset of the chunk's header in the packet's payload
    std::span<const std::byte> payload; ///< may be empty, which is legal on this layer
};

/// Number of bits of a chunk's size in its second header byte; the byte's other bits belong to the
/// sequence. 0.7 has larger chunks.
[[nodiscard]] constexpr unsigned low_size_bits(snapshot::Dialect dialect) {
    return dialect == snapshot::Dialect::six ? 4 : 6;
}

/// Reads the chunks of a payload, at most `num_chunks`. Reading ends at a truncated chunk; the
/// chunks before it are valid.
class ChunkReader {
  public:
    ChunkReader(std::span<const std::byte> payload, std::uint8_t num_chunks,
                snapshot::Dialect dialect)
        : payload_{payload}, low_bits_{low_size_bits(dialect)}, left_{num_chunks} {}

    [[nodiscard]] std::optional<Chunk> next();

    /// Set if a truncated chunk ended the reading; its offset is relative to the payload.
    [[nodiscard]] const std::optional<WireError>& error() const { return error_; }

    /// The bytes after the last chunk: none or DDNet's token; after an error, the truncated chunk.
    [[nodiscard]] std::span<const std::byte> rest() const { return payload_.subspan(offset_); }

  private:
    std::span<const std::byte> payload_;
    std::size_t offset_ = 0;
    unsigned low_bits_;
    std::uint8_t left_ = 0;
    std::optional<WireError> error_;
};

enum class VitalClass : std::uint8_t {
    next, ///< in order: processed
    old,  ///< a duplicate or a resend
    gap,  ///< an earlier chunk is missing: dropped, and sent again later
};

/// How a receiver treats a vital chunk. `last`: the sequence number it accepted last.
[[nodiscard]] VitalClass classify_sequence(std::uint16_t last, std::uint16_t sequence);

// Differences of Teeworlds 0.7: two headers, and the numbers of the control packets. The rest is as
// in 0.6, with the same Huffman tree and the same rules for chunks.

inline constexpr std::size_t kSevenHeaderSize = 7;

/// Number of bytes before a packet's payload; they are never compressed.
[[nodiscard]] inline std::size_t header_size(const Packet& packet) {
    return packet.dialect == Dialect::seven ? kSevenHeaderSize
                                            : kHeaderSize + (packet.header_token ? kTokenSize : 0);
}

/// Limit of a decompressed payload, as DDNet writes and libtw2 reads it. Vanilla's limit is two
/// bytes lower.
inline constexpr std::size_t kSevenMaxPayloadSize = kMaxDatagramSize - kSevenHeaderSize;

/// Decodes one datagram of 0.7.
///
/// Layout: 0.7 sheet, sections 1.2 (header) and 1.3 (connless).
/// Errors: too_short, huffman_truncated, huffman_overflow, control_empty.
[[nodiscard]] Result<Packet> decode_seven(std::span<const std::byte> datagram,
                                          PacketScratch& scratch);

/// Decodes the header only; the payload stays compressed. nullopt if the datagram is too short or
/// connless.
[[nodiscard]] std::optional<Packet> decode_seven_header(std::span<const std::byte> datagram);

/// A control packet's content (section 1.4). Precondition: packet.dialect is seven.
[[nodiscard]] Control decode_seven_control(const Packet& packet);

/// Whether a datagram is a packet of chunks in 0.7's layout: its chunks end where the datagram
/// ends. Two such packets suffice to distinguish a 0.7 session from a 0.6 one that was first seen
/// midway (section 1.7).
[[nodiscard]] bool fits_seven(std::span<const std::byte> datagram, PacketScratch& scratch);

/// Whether a datagram is a 0.6 handshake packet that no 0.7 peer would send: read as 0.7, it would
/// be compressed chunks without any chunk.
[[nodiscard]] bool is_six_handshake(std::span<const std::byte> datagram);

} // namespace tw::wire

// Encoders for tests and tools that simulate sessions. They trust the caller. The proxy itself
// never writes packets.
namespace tw::wire {

enum class Compression : std::uint8_t {
    never,
    if_shorter, ///< as real senders do
    always,     ///< legal, though no sender does it if the payload grows
};

/// A packet of chunks.
struct PacketSpec {
    std::uint16_t ack = 0;
    bool resend = false; ///< ask the receiver for a resend
    std::uint8_t num_chunks = 0;
    std::span<const std::byte> chunks{}; ///< made with append_chunk
    std::optional<Token> token{};        ///< DDNet's token: after the chunks, compressed with them
    /// Vanilla 0.6.5's token after the header; required in 0.7.
    std::optional<Token> header_token{};
    Compression compression = Compression::never;
    HuffmanEnding ending = HuffmanEnding::without_zero_byte;
    Dialect dialect = Dialect::six;
};

[[nodiscard]] std::vector<std::byte> encode_packet(const PacketSpec& spec);

/// A control packet.
struct ControlSpec {
    ControlKind kind = ControlKind::keepalive;
    std::uint16_t ack = 0;
    /// DDNet's token; in CONNECT and CONNECTACCEPT, "TKEN" is written before it.
    std::optional<Token> token{};
    /// Reason of a CLOSE, written with a NUL; nullopt writes neither.
    std::optional<std::string_view> reason{};
    /// 0.7: the receiver's token in the header; `token` is then the sender's own.
    std::optional<Token> seven_token{};
};

[[nodiscard]] std::vector<std::byte> encode_control(const ControlSpec& spec);

/// Appends one chunk. Preconditions: sequence below kSequenceModulus, payload at most 1023 bytes
/// (4095 in 0.7).
void append_chunk(std::vector<std::byte>& out, bool vital, std::uint16_t sequence, bool resend,
                  std::span<const std::byte> payload, Dialect dialect);

/// A connless packet: a six-byte header, then the payload, which must start with ff ff ff ff and
/// the magic. With `extra`: the extended header "xe".
[[nodiscard]] std::vector<std::byte> encode_connless(std::span<const std::byte> payload,
                                                     std::optional<Token> extra = std::nullopt);

} // namespace tw::wire
