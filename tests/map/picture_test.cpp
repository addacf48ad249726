#include "map/datafile.h"
#include "map/picture.h"
#include "tests/map/map_builder.h"

#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace tw::map {
namespace {

using Rgb = std::array<std::uint8_t, 3>;

Rgb color_at(const Picture& picture, int x, int y) {
    const auto index = static_cast<std::size_t>(
        picture.pixels.at(static_cast<std::size_t>(y) * static_cast<std::size_t>(picture.width) +
                          static_cast<std::size_t>(x)));
    return {picture.palette.at(index * 3), picture.palette.at(index * 3 + 1),
            picture.palette.at(index * 3 + 2)};
}

Map small_map() {
    test::MapBuilder builder{4, 3};
    const std::uint8_t tele[] = {1, 26};
    builder.set_game(1, 2, kTileSolid)
        .set_game(2, 2, kTileDeath)
        .set_record(Layer::tele, 0, 0, tele);
    return Map::parse(builder.build()).value();
}

} // namespace

TEST_CASE("each tile has the colour of its index at any scale") {
    const Map map = small_map();
    const auto physics = map.physics();
    for (const int scale : {1, 2, 4, 16}) {
        CAPTURE(scale);
        PictureOptions options;
        options.scale = scale;
        options.legend = false;
        const auto picture = draw(*physics, options).value();
        CHECK(picture.width == 4 * scale);
        CHECK(picture.height == 3 * scale);
        const auto tile = [&](int x, int y) {
            return color_at(picture, x * scale + scale - 1, y * scale + scale - 1);
        };
        CHECK(tile(1, 2) != tile(2, 2));
        CHECK(tile(1, 2) != tile(3, 2));
        CHECK(tile(3, 2) == tile(3, 0));
        CHECK(color_at(picture, 0, 0) != tile(3, 0)); // the tele layer marks the tile
    }
}

TEST_CASE("layers that are not wanted are not drawn, and a legend needs room") {
    const Map map = small_map();
    const auto physics = map.physics();
    PictureOptions options;
    options.scale = 2;
    options.legend = false;
    options.layers = 1U << static_cast<unsigned>(Layer::game);
    const auto plain = draw(*physics, options).value();
    CHECK(color_at(plain, 0, 0) == color_at(plain, 7, 0));
    options.legend = true;
    CHECK(draw(*physics, options)->height > plain.height);
}

TEST_CASE("paths and crosses may be far outside the map") {
    const Map map = small_map();
    const auto physics = map.physics();
    constexpr int kFar = 2147483647;
    const Overlay overlay{.title = {},
                          .colors = {{.rgb = 0x123456, .label = {}}},
                          .tiles = {},
                          .paths = {{.points = {{32, 32}, {64, 32}}},
                                    {.points = {{-kFar - 1, kFar}, {kFar, -kFar - 1}}},
                                    {.points = {{5, 5}}},
                                    {}},
                          .crosses = {{.at = {kFar, -kFar}}, {.at = {-kFar, kFar}}}};
    PictureOptions options;
    options.scale = 4;
    options.legend = false;
    options.overlay = &overlay;
    const auto with = draw(*physics, options);
    options.overlay = nullptr;
    const auto without = draw(*physics, options);
    REQUIRE(with.has_value());
    CHECK(color_at(*with, 6, 4) != color_at(*without, 6, 4));
    CHECK(color_at(*with, 6, 4) == Rgb{0x12, 0x34, 0x56});
    CHECK(color_at(*with, 15, 11) != Rgb{0x12, 0x34, 0x56});
}

TEST_CASE("a picture that would be too large is refused") {
    const auto map = Map::parse(test::MapBuilder{400, 400}.set_game(0, 0, 1).build()).value();
    PictureOptions options;
    options.scale = 64;
    CHECK(draw(*map.physics(), options).error().code == MapErrc::picture_too_large);
    CHECK(largest_scale({.width = 400, .height = 400}) == 20);
    options.scale = 20;
    CHECK(draw(*map.physics(), options).has_value());
    options.scale = 21;
    CHECK_FALSE(draw(*map.physics(), options).has_value());
}

