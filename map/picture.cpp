#include "map/picture.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

#include <png.h>

namespace tw::map {
namespace {

/// The maximum number of pixels of a picture whose scale is chosen automatically. Browsers can show
/// a picture of this size.
constexpr std::int64_t kMaxAutomaticPixels = std::int64_t{1} << 24U;
constexpr int kMaxScale = 64;
/// The minimum width of a picture in pixels, which the legend needs.
constexpr int kMinWidth = 450;
/// Distance in tiles from an overlay's shapes to the edge of their area.
constexpr int kAreaMargin = 8;
/// The minimum size of an overlay's area in tiles: about what a player sees.
constexpr int kMinAreaWidth = 64;
constexpr int kMinAreaHeight = 36;

constexpr std::array kTileColors = {
    TileColor{Layer::game, 0, 0, 0x1d2127, "air"},
    TileColor{Layer::game, 1, 1, 0xb08d57, "solid"},
    TileColor{Layer::game, 2, 2, 0xe0242f, "death"},
    TileColor{Layer::game, 3, 3, 0x8d99a6, "nohook"},
    TileColor{Layer::game, 4, 4, 0x6d4b7d, "no laser"},
    TileColor{Layer::game, 9, 9, 0x2f3c8f, "freeze"},
    TileColor{Layer::game, 11, 11, 0x55b06a, "unfreeze"},
    TileColor{Layer::game, 12, 12, 0x16205a, "deep freeze"},
    TileColor{Layer::game, 13, 13, 0x8fd19e, "deep unfreeze"},
    TileColor{Layer::game, 144, 144, 0x1f6f8f, "live freeze"},
    TileColor{Layer::game, 145, 145, 0x7fd0e0, "live unfreeze"},
    TileColor{Layer::game, 33, 33, 0xf4f4f4, "start"},
    TileColor{Layer::game, 34, 34, 0xffd83d, "finish"},
    TileColor{Layer::game, 35, 59, 0xc9b458, "time checkpoint"},
    TileColor{Layer::game, 60, 62, 0xd9793f, "stopper"},
    TileColor{Layer::game, 66, 67, 0x9c6b3f, "hook through"},
    TileColor{Layer::game, 5, 6, 0x9c6b3f, "hook through"},
    TileColor{Layer::game, 190, 191, 0x3a4048, "entities off"},
    TileColor{Layer::game, 192, 194, 0x7dff5a, "spawn"},
    TileColor{Layer::game, 195, 196, 0xff7de9, "flag stand"},
    TileColor{Layer::game, 197, 202, 0xffa7b5, "pickup"},
    TileColor{Layer::game, 203, 255, 0xb57dff, "entity"},
    TileColor{Layer::game, 5, 189, 0x5f7f7a, "other tile"},
    TileColor{Layer::tele, 27, 27, 0x3fe0ff, "tele out"},
    TileColor{Layer::tele, 29, 30, 0x39a0c8, "tele checkpoint"},
    TileColor{Layer::tele, 1, 255, 0x00b3ff, "tele in"},
    TileColor{Layer::speedup, 1, 255, 0xff9a1f, "speedup"},
    TileColor{Layer::switch_, 1, 255, 0xc6ff3f, "switch"},
    TileColor{Layer::tune, 1, 255, 0xf05fb0, "tune zone"},
};
constexpr std::size_t kTileColorCount = std::size(kTileColors);

// The palette contains the tile colours, the colours of the legend's text and background, and the
// colours of the overlay.
constexpr std::size_t kTextColor = kTileColorCount;
constexpr std::size_t kBackgroundColor = kTextColor + 1;
constexpr std::size_t kOverlayColor = kBackgroundColor + 1;
static_assert(kOverlayColor + kMaxOverlayColors <= 256);

/// Returns a darker shade of a map colour, to distinguish it from the colours of an overlay.
constexpr std::uint32_t dimmed(std::uint32_t rgb) {
    return rgb >> 1U & 0x7f7f7fU;
}

std::vector<std::uint8_t> make_palette(std::span<const OverlayColor> overlay) {
    std::vector<std::uint8_t> palette;
    const auto add = [&palette](std::uint32_t rgb) {
        for (const unsigned shift : {16U, 8U, 0U}) {
            palette.push_back(static_cast<std::uint8_t>(rgb >> shift & 0xffU));
        }
    };
    for (const TileColor& tile_color : kTileColors) {
        add(overlay.empty() ? tile_color.rgb : dimmed(tile_color.rgb));
    }
    add(0xe6e6e6);
    add(0x101216);
    for (const OverlayColor& color : overlay) {
        add(color.rgb);
    }
    return palette;
}

/// Returns the colour of each tile index, by layer. The front layer has the colours of the game
/// layer.
std::array<std::array<std::uint8_t, 256>, kPhysicsLayers> make_tile_colors() {
    std::array<std::array<std::uint8_t, 256>, kPhysicsLayers> colors{};
    for (std::size_t i = kTileColorCount; i-- > 0;) {
        const TileColor& tile_color = kTileColors[i];
        auto& of_layer = colors.at(static_cast<std::size_t>(tile_color.layer));
        std::fill(of_layer.begin() + tile_color.first, of_layer.begin() + tile_color.last + 1,
                  static_cast<std::uint8_t>(i));
    }
    colors[static_cast<std::size_t>(Layer::front)] = colors[static_cast<std::size_t>(Layer::game)];
    return colors;
}

int choose_scale(const TileArea& area, int wanted) {
    if (wanted > 0) {
        return std::min(wanted, kMaxScale);
    }
    const std::int64_t tiles = std::int64_t{area.width} * area.height;
    for (const int scale : {16, 8, 4, 2}) {
        if (tiles * scale * scale <= kMaxAutomaticPixels) {
            return scale;
        }
    }
    return 1;
}

/// Draws one picture of a map, with an overlay and a legend.
class Painter {
  public:
    Painter(const PhysicsLayers& physics, const PictureOptions& options)
        : physics_{physics}, options_{options}, area_{options.area.value_or(TileArea{
                                                    0, 0, physics.width(), physics.height()})},
          scale_{choose_scale(area_, options.scale)}, colors_{make_tile_colors()} {
        if (options.overlay != nullptr) {
            overlay_colors_ = options.overlay->colors;
            overlay_colors_ = overlay_colors_.first(
                std::min(overlay_colors_.size(), std::size_t{kMaxOverlayColors}));
        }
    }

