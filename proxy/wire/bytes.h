#pragma once

#include "proxy/wire/packet.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tw::wire {

/// Set in the first byte of every connless packet, of 0.6 and of 0.7.
inline constexpr std::uint32_t kConnlessBit = 0x20;

/// The byte at a place that the caller has checked, ready for bit operations.
[[nodiscard]] inline std::uint32_t byte_at(std::span<const std::byte> data, std::size_t index) {
    return std::to_integer<std::uint32_t>(data[index]);
}

/// The token at a place that the caller has checked.
[[nodiscard]] inline Token token_at(std::span<const std::byte> data, std::size_t offset) {
    Token token{};
    std::ranges::transform(data.subspan(offset, kTokenSize), token.begin(),
                           [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
    return token;
}

/// Bytes as the text they are; a view of them.
[[nodiscard]] inline std::string_view text_of(std::span<const std::byte> bytes) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace tw::wire
