#pragma once

#include <string_view>

/// Checks for the lines of a recording, whatever the type of their record.
namespace tw::record {

/// The greatest nesting of lists and objects, several times that of any record. A list or object with
/// elements may be nested one level less.
inline constexpr unsigned kMaxJsonDepth = 32;

/// Returns whether the text is exactly one well-formed JSON object (RFC 8259) in valid UTF-8, nested
/// within kMaxJsonDepth. Spaces are allowed between its tokens and after the object; other whitespace
/// is not. Fast enough to check every byte of a recording.
[[nodiscard]] bool is_json_object(std::string_view text);

/// Returns whether the text contains control bytes (below 0x20). Records contain none, because they are
/// escaped in strings.
[[nodiscard]] bool has_control_bytes(std::string_view text);

} // namespace tw::record
