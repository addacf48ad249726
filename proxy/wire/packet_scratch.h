#pragma once

#include "proxy/wire/error.h"

#include <array>
#include <cstddef>
#include <optional>
#include <span>

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

} // namespace tw::wire