    [[nodiscard]] Result<Picture> paint();

  private:
    struct LegendEntry {
        std::size_t color; ///< index into the palette
        std::string_view label;
    };

    void fill(int x, int y, int width, int height, std::uint8_t color);
    void draw_tile(TilePos tile);
    void draw_mark(TilePos tile, Layer layer, int order);
    void draw_overlay(const Overlay& overlay);
    void draw_path(const Path& path, std::uint8_t color);
    void draw_segment(WorldPos from, WorldPos to, std::uint8_t color);
    void draw_cross(int x, int y, int arm, std::uint8_t color);
    void add_legend();
    void draw_legend_entry(int x, int y, const LegendEntry& entry);
    void draw_text(int x, int y, std::string_view text, std::size_t max_glyphs);

    [[nodiscard]] bool is_layer_drawn(Layer layer) const {
        return (options_.layers >> static_cast<unsigned>(layer) & 1U) != 0 && physics_.has(layer);
    }

    /// Returns the pixel for a coordinate. For a coordinate outside the area, returns a pixel just
    /// outside. `first`: the area's first column or row. `tiles`: the number of columns or rows.
    [[nodiscard]] int to_pixel(int value, int first, int tiles) const {
        const std::int64_t pixel =
            (std::int64_t{value} - std::int64_t{first} * kTileSize) * scale_ / kTileSize;
        return static_cast<int>(std::clamp<std::int64_t>(pixel, -1, std::int64_t{tiles} * scale_));
    }

    [[nodiscard]] TilePos to_pixels(WorldPos at) const {
        return {to_pixel(at.x, area_.x, area_.width), to_pixel(at.y, area_.y, area_.height)};
    }

    /// Returns the pixel at the top left of a tile.
    [[nodiscard]] TilePos corner_of(TilePos tile) const {
        return {(tile.x - area_.x) * scale_, (tile.y - area_.y) * scale_};
    }

    [[nodiscard]] std::vector<LegendEntry> used_tile_colors() const;

