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

/// A compressed payload with the maximum size of its decompressed form, in bytes.
struct CompressedPayload {
    std::span<const std::byte> bytes;
    std::size_t max_size = 0;
};

/// Buffers for decompressing packets. If the caller announces which datagram is decoded next, the
/// payloads of the current and the next datagram are decompressed together, which is faster than
/// one after the other. A wrong announcement only costs time.
class PacketScratch {
  public:
    /// Must be called before `datagram` is decoded. `next`: the datagram that will be decoded after
    /// it; empty if unknown. Until the next call, the bytes of both datagrams must not change.
    void begin_datagram(std::span<const std::byte> datagram, std::span<const std::byte> next);

    /// Returns the decompressed payload, which is valid until the next call of decompress()
    /// or begin_datagram().
    /// Errors: those of huffman_decompress.
    [[nodiscard]] Result<std::span<const std::byte>> decompress(const CompressedPayload& payload);

  private:
    struct AnnouncedPayload {
        CompressedPayload payload;
        Result<std::size_t> size;
    };

    /// A buffer for one decompressed payload of any valid size.
    using PayloadBuffer = std::array<std::byte, 1400>;

    [[nodiscard]] Result<std::span<const std::byte>>
    decompressed_payload(const Result<std::size_t>& size) const;

    std::array<PayloadBuffer, 2> buffers_{};
    std::size_t current_ = 0; ///< index of the current datagram's buffer in `buffers_`
    std::span<const std::byte> next_;
    std::optional<AnnouncedPayload> announced_; ///< decompressed payload of the announced datagram
};

inline constexpr std::size_t kMaxDatagramSize = 1400;
inline constexpr std::size_t kHeaderSize = 3;
inline constexpr std::size_t kMaxPayloadSize = kMaxDatagramSize - kHeaderSize;
inline constexpr std::size_t kConnlessHeaderSize = 6;
inline constexpr std::size_t kTokenSize = 4;

using Token = std::array<std::uint8_t, kTokenSize>;
inline constexpr Token kTokenUnknown{0xff, 0xff, 0xff, 0xff}; ///< sent in place of an unknown token
inline constexpr Token kTokenUnsupported{0, 0, 0, 0}; ///< sent by a peer that uses no tokens

using snapshot::Dialect;

/// The kind of a packet, which determines the content of its payload.
enum class PacketKind : std::uint8_t { chunks, control, connless };

/// The kind of a control packet. `token` exists in 0.7 only, `connectaccept` in 0.6 only.
enum class ControlKind : std::uint8_t {
    keepalive,
    connect,
    connectaccept,
    accept,
    close,
    unknown,
    token,
};

/// The protocol of a session; `unknown` until the session's packets show which one it is.
enum class Protocol : std::uint8_t { unknown, six, seven };

/// A decoded datagram. Spans point into the datagram or into the caller's scratch buffer.
struct Packet {
    PacketKind kind = PacketKind::chunks;
    Dialect dialect = Dialect::six;
    bool compressed = false;
    bool resend = false;   ///< the sender requests a resend of unacknowledged vital chunks
    std::uint16_t ack = 0; ///< 0..1023
    std::uint8_t num_chunks = 0;
    /// 0.6: the token that vanilla 0.6.5 puts after the header, if any. 0.7: the receiver's token,
    /// which every header contains.
    std::optional<Token> header_token;
    bool seven_header = false; ///< a 0.6 connection's packet with the seven-byte header of 0.7
    /// The decompressed payload, including DDNet's token at the end. In a connless packet: the
    /// bytes after the header.
    std::span<const std::byte> payload;
    std::span<const std::byte> connless_extra; ///< bytes 2..5 of an extended ("xe") connless header
};

/// How a receiver interprets bit 0x08 of a 0.6 header. `read`: if the bit is set, a token follows
/// the header (vanilla 0.6.5). `ignored`: the bit has no meaning (DDNet before 19.4).
enum class HeaderTokenBit : std::uint8_t { read, ignored };

/// The bit that is set in the first byte of each connless packet of 0.6 and 0.7.
inline constexpr std::uint32_t kConnlessBit = 0x20;

