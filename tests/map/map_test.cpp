// Covers: map/layers.cpp
#include "map/describe.h"
#include "map/items.h"
#include "map/map.h"
#include "map/text.h"
#include "tests/map/map_builder.h"

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::map {
namespace {

using test::map_of;
using test::MapBuilder;
using test::tile_layer;
using Bytes = std::vector<std::byte>;

MapBuilder walled() {
    MapBuilder builder{4, 3};
    for (int x = 0; x < 4; ++x) {
        builder.set_game(x, 2, kTileSolid);
    }
    return builder;
}

PhysicsLayers physics_of(const Bytes& file, Warnings* warnings = nullptr) {
    const auto map = Map::parse(file);
    REQUIRE(map.has_value());
    auto physics = map->physics(warnings);
    REQUIRE(physics.has_value());
    return std::move(*physics);
}

} // namespace

TEST_CASE("a position finds what all six physics layers have there") {
    const std::uint8_t front[] = {9, 8};
    const std::uint8_t tele[] = {3, 26};
    const std::uint8_t speedup[] = {5, 6, 28, 0, 0xa6, 0xff};
    const std::uint8_t switch_tile[] = {1, 24, 2, 7};
    const std::uint8_t tune[] = {4, 68};
    for (const int version : {2, 3}) {
        CAPTURE(version);
        const PhysicsLayers physics = physics_of(walled()
                                                     .tilemap_version(version)
                                                     .set(Layer::front, 1, 2, front)
                                                     .set(Layer::tele, 1, 2, tele)
                                                     .set(Layer::speedup, 1, 2, speedup)
                                                     .set(Layer::switch_, 1, 2, switch_tile)
                                                     .set(Layer::tune, 1, 2, tune)
                                                     .build());
        const Location found = physics.locate(WorldPos{40, 70});
        CHECK(found.tile == TilePos{1, 2});
        CHECK_FALSE(found.outside);
        CHECK(found.game == kTileSolid);
        CHECK(found.front == 9);
        CHECK(found.front_flags == 8);
        CHECK(found.tele == TeleTile{3, 26});
        CHECK(found.speedup == SpeedupTile{5, 6, 28, -90});
        CHECK(found.switch_ == SwitchTile{1, 24, 2, 7});
        CHECK(found.tune == TuneTile{4, 68});
        const Location next = physics.locate(WorldPos{64, 70});
        CHECK(next.tile == TilePos{2, 2});
        CHECK(next.front == 0);
        CHECK(next.tele == TeleTile{});
    }
}

TEST_CASE("outside the map the border tile counts, infinitely far") {
    const PhysicsLayers physics = physics_of(walled().build());

    struct Row {
        WorldPos position;
        TilePos tile;
        bool outside;
        bool beyond;
    };

    constexpr int kFar = 2147483647;
    const Row rows[] = {
        {{0, 0}, {0, 0}, false, false},      {{127, 95}, {3, 2}, false, false},
        {{128, 95}, {3, 2}, true, false},    {{127, 96}, {3, 2}, true, false},
        {{-1, 5}, {0, 0}, true, false},      {{-6400, 5}, {0, 0}, true, false},
        {{-6432, 5}, {0, 0}, true, true},    {{204 * 32, 5}, {3, 0}, true, false},
        {{205 * 32, 5}, {3, 0}, true, true}, {{5, 204 * 32}, {0, 2}, true, true},
        {{kFar, kFar}, {3, 2}, true, true},  {{-kFar - 1, -kFar - 1}, {0, 0}, true, true},
    };
    for (const auto& row : rows) {
        CAPTURE(row.position.x);
        CAPTURE(row.position.y);
        const Location found = physics.locate(row.position);
        CHECK(found.tile == row.tile);
        CHECK(found.outside == row.outside);
        CHECK(physics.beyond_border(row.position) == row.beyond);
    }
}

TEST_CASE("a switch tile the game drops when it loads says index 0") {
    struct Row {
        std::uint8_t index;
        bool kept;
    };

    for (const Row row : {Row{6, false}, Row{7, true}, Row{95, true}, Row{96, false}, Row{98, true},
                          Row{99, true}, Row{100, false}, Row{107, false}, Row{108, true}}) {
        CAPTURE(row.index);
        const std::uint8_t record[] = {1, row.index, 0, 0};
        const PhysicsLayers physics =
            physics_of(walled().set(Layer::switch_, 0, 0, record).build());
        CHECK(physics.locate(WorldPos{0, 0}).switch_.index == (row.kept ? row.index : 0));
        CHECK(physics.index(Layer::switch_, {0, 0}) == row.index);
    }
}

TEST_CASE("packed tiles expand, and only as far as the entries reach") {
    struct Row {
        std::string_view name;
        std::vector<std::uint8_t> data;
        MapErrc code;
        std::string_view strict;
    };

    const Row rows[] = {
        {"exact", {1, 0, 3, 0, 3, 8, 1, 0}, MapErrc::none, "accepts"},
        {"last run cut", {1, 0, 3, 0, 3, 8, 255, 0}, MapErrc::none, "accepts"},
        {"entry left over",
         {1, 0, 3, 0, 3, 8, 1, 0, 0, 0, 0, 0},
         MapErrc::none,
         "rejects:packed_entries_left"},
        {"reserved byte", {1, 0, 3, 0, 3, 8, 1, 9}, MapErrc::none, "rejects:packed_reserved_set"},
        {"one short",
         {1, 0, 3, 0, 3, 8, 0, 0},
         MapErrc::tile_data_short,
         "rejects:tile_data_short"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        Bytes data;
        for (const std::uint8_t byte : row.data) {
            data.push_back(std::byte{byte});
        }
        const auto map = Map::parse(map_of({tile_layer(4, 3, 2, kFlagGame, 0)}, data));
        REQUIRE(map.has_value());
        CHECK(judge(*map).strict == row.strict);
        const auto physics = map->physics();
        REQUIRE(physics.has_value() == (row.code == MapErrc::none));
        if (physics) {
            CHECK(physics->at({0, 1}).game == 1);
            CHECK(physics->at({1, 1}).game == 3);
            CHECK(physics->at({2, 1}).game_flags == 8);
        } else {
            CHECK(physics.error().code == row.code);
        }
    }
}

TEST_CASE("a map without a usable game layer has no physics, with the reason") {
    struct Row {
        std::string_view name;
        std::vector<std::int32_t> layer;
        MapErrc code;
    };

    const auto cut = [] {
        auto layer = tile_layer(2, 2, 2, kFlagGame, 0);
        layer.pop_back();
        return layer;
    };
    const Row rows[] = {
        {"plain layer", tile_layer(2, 2, 2, 0, 0), MapErrc::no_game_layer},
        {"quads", {0, 3, 0, 1, 0, 0, -1}, MapErrc::no_game_layer},
        {"short item", cut(), MapErrc::no_game_layer},
        {"no width", tile_layer(2, 0, 2, kFlagGame, 0), MapErrc::layer_bad_dimensions},
        {"negative height", tile_layer(2, 2, -2, kFlagGame, 0), MapErrc::layer_bad_dimensions},
        {"huge", tile_layer(2, 0x7fffffff, 0x7fffffff, kFlagGame, 0),
         MapErrc::layer_bad_dimensions},
        {"no data", tile_layer(2, 2, 2, kFlagGame, -1), MapErrc::tile_data_missing},
        {"data out of range", tile_layer(2, 2, 2, kFlagGame, 1), MapErrc::tile_data_missing},
        {"too few tiles", tile_layer(2, 5, 2, kFlagGame, 0), MapErrc::tile_data_short},
        {"too few packed", tile_layer(4, 2560, 1, kFlagGame, 0), MapErrc::tile_data_short},
        {"packed cannot", tile_layer(4, 8192, 8192, kFlagGame, 0), MapErrc::tile_data_short},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        const auto map = Map::parse(map_of({row.layer}, Bytes(36)));
        REQUIRE(map.has_value());
        const auto physics = map->physics();
        REQUIRE_FALSE(physics.has_value());
        CHECK(error_info(physics.error().code).name == error_info(row.code).name);
        CHECK(judge(*map).lenient.substr(0, 8) == "rejects:");
    }
}

TEST_CASE("a physics layer is indexed with the game layer's width, and ignored if it is smaller") {
    std::vector<std::uint8_t> record = {7, 26};
    MapBuilder larger = walled().add_layer(Layer::tele, 5, 3);
    larger.set(Layer::tele, 4, 0, record);
    Warnings warnings;
    const PhysicsLayers shifted = physics_of(larger.build(), &warnings);
    CHECK(shifted.locate(WorldPos{0, 32}).tele == TeleTile{7, 26});
    const auto map = Map::parse(larger.build());
    REQUIRE(map.has_value());
    CHECK(map->warnings().contains(WarningId::physics_layer_differs));

    const auto smaller = Map::parse(walled().add_layer(Layer::tele, 3, 3).build());
    REQUIRE(smaller.has_value());
    CHECK(judge(*smaller).strict == "rejects:physics_layer_too_small");
    CHECK_FALSE(smaller->physics()->has(Layer::tele));
}

TEST_CASE("the last physics layer of a kind counts") {
    MapBuilder builder = walled().add_layer(Layer::front, 4, 3).add_layer(Layer::front, 4, 3);
    const std::uint8_t record[] = {9};
    builder.set(Layer::front, 0, 0, record); // set() writes to the first front layer
    const auto map = Map::parse(builder.build());
    REQUIRE(map.has_value());
    CHECK(map->warnings().contains(WarningId::physics_layer_twice));
    CHECK(map->physics_layer(Layer::front) == LayerPlace{0, 2});
    CHECK(map->physics()->locate(WorldPos{0, 0}).front == 0);
}

TEST_CASE("text in ints is bytes plus 128 and ends at its NUL") {
    for (const std::string_view text : {"", "Game", "eleven byte", "\xc3\xa4"}) {
        CAPTURE(text);
        std::array<std::int32_t, 3> ints{};
        encode_int_text(text, ints);
        CHECK(decode_int_text(ints) == text);
    }
    std::array<std::int32_t, 3> ints{};
    encode_int_text("longer than eleven", ints);
    CHECK(decode_int_text(ints) == "longer than");
    CHECK(decode_int_text({}).empty());
}

TEST_CASE("settings are lines, with or without the last NUL") {
    using namespace std::string_view_literals;

    struct Row {
        std::string_view block;
        std::vector<std::string> lines;
    };

    const Row rows[] = {
        {"tune gravity 0.5\0sv_x 1\0"sv, {"tune gravity 0.5", "sv_x 1"}},
        {"a\0\0b"sv, {"a", "", "b"}},
        {"\0"sv, {""}},
    };
    for (const auto& row : rows) {
        const auto map = Map::parse(walled().settings(row.block).build());
        REQUIRE(map.has_value());
        const auto info = read_info(*map);
        REQUIRE(info.has_value());
        CHECK(info->settings == row.lines);
    }
}

TEST_CASE("what of a map cannot be used is absent, and the rest is as it is") {
    const auto tele = [](int version, int width) {
        auto layer = tile_layer(version, width, 3, kFlagTele, -1);
        layer.push_back(1);
        return layer;
    };

    struct Row {
        std::string_view name;
        std::vector<std::int32_t> layer;
        bool there;
        bool packed;
    };

    const Row rows[] = {
        {"plain", tele(2, 3), true, false},
        {"packed", tele(4, 3), false, true},
        {"of a version that nobody knows", tele(322, 3), true, false},
        {"of a version that nobody knows, with a smaller one", tele(1, 3), true, false},
        {"no width", tele(2, 0), false, false},
        {"negative width", tele(2, -3), false, false},
        {"without a head", {0, 2}, false, false}};
    for (const auto& row : rows) {
        CAPTURE(row.name);
        const auto map =
            Map::parse(map_of({tile_layer(2, 3, 3, kFlagGame, 0), row.layer}, Bytes(36), 2));
        REQUIRE(map.has_value());
        Warnings warnings;
        const auto physics = map->physics(&warnings);
        REQUIRE(physics.has_value());
        CHECK(physics->has(Layer::tele) == row.there);
        CHECK(warnings.contains(WarningId::physics_layer_packed) == row.packed);
    }
    CHECK(Map::open("/not there/dm1.map").error().code == MapErrc::file_unreadable);
    const auto map = Map::parse(walled().build());
    REQUIRE(map.has_value());
    CHECK_FALSE(map->group(1).has_value());
    CHECK_FALSE(map->layer(1).has_value());
}

TEST_CASE("groups decide which of several layers of a kind counts, not where the layers stand") {
    struct Row {
        std::string_view name;
        int flags;
        std::array<std::int32_t, 2> group_of_layer;
        std::size_t counts;
    };

    constexpr int kMixed = kFlagGame | kFlagTele;
    const Row rows[] = {{"in order", kFlagGame, {0, 1}, 1},
                        {"the other way round", kFlagGame, {1, 0}, 0},
                        {"which are tele, too", kMixed, {0, 1}, 1},
                        {"which are tele, too, the other way round", kMixed, {1, 0}, 0}};
    for (const auto& row : rows) {
        CAPTURE(row.name);
        test::DatafileWriter writer;
        writer.add_item(kItemVersion, 0, std::vector<std::int32_t>{1});
        for (std::int32_t group = 0; group < 2; ++group) {
            const std::int32_t first = row.group_of_layer[0] == group ? 0 : 1;
            writer.add_item(kItemGroup, static_cast<std::uint16_t>(group),
                            std::vector<std::int32_t>{1, 0, 0, 100, 100, first, 1});
        }
        for (std::uint16_t i = 0; i < 2; ++i) {
            writer.add_item(kItemLayer, i, tile_layer(2, 3, 3, row.flags, i));
            writer.add_block(Bytes(36));
        }
        const auto map = Map::parse(writer.finish());
        REQUIRE(map.has_value());
        CHECK(map->physics_layer(Layer::game) == LayerPlace{1, row.counts});
    }
}

TEST_CASE("a tee dies in what kills it, whichever of the two layers that is in") {
    const std::uint8_t death[] = {kTileDeath};
    const PhysicsLayers front = physics_of(walled().set(Layer::front, 1, 1, death).build());
    const PhysicsLayers game = physics_of(walled().set_game(1, 1, kTileDeath).build());
    const WorldPos inside{48, 48};
    for (const PhysicsLayers* physics : {&front, &game}) {
        CHECK(physics->tee_in_death(inside));
        CHECK_FALSE(physics->tee_in_death({112, 16}));
    }
    CHECK(front.tee_touches_death(inside, Layer::front));
    CHECK_FALSE(front.tee_touches_death(inside, Layer::game));
}

TEST_CASE("two places are the same only if nothing of them differs") {
    const Location place{.position = {1, 2},
                         .tile = {3, 4},
                         .outside = true,
                         .game = 5,
                         .game_flags = 6,
                         .front = 7,
                         .front_flags = 8,
                         .tele = {9, 10},
                         .speedup = {11, 12, 13, 14},
                         .switch_ = {15, 16, 17, 18},
                         .tune = {19, 20}};
    CHECK(place == Location{place});
    const std::vector<std::function<void(Location&)>> changes = {
        [](Location& at) { ++at.position.x; },
        [](Location& at) { ++at.position.y; },
        [](Location& at) { ++at.tile.x; },
        [](Location& at) { ++at.tile.y; },
        [](Location& at) { at.outside = false; },
        [](Location& at) { ++at.game; },
        [](Location& at) { ++at.game_flags; },
        [](Location& at) { ++at.front; },
        [](Location& at) { ++at.front_flags; },
        [](Location& at) { ++at.tele.number; },
        [](Location& at) { ++at.tele.index; },
        [](Location& at) { ++at.speedup.force; },
        [](Location& at) { ++at.speedup.max_speed; },
        [](Location& at) { ++at.speedup.index; },
        [](Location& at) { ++at.speedup.angle; },
        [](Location& at) { ++at.switch_.number; },
        [](Location& at) { ++at.switch_.index; },
        [](Location& at) { ++at.switch_.flags; },
        [](Location& at) { ++at.switch_.delay; },
        [](Location& at) { ++at.tune.number; },
        [](Location& at) { ++at.tune.index; }};
    for (std::size_t i = 0; i < changes.size(); ++i) {
        CAPTURE(i);
        Location other = place;
        changes[i](other);
        CHECK(other != place);
    }
}

} // namespace tw::map