    const PhysicsLayers& physics_;
    const PictureOptions& options_;
    TileArea area_;
    int scale_;
    int zoom_ = 1; ///< magnification of the legend, paths and crosses
    std::span<const OverlayColor> overlay_colors_;
    std::array<std::array<std::uint8_t, 256>, kPhysicsLayers> colors_;
    std::array<bool, kTileColorCount> used_{};
    Picture out_;
};

/// The width in pixels of a picture whose legend has its normal size. The legend of a wider picture
/// is magnified, because browsers scale such a picture down.
constexpr int kShownWidth = 900;
constexpr int kMaxZoom = 16;
constexpr int kTextScale = 2;
constexpr int kLegendRow = 20;
constexpr int kLegendColumn = 225;
constexpr int kLegendMargin = 6;
constexpr int kGlyphAdvance = (kGlyphWidth + 1) * kTextScale;
/// The horizontal distance from the start of a legend column to the label, in pixels at zoom 1.
constexpr int kLabelOffset = 26;
/// The maximum number of characters of a label. A longer label would touch the next column.
constexpr std::size_t kMaxLabel = (kLegendColumn - kLegendMargin - kLabelOffset) / kGlyphAdvance;

void Painter::fill(int x, int y, int width, int height, std::uint8_t color) {
    const int right = std::min(x + width, out_.width);
    const int bottom = std::min(y + height, out_.height);
    for (int row = std::max(y, 0); row < bottom; ++row) {
        for (int column = std::max(x, 0); column < right; ++column) {
            out_.pixels[static_cast<std::size_t>(row) * static_cast<std::size_t>(out_.width) +
                        static_cast<std::size_t>(column)] = color;
        }
    }
}

void Painter::draw_tile(TilePos tile) {
    std::uint8_t index = is_layer_drawn(Layer::game) ? physics_.index(Layer::game, tile) : kTileAir;
    // The front layer's tile fills the square if the game layer is air. Otherwise it fills only the
    // middle of the square.
    const std::uint8_t front =
        is_layer_drawn(Layer::front) ? physics_.index(Layer::front, tile) : kTileAir;
    const bool inside = index != kTileAir && front != kTileAir;
    index = index == kTileAir ? front : index;
    const std::uint8_t color = colors_[0][index];
    used_.at(color) = true;
    const TilePos corner = corner_of(tile);
    fill(corner.x, corner.y, scale_, scale_, color);
    if (inside && scale_ >= 4) {
        const std::uint8_t inner = colors_[0][front];
        used_.at(inner) = true;
        fill(corner.x + scale_ / 4, corner.y + scale_ / 4, scale_ / 2, scale_ / 2, inner);
    }
    int order = 0;
    for (const Layer layer : {Layer::tele, Layer::speedup, Layer::switch_, Layer::tune}) {
        draw_mark(tile, layer, order++);
    }
}

/// Draws a tile of the tele, speedup, switch or tune layer. Each of these layers has its own
/// quarter of the tile, so they do not hide each other.
void Painter::draw_mark(TilePos tile, Layer layer, int order) {
    const std::uint8_t index = is_layer_drawn(layer) ? physics_.index(layer, tile) : kTileAir;
    if (index == kTileAir) {
        return;
    }
    const std::uint8_t color = colors_.at(static_cast<std::size_t>(layer))[index];
    used_.at(color) = true;
    const int size = std::max(scale_ / 2, 1);
    const int step = scale_ - size;
    const TilePos corner = corner_of(tile);
    fill(corner.x + order % 2 * step, corner.y + order / 2 * step, size, size, color);
}

void Painter::draw_segment(WorldPos from, WorldPos to, std::uint8_t color) {
    const TilePos begin = to_pixels(from);
    const TilePos end = to_pixels(to);
    const int steps = std::max({std::abs(end.x - begin.x), std::abs(end.y - begin.y), 1});
    const int thick = std::max(scale_ >= 8 ? 2 : 1, std::min(zoom_, scale_ / 2));
    const int before = (thick - 1) / 2;
    for (int i = 0; i <= steps; ++i) {
        const auto between = [i, steps](int a, int b) {
            return static_cast<int>(a + (std::int64_t{b} - a) * i / steps);
        };
        fill(between(begin.x, end.x) - before, between(begin.y, end.y) - before, thick, thick,
             color);
    }
}

void Painter::draw_path(const Path& path, std::uint8_t color) {
    const auto& points = path.points;
    for (std::size_t i = 0; i < points.size(); ++i) {
        draw_segment(points[i], points[i + 1 < points.size() ? i + 1 : i], color);
    }
}

/// Draws a diagonal cross. Its dark edge makes it visible on any colour.
void Painter::draw_cross(int x, int y, int arm, std::uint8_t color) {
    const int thick = std::max(arm / 4, 2);
    for (const int edge : {thick, 0}) {
        for (int i = -arm; i <= arm; ++i) {
            for (const int side : {-1, 1}) {
                fill(x + i - edge / 2, y + i * side - edge / 2, thick + edge, thick + edge,
                     edge != 0 ? static_cast<std::uint8_t>(kBackgroundColor) : color);
            }
        }
    }
}

void Painter::draw_overlay(const Overlay& overlay) {
    // Calls `draw(shape, color)` for each shape whose colour is among the overlay's colours.
    const auto draw_all = [this](const auto& shapes, const auto& draw) {
        for (const auto& shape : shapes) {
            if (shape.color < overlay_colors_.size()) {
                draw(shape, static_cast<std::uint8_t>(kOverlayColor + shape.color));
            }
        }
    };
    draw_all(overlay.tiles, [this](const ColoredTile& each, std::uint8_t color) {
        if (each.tile.x >= area_.x && each.tile.x - area_.x < area_.width &&
            each.tile.y >= area_.y && each.tile.y - area_.y < area_.height) {
            const TilePos corner = corner_of(each.tile);
            fill(corner.x, corner.y, scale_, scale_, color);
        }
    });
    draw_all(overlay.paths,
             [this](const Path& path, std::uint8_t color) { draw_path(path, color); });
    draw_all(overlay.crosses, [this](const Cross& cross, std::uint8_t color) {
        const TilePos at = to_pixels(cross.at);
        draw_cross(at.x, at.y, std::max(scale_ / 2, 2 * zoom_), color);
    });
}

/// Draws a text. Characters that the font does not have are drawn as question marks.
void Painter::draw_text(int x, int y, std::string_view text, std::size_t max_glyphs) {
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte & 0xc0U) == 0x80U) {
            continue; // not the first byte of a UTF-8 character
        }
        if (max_glyphs-- == 0) {
            return;
        }
        const std::uint64_t dots = glyph(byte < 0x80U ? c : '?');
        for (int row = 0; row < kGlyphHeight; ++row) {
            for (int column = 0; column < kGlyphWidth; ++column) {
                if (glyph_dot(dots, column, row)) {
                    const int dot = kTextScale * zoom_;
                    fill(x + column * dot, y + row * dot, dot, dot,
                         static_cast<std::uint8_t>(kTextColor));
                }
            }
        }
        x += kGlyphAdvance * zoom_;
    }
}

