#pragma once

#include "map/error.h"
#include "map/game_layer.h"
#include "map/map.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tw::map {

/// A colour of pictures, and its name in the legend. It is the colour of a layer's tiles with the
/// indices `first` to `last`. The front layer has the colours of the game layer.
struct Swatch {
    Layer layer;
    std::uint8_t first, last;
    std::uint32_t rgb;
    std::string_view label;
};

/// All colours of pictures. A tile gets the first colour whose range contains the tile's index.
[[nodiscard]] std::span<const Swatch> swatches();

/// A line through the world, which is drawn over the tiles.
using Path = std::vector<WorldPos>;

/// The set of all physics layers, for PictureOptions::layers. Bit n stands for the layer with number n in
/// `Layer`.
inline constexpr unsigned kAllLayers = 0x3f;

struct PictureOptions {
    unsigned layers = kAllLayers;
    /// Pixels per tile; 0: the largest of 16, 8, 4, 2 and 1 with which browsers can show the picture.
    int scale = 0;
    bool legend = true; ///< draw the used colours with their names below the map
    std::span<const Path> paths;
};

/// A picture with at most 256 colours.
struct Picture {
    int width = 0, height = 0;         ///< pixels
    std::vector<std::uint8_t> pixels;  ///< indices into the palette, rows from the top
    std::vector<std::uint8_t> palette; ///< red, green, blue of each colour
};

/// Draws the physics layers as coloured squares. The game layer and the front layer fill a tile; each
/// other layer takes a quarter of it.
///
/// Errors:  picture_too_large, out_of_memory.
[[nodiscard]] Result<Picture> draw(const Physics& physics, const PictureOptions& options = {});

/// Encodes a picture as a PNG file and returns the file's bytes.
///
/// Errors:  out_of_memory.
[[nodiscard]] Result<std::vector<std::byte>> encode_png(const Picture& picture);

/// Draws a map and returns the bytes of a PNG file.
///
/// Errors:  those of Map::physics, draw and encode_png.
[[nodiscard]] Result<std::vector<std::byte>> draw_png(const Map& map,
                                                      const PictureOptions& options);

/// The size in dots of a character in the legend.
inline constexpr int kGlyphWidth = 3;
inline constexpr int kGlyphHeight = 5;

/// The dots of a character in the legend: five octal digits, one per row from the top. In each digit, 4
/// is the left dot. Unknown characters are blank. Lower case looks like upper case.
[[nodiscard]] std::uint16_t glyph(char c);

[[nodiscard]] constexpr bool glyph_dot(std::uint16_t dots, int x, int y) {
    const int bit = (kGlyphHeight - 1 - y) * kGlyphWidth + (kGlyphWidth - 1 - x);
    return (static_cast<unsigned>(dots) >> static_cast<unsigned>(bit) & 1U) != 0;
}

} // namespace tw::map
