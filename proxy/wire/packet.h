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

/// A payload as it came, and how many bytes may come out of it.
struct CompressedPayload {
    std::span<const std::byte> bytes;
    std::size_t most = 0;
};

/// Room to decompress packets in. Where the next datagram is at hand already, its payload is
/// decompressed beside the one that is asked for, because two at once take less time than one after
/// the other. What is wrongly expected costs time, and nothing else.
class PacketScratch {
  public:
    /// `datagram` is decoded now, and `next` after it; empty: nobody knows. Both stay where and as
    /// they are until this is called again.
    void begin(std::span<const std::byte> datagram, std::span<const std::byte> next);

    /// What comes out is valid until this or `begin` is called again.
    /// Errors: as huffman_decompress.
    [[nodiscard]] Result<std::span<const std::byte>> decompress(const CompressedPayload& payload);

  private:
    struct Ahead {
        CompressedPayload payload;
        Result<std::size_t> size;
    };

    /// No payload is larger.
    using Room = std::array<std::byte, 1400>;

    [[nodiscard]] Result<std::span<const std::byte>> shown(const Result<std::size_t>& size) const;

    std::array<Room, 2> rooms_{};
    std::size_t current_ = 0; ///< room of what is decoded now; the other is of what comes next
    std::span<const std::byte> next_;
    std::optional<Ahead> ahead_; ///< of the next datagram
};

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

/// Set in the first byte of every connless packet, of 0.6 and of 0.7.
inline constexpr std::uint32_t kConnlessBit = 0x20;

/// The byte at a place that the caller has checked, ready for bit operations.
[[nodiscard]] inline std::uint32_t byte_at(std::span<const std::byte> data, std::size_t index) {
    return std::to_integer<std::uint32_t>(data[index]);
}

/// The token at a place that the caller has checked.
[[nodiscard]] inline Token token_at(std::span<const std::byte> data, std::size_t offset) {
    Token token{};
    std::ranges::transform(data.subspan(offset, kTokenSize), token.begin(),
                           [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
    return token;
}

/// Bytes as the text they are; a view of them.
[[nodiscard]] inline std::string_view text_of(std::span<const std::byte> bytes) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline constexpr std::uint16_t kSequenceModulus = 1024;

/// Steps from one sequence to another, over the end of the counting.
[[nodiscard]] constexpr unsigned sequence_steps(std::uint16_t from, std::uint16_t to) {
    return (unsigned{to} - from) % kSequenceModulus;
}

struct Chunk {
    bool vital = false;
    bool resend = false;
    std::uint16_t sequence = 0;         ///< only of vital chunks
    std::size_t header_size = 2;        ///< 2, or 3 for vital ones
    std::size_t offset = 0;             ///< of the chunk header in the packet's payload
    std::span<const std::byte> payload; ///< may be empty: legal on this layer
};

/// Bits of a chunk's size that stand in its second byte; the others of that byte are the upper ones
/// of its sequence. 0.7 has larger chunks.
[[nodiscard]] constexpr unsigned low_size_bits(snapshot::Dialect dialect) {
    return dialect == snapshot::Dialect::six ? 4 : 6;
}

/// Walks the chunks of a payload, `num_chunks` at most. A damaged chunk ends the walk: those before
/// it count, the rest is dropped.
class ChunkReader {
  public:
    ChunkReader(std::span<const std::byte> payload, std::uint8_t num_chunks,
                snapshot::Dialect dialect)
        : payload_{payload}, low_bits_{low_size_bits(dialect)}, left_{num_chunks} {}

    [[nodiscard]] std::optional<Chunk> next();

    /// Set when the walk ended early; offset counts in the payload.
    [[nodiscard]] const std::optional<WireError>& error() const { return error_; }

    /// What stands behind the last chunk: nothing or DDNet's token; after an error what is damaged.
    [[nodiscard]] std::span<const std::byte> rest() const { return payload_.subspan(offset_); }

  private:
    std::span<const std::byte> payload_;
    std::size_t offset_ = 0;
    unsigned low_bits_;
    std::uint8_t left_ = 0;
    std::optional<WireError> error_;
};

enum class VitalClass : std::uint8_t {
    next, ///< in order: process
    old,  ///< had it already: a duplicate or a resend
    gap,  ///< something before it is missing: receivers drop it, it comes again
};

/// How the receiver with this last accepted sequence number takes a vital chunk.
[[nodiscard]] VitalClass classify_sequence(std::uint16_t last, std::uint16_t sequence);

// What the packets of Teeworlds 0.7 have of their own: two headers, and the numbers of the control
// packets. All behind it is as in 0.6: the same Huffman tree, the same rules for chunks.

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
