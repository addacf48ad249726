#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tw::record {

/// Code points from `first` to `last`.
struct CodePointRange {
    std::uint32_t first;
    std::uint32_t last;
};

/// Characters that a terminal may interpret: all control characters of ISO 6429 (U+009B starts an
/// escape sequence as ESC [ does), line separators, and characters that change the writing
/// direction (Unicode's Bidi_Control).
inline constexpr std::array kTerminalControls{
    CodePointRange{0x00, 0x1f},     CodePointRange{0x7f, 0x9f},     CodePointRange{0x061c, 0x061c},
    CodePointRange{0x200e, 0x200f}, CodePointRange{0x2028, 0x202e}, CodePointRange{0x2066, 0x2069}};

[[nodiscard]] constexpr bool is_terminal_control(std::uint32_t code_point) {
    return std::ranges::any_of(kTerminalControls, [code_point](const CodePointRange& range) {
        return code_point >= range.first && code_point <= range.last;
    });
}

/// Makes text safe for a terminal: escapes terminal controls, invalid UTF-8 and backslashes.
[[nodiscard]] std::string terminal_text(std::string_view text);

/// Makes lines of text safe for a terminal. Line feeds, tabs and backslashes stay unchanged,
/// because parts of the text may be escaped already.
[[nodiscard]] std::string terminal_lines(std::string_view text);

/// Appends a line of JSON with its terminal controls written as JSON escapes, so that all strings
/// keep their meaning. Needed for JSON from other programs, which may not escape these characters.
void append_terminal_json(std::string_view json, std::string& out);

/// Returns a text with the forms for this count: of "[one|many]" the first for 1 and the second
/// otherwise, and "[s]" is left out for 1.
[[nodiscard]] std::string for_count(std::uint64_t count, std::string_view text);

/// Returns the count and for_count(): "1 file", "2 files" of "file[s]".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun);

} // namespace tw::record
