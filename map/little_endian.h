#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tw::map {

/// Little-endian integers out of bytes, whatever the machine. Preconditions: the bytes are there.
[[nodiscard]] inline std::int32_t read_i32(std::span<const std::byte> bytes, std::size_t at) {
    const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[at + i]); };
    return static_cast<std::int32_t>(byte(0) | byte(1) << 8U | byte(2) << 16U | byte(3) << 24U);
}

[[nodiscard]] inline std::int16_t read_i16(std::span<const std::byte> bytes, std::size_t at) {
    return static_cast<std::int16_t>(std::to_integer<unsigned>(bytes[at]) |
                                     std::to_integer<unsigned>(bytes[at + 1]) << 8U);
}

} // namespace tw::map
