// Covers: proxy/analyze/map_report.cpp
#include "map/tiles.h"
#include "proxy/analyze/map_report.h"
#include "tests/map/map_builder.h"

#include <string>

#include <doctest/doctest.h>

namespace tw::analyze {
namespace {

/// Returns a map of 4 x 3 tiles: a floor, a freeze tile, a finish line, a teleporter, and one byte too many.
map::Map sample_map() {
    map::test::MapBuilder builder{4, 3};
    for (int x = 0; x < 4; ++x) {
        builder.set_game(x, 2, map::kTileSolid);
    }
    builder.set_game(1, 0, 9).set_game(2, 0, 34);
    const std::uint8_t tele[] = {7, 26};
    builder.set(map::Layer::tele, 3, 1, tele);
    auto bytes = builder.build();
    bytes.push_back(std::byte{0});
    auto map = map::Map::parse(std::move(bytes));
    REQUIRE(map.has_value());
    return std::move(*map);
}

} // namespace

TEST_CASE("the map's description lists its contents line by line") {
    const map::Map map = sample_map();
    const std::string page = map_text(map::describe(map), "caf\x1b.map");
    CAPTURE(page);
    CHECK(page.starts_with("map         caf\\u001b.map\nbytes       "));
    for (const char* line : {
             "\nholds       1 group, 2 layers, 0 images, 0 sounds, 0 envelopes\n",
             "\nverdict     strict rejects:trailing_bytes, lenient accepts\n",
             "\nodd         the file continues after its last block (trailing_bytes, first at 0)\n",
             "\nsize        4 x 3 tiles\n",
             "\ngame        4 solid, 1 freeze, 1 finish\n",
             "\ntele        1 telein\n",
         }) {
        CAPTURE(line);
        CHECK(page.find(line) != std::string::npos);
    }
    CHECK(page.find("author") == std::string::npos); // there is no info item
}

TEST_CASE("the line of a position names its tiles and how a tee stands there") {
    const map::Map map = sample_map();
    const auto physics = map.physics();
    REQUIRE(physics.has_value());

    struct Row {
        double x, y;
        std::string line;
    };

    const Row rows[] = {
        {48, 16, "48,16: tile 1,0 freeze; a tee here is in the air"},
        {112, 45, "112,45: tile 3,1 air, tele telein 7; a tee here stands on the ground"},
        {16, 80, "16,80: tile 0,2 solid; a tee here is inside a wall"},
        {16, -8000, "16,-8000: tile 0,0 air; outside the map; a tee here is in the air"},
    };
    for (const Row& row : rows) {
        CHECK(describe_position(*physics, row.x, row.y) == row.line);
    }
}

} // namespace tw::analyze
