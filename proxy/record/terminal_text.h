#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tw::record {

/// The code points from `first` to `last`.
struct CodePointRange {
    std::uint32_t first;
    std::uint32_t last;
};

/// The characters that a terminal may interpret: all control characters of ISO 6429 (U+009B starts an
/// escape sequence, as ESC [ does), line separators, and characters that change the direction of text
/// (Unicode's Bidi_Control).
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
[[nodiscard]] std::string terminal_text(std::string_view text);

/// Returns lines of text in a form that is safe for a terminal. Line feeds, tabs and backslashes stay
/// unchanged, because parts of the text may already be escaped.
[[nodiscard]] std::string terminal_lines(std::string_view text);

/// Appends a line of JSON. Terminal controls in it are written as JSON escapes, so all strings keep their
/// meaning. Needed for JSON from other programs, which may not escape these characters.
void append_terminal_json(std::string_view json, std::string& out);

/// Returns the text for this count. Of "[one|many]", the first form is kept for 1 and the second one for
/// other counts; "[s]" is left out for 1 and becomes "s" for other counts.
[[nodiscard]] std::string choose_plural(std::uint64_t count, std::string_view text);

/// Returns the count and the noun in the form for it: "1 file" or "2 files" for "file[s]".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun);

} // namespace tw::record