/// Returns the tile colours that the map uses. If several have the same label, returns the first.
std::vector<Painter::LegendEntry> Painter::used_tile_colors() const {
    std::vector<LegendEntry> found;
    for (std::size_t i = 0; i < kTileColorCount; ++i) {
        const std::string_view label = kTileColors[i].label;
        if (used_.at(i) && std::ranges::find(found, label, &LegendEntry::label) == found.end()) {
            found.push_back({i, label});
        }
    }
    return found;
}

void Painter::draw_legend_entry(int x, int y, const LegendEntry& entry) {
    const auto color = static_cast<std::uint8_t>(entry.color);
    const bool is_cross = options_.overlay != nullptr &&
                          std::ranges::find(options_.overlay->crosses, entry.color - kOverlayColor,
                                            &Cross::color) != options_.overlay->crosses.end();
    if (is_cross) {
        draw_cross(x + 9 * zoom_, y + 7 * zoom_, 5 * zoom_, color);
    } else {
        fill(x - zoom_, y - zoom_, 20 * zoom_, 16 * zoom_, static_cast<std::uint8_t>(kTextColor));
        fill(x, y, 18 * zoom_, 14 * zoom_, color);
    }
    draw_text(x + kLabelOffset * zoom_, y, entry.label, kMaxLabel);
}