TEST_CASE("the bytes of a drawn map are a PNG") {
    const auto bytes = draw_png(small_map(), {}).value();
    constexpr std::array<unsigned, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    for (std::size_t i = 0; i < kSignature.size(); ++i) {
        CHECK(std::to_integer<unsigned>(bytes.at(i)) == kSignature.at(i));
    }
}

TEST_CASE("a front tile fills air, and the middle of other tiles if there is room") {
    test::MapBuilder builder{4, 3};
    const std::uint8_t freeze[] = {9};
    builder.set_game(1, 1, kTileSolid).set_game(2, 2, kTileSolid);
    builder.set_record(Layer::front, 0, 0, freeze).set_record(Layer::front, 1, 1, freeze);
    const auto map = Map::parse(builder.build()).value();
    const auto physics = map.physics();
    for (const int scale : {1, 2, 4, 8}) {
        CAPTURE(scale);
        const auto picture = draw(*physics, {.scale = scale, .legend = false}).value();
        const auto corner = [&](int x, int y) { return color_at(picture, x * scale, y * scale); };
        const auto centre = [&](int x, int y) {
            return color_at(picture, x * scale + scale / 2, y * scale + scale / 2);
        };
        CHECK(centre(0, 0) == corner(0, 0));
        CHECK(corner(1, 1) == corner(2, 2));
        CHECK(corner(1, 1) != corner(0, 0));
        CHECK((centre(1, 1) == corner(0, 0)) == (scale >= 4));
    }
    const auto front =
        draw(*physics,
             {.layers = 1U << static_cast<unsigned>(Layer::front), .scale = 1, .legend = false});
    CHECK(color_at(*front, 1, 1) == color_at(*front, 0, 0));
    CHECK(color_at(*front, 2, 2) == color_at(*front, 3, 2));
}

TEST_CASE("a path is two pixels thick where tiles are large") {
    const Map map = small_map();
    const auto physics = map.physics();
    const Overlay overlay{.title = {},
                          .colors = {{.rgb = 0x123456, .label = {}}},
                          .tiles = {},
                          .paths = {{.points = {{0, 32}, {127, 32}}}},
                          .crosses = {}};
    for (const int scale : {4, 8}) {
        CAPTURE(scale);
        const auto picture =
            draw(*physics, {.scale = scale, .legend = false, .overlay = &overlay}).value();
        const auto at = [&](int y) { return color_at(picture, 3 * scale, y); };
        CHECK(at(scale) != at(scale - 1));
        CHECK((at(scale + 1) == at(scale)) == (scale == 8));
    }
}

TEST_CASE("tiles, paths and crosses have the colours of their overlay, on top of each other") {
    const Map map = small_map();
    const auto physics = map.physics();
    const Rgb heat{0x10, 0x20, 0x30};
    const Rgb line{0x40, 0x50, 0x60};
    const Rgb mark{0x70, 0x80, 0x90};
    const Overlay overlay{
        .title = {},
        .colors = {{.rgb = 0x102030, .label = {}},
                   {.rgb = 0x405060, .label = {}},
                   {.rgb = 0x708090, .label = {}}},
        .tiles = {{.tile = {3, 2}, .color = 0},
                  {.tile = {0, 1}, .color = 0},
                  {.tile = {1, 1}, .color = 7},
                  {.tile = {-1, 1}, .color = 0},
                  {.tile = {4, 0}, .color = 0},
                  {.tile = {2147483647, 0}, .color = 0}},
        .paths = {{.points = {{16, 48}, {100, 48}}, .color = 1}, {.points = {{0, 0}}, .color = 3}},
        .crosses = {{.at = {100, 48}, .color = 2}, {.at = {70, 70}, .color = 255}}};
    const auto picture = draw(*physics, {.scale = 16, .legend = false, .overlay = &overlay});
    const auto plain = draw(*physics, {.scale = 16, .legend = false});
    REQUIRE((picture && plain));
    CHECK(picture->width == plain->width);
    CHECK(color_at(*picture, 50, 34) == heat);
    CHECK(color_at(*picture, 2, 18) == heat);
    CHECK(color_at(*picture, 8, 24) == line);
    CHECK(color_at(*picture, 30, 24) == line);
    CHECK(color_at(*picture, 50, 24) == mark);
    CHECK(color_at(*picture, 44, 18) == mark);
    for (const auto& [x, y] : {std::pair{30, 30}, {62, 4}, {20, 36}, {0, 0}}) {
        Rgb dimmed = color_at(*plain, x, y);
        for (std::uint8_t& each : dimmed) {
            each /= 2;
        }
        CHECK(color_at(*picture, x, y) ==
              dimmed); // no colour of the map is a colour of the overlay
    }
}

