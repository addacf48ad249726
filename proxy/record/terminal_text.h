#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tw::record {

struct CodePointRange {
    std::uint32_t first;
    std::uint32_t last;
};

/// The characters that a terminal may interpret instead of showing them: all control characters of
/// ISO 6429 (such as U+009B, which starts an escape sequence), line separators, and characters that
/// change the direction of text (Unicode's Bidi_Control).
inline constexpr std::array kTerminalControls{
    CodePointRange{0x00, 0x1f},     CodePointRange{0x7f, 0x9f},     CodePointRange{0x061c, 0x061c},
    CodePointRange{0x200e, 0x200f}, CodePointRange{0x2028, 0x202e}, CodePointRange{0x2066, 0x2069}};

[[nodiscard]] constexpr bool is_terminal_control(std::uint32_t code_point) {
    return std::ranges::any_of(kTerminalControls, [code_point](const CodePointRange& range) {
        return code_point >= range.first && code_point <= range.last;
    });
}

/// Returns the text in a form that is safe for a terminal: terminal controls, invalid UTF-8 and
/// backslashes are escaped.
[[nodiscard]] std::string escape_for_terminal(std::string_view text);

/// Returns a text of several lines in a form that is safe for a terminal. Line feeds, tabs and
/// backslashes stay unchanged, because parts of the text may already be escaped.
[[nodiscard]] std::string escape_lines_for_terminal(std::string_view text);

/// Appends a line of JSON to `out`, with all terminal controls as JSON escapes. The values of
/// strings do not change. JSON from other programs may contain unescaped terminal controls.
void append_terminal_json(std::string_view json, std::string& out);

/// Returns the text in the singular if `count` is 1, otherwise in the plural. In `text`, "[is|are]"
/// stands for "is" in the singular and "are" in the plural; "[s]" stands for nothing in the
/// singular and for "s" in the plural.
[[nodiscard]] std::string choose_plural(std::uint64_t count, std::string_view text);

/// Returns the count followed by the noun (see choose_plural()): "1 file" or "2 files" for
/// "file[s]".
[[nodiscard]] std::string count_with_noun(std::uint64_t count, std::string_view noun);

/// Returns a size such as "12.3 MiB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

} // namespace tw::record
