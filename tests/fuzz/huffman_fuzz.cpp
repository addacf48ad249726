#include "proxy/wire/huffman.h"
#include "tests/fuzz/demand.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// The first two bytes are the size of the output buffer, the rest is compressed data. The code is
/// unambiguous, so compressing the result must give exactly the bits that were read.
namespace {

using namespace tw::wire;
using tw::fuzz::demand;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kMaxRoom = 2048;

void check_decoding(std::span<const std::byte> in, std::size_t room) {
    Bytes out(room);
    const auto size = huffman_decompress(in, out);
    if (!size) {
        demand(size.error().code == WireErrc::huffman_truncated ||
               size.error().code == WireErrc::huffman_overflow);
        demand(size.error().offset <= in.size());
        return;
    }
    demand(*size <= room);
    out.resize(*size);
    const Bytes again = huffman_compress(out, HuffmanEnding::without_zero_byte);
    demand(again.size() <= in.size());
    demand(std::equal(again.begin(), again.end() - 1, in.begin()));
    Bytes exact(*size);
    demand(huffman_decompress(in, exact) == *size && exact == out);
    if (!exact.empty()) {
        exact.pop_back();
        const auto overflow = huffman_decompress(in, exact);
        demand(!overflow && overflow.error().code == WireErrc::huffman_overflow);
    }
}

/// Decodes two halves of the input together, into buffers of different sizes. Each result must be the same
/// as when it is decoded alone.
void check_paired_decoding(std::span<const std::byte> in, std::size_t room) {
    const std::array<std::span<const std::byte>, 2> halves{in.first(in.size() / 2),
                                                           in.subspan(in.size() / 2)};
    const std::array<Bytes, 2> rooms{Bytes(room), Bytes(kMaxRoom - room)};
    std::array<Bytes, 2> outs = rooms;
    const auto sizes = huffman_decompress({halves[0], outs[0]}, {halves[1], outs[1]});
    for (std::size_t i = 0; i < 2; ++i) {
        Bytes alone = rooms[i];
        const auto size = huffman_decompress(halves[i], alone);
        demand(size == sizes[i]);
        demand(!size ||
               std::equal(alone.begin(), alone.begin() + static_cast<std::ptrdiff_t>(*size),
                          outs[i].begin()));
    }
}

void check_round_trip(std::span<const std::byte> plain) {
    for (const auto ending : {HuffmanEnding::without_zero_byte, HuffmanEnding::with_zero_byte}) {
        const Bytes compressed = huffman_compress(plain, ending);
        Bytes out(plain.size());
        demand(huffman_decompress(compressed, out) == plain.size());
        demand(std::equal(out.begin(), out.end(), plain.begin(), plain.end()));
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) {
        return 0;
    }
    const auto in = std::as_bytes(std::span{data + 2, size - 2});
    check_decoding(in, (data[0] | std::size_t{data[1]} << 8U) % kMaxRoom);
    check_paired_decoding(in, (data[0] | std::size_t{data[1]} << 8U) % kMaxRoom);
    check_round_trip(in);
    return 0;
}