TEST_CASE("the legend names the overlay, its colours, and no colour without a name") {
    const Map map = small_map();
    const auto physics = map.physics();
    const auto rows = [&](const Overlay& overlay) {
        const auto picture = draw(*physics, {.scale = 1, .overlay = &overlay}).value();
        return (picture.height - 3 - 8) / 20;
    };
    const auto of_colors = [](std::size_t count, std::string_view label) {
        return Overlay{.title = "all of them",
                       .colors = std::vector<OverlayColor>(
                           count, {.rgb = 0x102030, .label = std::string{label}}),
                       .tiles = {},
                       .paths = {},
                       .crosses = {}};
    };
    const int bare = rows({});
    CHECK(rows(of_colors(1, "ann")) == bare + 2); // a row of 450 pixels holds two colours
    CHECK(rows(of_colors(3, "a name that is longer than its column \xc3\xa4")) == bare + 3);
    CHECK(rows(of_colors(3, "")) == bare + 1);
    CHECK(rows(of_colors(kMaxOverlayColors + 9, "x")) == bare + 1 + int{kMaxOverlayColors} / 2);
}

TEST_CASE("the area of an overlay contains its shapes with a margin, within the map") {
    const auto map =
        Map::parse(test::MapBuilder{300, 100}.set_game(0, 0, kTileSolid).build()).value();
    const auto physics = map.physics();
    const auto area = [&](std::vector<WorldPos> points, std::vector<Cross> crosses = {},
                          std::vector<ColoredTile> tiles = {}) {
        return area_of(Overlay{.title = {},
                               .colors = {},
                               .tiles = std::move(tiles),
                               .paths = {{.points = std::move(points)}},
                               .crosses = std::move(crosses)},
                       *physics);
    };
    CHECK(area({}) == TileArea{0, 0, 300, 100});
    CHECK(area({{100 * 32, 50 * 32}, {200 * 32 + 31, 60 * 32}}) == TileArea{92, 37, 117, 36});
    CHECK(area({{150 * 32, 50 * 32}}) == TileArea{118, 32, 64, 36}); // the smallest area
    CHECK(area({{0, 0}}) == TileArea{0, 0, 64, 36});
    CHECK(area({}, {{.at = {2147483647, 2147483647}}}) == TileArea{236, 64, 64, 36});
    CHECK(area({{150 * 32, 50 * 32}}, {}, {{.tile = {-7, 99}}}) == TileArea{0, 34, 167, 66});
    const Overlay cross{
        .title = {}, .colors = {}, .tiles = {}, .paths = {}, .crosses = {{.at = {5, 5}}}};
    const Map small = small_map();
    CHECK(area_of(cross, *small.physics()) == TileArea{0, 0, 4, 3});
}

TEST_CASE("an area of a map is drawn as in the picture of the whole map") {
    const Map map = small_map();
    const auto physics = map.physics();
    const Overlay overlay{
        .title = {},
        .colors = {{.rgb = 0x123456, .label = {}}, {.rgb = 0x2468ac, .label = {}}},
        .tiles = {{.tile = {2, 1}}, {.tile = {0, 0}}},
        .paths = {{.points = {{33, 70}, {90, 70}}, .color = 1}},
        .crosses = {{.at = {80, 40}, .color = 1}}};
    PictureOptions options{.scale = 8, .legend = false, .overlay = &overlay};
    const auto whole = draw(*physics, options);
    options.area = TileArea{1, 1, 2, 2};
    const auto part = draw(*physics, options);
    REQUIRE((whole && part));
    CHECK(part->width == 16);
    REQUIRE(part->height == 16);
    for (int y = 0; y < 16; ++y) {
        for (int x = 0; x < 16; ++x) {
            CHECK(color_at(*part, x, y) == color_at(*whole, x + 8, y + 8));
        }
    }
}

