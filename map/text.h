#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tw::map {

/// Takes the first code point off `text`; nothing if the bytes are not UTF-8 (overlong forms,
/// surrogates and values above U+10FFFF included). Precondition: text is not empty.
[[nodiscard]] std::optional<char32_t> take_code_point(std::string_view& text);

[[nodiscard]] bool is_utf8(std::string_view text);

/// The text kept in an item's ints: big-endian bytes plus 128, up to the first NUL; the last byte
/// is always one. Not necessarily UTF-8.
///
/// Source:  IntsToStr of the reference.
[[nodiscard]] std::string decode_int_text(std::span<const std::int32_t> ints);

/// Puts text into ints the same way. Precondition: 4 * ints.size() - 1 bytes suffice, or the text
/// is cut.
void encode_int_text(std::string_view text, std::span<std::int32_t> ints);

/// The text of a data block: it must end with its only NUL and be UTF-8.
///
/// Source:  DDNet CDataFileReader::GetDataString.
[[nodiscard]] std::optional<std::string> decode_block_text(std::span<const std::byte> block);

/// The longest start of valid UTF-8 text that has at most `max_bytes` bytes.
[[nodiscard]] std::string_view truncate_utf8(std::string_view text, std::size_t max_bytes);

} // namespace tw::map
