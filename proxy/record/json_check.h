#pragma once

#include <string_view>

/// What holds of every line of a recording, whatever record it is.
namespace tw::record {

/// How deep lists and objects of a record may nest: several times as deep as any does.
inline constexpr unsigned kMaxJsonDepth = 32;

/// Whether the text is one JSON object, whole and well formed (RFC 8259): valid UTF-8, no deeper than kMaxJsonDepth, and
/// nothing behind it but spaces. Between its tokens, too, a space is the only one that may stand there. Builds nothing:
/// it is fast enough to look at every byte of a recording.
[[nodiscard]] bool is_json_object(std::string_view text);

/// Whether there are bytes below a space, as no record has: it writes them as escapes.
[[nodiscard]] bool has_control_bytes(std::string_view text);

} // namespace tw::record
