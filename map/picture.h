#pragma once

#include "map/error.h"
#include "map/game_layer.h"
#include "map/map.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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

/// A colour of an overlay, and the name of the colour in the legend. A colour without a name is not
/// in the legend.
struct OverlayColor {
    std::uint32_t rgb;
    std::string label;
};

/// A line through the world.
struct Path {
    std::vector<WorldPos> points;
    std::uint8_t color = 0; ///< index into Overlay::colors
};

struct ColoredTile {
    TilePos tile{0, 0};
    std::uint8_t color = 0; ///< index into Overlay::colors
};

/// A place that is marked with a cross.
struct Cross {
    WorldPos at{0, 0};
    std::uint8_t color = 0; ///< index into Overlay::colors
};

/// What is drawn over the tiles of a map: first the coloured tiles, then the paths, then the
/// crosses. Whatever has no colour in `colors` is left out.
struct Overlay {
    std::string title;                ///< a line at the beginning of the legend
    std::vector<OverlayColor> colors; ///< only the first kMaxOverlayColors are used
    std::vector<ColoredTile> tiles;
    std::vector<Path> paths;
    std::vector<Cross> crosses;
};

/// The most colours of an overlay: a picture has 256 colours, and the map uses the others.
inline constexpr std::size_t kMaxOverlayColors = 224;

/// The set of all physics layers, for PictureOptions::layers. Bit n stands for the layer with number n in
/// `Layer`.
inline constexpr unsigned kAllLayers = 0x3f;

struct PictureOptions {
    unsigned layers = kAllLayers;
    /// Pixels per tile; 0: the largest of 16, 8, 4, 2 and 1 with which browsers can show the picture.
    int scale = 0;
    bool legend = true; ///< draw the names of the used colours below the map
    const Overlay* overlay = nullptr;
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

/// The dots of a character: five octal digits, one per row from the top; in each digit, 4 is the
/// left dot. Characters other than the printable ones of ASCII are blank. Lower case looks like upper
/// case.
[[nodiscard]] std::uint16_t glyph(char c);

[[nodiscard]] constexpr bool glyph_dot(std::uint16_t dots, int x, int y) {
    const int bit = (kGlyphHeight - 1 - y) * kGlyphWidth + (kGlyphWidth - 1 - x);
    return (static_cast<unsigned>(dots) >> static_cast<unsigned>(bit) & 1U) != 0;
}

} // namespace tw::map