/// Returns the byte at an index as a number. Precondition: the index is less than data.size().
[[nodiscard]] inline std::uint32_t byte_at(std::span<const std::byte> data, std::size_t index) {
    return std::to_integer<std::uint32_t>(data[index]);
}

/// Returns the token at a byte offset. Precondition: `data` contains all bytes of the token.
[[nodiscard]] inline Token token_at(std::span<const std::byte> data, std::size_t offset) {
    Token token{};
    std::ranges::transform(data.subspan(offset, kTokenSize), token.begin(),
                           [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
    return token;
}

[[nodiscard]] inline bool is_connless(std::span<const std::byte> datagram) {
    return !datagram.empty() && (byte_at(datagram, 0) & kConnlessBit) != 0;
}

/// Whether the header has a set bit whose meaning differs between 0.6 programs.
[[nodiscard]] inline bool has_ambiguous_bits(std::span<const std::byte> datagram) {
    constexpr std::uint32_t kDisputed = 0x0c;
    return !datagram.empty() && !is_connless(datagram) && (byte_at(datagram, 0) & kDisputed) != 0;
}

/// Returns the number of bytes before a connless packet's payload.
[[nodiscard]] constexpr std::size_t connless_header_size(Dialect dialect) {
    return dialect == Dialect::six ? kConnlessHeaderSize : 1 + 2 * kTokenSize;
}

/// Decodes one datagram. `known`: the session's protocol, because headers alone are ambiguous.
///
/// Source: CNetBase::UnpackPacket of DDNet, and of Teeworlds 0.6.5 (token) and 0.7.
/// Errors: too_short, too_long, huffman_truncated, huffman_overflow, control_empty.
[[nodiscard]] Result<Packet> decode_packet(std::span<const std::byte> datagram, Protocol known,
                                           PacketScratch& scratch,
                                           HeaderTokenBit token_bit = HeaderTokenBit::read);

/// Returns the compressed payload of a datagram whose protocol is unknown; empty if its payload is
/// not compressed. The result may be wrong, because headers of 0.6 and 0.7 cannot be reliably told
/// apart.
[[nodiscard]] CompressedPayload guess_compressed_payload(std::span<const std::byte> datagram);

/// Decodes a control packet that has a 0.7 header but belongs to a 0.6 connection. DDNet servers
/// accept such packets. Returns nullopt if the datagram is not such a packet. A compressed payload
/// stays compressed, because DDNet servers reject it.
[[nodiscard]] std::optional<Packet>
decode_control_with_seven_header(std::span<const std::byte> datagram);

/// The content of a control packet, with its tokens.
struct Control {
    ControlKind kind = ControlKind::unknown;
    std::uint8_t raw_kind = 0;    ///< the kind's number in the packet
    bool has_token_magic = false; ///< "TKEN", DDNet's magic, follows the kind
    /// In 0.6, DDNet's token, or the token inside a CONNECT or CONNECTACCEPT of vanilla 0.6.5. In
    /// 0.7, the sender's own token in a CONNECT or TOKEN, or the token that DDNet servers append to
    /// an ACCEPT.
    std::optional<Token> token;
    bool vanilla_token = false; ///< `token` is the token of vanilla 0.6.5
    std::string_view reason;    ///< reason of a CLOSE, up to the NUL; the bytes as sent
};

/// Returns the name of a kind, such as "keepalive" or "close"; empty for ControlKind::unknown.
[[nodiscard]] std::string_view control_name(ControlKind kind);

/// Decodes a control packet. `known_token`: the connection's token, if known. It distinguishes a
/// token after CLOSE from a short reason.
[[nodiscard]] Control decode_control(const Packet& packet, std::optional<Token> known_token);

inline constexpr std::uint16_t kSequenceModulus = 1024;

/// Returns how far `to` is ahead of `from`. Sequence numbers wrap at kSequenceModulus.
[[nodiscard]] constexpr unsigned sequence_distance(std::uint16_t from, std::uint16_t to) {
    return (unsigned{to} - from) % kSequenceModulus;
}

/// A message in a packet, with the fields of its header.
struct Chunk {
    bool vital = false;
    bool resend = false;
    std::uint16_t sequence = 0;         ///< sequence number; set for vital chunks only
    std::size_t header_size = 2;        ///< 2 bytes, or 3 for a vital chunk
    std::size_t offset = 0;             ///< offset of the chunk's header in the packet's payload
    std::span<const std::byte> payload; ///< may be empty
};

/// Returns how many bits of a chunk header's second byte belong to the chunk's size. The other bits
/// belong to the sequence number. In 0.7, more bits belong to the size, so chunks can be larger.
[[nodiscard]] constexpr unsigned size_bits_in_second_byte(snapshot::Dialect dialect) {
    return dialect == snapshot::Dialect::six ? 4 : 6;
}

/// Reads up to `num_chunks` chunks of a packet's payload, one after the other. Stops before a
/// truncated chunk.
class ChunkReader {
  public:
    ChunkReader(std::span<const std::byte> payload, std::uint8_t num_chunks,
                snapshot::Dialect dialect)
        : payload_{payload}, low_bits_{size_bits_in_second_byte(dialect)}, left_{num_chunks} {}

    /// Reads the next chunk; nullopt after the last chunk and at a truncated chunk.
    [[nodiscard]] std::optional<Chunk> next() {
        constexpr std::uint32_t kResendBit = 0x80;
        constexpr std::uint32_t kVitalBit = 0x40;
        const auto data = rest();
        if (left_ == 0 || data.size() < 2) {
            return end_reading();
        }
        const std::uint32_t first = byte_at(data, 0);
        const std::uint32_t second = byte_at(data, 1);
        const bool vital = (first & kVitalBit) != 0;
        const std::size_t header_size = vital ? 3 : 2;
        const std::uint32_t low_mask = (1U << low_bits_) - 1;
        const std::size_t size = (first & 0x3FU) << low_bits_ | (second & low_mask);
        if (data.size() < header_size + size) {
            return end_reading();
        }
        // In 0.6, the second and the third byte both contain bits 6 and 7 of the sequence number.
        // Game programs OR these copies, even if they differ.
        const std::uint32_t sequence =
            vital ? (second & 0xFFU & ~low_mask) << 2U | byte_at(data, 2) : 0;
        const Chunk chunk{.vital = vital,
                          .resend = (first & kResendBit) != 0,
                          .sequence = static_cast<std::uint16_t>(sequence),
                          .header_size = header_size,
                          .offset = offset_,
                          .payload = data.subspan(header_size, size)};
        offset_ += header_size + size;
        --left_;
        return chunk;
    }

    /// Returns the error if next() found a truncated chunk; otherwise nullopt. The error's offset
    /// is relative to the payload.
    [[nodiscard]] const std::optional<WireError>& error() const { return error_; }

    /// Returns the bytes after the last chunk that was read: DDNet's token, or the truncated chunk.
    [[nodiscard]] std::span<const std::byte> rest() const { return payload_.subspan(offset_); }

  private:
    [[nodiscard]] std::nullopt_t end_reading() {
        if (left_ != 0) {
            error_ = WireError{WireErrc::chunk_truncated, offset_};
            left_ = 0;
        }
        return std::nullopt;
    }

    std::span<const std::byte> payload_;
    std::size_t offset_ = 0;
    unsigned low_bits_;
    std::uint8_t left_ = 0;
    std::optional<WireError> error_;
};

enum class VitalClass : std::uint8_t {
    next, ///< the chunk is the next in order: the receiver processes it
    old,  ///< the chunk was accepted before: the receiver ignores it
    gap,  ///< an earlier chunk is missing: the receiver drops the chunk; the sender resends both
};

/// Returns how a receiver treats a vital chunk. `last`: the sequence number of the vital chunk that
/// the receiver accepted most recently.
[[nodiscard]] VitalClass classify_sequence(std::uint16_t last, std::uint16_t sequence);

// Teeworlds 0.7 differs from 0.6 in the headers of packets and connless packets, and in the numbers
// of the control packets. The Huffman tree and the rules for chunks are the same.

inline constexpr std::size_t kSevenHeaderSize = 7;

/// Returns the number of bytes of a packet's header, including a token after it.
[[nodiscard]] inline std::size_t header_size(const Packet& packet) {
    return packet.dialect == Dialect::seven ? kSevenHeaderSize
                                            : kHeaderSize + (packet.header_token ? kTokenSize : 0);
}

/// The maximum size of a decompressed 0.7 payload in DDNet and libtw2, in bytes. Vanilla's limit is
/// two bytes lower.
inline constexpr std::size_t kSevenMaxPayloadSize = kMaxDatagramSize - kSevenHeaderSize;

/// Decodes one datagram of 0.7.
///
/// Source: CNetBase::UnpackPacket of Teeworlds 0.7.
/// Errors: too_short, huffman_truncated, huffman_overflow, control_empty.
[[nodiscard]] Result<Packet> decode_seven_packet(std::span<const std::byte> datagram,
                                                 PacketScratch& scratch);

/// Decodes the header of a 0.7 packet. The payload stays compressed. Returns nullopt if the
/// datagram is too short or connless.
[[nodiscard]] std::optional<Packet> decode_seven_header(std::span<const std::byte> datagram);

/// Decodes a control packet of 0.7. Precondition: packet.dialect is seven.
[[nodiscard]] Control decode_seven_control(const Packet& packet);

/// Whether a datagram's chunks fill the payload exactly if the datagram is decoded as 0.7. Two such
/// datagrams suffice to recognise a 0.7 session whose start was missed.
[[nodiscard]] bool may_be_seven_chunks(std::span<const std::byte> datagram, PacketScratch& scratch);

/// Whether a datagram is a handshake packet of 0.6. No 0.7 program sends such a datagram, because
/// in 0.7 it would be a compressed packet with zero chunks.
[[nodiscard]] bool is_six_handshake(std::span<const std::byte> datagram);

} // namespace tw::wire

// Encoders for programs that act as a client or server: tests, `replay`, and the check whether a
// server answers. The encoders do not check their arguments. Forwarded packets are not encoded
// here.
namespace tw::wire {

enum class Compression : std::uint8_t {
    never,
    if_shorter, ///< compress if the payload becomes shorter, as real senders do
    always,     ///< compress even if the payload grows, which is valid, but no real sender does so
};

/// The content of a packet that encode_packet() encodes.
struct PacketSpec {
    std::uint16_t ack = 0;
    bool resend = false; ///< ask the receiver to resend its unacknowledged vital chunks
    std::uint8_t num_chunks = 0;
    std::span<const std::byte> chunks{}; ///< encoded chunks (see append_chunk)
    std::optional<Token> token{};        ///< DDNet's token, compressed with the chunks
    /// 0.6: vanilla 0.6.5's token after the header. 0.7: the header's token, which is required.
    std::optional<Token> header_token{};
    Compression compression = Compression::never;
    HuffmanEnding ending = HuffmanEnding::without_zero_byte;
    Dialect dialect = Dialect::six;
};

[[nodiscard]] std::vector<std::byte> encode_packet(const PacketSpec& spec);

/// The content of a control packet that encode_control() encodes.
struct ControlSpec {
    ControlKind kind = ControlKind::keepalive;
    std::uint16_t ack = 0;
    /// DDNet's token; in CONNECT and CONNECTACCEPT, "TKEN" is written before it.
    std::optional<Token> token{};
    /// The reason of a CLOSE, written with a NUL. With nullopt, no reason and no NUL are written.
    std::optional<std::string_view> reason{};
    /// 0.7: the receiver's token in the header. `token` is then the sender's own token.
    std::optional<Token> seven_token{};
};

[[nodiscard]] std::vector<std::byte> encode_control(const ControlSpec& spec);

/// Appends an encoded chunk to `out`. Preconditions: `sequence` is below kSequenceModulus;
/// `payload` has at most 1023 bytes (4095 in 0.7).
void append_chunk(std::vector<std::byte>& out, bool vital, std::uint16_t sequence, bool resend,
                  std::span<const std::byte> payload, Dialect dialect);

/// Encodes a connless packet: a six-byte header, then the payload, which must start with ff ff ff
/// ff and the magic. With `extra`, the header is the extended header "xe".
[[nodiscard]] std::vector<std::byte> encode_connless(std::span<const std::byte> payload,
                                                     std::optional<Token> extra = std::nullopt);

} // namespace tw::wire
