#pragma once

#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

/// Decoding the way the reference client does it, written from the protocol's rules: the peer that
/// our own decoder is measured beside, in the same run. One Huffman symbol a step from a table of
/// ten bits and then bit by bit; ints byte by byte; keys found by looking at one after the other.
namespace tw::bench::plain {

class Huffman {
  public:
    Huffman();

    /// Nothing when the input is damaged or the room too small.
    [[nodiscard]] std::optional<std::size_t> decompress(std::span<const std::byte> in,
                                                        std::span<std::byte> out) const;

  private:
    static constexpr std::size_t kNumNodes = 513;
    static constexpr std::uint32_t kTableBits = 10;

    struct Node {
        std::uint32_t length = 0; ///< of a leaf's code; 0: not a leaf
        std::array<std::uint16_t, 2> children{};
        std::uint16_t symbol = 0;
    };

    std::array<Node, kNumNodes> nodes_{};
    std::array<std::uint16_t, std::size_t{1} << kTableBits> table_{};
};

/// A snapshot as a list of items, found by looking through it.
struct Items {
    struct Item {
        std::int32_t key = 0;
        std::uint32_t begin = 0;
        std::uint32_t size = 0;
    };

    std::vector<Item> items;
    std::vector<std::int32_t> ints;

    [[nodiscard]] const Item* find(std::int32_t key) const;
    [[nodiscard]] std::int32_t* add(std::int32_t key, std::size_t size);
    [[nodiscard]] std::int32_t checksum() const;
};

/// One session: its snapshots by tick.
class Session {
  public:
    /// The checksum of the snapshot rebuilt; nothing when it could not be.
    [[nodiscard]] std::optional<std::int32_t> decode(std::int32_t tick, std::int32_t base_tick,
                                                     std::span<const std::byte> body);
    void repeat(std::int32_t tick, std::int32_t base_tick);

    /// The snapshot of a tick; null when there is none.
    [[nodiscard]] const Items* find(std::int32_t tick) const;

  private:
    void forget_old(std::int32_t tick);
    /// False when the bytes are no ints, or too few.
    [[nodiscard]] bool unpack_all(std::span<const std::byte> body);

    std::map<std::int32_t, Items> snapshots_;
    std::vector<std::int32_t> ints_;
};

} // namespace tw::bench::plain
