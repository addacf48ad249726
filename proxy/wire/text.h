#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

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

/// How readers clean a string of a message (protocol sheet, section 3.2); flags add up.
inline constexpr std::uint8_t kCleanControl = 1;    ///< below 32 become spaces, not CR, LF, TAB
inline constexpr std::uint8_t kCleanAllControl = 2; ///< all bytes below 32 become spaces
inline constexpr std::uint8_t kSkipBlanks = 4;      ///< leading white space goes, Unicode's too

/// Whether DDNet since 18.0 takes the string; it drops the message otherwise.
[[nodiscard]] bool is_utf8(std::span<const std::byte> bytes);

/// The string as readers see it. Always valid UTF-8: every byte that is not becomes U+FFFD.
[[nodiscard]] std::string sanitize_string(std::span<const std::byte> bytes, std::uint8_t flags);

/// The same, behind what `out` holds; for callers that keep their buffer.
void append_sanitized(std::span<const std::byte> bytes, std::uint8_t flags, std::string& out);

} // namespace tw::wire
