#include "snapshot/varint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tw::snapshot {

namespace {

// Nine of ten values in a delta take one byte, and most of these are zero. So the data is looked at
// in blocks: one bit a byte tells where the longer values are, and what lies between them is
// widened sixteen bytes at a time, regardless of what stands behind the last one.
constexpr std::size_t kBlock = 64;
constexpr std::size_t kWide = 16;

#ifdef __SSE2__

__m128i load_wide(const std::byte* data) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}

// Bit i: byte i says that its value goes on.
std::uint64_t more_bits(const std::byte* data) {
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < kBlock; i += kWide) {
        const auto part = static_cast<unsigned>(_mm_movemask_epi8(load_wide(data + i)));
        bits |= std::uint64_t{part} << i;
    }
    return bits;
}

// Sixteen bytes as sixteen values of one byte each.
void widen(const std::byte* data, std::int32_t* out) {
    const __m128i bytes = load_wide(data);
    const __m128i sign = _mm_set1_epi8(0x40);
    const __m128i negative = _mm_cmpeq_epi8(_mm_and_si128(bytes, sign), sign);
    const __m128i low = _mm_xor_si128(_mm_and_si128(bytes, _mm_set1_epi8(0x3F)), negative);
    const __m128i low16 = _mm_unpacklo_epi8(low, negative);
    const __m128i high16 = _mm_unpackhi_epi8(low, negative);
    const __m128i low_sign = _mm_unpacklo_epi8(negative, negative);
    const __m128i high_sign = _mm_unpackhi_epi8(negative, negative);
    auto* const wide = reinterpret_cast<__m128i*>(out);
    _mm_storeu_si128(wide, _mm_unpacklo_epi16(low16, low_sign));
    _mm_storeu_si128(wide + 1, _mm_unpackhi_epi16(low16, low_sign));
    _mm_storeu_si128(wide + 2, _mm_unpacklo_epi16(high16, high_sign));
    _mm_storeu_si128(wide + 3, _mm_unpackhi_epi16(high16, high_sign));
}

#else

std::uint64_t more_bits(const std::byte* data) {
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < kBlock; ++i) {
        bits |= std::to_integer<std::uint64_t>(data[i] >> 7) << i;
    }
    return bits;
}

void widen(const std::byte* data, std::int32_t* out) {
    for (unsigned i = 0; i < kWide; ++i) {
        const auto byte = std::to_integer<std::int32_t>(data[i]);
        out[i] = (byte & 0x3F) ^ -(byte >> 6 & 1);
    }
}

#endif

std::uint64_t little_endian(const std::byte* data) {
    std::uint64_t word = 0;
    if constexpr (std::endian::native == std::endian::little) {
        std::memcpy(&word, data, sizeof(word));
    } else {
        for (unsigned i = 0; i < sizeof(word); ++i) {
            word |= std::to_integer<std::uint64_t>(data[i]) << 8U * i;
        }
    }
    return word;
}

// The value whose bytes are the lowest of a word, the others zero. No branches: which of the longer
// values come next is close to random.
std::int32_t value_in(std::uint64_t word) {
    const std::uint64_t bits = (word & 0x3FU) | (word >> 2U & 0x1FC0U) | (word >> 3U & 0xFE000U) |
                               (word >> 4U & 0x7F00000U) | (word >> 5U & 0x78000000U);
    const auto sign = 0U - static_cast<std::uint32_t>(word >> 6U & 1U);
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits) ^ sign);
}

struct BlockReader {
    std::size_t at; // first byte of the block that is not read yet; may lie behind its end
    std::int32_t* out;

    void read_single_bytes(const std::byte* block, std::size_t end) {
        // Mostly there are fewer than kWide, and as often none: better too much than a branch.
        widen(block + at, out);
        for (std::size_t i = at + kWide; i < end; i += kWide) {
            widen(block + i, out + (i - at));
        }
        out += end - at;
        at = end;
    }

    // Reads the values that begin before `end`, which is at most kBlock. kWide bytes behind the
    // block must be readable, and the room must hold kWide ints more than values are read.
    // False: the value at `at` goes on behind its fifth byte, which no writer does.
    bool read(const std::byte* block, std::size_t end) {
        if (at >= end) {
            return true;
        }
        std::uint64_t longer = more_bits(block) & ~std::uint64_t{0} << at;
        longer &= ~(longer << 1U);
        for (; longer != 0; longer &= longer - 1) {
            read_single_bytes(block, static_cast<std::size_t>(std::countr_zero(longer)));
            const std::uint64_t word = little_endian(block + at);
            const std::uint64_t last = ~word & 0x8080808080U;
            if (last == 0) {
                return false;
            }
            *out++ = value_in(word & (last ^ (last - 1))); // the bytes up to the last one
            at += static_cast<unsigned>(std::countr_zero(last)) / 8 + 1;
        }
        if (at < end) {
            read_single_bytes(block, end);
        }
        return true;
    }
};

VarintsDecoded decode_slowly(std::span<const std::byte> data, std::span<std::int32_t> out,
                             VarintsDecoded done) {
    while (done.bytes < data.size() && done.count < out.size()) {
        const std::size_t used =
            decode_varint(data.data() + done.bytes, data.size() - done.bytes, out[done.count]);
        if (used == 0) {
            break;
        }
        done.bytes += used;
        ++done.count;
    }
    return done;
}

} // namespace

VarintsDecoded decode_varints(std::span<const std::byte> data, std::span<std::int32_t> out) {
    if (out.size() < data.size() + kVarintsSlack) {
        return decode_slowly(data, out, {});
    }
    std::size_t begin = 0;
    BlockReader reader{0, out.data()};
    const auto done = [&] {
        return VarintsDecoded{begin + reader.at, static_cast<std::size_t>(reader.out - out.data())};
    };
    for (; data.size() - begin >= kBlock + kWide; begin += kBlock, reader.at -= kBlock) {
        if (!reader.read(data.data() + begin, kBlock)) {
            return decode_slowly(data, out, done());
        }
    }
    // The rest goes through a copy with zeros behind it, which end a value that is cut.
    std::array<std::byte, 2 * kBlock + kWide> padded{};
    const std::size_t size = data.size() - begin;
    std::copy_n(data.data() + begin, size, padded.data());
    const VarintsDecoded before = done();
    bool regular = true;
    for (std::size_t offset = 0; offset < size && regular; offset += kBlock) {
        regular = reader.read(padded.data() + offset, std::min(size - offset, kBlock));
        begin += kBlock;
        reader.at -= kBlock;
    }
    const VarintsDecoded all = done();
    return regular && all.bytes == data.size() ? all : decode_slowly(data, out, before);
}

} // namespace tw::snapshot
