// Covers: proxy/record/records.cpp
#include "map/game_layer.h"
#include "proxy/record/records.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::record {
namespace {

/// A map of 20 by 20 tiles, solid in the rightmost column.
TileMap small_map() {
    constexpr int kSize = 20;
    constexpr std::size_t kTileBytes = 4;
    map::PhysicsLayers::Planes planes;
    planes.width = kSize;
    planes.height = kSize;
    auto& game = planes.records[static_cast<std::size_t>(map::Layer::game)];
    game = map::Block{kSize * kSize * kTileBytes};
    std::ranges::fill(game.writable(), std::byte{0});
    for (std::size_t row = 0; row < kSize; ++row) {
        game.writable()[(row * kSize + kSize - 1) * kTileBytes] = std::byte{1};
    }
    return TileMap{std::make_shared<const map::PhysicsLayers>(std::move(planes))};
}

} // namespace

TEST_CASE("a misplaced character is shown with the wall that it touches") {
    struct Row {
        int x, y;
        PositionFault where;
        int tile_x, tile_y;
        std::string_view game;
    };

    constexpr int kWall = 19 * 32;
    const Row rows[] = {
        {kWall + 16, 100, PositionFault::inside_solid, 19, 3, "solid"},
        {kWall - 1, 100, PositionFault::inside_solid, 19, 2, "solid"},
        {kWall - 14, 112, PositionFault::inside_solid, 19, 3, "solid"},
        {kWall - 15, 100, PositionFault::no, 18, 3, "air"},
        {-100'000, 100, PositionFault::outside_map, 0, 3, "air"},
    };
    const TileMap map = small_map();
    for (const Row& row : rows) {
        CAPTURE(row.x);
        CHECK(map.check_position(row.x, row.y) == row.where);
        const map::Location place = map.tiles_at_misplaced(row.x, row.y);
        CHECK(place.position.x == row.x);
        CHECK(place.position.y == row.y);
        CHECK(place.tile.x == row.tile_x);
        CHECK(place.tile.y == row.tile_y);
        CHECK(map::tile_name(map::Layer::game, place.game) == row.game);
    }
}

TEST_CASE("what a snapshot says of types counts, whatever was learned from the one before") {
    struct Type {
        std::uint16_t number;
        std::int32_t uuid; ///< first int of the UUID
    };

    struct Row {
        std::string_view name;
        std::vector<Type> now;
        std::optional<std::uint8_t> first; ///< the type that has the UUID kOne at this point
        std::optional<std::uint8_t> second;
    };

    constexpr std::uint16_t kOne = 0x7ffe;
    constexpr std::uint16_t kTwo = 0x7fff;
    constexpr std::int32_t kByte = 1 << 24;
    const auto described = [](const std::vector<Type>& types) {
        snapshot::Snapshot items;
        for (const Type& type : types) {
            items.append({snapshot::kDescriptorType, type.number},
                         std::vector<std::int32_t>{type.uuid, 0, 0, 0});
        }
        items.append({snapshot::kCharacterType, 0}, std::vector<std::int32_t>(22));
        return items;
    };
    const Row rows[] = {
        {"the same", {{kOne, kByte}}, 1, std::nullopt},
        {"another UUID", {{kOne, 2 * kByte}}, 2, std::nullopt},
        {"one more", {{kOne, kByte}, {kTwo, 3 * kByte}}, 1, 3},
        {"another instead", {{kTwo, kByte}}, 1, 1},
        {"none", {}, 1, std::nullopt},
    };
    const auto first_byte = [](const TypeNames::Entry* entry) {
        return entry == nullptr ? std::nullopt : std::optional<std::uint8_t>{entry->uuid[0]};
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const snapshot::Snapshot before = described({{kOne, kByte}});
        const snapshot::Snapshot now = described(row.now);
        TypeNames types;
        types.learn_types(before.view());
        types.learn_types(now.view(), before.view());
        CHECK(first_byte(types.find(kOne)) == row.first);
        CHECK(first_byte(types.find(kTwo)) == row.second);
    }
}

} // namespace tw::record
