#pragma once

#include "proxy/wire/error.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

namespace tw::wire {

/// Decompresses one payload into `out`; returns the number of bytes written. Bytes behind the end
/// symbol are ignored, so both the old writers' extra zero byte and its absence are read.
/// Errors: huffman_truncated, huffman_overflow (more than out.size() bytes).
/// Source:  protocol sheet, section 2.
[[nodiscard]] Result<std::size_t> huffman_decompress(std::span<const std::byte> in,
                                                     std::span<std::byte> out);

/// What is to be decompressed, and the room for it.
struct HuffmanPayload {
    std::span<const std::byte> in;
    std::span<std::byte> out;
};

/// The same with two, which takes less time than one after the other. Their rooms must be apart.
[[nodiscard]] std::array<Result<std::size_t>, 2> huffman_decompress(const HuffmanPayload& left,
                                                                    const HuffmanPayload& right);

/// Bits that each byte takes in a compressed payload.
[[nodiscard]] const std::array<std::uint8_t, 256>& huffman_code_lengths();

enum class HuffmanEnding : bool { without_zero_byte, with_zero_byte };

/// Compresses; `ending` chooses what DDNet before 20.0 and vanilla do at full bytes.
[[nodiscard]] std::vector<std::byte> huffman_compress(std::span<const std::byte> in,
                                                      HuffmanEnding ending);

} // namespace tw::wire
