#pragma once

#include "snapshot/error.h"
#include "snapshot/varint.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tw::snapshot {

/// Reads values from the front of a span and fails stickily: after the first failure every read
/// returns zero or nothing, and `error()` names the first thing that went wrong and its offset.
/// So a decoder reads top to bottom and checks once.
class Cursor {
  public:
    explicit Cursor(std::span<const std::byte> data) : data_{data} {}

    /// A variable-length integer (see varint.h).
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
    /// `count` raw bytes; fails with length_out_of_range if count is negative or too large.
    [[nodiscard]] std::span<const std::byte> raw(std::int64_t count);
    /// The bytes up to the next NUL, without it; the NUL is consumed.
    [[nodiscard]] std::string_view string();
    /// Everything that is left.
    [[nodiscard]] std::span<const std::byte> rest();

    /// Records a failure at the current offset unless there is one already.
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
