#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tw::map {

/// Removes the first code point from `text` and returns it. Returns nullopt if the bytes are not
/// valid UTF-8. Overlong forms, surrogates and values above U+10FFFF are not valid. Precondition:
/// `text` is not empty.
[[nodiscard]] std::optional<char32_t> take_code_point(std::string_view& text);

[[nodiscard]] bool is_utf8(std::string_view text);

/// Returns the text in an item's ints, up to the first NUL. Each int contains four bytes, the first
/// in its highest bits; 128 was added to each byte. The last byte counts as a NUL. The text may
/// be invalid UTF-8.
///
/// Source:  DDNet IntsToStr.
[[nodiscard]] std::string decode_int_text(std::span<const std::int32_t> ints);

/// Returns the text in a data block; nullopt if the text is not UTF-8, or if the block does not
/// have exactly one NUL, at its end.
///
/// Source:  DDNet CDataFileReader::GetDataString.
[[nodiscard]] std::optional<std::string> decode_block_text(std::span<const std::byte> block);

/// Returns the bytes as lower-case hex digits.
[[nodiscard]] std::string hex_digits(std::span<const std::uint8_t> bytes);

/// Returns the longest prefix of a UTF-8 text that has at most `max_bytes` bytes and cuts no
/// character.
[[nodiscard]] std::string_view truncate_utf8(std::string_view text, std::size_t max_bytes);

} // namespace tw::map
