#pragma once

#include "map/error.h"
#include "map/game_layer.h"
#include "map/map.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::map {

/// The colour of a layer's tiles with the indices `first` to `last`, and its name in the legend.
/// The front layer has the colours of the game layer.
struct TileColor {
    Layer layer;
    std::uint8_t first, last;
    std::uint32_t rgb;
    std::string_view label;
};

/// Returns the colours of all tiles. A tile has the first colour whose range contains its index.
[[nodiscard]] std::span<const TileColor> tile_colors();

/// A colour of an overlay, and its name in the legend. The legend omits a colour without a name.
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

/// Shapes that are drawn over the tiles of a map: first the coloured tiles, then the paths, then
/// the crosses. Shapes whose colour is not in `colors` are left out.
struct Overlay {
    std::string title;                ///< a line at the beginning of the legend
    std::vector<OverlayColor> colors; ///< only the first kMaxOverlayColors are used
    std::vector<ColoredTile> tiles;
    std::vector<Path> paths;
    std::vector<Cross> crosses;
};

/// A rectangle of tiles.
struct TileArea {
    int x = 0, y = 0; ///< its top left tile
    int width = 0, height = 0;

    bool operator==(const TileArea&) const = default;
};

/// Returns the part of a map that contains all shapes of an overlay with a margin. It is not
/// smaller than what a player sees, and does not reach beyond the map. Without shapes, returns the
/// whole map.
[[nodiscard]] TileArea area_of(const Overlay& overlay, const PhysicsLayers& physics);

/// The maximum number of colours of an overlay. A picture has 256 colours; the map uses the others.
inline constexpr std::size_t kMaxOverlayColors = 224;

/// The maximum number of pixels of a picture without its legend. They take one byte each, in total
/// 64 MiB. The number is also the maximum number of tiles of a layer (Limits::max_tiles).
inline constexpr std::int64_t kMaxPicturePixels = std::int64_t{1} << 26U;

/// The set of all physics layers, for PictureOptions::layers. Bit n stands for the layer with
/// number n in `Layer`.
inline constexpr unsigned kAllLayers = 0x3f;

struct PictureOptions {
    unsigned layers = kAllLayers;
    /// Pixels per tile; 0: the largest of 16, 8, 4, 2 and 1 for which browsers can show the
    /// picture.
    int scale = 0;
    bool legend = true; ///< draw the names of the used colours below the map
    const Overlay* overlay = nullptr;
    /// The part of the map to draw, which must be within the map; nullopt: the whole map.
    std::optional<TileArea> area{};
};

/// A picture with at most 256 colours.
struct Picture {
    int width = 0, height = 0;         ///< pixels
    std::vector<std::uint8_t> pixels;  ///< indices into the palette, rows from the top
    std::vector<std::uint8_t> palette; ///< red, green, blue of each colour
};

/// Returns the largest PictureOptions::scale at which an area can be drawn; 0 if there is none.
[[nodiscard]] int largest_scale(const TileArea& area);

/// Draws the physics layers as coloured squares. The game layer and the front layer fill a tile;
/// each other layer takes a quarter of it.
///
/// Errors:  picture_too_large, out_of_memory.
[[nodiscard]] Result<Picture> draw(const PhysicsLayers& physics,
                                   const PictureOptions& options = {});

/// Encodes a picture as a PNG file and returns the file's bytes.
///
/// Errors:  out_of_memory.
[[nodiscard]] Result<std::vector<std::byte>> encode_png(const Picture& picture);

/// Draws a map and returns the bytes of a PNG file.
///
/// Errors:  those of Map::physics, draw and encode_png.
[[nodiscard]] Result<std::vector<std::byte>> draw_png(const Map& map,
                                                      const PictureOptions& options);

// The size in dots of a character in the legend.
inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 8;

/// Returns the dots of a character as eight bytes, one per row from the top. In each byte, 0x10 is
/// the left dot. Characters that are not printable ASCII are blank.
[[nodiscard]] std::uint64_t glyph(char c);

[[nodiscard]] constexpr bool glyph_dot(std::uint64_t dots, int x, int y) {
    const int bit = (kGlyphHeight - 1 - y) * 8 + (kGlyphWidth - 1 - x);
    return (dots >> static_cast<unsigned>(bit) & 1U) != 0;
}

} // namespace tw::map
