#include "proxy/wire/resync.h"

#include "proxy/wire/bodies.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"
#include "snapshot/cursor.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace tw::wire {

namespace {

constexpr std::byte kCompressedByte{0x80};
constexpr std::byte kChunkFlags{0xc0};
constexpr std::size_t kChunkHeaderSize = 2; ///< size in bytes of the header of a non-vital chunk

// Accepted sizes of an input, in bytes. Clients send ten or more ints of four bytes each.
constexpr std::int32_t kMinInputBytes = 40;
constexpr std::int32_t kMaxInputBytes = 512;
/// The maximum distance of an input's intended tick from its acknowledged tick, in either
/// direction. The distance is the ping, plus a second while the client is in a menu. It is negative
/// for clients whose clock is late.
constexpr std::int32_t kMaxTickDistance = 500;

struct InputMessagePosition {
    Chunk chunk;
    /// Offset of the acknowledged tick in the chunk's payload, in bytes.
    std::size_t tick_offset = 0;
    std::size_t size = 0; ///< size of the encoded acknowledged tick, in bytes
    std::int32_t tick = 0;
};

/// The acknowledged tick, which is the first int of an input.
struct Acknowledgement {
    std::int32_t tick = 0;
    std::size_t size = 0; ///< size of the encoded tick, in bytes
};

/// Reads the acknowledged tick of an input. Returns nullopt if any part of the body differs from
/// what clients send during a game.
std::optional<Acknowledgement> read_acknowledgement(std::span<const std::byte> body) {
    snapshot::Cursor in{body};
    const std::int32_t acked = in.var_int();
    const std::size_t length = in.offset();
    const std::int32_t intended = in.var_int();
    const std::int32_t size = in.var_int();
    if (in.failed() || acked <= 0 || std::abs(std::int64_t{intended} - acked) > kMaxTickDistance ||
        size < kMinInputBytes || size > kMaxInputBytes || size % 4 != 0) {
        return std::nullopt;
    }
    for (std::int32_t read = 0; read < size; read += 4) {
        static_cast<void>(in.var_int());
    }
    return in.failed() || in.remaining() != 0
               ? std::nullopt
               : std::optional{Acknowledgement{.tick = acked, .size = length}};
}

bool is_six_chunk_packet(const Packet& packet) {
    return packet.kind == PacketKind::chunks && packet.dialect == Dialect::six;
}

std::optional<InputMessagePosition> find_last_input(const Packet& packet) {
    std::optional<InputMessagePosition> found;
    ChunkReader chunks{packet.payload, packet.num_chunks, packet.dialect};
    while (const auto chunk = chunks.next()) {
        const auto head = decode_message_header(chunk->payload, packet.dialect);
        if (!head || head->spec == nullptr || head->spec->id != MessageId::input || chunk->vital) {
            continue;
        }
        if (const auto acked = read_acknowledgement(head->body)) {
            found = InputMessagePosition{.chunk = *chunk,
                                         .tick_offset = head->header_size,
                                         .size = acked->size,
                                         .tick = acked->tick};
        } else {
            return std::nullopt; // the server might use this input, which cannot be rewritten
        }
    }
    const std::size_t behind = chunks.rest().size();
    return chunks.error() || (behind != 0 && behind != kTokenSize) ? std::nullopt : found;
}

/// Appends the parts of a packet to an output buffer, one after the other.
class PacketWriter {
  public:
    explicit PacketWriter(std::span<std::byte> out) : out_{out} {}

    void append(std::span<const std::byte> bytes) {
        fits_ = fits_ && bytes.size() <= out_.size() - size_;
        if (fits_) {
            std::ranges::copy(bytes, out_.begin() + static_cast<std::ptrdiff_t>(size_));
            size_ += bytes.size();
        }
    }

    void append(std::byte value) { append(std::span{&value, 1}); }

    [[nodiscard]] std::size_t size() const { return fits_ ? size_ : 0; }

  private:
    std::span<std::byte> out_;
    std::size_t size_ = 0;
    bool fits_ = true;
};

} // namespace

std::size_t rewrite_acknowledgement(std::span<const std::byte> datagram, std::int32_t tick,
                                    std::span<std::byte> out) {
    PacketScratch scratch;
    const auto packet = decode_packet(datagram, Protocol::unknown, scratch);
    if (!packet || !is_six_chunk_packet(*packet)) {
        return 0;
    }
    const auto input = find_last_input(*packet);
    if (!input || (tick != kNoSnapshot && input->tick >= tick)) {
        return 0;
    }
    std::array<std::byte, snapshot::kMaxVarintBytes> acked{};
    const std::size_t acked_size = snapshot::encode_varint(tick, acked);
    const std::span<const std::byte> payload = packet->payload;
    const Chunk& chunk = input->chunk;
    const std::size_t header = kHeaderSize + (packet->header_token ? kTokenSize : 0);
    const auto size = static_cast<std::uint32_t>(chunk.payload.size() - input->size + acked_size);
    PacketWriter writer{out.first(std::min(out.size(), kMaxDatagramSize))};
    writer.append(datagram[0] & ~kCompressedByte);
    writer.append(datagram.subspan(1, header - 1));
    writer.append(payload.first(chunk.offset));
    writer.append((payload[chunk.offset] & kChunkFlags) | static_cast<std::byte>(size >> 4U));
    writer.append(static_cast<std::byte>(size & 0x0FU));
    writer.append(chunk.payload.first(input->tick_offset));
    writer.append(std::span{acked}.first(acked_size));
    writer.append(chunk.payload.subspan(input->tick_offset + input->size));
    writer.append(payload.subspan(chunk.offset + kChunkHeaderSize + chunk.payload.size()));
    return writer.size();
}

std::optional<std::int32_t> find_full_snapshot_tick(std::span<const std::byte> datagram) {
    PacketScratch scratch;
    const auto packet = decode_packet(datagram, Protocol::unknown, scratch);
    if (!packet || !is_six_chunk_packet(*packet)) {
        return std::nullopt;
    }
    ChunkReader chunks{packet->payload, packet->num_chunks, packet->dialect};
    while (const auto chunk = chunks.next()) {
        const auto head = decode_message_header(chunk->payload, packet->dialect);
        if (!head || head->spec == nullptr || !is_snapshot(head->spec->id)) {
            continue;
        }
        const auto body = decode_snapshot(head->spec->id, head->body);
        // The body contains the distance from the base to the tick. In a full snapshot, the base is
        // -1.
        if (body && std::int64_t{body->tick} - body->distance == -1) {
            return body->tick;
        }
    }
    return std::nullopt;
}

} // namespace tw::wire
