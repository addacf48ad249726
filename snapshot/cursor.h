#pragma once

#include "snapshot/error.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tw::snapshot {

/// The maximum size of an encoded int, in bytes.
inline constexpr std::size_t kMaxVarintBytes = 5;

/// Decodes one variable-length integer.
///
/// Returns the number of bytes read; 0 if the data ends inside the value.
///
/// Layout:  byte 1 is `E S d5..d0`, bytes 2 to 4 are `E d6..d0`, and byte 5 has the last 4 bits. E:
///          another byte follows. S: the value is the complement of the collected bits.
/// Source:  CVariableInt::Unpack (DDNet since 15.9: unused bits of byte 5 are dropped).
[[nodiscard]] constexpr std::size_t decode_varint(const std::byte* data, std::size_t size,
                                                  std::int32_t& value) {
    if (size == 0) {
        return 0;
    }
    const auto first = std::to_integer<std::uint32_t>(data[0]);
    std::uint32_t bits = first & 0x3FU;
    std::size_t used = 1;
    for (unsigned shift = 6;
         (std::to_integer<std::uint32_t>(data[used - 1]) & 0x80U) != 0 && used < kMaxVarintBytes;
         shift += 7) {
        if (used == size) {
            return 0;
        }
        const auto next = std::to_integer<std::uint32_t>(data[used]);
        ++used;
        bits |= (next & (used == kMaxVarintBytes ? 0x0FU : 0x7FU)) << shift;
    }
    value = static_cast<std::int32_t>((first & 0x40U) != 0 ? ~bits : bits);
    return used;
}

/// decode_varints is fast only if its output has space for one int per byte of data, plus this many
/// ints.
inline constexpr std::size_t kVarintsSlack = 16;

/// The result of `decode_varints`.
struct DecodedVarints {
    /// The number of bytes read; less than the size of the data if the output is full or the last
    /// value is truncated.
    std::size_t bytes = 0;
    std::size_t count = 0; ///< number of ints written
};

/// Decodes integers until the data ends, the output is full, or a value is truncated. May also
/// overwrite ints of `out` after the last decoded one, but writes nothing outside of `out`.
[[nodiscard]] DecodedVarints decode_varints(std::span<const std::byte> data,
                                            std::span<std::int32_t> out);

/// Returns the size in bytes of the shortest encoding of a value.
[[nodiscard]] constexpr std::size_t varint_size(std::int32_t value) {
    const auto bits = static_cast<std::uint32_t>(value < 0 ? ~value : value);
    return std::size_t{1} + (bits >> 6U != 0 ? 1U : 0U) + (bits >> 13U != 0 ? 1U : 0U) +
           (bits >> 20U != 0 ? 1U : 0U) + (bits >> 27U != 0 ? 1U : 0U);
}

/// Writes the shortest encoding of a value. Returns its size in bytes.
constexpr std::size_t encode_varint(std::int32_t value, std::span<std::byte, kMaxVarintBytes> out) {
    auto bits = static_cast<std::uint32_t>(value);
    const std::uint32_t sign = value < 0 ? 0x40U : 0U;
    bits = value < 0 ? ~bits : bits;
    std::uint32_t byte = sign | (bits & 0x3FU);
    bits >>= 6U;
    std::size_t size = 0;
    while (bits != 0) {
        out[size++] = static_cast<std::byte>(byte | 0x80U);
        byte = bits & 0x7FU;
        bits >>= 7U;
    }
    out[size++] = static_cast<std::byte>(byte);
    return size;
}

/// Appends the shortest encoding of a value.
inline void encode_varint(std::int32_t value, std::vector<std::byte>& out) {
    std::array<std::byte, kMaxVarintBytes> bytes{};
    const std::size_t size = encode_varint(value, bytes);
    out.insert(out.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
}

/// Reads values one after the other from a span. After the first failure, each read returns zero or
/// an empty value, and `error()` returns the first failure with its offset. A decoder can therefore
/// read all values and check for errors once at the end.
class Cursor {
  public:
    explicit Cursor(std::span<const std::byte> data) : data_{data} {}

    /// Reads a variable-length integer (see decode_varint).
    [[nodiscard]] std::int32_t var_int() {
        std::int32_t value = 0;
        const std::size_t used =
            failed() ? 0 : decode_varint(data_.data() + offset_, data_.size() - offset_, value);
        if (used == 0) {
            fail(DecodeErrc::truncated);
            return 0;
        }
        offset_ += used;
        return value;
    }

    [[nodiscard]] std::uint8_t u8();
    /// Reads `count` raw bytes; fails with length_out_of_range if `count` is negative or too large.
    [[nodiscard]] std::span<const std::byte> raw(std::int64_t count);
    /// Reads the bytes up to the next NUL and skips the NUL.
    [[nodiscard]] std::string_view string();
    /// Reads all remaining bytes.
    [[nodiscard]] std::span<const std::byte> rest();

    /// Sets the error at the current offset, unless an error was set before.
    void fail(DecodeErrc code);

    [[nodiscard]] bool failed() const { return error_.code != DecodeErrc::none; }

    [[nodiscard]] DecodeError error() const { return error_; }

    [[nodiscard]] std::size_t offset() const { return offset_; }

    [[nodiscard]] std::size_t remaining() const { return failed() ? 0 : data_.size() - offset_; }

  private:
    std::span<const std::byte> data_;
    std::size_t offset_ = 0;
    DecodeError error_;
};

} // namespace tw::snapshot
