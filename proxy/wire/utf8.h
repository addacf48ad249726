#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tw::wire {

/// One code point, or one byte that starts none.
struct CodePoint {
    std::uint32_t value = 0;
    std::size_t size = 1; ///< bytes it takes
    bool valid = false;
};

/// What stands at the front of a text.
/// Precondition: `bytes` is not empty.
[[nodiscard]] CodePoint decode_code_point(std::span<const std::byte> bytes);

} // namespace tw::wire
