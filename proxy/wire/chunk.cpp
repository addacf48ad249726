#include "proxy/wire/chunk.h"

#include "proxy/wire/bytes.h"

namespace tw::wire {

namespace {

constexpr std::uint32_t kChunkResendBit = 0x80;
constexpr std::uint32_t kChunkVitalBit = 0x40;
constexpr std::size_t kPlainHeaderSize = 2;
constexpr std::size_t kVitalHeaderSize = 3;

} // namespace

std::optional<Chunk> ChunkReader::next() {
    if (left_ == 0) {
        return std::nullopt;
    }
    const auto damaged = [this]() -> std::optional<Chunk> {
        left_ = 0;
        error_ = WireError{WireErrc::chunk_truncated, offset_};
        return std::nullopt;
    };
    const auto data = rest();
    if (data.size() < kPlainHeaderSize) {
        return damaged();
    }
    const std::uint32_t first = byte_at(data, 0);
    const std::uint32_t second = byte_at(data, 1);
    Chunk chunk;
    chunk.resend = (first & kChunkResendBit) != 0;
    chunk.vital = (first & kChunkVitalBit) != 0;
    chunk.header_size = chunk.vital ? kVitalHeaderSize : kPlainHeaderSize;
    chunk.offset = offset_;
    const std::uint32_t low_mask = (1U << low_bits_) - 1;
    const std::size_t size = (first & 0x3FU) << low_bits_ | (second & low_mask);
    if (data.size() < chunk.header_size + size) {
        return damaged();
    }
    if (chunk.vital) {
        // In 0.6 bits 6 and 7 stand in both bytes; the reference ORs them, equal or not.
        chunk.sequence =
            static_cast<std::uint16_t>((second & 0xFFU & ~low_mask) << 2U | byte_at(data, 2));
    }
    chunk.payload = data.subspan(chunk.header_size, size);
    offset_ += chunk.header_size + size;
    --left_;
    return chunk;
}

VitalClass classify_sequence(std::uint16_t last, std::uint16_t sequence) {
    const unsigned ahead = sequence_steps(last, sequence);
    if (ahead == 1) {
        return VitalClass::next;
    }
    return ahead == 0 || ahead >= kSequenceModulus / 2 ? VitalClass::old : VitalClass::gap;
}

} // namespace tw::wire
