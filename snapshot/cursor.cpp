#include "snapshot/cursor.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tw::snapshot {

namespace {

// Reading blocks of bytes is fast because nine of ten values in a delta take one byte. A bit mask
// marks the bytes of longer values. The one-byte values between longer values are converted to
// ints, kWideBytes at a time. This may also convert bytes after the last one-byte value.
constexpr std::size_t kBlockBytes = 64;
constexpr std::size_t kWideBytes = 16;

std::uint64_t load_word(const std::byte* data) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, sizeof(word));
    return word;
}

// Returns 64 bits for 64 bytes. Bit i is set if byte i is not the last byte of its value.
std::uint64_t continuation_bits(const std::byte* data) {
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < kBlockBytes; i += 8) {
        // The multiplication copies the lowest bit of byte j to bit 56 + j.
        const std::uint64_t more = load_word(data + i) >> 7U & 0x0101010101010101U;
        bits |= (more * 0x0102040810204080U) >> 56U << i;
    }
    return bits;
}

// Vector types of GCC and clang, which need no header and work on every processor.
using Bytes [[gnu::vector_size(kWideBytes)]] = std::int8_t;
using Shorts [[gnu::vector_size(kWideBytes)]] = std::int16_t;

// Converts sixteen one-byte values to ints.
void widen_bytes(const std::byte* data, std::int32_t* out) {
    Bytes bytes;
    std::memcpy(&bytes, data, sizeof(bytes));
    const Bytes sign = (bytes & 0x40) != 0;
    const Bytes value = (bytes & 0x3F) ^ sign;
    const auto store = [out](std::size_t index, Shorts low, Shorts high) {
        const Shorts first = __builtin_shufflevector(low, high, 0, 8, 1, 9, 2, 10, 3, 11);
        const Shorts second = __builtin_shufflevector(low, high, 4, 12, 5, 13, 6, 14, 7, 15);
        std::memcpy(out + index, &first, sizeof(first));
        std::memcpy(out + index + 4, &second, sizeof(second));
    };
    const auto lower = [](Bytes a, Bytes b) {
        return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                                       23);
    };
    const auto upper = [](Bytes a, Bytes b) {
        return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
                                       15, 31);
    };
    store(0, std::bit_cast<Shorts>(lower(value, sign)), std::bit_cast<Shorts>(lower(sign, sign)));
    store(8, std::bit_cast<Shorts>(upper(value, sign)), std::bit_cast<Shorts>(upper(sign, sign)));
}

// Decodes a value from the lowest bytes of a word, whose other bytes are zero. Does not branch on
// the size, because the sizes of longer values are nearly random.
std::int32_t decode_word(std::uint64_t word) {
    const std::uint64_t bits = (word & 0x3FU) | (word >> 2U & 0x1FC0U) | (word >> 3U & 0xFE000U) |
                               (word >> 4U & 0x7F00000U) | (word >> 5U & 0x78000000U);
    const auto sign = 0U - static_cast<std::uint32_t>(word >> 6U & 1U);
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits) ^ sign);
}

struct BlockReader {
    std::size_t at; // offset of the first unread byte; may be after the end of the block
    std::int32_t* out;

    void read_one_byte_values(const std::byte* block, std::size_t end) {
        // Usually fewer than kWideBytes one-byte values follow, often none. Widening more bytes
        // than needed is cheaper than a branch.
        widen_bytes(block + at, out);
        for (std::size_t i = at + kWideBytes; i < end; i += kWideBytes) {
            widen_bytes(block + i, out + (i - at));
        }
        out += end - at;
        at = end;
    }

    // Reads the values that begin before `end`, at most kBlockBytes. kWideBytes bytes after the
    // block must be readable, and the output must have space for kWideBytes ints after the values.
    // Returns false if the value at `at` is longer than five bytes, which no known program writes.
    bool read_values(const std::byte* block, std::size_t end) {
        if (at >= end) {
            return true;
        }
        std::uint64_t longer = continuation_bits(block) & ~std::uint64_t{0} << at;
        longer &= ~(longer << 1U);
        for (; longer != 0; longer &= longer - 1) {
            read_one_byte_values(block, static_cast<std::size_t>(std::countr_zero(longer)));
            const std::uint64_t word = load_word(block + at);
            const std::uint64_t last = ~word & 0x8080808080U;
            if (last == 0) {
                return false;
            }
            *out++ = decode_word(word & (last ^ (last - 1))); // sets the bytes after the value to 0
            at += static_cast<unsigned>(std::countr_zero(last)) / 8 + 1;
        }
        if (at < end) {
            read_one_byte_values(block, end);
        }
        return true;
    }
};

DecodedVarints decode_one_by_one(std::span<const std::byte> data, std::span<std::int32_t> out,
                                 DecodedVarints done) {
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

DecodedVarints decode_varints(std::span<const std::byte> data, std::span<std::int32_t> out) {
    // Reading in blocks requires little-endian byte order.
    if (std::endian::native != std::endian::little || out.size() < data.size() + kVarintsSlack) {
        return decode_one_by_one(data, out, {});
    }
    std::size_t begin = 0;
    BlockReader reader{0, out.data()};
    const auto done = [&] {
        return DecodedVarints{begin + reader.at, static_cast<std::size_t>(reader.out - out.data())};
    };
    for (; data.size() - begin >= kBlockBytes + kWideBytes;
         begin += kBlockBytes, reader.at -= kBlockBytes) {
        if (!reader.read_values(data.data() + begin, kBlockBytes)) {
            return decode_one_by_one(data, out, done());
        }
    }
    // The last bytes are decoded from a copy with zeros after it. The zeros end a truncated value.
    std::array<std::byte, 2 * kBlockBytes + kWideBytes> padded{};
    const std::size_t size = data.size() - begin;
    std::copy_n(data.data() + begin, size, padded.data());
    const DecodedVarints before = done();
    bool regular = true;
    for (std::size_t offset = 0; offset < size && regular; offset += kBlockBytes) {
        regular = reader.read_values(padded.data() + offset, std::min(size - offset, kBlockBytes));
        begin += kBlockBytes;
        reader.at -= kBlockBytes;
    }
    const DecodedVarints all = done();
    return regular && all.bytes == data.size() ? all : decode_one_by_one(data, out, before);
}

std::uint8_t Cursor::u8() {
    if (remaining() == 0) {
        fail(DecodeErrc::truncated);
        return 0;
    }
    return std::to_integer<std::uint8_t>(data_[offset_++]);
}

std::span<const std::byte> Cursor::raw(std::int64_t count) {
    if (failed()) {
        return {};
    }
    if (count < 0 || static_cast<std::uint64_t>(count) > remaining()) {
        fail(DecodeErrc::length_out_of_range);
        return {};
    }
    const auto bytes = data_.subspan(offset_, static_cast<std::size_t>(count));
    offset_ += bytes.size();
    return bytes;
}

std::string_view Cursor::string() {
    if (failed()) {
        return {};
    }
    const auto left = data_.subspan(offset_);
    const auto end = std::find(left.begin(), left.end(), std::byte{0});
    if (end == left.end()) {
        fail(DecodeErrc::string_unterminated);
        return {};
    }
    const auto length = static_cast<std::size_t>(end - left.begin());
    offset_ += length + 1;
    return {reinterpret_cast<const char*>(left.data()), length};
}

std::span<const std::byte> Cursor::rest() {
    return raw(static_cast<std::int64_t>(remaining()));
}

void Cursor::fail(DecodeErrc code) {
    if (!failed()) {
        error_ = {.code = code, .offset = offset_};
    }
}

} // namespace tw::snapshot
