#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tw::wire {

/// Returns a view of the bytes as characters.
[[nodiscard]] inline std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A decoded code point, or one byte of invalid UTF-8.
struct CodePoint {
    std::uint32_t value = 0;
    std::size_t size = 1; ///< number of bytes that the code point takes in the text
    bool valid = false;   ///< false for a byte of invalid UTF-8
};

/// Decodes the first code point of a text.
/// Precondition: `bytes` is not empty.
[[nodiscard]] CodePoint decode_code_point(std::span<const std::byte> bytes);

// Flags for how receivers sanitise a string of a message, as in CUnpacker::GetString. They can be
// combined.

/// Bytes below 32, except CR, LF and TAB, become spaces.
inline constexpr std::uint8_t kCleanControl = 1;
inline constexpr std::uint8_t kCleanAllControl = 2; ///< all bytes below 32 become spaces
/// Leading white space is removed, including Unicode white space.
inline constexpr std::uint8_t kSkipBlanks = 4;

/// Whether the string is valid UTF-8. DDNet from 18.0 on drops a message with an invalid string.
[[nodiscard]] bool is_utf8(std::span<const std::byte> bytes);

/// Returns the string as receivers show it. The result is valid UTF-8: each invalid byte becomes
/// U+FFFD.
[[nodiscard]] std::string sanitize_string(std::span<const std::byte> bytes, std::uint8_t flags);

/// Like sanitize_string, but appends the result to `out`. The caller can reuse the memory of `out`.
void append_sanitized(std::span<const std::byte> bytes, std::uint8_t flags, std::string& out);

} // namespace tw::wire
