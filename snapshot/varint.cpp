#include "snapshot/varint.h"

#include <bit>
#include <cstring>

namespace tw::snapshot {

namespace {

constexpr std::uint64_t kMoreBits = 0x8080808080808080U;

std::uint64_t load_word(const std::byte* data) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, sizeof(word));
    return word;
}

// The value in the lowest bytes of a little-endian word, and how many bytes it takes. No branches:
// whether a value takes one byte or five is close to random in a delta.
std::int32_t value_in(std::uint64_t word, unsigned& used) {
    const auto last = static_cast<unsigned>(std::countr_zero(~word & kMoreBits)) / 8;
    used = last < kMaxVarintBytes ? last + 1 : kMaxVarintBytes;
    const std::uint64_t mine = word & (~std::uint64_t{0} >> (64U - 8U * used));
    const std::uint64_t bits = (mine & 0x3FU) | (mine >> 2U & 0x1FC0U) | (mine >> 3U & 0xFE000U) |
                               (mine >> 4U & 0x7F00000U) | (mine >> 5U & 0x78000000U);
    const auto sign = 0U - static_cast<std::uint32_t>(mine >> 6U & 1U);
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits) ^ sign);
}

// Eight bytes as eight values of one byte each.
void single_bytes(const std::byte* data, std::int32_t* out) {
    for (unsigned i = 0; i < 8; ++i) {
        const auto byte = std::to_integer<std::int32_t>(data[i]);
        out[i] = (byte & 0x3F) ^ -(byte >> 6 & 1);
    }
}

} // namespace

VarintsDecoded decode_varints(std::span<const std::byte> data, std::span<std::int32_t> out) {
    const std::byte* const bytes = data.data();
    std::size_t at = 0;
    std::size_t count = 0;
    if constexpr (std::endian::native == std::endian::little) {
        // Values of one byte are written eight at a time, also those behind the first longer one,
        // which the next round overwrites. Hence the room for nine ints and for two words.
        while (data.size() - at >= 16 && out.size() - count >= 9) {
            single_bytes(bytes + at, out.data() + count);
            const std::uint64_t more = load_word(bytes + at) & kMoreBits;
            if (more == 0) {
                at += 8;
                count += 8;
                continue;
            }
            const auto singles = static_cast<unsigned>(std::countr_zero(more)) / 8;
            at += singles;
            count += singles;
            unsigned used = 0;
            out[count++] = value_in(load_word(bytes + at), used);
            at += used;
        }
    }
    while (at < data.size() && count < out.size()) {
        const std::size_t used = decode_varint(bytes + at, data.size() - at, out[count]);
        if (used == 0) {
            break;
        }
        at += used;
        ++count;
    }
    return {.bytes = at, .count = count};
}

} // namespace tw::snapshot
