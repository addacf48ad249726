#include "snapshot/cursor.h"

#include <algorithm>

namespace tw::snapshot {

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
