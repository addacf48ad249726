#pragma once

#include <cstdint>
#include <string_view>

namespace tw::map {

/// A font of 3 x 5 dots for the legend of pictures.
inline constexpr int kGlyphWidth = 3;
inline constexpr int kGlyphHeight = 5;

/// Five octal digits, one a row from the top; in a digit 4 is the left dot. Space for what the font
/// does not have; small letters look like capitals.
[[nodiscard]] std::uint16_t glyph(char c);

[[nodiscard]] constexpr bool glyph_dot(std::uint16_t dots, int x, int y) {
    const int bit = (kGlyphHeight - 1 - y) * kGlyphWidth + (kGlyphWidth - 1 - x);
    return (static_cast<unsigned>(dots) >> static_cast<unsigned>(bit) & 1U) != 0;
}

} // namespace tw::map
