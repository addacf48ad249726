#pragma once

#include "proxy/wire/error.h"
#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tw::wire {

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

} // namespace tw::wire