TEST_CASE("a wide picture has a larger legend, as it is shown smaller") {
    struct Row {
        int width;
        int zoom;
    };

    for (const Row row : {Row{80, 1}, Row{90, 2}, Row{225, 4}, Row{450, 8}, Row{1000, 16}}) {
        CAPTURE(row.width);
        const auto map =
            Map::parse(test::MapBuilder{row.width, 3}.set_game(0, 0, 1).build()).value();
        const auto picture = draw(*map.physics(), {.scale = 16}).value();
        CHECK(picture.height - 3 * 16 == (20 + 8) * row.zoom);
    }
}

TEST_CASE("a label with two ranges of tiles is once in the legend") {
    test::MapBuilder one{4, 3};
    one.set_game(0, 0, 66);
    test::MapBuilder two = one;
    two.set_game(1, 0, 5);
    const auto height = [](const test::MapBuilder& builder) {
        const auto map = Map::parse(builder.build()).value();
        return draw(*map.physics(), {.scale = 1})->height;
    };
    CHECK(height(one) == height(two));
    test::MapBuilder three = two;
    three.set_game(2, 0, kTileSolid);
    CHECK(height(three) > height(two));
}

TEST_CASE("the automatic scale and the legend respect the limits of pixels") {
    struct Row {
        int width;
        int height;
        int scale; ///< 0: the picture is too large to be drawn
    };

    for (const Row row : {Row{4, 3, 16}, Row{300, 300, 8}, Row{600, 600, 4}, Row{1200, 1200, 2},
                          Row{5000, 4000, 1}, Row{2, 200000, 0}}) {
        CAPTURE(row.width);
        const auto map =
            Map::parse(test::MapBuilder{row.width, row.height}.set_game(0, 0, 1).build()).value();
        const auto physics = map.physics().value();
        const auto picture = draw(physics, {.legend = row.scale == 0});
        REQUIRE(picture.has_value() == (row.scale != 0));
        if (picture) {
            CHECK(picture->width == row.width * row.scale);
        } else {
            CHECK(picture.error().code == MapErrc::picture_too_large);
            CHECK(draw_png(map, {}).error().code == MapErrc::picture_too_large);
        }
    }
    const auto none = Map::parse(test::map_with_layers({}, {})).value();
    CHECK(draw_png(none, {}).error().code == MapErrc::no_game_layer);
}

namespace {

std::string draw_glyph(char c) {
    std::string text;
    for (int y = 0; y < kGlyphHeight; ++y) {
        for (int x = 0; x < kGlyphWidth; ++x) {
            text += glyph_dot(glyph(c), x, y) ? '#' : '.';
        }
        text += '\n';
    }
    return text;
}

} // namespace

TEST_CASE("dots stand where the bytes say") {
    CHECK(draw_glyph('L') == "#....\n#....\n#....\n#....\n#....\n#....\n#####\n.....\n");
    CHECK(draw_glyph('g') == ".....\n.....\n.####\n#...#\n#...#\n.####\n....#\n.###.\n");
}

TEST_CASE("every letter and digit has a shape, and each letter its own") {
    std::set<std::uint64_t> letters;
    for (char c = 'a'; c <= 'z'; ++c) {
        letters.insert(glyph(c));
        letters.insert(glyph(static_cast<char>(c - 'a' + 'A')));
    }
    CHECK(letters.size() == 52);
    std::set<std::uint64_t> digits;
    for (char c = '0'; c <= '9'; ++c) {
        digits.insert(glyph(c));
    }
    CHECK(digits.size() == 10);
    CHECK(letters.count(0) + digits.count(0) == 0);
}

TEST_CASE("every printable character has a shape, and no two signs have the same") {
    std::set<std::uint64_t> shapes;
    std::size_t signs = 0;
    for (char c = '!'; c <= '~'; ++c) {
        CAPTURE(c);
        CHECK(glyph(c) != 0);
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
            shapes.insert(glyph(c));
            ++signs;
        }
    }
    CHECK(shapes.size() == signs);
}

TEST_CASE("characters that the font lacks are blank") {
    for (const char c : std::string_view{" \t\x7f\xff"}) {
        CHECK(glyph(c) == 0);
    }
}

} // namespace tw::map