void Painter::add_legend() {
    std::vector<LegendEntry> overlay;
    for (std::size_t i = 0; i < overlay_colors_.size(); ++i) {
        if (!overlay_colors_[i].label.empty()) {
            overlay.push_back({kOverlayColor + i, overlay_colors_[i].label});
        }
    }
    const std::vector<LegendEntry> map_colors = used_tile_colors();
    const int columns = std::max(out_.width / (kLegendColumn * zoom_), 1);
    const auto rows = [columns](const std::vector<LegendEntry>& entries) {
        return (static_cast<int>(entries.size()) + columns - 1) / columns;
    };
    const int overlay_row = overlay_colors_.empty() ? 0 : 1; // row 0 is for the title
    const int tile_color_row = overlay_row + rows(overlay);
    const int top = out_.height;
    out_.height += ((tile_color_row + rows(map_colors)) * kLegendRow + 8) * zoom_;
    out_.pixels.resize(static_cast<std::size_t>(out_.width) * static_cast<std::size_t>(out_.height),
                       static_cast<std::uint8_t>(kBackgroundColor));
    if (overlay_row != 0) {
        draw_text(kLegendMargin * zoom_, top + kLegendMargin * zoom_, options_.overlay->title,
                  static_cast<std::size_t>(out_.width / (kGlyphAdvance * zoom_)));
    }
    const auto draw_entries = [&](const std::vector<LegendEntry>& entries, int row) {
        for (int i = 0; i < static_cast<int>(entries.size()); ++i) {
            draw_legend_entry((i % columns * kLegendColumn + kLegendMargin) * zoom_,
                              top + ((row + i / columns) * kLegendRow + kLegendMargin) * zoom_,
                              entries[static_cast<std::size_t>(i)]);
        }
    };
    draw_entries(overlay, overlay_row);
    draw_entries(map_colors, tile_color_row);
}

Result<Picture> Painter::paint() {
    const std::int64_t map_width = std::int64_t{area_.width} * scale_;
    const std::int64_t map_height = std::int64_t{area_.height} * scale_;
    const std::int64_t width = std::max<std::int64_t>(map_width, options_.legend ? kMinWidth : 1);
    zoom_ = static_cast<int>(
        std::clamp<std::int64_t>((width + kShownWidth / 2) / kShownWidth, 1, kMaxZoom));
    if (width > kMaxPicturePixels || map_height > kMaxPicturePixels ||
        width * map_height > kMaxPicturePixels) {
        return tl::unexpected{MapError{.code = MapErrc::picture_too_large}};
    }
    out_.width = static_cast<int>(width);
    out_.height = static_cast<int>(map_height);
    out_.palette = make_palette(overlay_colors_);
    out_.pixels.assign(static_cast<std::size_t>(width * map_height),
                       static_cast<std::uint8_t>(kBackgroundColor));
    for (int y = area_.y; y < area_.y + area_.height; ++y) {
        for (int x = area_.x; x < area_.x + area_.width; ++x) {
            draw_tile({x, y});
        }
    }
    if (options_.overlay != nullptr) {
        draw_overlay(*options_.overlay);
    }
    if (options_.legend) {
        add_legend();
    }
    return std::move(out_);
}

} // namespace

std::span<const TileColor> tile_colors() {
    return kTileColors;
}

TileArea area_of(const Overlay& overlay, const PhysicsLayers& physics) {
    std::vector<TilePos> tiles;
    const auto add = [&](TilePos tile) {
        tiles.push_back({std::clamp(tile.x, 0, physics.width() - 1),
                         std::clamp(tile.y, 0, physics.height() - 1)});
    };
    const auto add_position = [&](WorldPos at) { add({at.x / kTileSize, at.y / kTileSize}); };
    for (const ColoredTile& each : overlay.tiles) {
        add(each.tile);
    }
    for (const Path& path : overlay.paths) {
        std::ranges::for_each(path.points, add_position);
    }
    for (const Cross& cross : overlay.crosses) {
        add_position(cross.at);
    }
    TileArea area{0, 0, physics.width(), physics.height()};
    if (tiles.empty()) {
        return area;
    }
    const auto fit = [](int first, int last, int least, int& begin, int& size) {
        const int wanted = std::min(std::max(last - first + 1 + 2 * kAreaMargin, least), size);
        begin = std::clamp((first + last + 1 - wanted) / 2, 0, size - wanted);
        size = wanted;
    };
    const auto [left, right] = std::ranges::minmax(tiles, {}, &TilePos::x);
    const auto [top, bottom] = std::ranges::minmax(tiles, {}, &TilePos::y);
    fit(left.x, right.x, kMinAreaWidth, area.x, area.width);
    fit(top.y, bottom.y, kMinAreaHeight, area.y, area.height);
    return area;
}

int largest_scale(const TileArea& area) {
    int scale = kMaxScale;
    while (scale > 0 && std::max<std::int64_t>(std::int64_t{area.width} * scale, kMinWidth) *
                                area.height * scale >
                            kMaxPicturePixels) {
        --scale;
    }
    return scale;
}

