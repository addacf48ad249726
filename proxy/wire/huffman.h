#pragma once

#include "proxy/wire/error.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// The Huffman code of all packets. Private to huffman.cpp.
namespace tw::wire::huffman {

inline constexpr std::size_t kNumSymbols = 257;
inline constexpr std::uint16_t kEndSymbol = 256;

/// The bits that stand for a symbol. The lowest bit is written first.
struct SymbolCode {
    std::uint32_t bits = 0;
    std::uint32_t length = 0; ///< number of bits
};

/// The Huffman tree. Nodes 0 to 256 are symbols. All other nodes have two children.
struct HuffmanTree {
    static constexpr std::size_t kNumNodes = 2 * kNumSymbols - 1;
    std::array<std::array<std::uint16_t, 2>, kNumNodes> children{};
    std::array<SymbolCode, kNumSymbols> codes{};
    std::uint16_t root = 0;
};

/// Returns the tree for the symbol frequencies of the protocol. The first call builds it.
[[nodiscard]] const HuffmanTree& huffman_tree();

} // namespace tw::wire::huffman

namespace tw::wire {

/// Decompresses one payload into `out`. Returns the number of bytes written. Ignores bytes after
/// the end symbol, because older programs write an extra zero byte there.
/// Errors: huffman_truncated, huffman_overflow (more than out.size() bytes).
/// Source:  Teeworlds' CHuffman (engine/shared/huffman.cpp).
[[nodiscard]] Result<std::size_t> huffman_decompress(std::span<const std::byte> in,
                                                     std::span<std::byte> out);

/// A compressed payload and the buffer for its decompressed form.
struct HuffmanPayload {
    std::span<const std::byte> in;
    std::span<std::byte> out;
};

/// Decompresses two payloads together, which is faster than one after the other. The two output
/// buffers must not overlap.
[[nodiscard]] std::array<Result<std::size_t>, 2> huffman_decompress(const HuffmanPayload& left,
                                                                    const HuffmanPayload& right);

/// Returns the number of bits that each byte value takes in a compressed payload. Index: byte
/// value.
[[nodiscard]] const std::array<std::uint8_t, 256>& huffman_code_lengths();

enum class HuffmanEnding : bool { without_zero_byte, with_zero_byte };

/// Compresses a payload. With HuffmanEnding::with_zero_byte, appends a zero byte if all bits of the
/// last byte are used, like vanilla and DDNet before 20.0.
[[nodiscard]] std::vector<std::byte> huffman_compress(std::span<const std::byte> in,
                                                      HuffmanEnding ending);
/// Returns the number of bytes that huffman_compress would return without a zero byte.
[[nodiscard]] std::size_t huffman_compressed_size(std::span<const std::byte> in);

} // namespace tw::wire
