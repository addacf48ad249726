#include "map/picture.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <optional>

#include <png.h>

namespace tw::map {
namespace {

/// The maximum number of pixels at an automatic scale. Browsers can show a picture of this size.
constexpr std::int64_t kMaxAutomaticPixels = std::int64_t{1} << 24U;
constexpr int kMaxScale = 64;
/// The minimum width of a picture in pixels, which the legend needs.
constexpr int kMinWidth = 360;

constexpr std::array kSwatches = {
    Swatch{Layer::game, 0, 0, 0x1d2127, "air"},
    Swatch{Layer::game, 1, 1, 0xb08d57, "solid"},
    Swatch{Layer::game, 2, 2, 0xe0242f, "death"},
    Swatch{Layer::game, 3, 3, 0x8d99a6, "nohook"},
    Swatch{Layer::game, 4, 4, 0x6d4b7d, "no laser"},
    Swatch{Layer::game, 9, 9, 0x2f3c8f, "freeze"},
    Swatch{Layer::game, 11, 11, 0x55b06a, "unfreeze"},
    Swatch{Layer::game, 12, 12, 0x16205a, "deep freeze"},
    Swatch{Layer::game, 13, 13, 0x8fd19e, "deep unfreeze"},
    Swatch{Layer::game, 144, 144, 0x1f6f8f, "live freeze"},
    Swatch{Layer::game, 145, 145, 0x7fd0e0, "live unfreeze"},
    Swatch{Layer::game, 33, 33, 0xf4f4f4, "start"},
    Swatch{Layer::game, 34, 34, 0xffd83d, "finish"},
    Swatch{Layer::game, 35, 59, 0xc9b458, "time checkpoint"},
    Swatch{Layer::game, 60, 62, 0xd9793f, "stopper"},
    Swatch{Layer::game, 66, 67, 0x9c6b3f, "hook through"},
    Swatch{Layer::game, 5, 6, 0x9c6b3f, "hook through"},
    Swatch{Layer::game, 190, 191, 0x3a4048, "entities off"},
    Swatch{Layer::game, 192, 194, 0x7dff5a, "spawn"},
    Swatch{Layer::game, 195, 196, 0xff7de9, "flag stand"},
    Swatch{Layer::game, 197, 202, 0xffa7b5, "pickup"},
    Swatch{Layer::game, 203, 255, 0xb57dff, "entity"},
    Swatch{Layer::game, 5, 189, 0x5f7f7a, "other tile"},
    Swatch{Layer::tele, 27, 27, 0x3fe0ff, "tele out"},
    Swatch{Layer::tele, 29, 30, 0x39a0c8, "tele checkpoint"},
    Swatch{Layer::tele, 1, 255, 0x00b3ff, "tele in"},
    Swatch{Layer::speedup, 1, 255, 0xff9a1f, "speedup"},
    Swatch{Layer::switch_, 1, 255, 0xc6ff3f, "switch"},
    Swatch{Layer::tune, 1, 255, 0xf05fb0, "tune zone"},
};
constexpr std::size_t kSwatchCount = std::size(kSwatches);

// The palette contains the swatches, the colours of the legend's text and background, and the
// colours of the overlay.
constexpr std::size_t kTextColor = kSwatchCount;
constexpr std::size_t kGroundColor = kTextColor + 1;
constexpr std::size_t kOverlayColor = kGroundColor + 1;
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
    for (const Swatch& swatch : kSwatches) {
        add(overlay.empty() ? swatch.rgb : dimmed(swatch.rgb));
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
    for (std::size_t i = kSwatchCount; i-- > 0;) {
        const Swatch& swatch = kSwatches[i];
        auto& of_layer = colors.at(static_cast<std::size_t>(swatch.layer));
        std::fill(of_layer.begin() + swatch.first, of_layer.begin() + swatch.last + 1,
                  static_cast<std::uint8_t>(i));
    }
    colors[static_cast<std::size_t>(Layer::front)] = colors[static_cast<std::size_t>(Layer::game)];
    return colors;
}

int choose_scale(const PhysicsLayers& physics, int wanted) {
    if (wanted > 0) {
        return std::min(wanted, kMaxScale);
    }
    const std::int64_t tiles = std::int64_t{physics.width()} * physics.height();
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
    Painter(const PhysicsLayers& physics, const PictureOptions& options, int scale)
        : physics_{physics}, options_{options}, scale_{scale}, colors_{make_tile_colors()} {
        if (options.overlay != nullptr) {
            overlay_colors_ = options.overlay->colors;
            overlay_colors_ = overlay_colors_.first(
                std::min(overlay_colors_.size(), std::size_t{kMaxOverlayColors}));
        }
    }

    [[nodiscard]] Result<Picture> run();

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

    /// Returns the pixel for a coordinate. For a coordinate outside the map, returns a pixel just
    /// outside.
    [[nodiscard]] int to_pixel(int value, int tiles) const {
        const std::int64_t pixel = std::int64_t{value} * scale_ / kTileSize;
        return static_cast<int>(std::clamp<std::int64_t>(pixel, -1, std::int64_t{tiles} * scale_));
    }

    [[nodiscard]] std::vector<LegendEntry> used_swatches() const;

    const PhysicsLayers& physics_;
    const PictureOptions& options_;
    int scale_;
    int zoom_ = 1; ///< magnification of the legend, paths and crosses
    std::span<const OverlayColor> overlay_colors_;
    std::array<std::array<std::uint8_t, 256>, kPhysicsLayers> colors_;
    std::array<bool, kSwatchCount> used_{};
    Picture out_;
};

/// The width of a picture in pixels for which the legend has its normal size. The legend of a
/// picture that is at least twice as wide is magnified, because browsers show such pictures
/// reduced.
constexpr int kShownWidth = 720;
constexpr int kMaxZoom = 16;
constexpr int kTextScale = 2;
constexpr int kLegendRow = 16;
constexpr int kLegendColumn = 180;
constexpr int kLegendEdge = 6;
constexpr int kGlyphStep = (kGlyphWidth + 1) * kTextScale;
/// The horizontal distance from the start of a legend column to the label, in pixels at zoom 1.
constexpr int kLabelOffset = 22;
/// The maximum number of characters of a label. A longer label would touch the next column.
constexpr std::size_t kMaxLabel = (kLegendColumn - kLegendEdge - kLabelOffset) / kGlyphStep;

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
    // The front layer's tile fills the square if the game layer is air; otherwise only its middle.
    const std::uint8_t front =
        is_layer_drawn(Layer::front) ? physics_.index(Layer::front, tile) : kTileAir;
    const bool inside = index != kTileAir && front != kTileAir;
    index = index == kTileAir ? front : index;
    const std::uint8_t color = colors_[0][index];
    used_.at(color) = true;
    fill(tile.x * scale_, tile.y * scale_, scale_, scale_, color);
    if (inside && scale_ >= 4) {
        const std::uint8_t inner = colors_[0][front];
        used_.at(inner) = true;
        fill(tile.x * scale_ + scale_ / 4, tile.y * scale_ + scale_ / 4, scale_ / 2, scale_ / 2,
             inner);
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
    fill(tile.x * scale_ + order % 2 * step, tile.y * scale_ + order / 2 * step, size, size, color);
}

void Painter::draw_segment(WorldPos from, WorldPos to, std::uint8_t color) {
    const int x0 = to_pixel(from.x, physics_.width());
    const int y0 = to_pixel(from.y, physics_.height());
    const int x1 = to_pixel(to.x, physics_.width());
    const int y1 = to_pixel(to.y, physics_.height());
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    const int thick = std::max(scale_ >= 8 ? 2 : 1, std::min(zoom_, scale_ / 2));
    const int before = (thick - 1) / 2;
    for (int i = 0; i <= steps; ++i) {
        const auto between = [i, steps](int a, int b) {
            return static_cast<int>(a + (std::int64_t{b} - a) * i / steps);
        };
        fill(between(x0, x1) - before, between(y0, y1) - before, thick, thick, color);
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
    const int thick = std::max(zoom_, 2);
    for (const int edge : {thick, 0}) {
        for (int i = -arm; i <= arm; ++i) {
            for (const int side : {-1, 1}) {
                fill(x + i - edge / 2, y + i * side - edge / 2, thick + edge, thick + edge,
                     edge != 0 ? static_cast<std::uint8_t>(kGroundColor) : color);
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
        if (each.tile.x >= 0 && each.tile.x < physics_.width() && each.tile.y >= 0 &&
            each.tile.y < physics_.height()) {
            fill(each.tile.x * scale_, each.tile.y * scale_, scale_, scale_, color);
        }
    });
    draw_all(overlay.paths,
             [this](const Path& path, std::uint8_t color) { draw_path(path, color); });
    draw_all(overlay.crosses, [this](const Cross& cross, std::uint8_t color) {
        draw_cross(to_pixel(cross.at.x, physics_.width()), to_pixel(cross.at.y, physics_.height()),
                   std::max(scale_ / 2, 3 * zoom_), color);
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
        const std::uint16_t dots = glyph(byte < 0x80U ? c : '?');
        for (int row = 0; row < kGlyphHeight; ++row) {
            for (int column = 0; column < kGlyphWidth; ++column) {
                if (glyph_dot(dots, column, row)) {
                    const int dot = kTextScale * zoom_;
                    fill(x + column * dot, y + row * dot, dot, dot,
                         static_cast<std::uint8_t>(kTextColor));
                }
            }
        }
        x += kGlyphStep * zoom_;
    }
}

/// Returns the swatches that the map uses. If several have the same label, returns only the first
/// of these.
std::vector<Painter::LegendEntry> Painter::used_swatches() const {
    std::vector<LegendEntry> found;
    for (std::size_t i = 0; i < kSwatchCount; ++i) {
        const std::string_view label = kSwatches[i].label;
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
        draw_cross(x + 7 * zoom_, y + 5 * zoom_, 4 * zoom_, color);
    } else {
        fill(x - zoom_, y - zoom_, 16 * zoom_, 12 * zoom_, static_cast<std::uint8_t>(kTextColor));
        fill(x, y, 14 * zoom_, 10 * zoom_, color);
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
    const std::vector<LegendEntry> swatches = used_swatches();
    const int columns = std::max(out_.width / (kLegendColumn * zoom_), 1);
    const auto rows = [columns](const std::vector<LegendEntry>& entries) {
        return (static_cast<int>(entries.size()) + columns - 1) / columns;
    };
    const int overlay_row = overlay_colors_.empty() ? 0 : 1; // row 0 is for the title
    const int swatch_row = overlay_row + rows(overlay);
    const int top = out_.height;
    out_.height += ((swatch_row + rows(swatches)) * kLegendRow + 8) * zoom_;
    out_.pixels.resize(static_cast<std::size_t>(out_.width) * static_cast<std::size_t>(out_.height),
                       static_cast<std::uint8_t>(kGroundColor));
    if (overlay_row != 0) {
        draw_text(kLegendEdge * zoom_, top + kLegendEdge * zoom_, options_.overlay->title,
                  static_cast<std::size_t>(out_.width / (kGlyphStep * zoom_)));
    }
    const auto draw_entries = [&](const std::vector<LegendEntry>& entries, int row) {
        for (int i = 0; i < static_cast<int>(entries.size()); ++i) {
            draw_legend_entry((i % columns * kLegendColumn + kLegendEdge) * zoom_,
                              top + ((row + i / columns) * kLegendRow + kLegendEdge) * zoom_,
                              entries[static_cast<std::size_t>(i)]);
        }
    };
    draw_entries(overlay, overlay_row);
    draw_entries(swatches, swatch_row);
}

Result<Picture> Painter::run() {
    const std::int64_t map_width = std::int64_t{physics_.width()} * scale_;
    const std::int64_t map_height = std::int64_t{physics_.height()} * scale_;
    const std::int64_t width = std::max<std::int64_t>(map_width, options_.legend ? kMinWidth : 1);
    zoom_ = static_cast<int>(std::clamp<std::int64_t>(width / kShownWidth, 1, kMaxZoom));
    if (width > kMaxPicturePixels || map_height > kMaxPicturePixels ||
        width * map_height > kMaxPicturePixels) {
        return tl::unexpected{MapError{.code = MapErrc::picture_too_large}};
    }
    out_.width = static_cast<int>(width);
    out_.height = static_cast<int>(map_height);
    out_.palette = make_palette(overlay_colors_);
    out_.pixels.assign(static_cast<std::size_t>(width * map_height),
                       static_cast<std::uint8_t>(kGroundColor));
    for (int y = 0; y < physics_.height(); ++y) {
        for (int x = 0; x < physics_.width(); ++x) {
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

std::span<const Swatch> swatches() {
    return kSwatches;
}

int largest_scale(const PhysicsLayers& physics) {
    int scale = kMaxScale;
    while (scale > 0 && std::max<std::int64_t>(std::int64_t{physics.width()} * scale, kMinWidth) *
                                physics.height() * scale >
                            kMaxPicturePixels) {
        --scale;
    }
    return scale;
}

Result<Picture> draw(const PhysicsLayers& physics, const PictureOptions& options) {
    try {
        return Painter{physics, options, choose_scale(physics, options.scale)}.run();
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
        // The caller gets the same error as when libpng runs out of memory.
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

constexpr std::array<std::uint16_t, 26> kSmallLetters = {
    006357, 046556, 003443, 013553, 003563, 012722, 003536, 046555, 020222,
    010152, 045665, 062227, 007775, 006555, 002552, 006564, 003531, 003444,
    003636, 027223, 005553, 005572, 005777, 005225, 005312, 007367};
constexpr std::array<std::uint16_t, 26> kCapitals = {
    025755, 065656, 034443, 065556, 074647, 074644, 034553, 055755, 072227,
    011152, 055655, 044447, 057755, 065555, 025552, 065644, 025573, 065655,
    034216, 072222, 055557, 055552, 055775, 055255, 055222, 071247};
constexpr std::array<std::uint16_t, 10> kDigits = {075557, 026227, 071747, 071717, 055711,
                                                   074717, 074757, 071111, 075757, 075717};

struct FontGlyph {
    char character;
    std::uint16_t dots;
};

constexpr FontGlyph kFontGlyphs[] = {
    {'!', 022202},  {'"', 055000}, {'#', 057575}, {'$', 036236}, {'%', 051245}, {'&', 025253},
    {'\'', 022000}, {'(', 012221}, {')', 042224}, {'*', 052725}, {'+', 002720}, {',', 000024},
    {'-', 000700},  {'.', 000002}, {'/', 011244}, {':', 002020}, {';', 002024}, {'<', 012421},
    {'=', 007070},  {'>', 042124}, {'?', 061202}, {'@', 075743}, {'[', 032223}, {'\\', 044211},
    {']', 062226},  {'^', 025000}, {'_', 000007}, {'`', 042000}, {'{', 032623}, {'|', 022222},
    {'}', 062326},  {'~', 003600}};

} // namespace

std::uint16_t glyph(char c) {
    if (c >= 'a' && c <= 'z') {
        return kSmallLetters.at(static_cast<std::size_t>(c - 'a'));
    }
    if (c >= 'A' && c <= 'Z') {
        return kCapitals.at(static_cast<std::size_t>(c - 'A'));
    }
    if (c >= '0' && c <= '9') {
        return kDigits.at(static_cast<std::size_t>(c - '0'));
    }
    const auto* const sign = std::ranges::find(kFontGlyphs, c, &FontGlyph::character);
    return sign == std::end(kFontGlyphs) ? 0 : sign->dots;
}

} // namespace tw::map
