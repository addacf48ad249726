#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// The one Huffman code of all packets (protocol sheet, section 2). Private to huffman.cpp.
namespace tw::wire::huffman {

inline constexpr std::size_t kNumSymbols = 257;
inline constexpr std::uint16_t kEndSymbol = 256;

/// Bits of a code, the first one to be written lowest.
struct Code {
    std::uint32_t bits = 0;
    std::uint32_t length = 0;
};

/// Nodes 0..256 are the symbols, the rest have two children.
struct Tree {
    static constexpr std::size_t kNumNodes = 2 * kNumSymbols - 1;
    std::array<std::array<std::uint16_t, 2>, kNumNodes> children{};
    std::array<Code, kNumSymbols> codes{};
    std::uint16_t root = 0;
};

/// Of all frequencies, made once.
[[nodiscard]] const Tree& tree();

} // namespace tw::wire::huffman
