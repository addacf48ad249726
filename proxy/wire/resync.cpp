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
constexpr std::size_t kChunkHeader = 2; ///< header size of non-vital chunks

/// Sizes of inputs: clients send ten or more ints of four bytes each.
constexpr std::int32_t kLeastInput = 40;
constexpr std::int32_t kMostInput = 512;
/// Maximum distance of an input's tick from the acknowledged one: a second in menus, plus the ping.
/// Programs with a late clock target a tick in the past.
constexpr std::int32_t kMostApart = 500;

/// The position of an input in a payload.
struct Place {
    Chunk chunk;
    std::size_t body = 0; ///< bytes of the chunk's payload before the acknowledged tick
    std::size_t size = 0; ///< size of the acknowledged tick in bytes
    std::int32_t tick = 0;
};

/// The acknowledged tick: an input's first int.
struct Acknowledgement {
    std::int32_t tick = 0;
    std::size_t size = 0; ///< in bytes
};

/// Reads the acknowledged tick; nullopt unless the whole body is what clients send in the game.
std::optional<Acknowledgement> acknowledgement_of(std::span<const std::byte> body) {
    snapshot::Cursor in{body};
    const std::int32_t acked = in.var_int();
    const std::size_t length = in.offset();
    const std::int32_t intended = in.var_int();
    const std::int32_t size = in.var_int();
    if (in.failed() || acked <= 0 || std::abs(std::int64_t{intended} - acked) > kMostApart ||
        size < kLeastInput || size > kMostInput || size % 4 != 0) {
        return std::nullopt;
    }
    for (std::int32_t read = 0; read < size; read += 4) {
        static_cast<void>(in.var_int());
    }
    return in.failed() || in.remaining() != 0
               ? std::nullopt
               : std::optional{Acknowledgement{.tick = acked, .size = length}};
}

bool is_chunks_of_six(const Packet& packet) {
    return packet.kind == PacketKind::chunks && packet.dialect == Dialect::six;
}

std::optional<Place> find_input(const Packet& packet) {
    std::optional<Place> found;
    ChunkReader chunks{packet.payload, packet.num_chunks, packet.dialect};
    while (const auto chunk = chunks.next()) {
        const auto head = decode_message_head(chunk->payload, packet.dialect);
        if (!head || head->spec == nullptr || head->spec->id != MessageId::input || chunk->vital) {
            continue;
        }
        if (const auto acked = acknowledgement_of(head->body)) {
            found = Place{
                .chunk = *chunk, .body = head->head_size, .size = acked->size, .tick = acked->tick};
        } else {
            return std::nullopt; // the server might use a later one
        }
    }
    const std::size_t behind = chunks.rest().size();
    return chunks.error() || (behind != 0 && behind != kTokenSize) ? std::nullopt : found;
}

/// Writes parts in sequence.
class Writer {
  public:
    explicit Writer(std::span<std::byte> out) : out_{out} {}

    void put(std::span<const std::byte> bytes) {
        fits_ = fits_ && bytes.size() <= out_.size() - size_;
        if (fits_) {
            std::ranges::copy(bytes, out_.begin() + static_cast<std::ptrdiff_t>(size_));
            size_ += bytes.size();
        }
    }

    void put(std::byte value) { put(std::span{&value, 1}); }

    [[nodiscard]] std::size_t size() const { return fits_ ? size_ : 0; }

  private:
    std::span<std::byte> out_;
    std::size_t size_ = 0;
    bool fits_ = true;
};

} // namespace

std::size_t acknowledge(std::span<const std::byte> datagram, std::int32_t tick,
                        std::span<std::byte> out) {
    PacketScratch scratch;
    const auto packet = decode_packet(datagram, Protocol::unknown, scratch);
    if (!packet || !is_chunks_of_six(*packet)) {
        return 0;
    }
    const auto input = find_input(*packet);
    if (!input || (tick != kNoSnapshot && input->tick >= tick)) {
        return 0;
    }
    std::array<std::byte, snapshot::kMaxVarintBytes> acked{};
    const std::size_t acked_size = snapshot::encode_varint(tick, acked);
    const std::span<const std::byte> payload = packet->payload;
    const Chunk& chunk = input->chunk;
    const std::size_t header = kHeaderSize + (packet->header_token ? kTokenSize : 0);
    const auto size = static_cast<std::uint32_t>(chunk.payload.size() - input->size + acked_size);
    Writer writer{out.first(std::min(out.size(), kMaxDatagramSize))};
    writer.put(datagram[0] & ~kCompressedByte);
    writer.put(datagram.subspan(1, header - 1));
    writer.put(payload.first(chunk.offset));
    writer.put((payload[chunk.offset] & kChunkFlags) | static_cast<std::byte>(size >> 4U));
    writer.put(static_cast<std::byte>(size & 0x0FU));
    writer.put(chunk.payload.first(input->body));
    writer.put(std::span{acked}.first(acked_size));
    writer.put(chunk.payload.subspan(input->body + input->size));
    writer.put(payload.subspan(chunk.offset + kChunkHeader + chunk.payload.size()));
    return writer.size();
}

std::optional<std::int32_t> find_whole_snapshot(std::span<const std::byte> datagram) {
    PacketScratch scratch;
    const auto packet = decode_packet(datagram, Protocol::unknown, scratch);
    if (!packet || !is_chunks_of_six(*packet)) {
        return std::nullopt;
    }
    ChunkReader chunks{packet->payload, packet->num_chunks, packet->dialect};
    while (const auto chunk = chunks.next()) {
        const auto head = decode_message_head(chunk->payload, packet->dialect);
        if (!head || head->spec == nullptr || !is_snapshot(head->spec->id)) {
            continue;
        }
        const auto body = decode_snapshot(head->spec->id, head->body);
        // On the wire, the base is a distance from the tick; no base is the distance to -1.
        if (body && std::int64_t{body->tick} - body->distance == -1) {
            return body->tick;
        }
    }
    return std::nullopt;
}

} // namespace tw::wire
