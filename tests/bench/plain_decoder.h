#pragma once

#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

/// Decodes like the reference client, written from the protocol's rules, to compare with our own decoder in
/// the same run. Decodes one Huffman symbol per step, with a table of ten bits and then bit by bit; ints byte
/// by byte; finds keys by linear search.
namespace tw::bench::plain {

class Huffman {
  public:
    Huffman();

    /// Returns nullopt if the input is damaged or the buffer is too small.
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

/// A snapshot as a list of items, with linear search.
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

/// One session with its snapshots by tick.
class Session {
  public:
    /// Returns the checksum of the rebuilt snapshot; nullopt if it could not be rebuilt.
    [[nodiscard]] std::optional<std::int32_t> decode(std::int32_t tick, std::int32_t base_tick,
                                                     std::span<const std::byte> body);
    void repeat_snapshot(std::int32_t tick, std::int32_t base_tick);

    /// Returns the snapshot of a tick; null if there is none.
    [[nodiscard]] const Items* find(std::int32_t tick) const;

  private:
    void forget_old_snapshots(std::int32_t tick);
    /// Returns false if the bytes are not valid ints, or too few.
    [[nodiscard]] bool unpack_ints(std::span<const std::byte> body);

    std::map<std::int32_t, Items> snapshots_;
    std::vector<std::int32_t> ints_;
};

} // namespace tw::bench::plain
