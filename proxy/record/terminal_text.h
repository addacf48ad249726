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

/// What a terminal may obey: the control characters of both halves of ISO 6429 (U+009B begins a
/// sequence as escape and bracket do), line separators, and what turns the direction of writing
/// (Unicode's Bidi_Control).
inline constexpr std::array kTerminalControls{
    CodePointRange{0x00, 0x1f},     CodePointRange{0x7f, 0x9f},     CodePointRange{0x061c, 0x061c},
    CodePointRange{0x200e, 0x200f}, CodePointRange{0x2028, 0x202e}, CodePointRange{0x2066, 0x2069}};

[[nodiscard]] constexpr bool is_terminal_control(std::uint32_t code_point) {
    return std::ranges::any_of(kTerminalControls, [code_point](const CodePointRange& range) {
        return code_point >= range.first && code_point <= range.last;
    });
}

/// Text that is safe on a terminal: what a terminal may obey, and what is no UTF-8, is shown as
/// escapes, and a backslash as two.
[[nodiscard]] std::string terminal_text(std::string_view text);

/// The same for text of whole lines, parts of which may be escaped already: line feeds, tabs and
/// backslashes stay.
[[nodiscard]] std::string terminal_lines(std::string_view text);

/// Appends a line of JSON in which what a terminal may obey is escaped; every string in it means the
/// same as before. JSON that others wrote may hold such characters as they are.
void append_terminal_json(std::string_view json, std::string& out);

} // namespace tw::record
