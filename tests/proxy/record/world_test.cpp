#include "map/game_layer.h"
#include "proxy/record/world.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>

#include <doctest/doctest.h>

namespace tw::record {
namespace {

/// A map of 20 by 20 tiles, solid in the rightmost column.
World small_world() {
    constexpr int kSize = 20;
    constexpr std::size_t kTileBytes = 4;
    map::Physics::Planes planes;
    planes.width = kSize;
    planes.height = kSize;
    auto& game = planes.records[static_cast<std::size_t>(map::Layer::game)];
    game = map::Block{kSize * kSize * kTileBytes};
    std::fill(game.writable().begin(), game.writable().end(), std::byte{0});
    for (std::size_t row = 0; row < kSize; ++row) {
        game.writable()[(row * kSize + kSize - 1) * kTileBytes] = std::byte{1};
    }
    return World{std::make_shared<const map::Physics>(std::move(planes))};
}

} // namespace

TEST_CASE("a misplaced character is shown with the wall that it touches") {
    struct Row {
        int x, y;
        Misplaced where;
        int tile_x, tile_y;
        std::string_view game;
    };

    constexpr int kWall = 19 * 32;
    const Row rows[] = {
        {kWall + 16, 100, Misplaced::inside_solid, 19, 3, "solid"},
        {kWall - 1, 100, Misplaced::inside_solid, 19, 2, "solid"},
        {kWall - 14, 112, Misplaced::inside_solid, 19, 3, "solid"},
        {kWall - 15, 100, Misplaced::no, 18, 3, "air"},
        {-100'000, 100, Misplaced::outside_map, 0, 3, "air"},
    };
    const World world = small_world();
    for (const Row& row : rows) {
        CAPTURE(row.x);
        CHECK(world.misplaced(row.x, row.y) == row.where);
        const WorldPlace place = world.misplaced_at(row.x, row.y);
        CHECK(place.x == row.x);
        CHECK(place.y == row.y);
        CHECK(place.tile_x == row.tile_x);
        CHECK(place.tile_y == row.tile_y);
        CHECK(place.game == row.game);
    }
}

} // namespace tw::record
