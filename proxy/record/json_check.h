#pragma once

#include <string_view>

/// Checks that apply to each line of a recording, regardless of the record type.
namespace tw::record {

/// Maximum nesting depth of lists and objects, several times the depth of the deepest record.
inline constexpr unsigned kMaxJsonDepth = 32;

/// Whether the text is exactly one well-formed JSON object (RFC 8259) in valid UTF-8, at most
/// kMaxJsonDepth deep. Spaces may stand between its tokens and after the object, other whitespace
/// may not. Allocates nothing, and is fast enough to check each byte of a recording.
[[nodiscard]] bool is_json_object(std::string_view text);

/// Whether the text contains control bytes (below 0x20). Records never contain any: strings have
/// them escaped.
[[nodiscard]] bool has_control_bytes(std::string_view text);

} // namespace tw::record