Result<Picture> draw(const PhysicsLayers& physics, const PictureOptions& options) {
    try {
        return Painter{physics, options}.paint();
    } catch (const std::bad_alloc&) {
        return tl::unexpected{MapError{.code = MapErrc::out_of_memory}};
    }
}

Result<std::vector<std::byte>> encode_png(const Picture& picture) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(picture.width);
    image.height = static_cast<png_uint_32>(picture.height);
    image.format = PNG_FORMAT_RGB_COLORMAP;
    image.colormap_entries = static_cast<png_uint_32>(picture.palette.size() / 3);
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    try {
        std::vector<std::byte> bytes(size);
        const int encoded =
            png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.pixels.data(),
                                      picture.width, picture.palette.data());
        if (encoded != 0) {
            bytes.resize(size);
            return bytes;
        }
    } catch (const std::bad_alloc&) {
        // The code below reports this error. A failure of libpng also means a lack of memory.
    }
    return tl::unexpected{MapError{.code = MapErrc::out_of_memory}};
}

Result<std::vector<std::byte>> draw_png(const Map& map, const PictureOptions& options) {
    const auto physics = map.physics();
    if (!physics) {
        return tl::unexpected{physics.error()};
    }
    const auto picture = draw(*physics, options);
    if (!picture) {
        return tl::unexpected{picture.error()};
    }
    return encode_png(*picture);
}

namespace {

/// The printable characters of ASCII.
constexpr std::array<std::uint64_t, 95> kGlyphs = {
    0x0000000000000000, 0x0404040404000400, 0x0a0a0a0000000000, 0x0a0a1f0a1f0a0a00,
    0x040f140e051e0400, 0x1819020408130300, 0x0c12140815120d00, 0x0404080000000000,
    0x0204080808040200, 0x0804020202040800, 0x0004150e15040000, 0x0004041f04040000,
    0x00000000000c0408, 0x0000001f00000000, 0x00000000000c0c00, 0x0001020408100000,
    0x0e11131519110e00, 0x040c040404040e00, 0x0e11010204081f00, 0x1f02040201110e00,
    0x02060a121f020200, 0x1f101e0101110e00, 0x0608101e11110e00, 0x1f01020408080800,
    0x0e11110e11110e00, 0x0e11110f01020c00, 0x000c0c000c0c0000, 0x000c0c00000c0408,
    0x0204081008040200, 0x00001f001f000000, 0x0804020102040800, 0x0e11010204000400,
    0x0e11010d15150e00, 0x0e11111f11111100, 0x1e11111e11111e00, 0x0e11101010110e00,
    0x1c12111111121c00, 0x1f10101e10101f00, 0x1f10101e10101000, 0x0e11101711110f00,
    0x1111111f11111100, 0x0e04040404040e00, 0x0702020202120c00, 0x1112141814121100,
    0x1010101010101f00, 0x111b151511111100, 0x1111191513111100, 0x0e11111111110e00,
    0x1e11111e10101000, 0x0e11111115120d00, 0x1e11111e14121100, 0x0f10100e01011e00,
    0x1f04040404040400, 0x1111111111110e00, 0x11111111110a0400, 0x1111111515150a00,
    0x11110a040a111100, 0x1111110a04040400, 0x1f01020408101f00, 0x0e08080808080e00,
    0x0010080402010000, 0x0e02020202020e00, 0x040a110000000000, 0x000000000000001f,
    0x0804020000000000, 0x00000e010f110f00, 0x1010161911111e00, 0x00000e1010110e00,
    0x01010d1311110f00, 0x00000e111f100e00, 0x0609081c08080800, 0x00000f11110f010e,
    0x1010161911111100, 0x04000c0404040e00, 0x020006020202120c, 0x1010121418141200,
    0x0c04040404040e00, 0x00001a1515111100, 0x0000161911111100, 0x00000e1111110e00,
    0x00001e11111e1010, 0x00000f11110f0101, 0x0000161910101000, 0x00000f100e011e00,
    0x08081c0808090600, 0x0000111111130d00, 0x00001111110a0400, 0x0000111115150a00,
    0x0000110a040a1100, 0x00001111110f010e, 0x00001f0204081f00, 0x0204040804040200,
    0x0404040404040400, 0x0804040204040800, 0x0000081502000000};

} // namespace

std::uint64_t glyph(char c) {
    return c >= ' ' && c <= '~' ? kGlyphs.at(static_cast<std::size_t>(c - ' ')) : 0;
}

} // namespace tw::map
