// Covers: map/checks.cpp, map/layers.cpp, map/tile_data.cpp
#include "map/acceptance.h"
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

using test::MapBuilder;
using Bytes = std::vector<std::byte>;

MapBuilder walled() {
    MapBuilder builder{4, 3};
    for (int x = 0; x < 4; ++x) {
        builder.set_game(x, 2, kTileSolid);
    }
    return builder;
}

Physics physics_of(const Bytes& file, Warnings* warnings = nullptr) {
    const auto map = Map::parse(file);
    REQUIRE(map.has_value());
    auto physics = map->physics(warnings);
    REQUIRE(physics.has_value());
    return std::move(*physics);
}

/// A map of the given layer items in one group; its data blocks are copies of `block`.
Bytes map_of(const std::vector<std::vector<std::int32_t>>& layers, const Bytes& block,
             int blocks = 1) {
    test::DatafileWriter writer;
    const std::int32_t version[] = {1};
    writer.add_item(kItemVersion, 0, version);
    const std::int32_t group[] = {1, 0, 0, 100, 100, 0, static_cast<std::int32_t>(layers.size())};
    writer.add_item(kItemGroup, 0, group);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        writer.add_item(kItemLayer, static_cast<std::uint16_t>(i), layers[i]);
    }
    for (int i = 0; i < blocks; ++i) {
        writer.add_block(block);
    }
    return writer.finish();
}

std::vector<std::int32_t> tile_layer(int version, int width, int height, int flags, int data) {
    std::vector<std::int32_t> ints{0,   2,   0,   version, width, height, flags, 255,
                                   255, 255, 255, -1,      0,     -1,     data};
    if (version >= 3) {
        ints.insert(ints.end(), 3, static_cast<std::int32_t>(0x80808080U)); // an empty name
    }
    return ints;
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
        const Physics physics = physics_of(walled()
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
    const Physics physics = physics_of(walled().build());

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
        const Physics physics = physics_of(walled().set(Layer::switch_, 0, 0, record).build());
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

TEST_CASE("what DDNet rejects is read all the same and named") {
    struct Row {
        std::string_view name;
        std::vector<std::vector<std::int32_t>> layers;
        std::string_view strict;
    };

    const auto game = tile_layer(2, 3, 3, kFlagGame, 0);
    auto named = tile_layer(3, 3, 3, kFlagGame, 0);
    named.at(15) = 0x7fffffff;
    auto nameless = tile_layer(3, 3, 3, kFlagGame, 0);
    nameless.pop_back();
    auto too_red = tile_layer(2, 3, 3, 0, 1);
    too_red.at(7) = 256;
    auto red_tele = tile_layer(2, 3, 3, kFlagTele, 0);
    red_tele.at(7) = 256;
    red_tele.push_back(1);
    auto tele_nowhere = tile_layer(2, 3, 3, kFlagTele, 0);
    tele_nowhere.push_back(2);
    const Row rows[] = {
        {"plain", {game}, "accepts"},
        {"one column", {tile_layer(2, 1, 9, kFlagGame, 0)}, "rejects:game_layer_too_small"},
        {"unknown tilemap version", {game, tile_layer(5, 3, 3, 0, -1)}, "rejects:tilemap_version"},
        {"shared block", {game, tile_layer(2, 3, 3, 0, 0)}, "rejects:tile_block_shared"},
        {"other block", {game, tile_layer(2, 3, 3, 0, 1)}, "accepts"},
        {"no block", {game, tile_layer(2, 3, 3, 0, -1)}, "rejects:tile_block_missing"},
        {"block past the last", {game, tile_layer(2, 3, 3, 0, 2)}, "rejects:tile_block_missing"},
        {"physics block past the last", {game, tele_nowhere}, "rejects:tile_block_missing"},
        {"two flags", {game, tile_layer(2, 3, 3, 3, -1)}, "rejects:several_physics_flags"},
        {"the game layer is tele, too",
         {tile_layer(2, 3, 3, 3, 0)},
         "rejects:several_physics_flags"},
        {"one column, plain", {game, tile_layer(2, 1, 9, 0, 1)}, "rejects:tile_layer_too_small"},
        {"no height, plain", {game, tile_layer(2, 3, 0, 0, 1)}, "rejects:tile_layer_too_small"},
        {"more tiles than an int, plain",
         {game, tile_layer(2, 65536, 65536, 0, 1)},
         "rejects:layer_dimensions"},
        {"many tiles, plain", {game, tile_layer(2, 32768, 32768, 0, 1)}, "accepts"},
        {"colour out of range", {game, too_red}, "rejects:layer_color"},
        {"a physics layer's colour and its unused block do not matter",
         {game, red_tele},
         "accepts"},
        {"item ends in its name", {nameless}, "rejects:layer_item_short"},
        {"flag without index",
         {game, tile_layer(2, 3, 3, kFlagTele, -1)},
         "rejects:physics_index_missing"},
        {"name is no text", {named}, "rejects:layer_name_not_utf8"},
        {"item too short", {game, {0, 2, 0}}, "rejects:layer_item_short"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        const auto map = Map::parse(map_of(row.layers, Bytes(36), 2));
        REQUIRE(map.has_value());
        CHECK(judge(*map).strict == row.strict);
        CHECK(judge(*map).lenient == "accepts");
    }
}

TEST_CASE("a physics layer is indexed with the game layer's width, and ignored if it is smaller") {
    std::vector<std::uint8_t> record = {7, 26};
    MapBuilder larger = walled().add_layer(Layer::tele, 5, 3);
    larger.set(Layer::tele, 4, 0, record);
    Warnings warnings;
    const Physics shifted = physics_of(larger.build(), &warnings);
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
    builder.set(Layer::front, 0, 0, record); // goes to the first
    const auto map = Map::parse(builder.build());
    REQUIRE(map.has_value());
    CHECK(map->warnings().contains(WarningId::physics_layer_twice));
    CHECK(map->physics_layer(Layer::front) == LayerPlace{0, 2});
    CHECK(map->physics()->locate(WorldPos{0, 0}).front == 0);
}

TEST_CASE("groups that share layers or name missing ones are read and reported") {
    struct Row {
        std::string_view name;
        std::vector<std::array<std::int32_t, 2>> groups; // first, count
        std::string_view strict;
        std::string_view lenient;
    };

    const Row rows[] = {
        {"one group", {{0, 1}}, "accepts", "accepts"},
        {"empty group", {{0, 0}, {0, 1}}, "accepts", "accepts"},
        {"shared", {{0, 1}, {0, 1}}, "rejects:layer_in_two_groups", "accepts"},
        {"out of range", {{0, 1}, {1, 1}}, "rejects:group_layers_out_of_range", "accepts"},
        {"huge",
         {{0, 1}, {0x7fffffff, 0x7fffffff}},
         "rejects:group_layers_out_of_range",
         "accepts"},
        {"negative", {{0, 1}, {-1, 1}}, "rejects:group_layers_out_of_range", "accepts"},
        {"no layers out of range",
         {{0, 1}, {2, 0}},
         "rejects:group_layers_out_of_range",
         "accepts"},
        {"minus one layer", {{0, 1}, {0, -1}}, "rejects:group_layers_out_of_range", "accepts"},
        {"one more than there is", {{0, 2}}, "rejects:group_layers_out_of_range", "accepts"},
        {"layer in no group", {{0, 0}}, "rejects:no_game_layer", "rejects:no_game_layer"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        test::DatafileWriter writer;
        const std::int32_t version[] = {1};
        writer.add_item(kItemVersion, 0, version);
        writer.add_item(kItemLayer, 0, tile_layer(2, 3, 3, kFlagGame, 0));
        for (std::size_t i = 0; i < row.groups.size(); ++i) {
            const std::int32_t group[] = {1, 0, 0, 100, 100, row.groups[i][0], row.groups[i][1]};
            writer.add_item(kItemGroup, static_cast<std::uint16_t>(i), group);
        }
        writer.add_block(Bytes(36));
        const auto map = Map::parse(writer.finish());
        REQUIRE(map.has_value());
        CHECK(judge(*map).strict == row.strict);
        CHECK(judge(*map).lenient == row.lenient);
    }
}

TEST_CASE("many groups that all name all layers take no longer than the layers") {
    constexpr int kMany = 30000;
    test::DatafileWriter writer;
    const std::int32_t version[] = {1};
    const std::int32_t group[] = {1, 0, 0, 100, 100, 0, kMany};
    writer.add_item(kItemVersion, 0, version);
    const auto layer = tile_layer(2, 3, 3, kFlagGame, 0);
    for (int i = 0; i < kMany; ++i) {
        writer.add_item(kItemGroup, static_cast<std::uint16_t>(i), group);
        writer.add_item(kItemLayer, static_cast<std::uint16_t>(i), layer);
    }
    writer.add_block(Bytes(36));
    const auto map = Map::parse(writer.finish());
    REQUIRE(map.has_value());
    CHECK(map->physics_layer(Layer::game) == LayerPlace{kMany - 1, kMany - 1});
}

TEST_CASE("a map without version item is read only if its items look like a map's") {
    test::DatafileWriter stripped;
    const std::int32_t group[] = {1, 0, 0, 100, 100, 0, 1};
    stripped.add_item(kItemGroup, 0, group);
    stripped.add_item(kItemLayer, 0, tile_layer(2, 3, 3, kFlagGame, 0));
    stripped.add_block(Bytes(36));
    const auto map = Map::parse(stripped.finish());
    REQUIRE(map.has_value());
    CHECK(judge(*map).strict == "rejects:version_item_missing");
    CHECK(judge(*map).lenient == "accepts");

    CHECK(Map::parse(test::DatafileWriter{}.finish()).error().code == MapErrc::no_version_item);
    test::DatafileWriter wrong;
    const std::int32_t version[] = {2};
    wrong.add_item(kItemVersion, 0, version);
    CHECK(Map::parse(wrong.finish()).error().code == MapErrc::unknown_map_version);
    wrong.add_item(kItemGroup, 0, group);
    wrong.add_item(kItemLayer, 0, tile_layer(2, 3, 3, kFlagGame, 0));
    wrong.add_block(Bytes(36));
    const auto sane = Map::parse(wrong.finish());
    REQUIRE(sane.has_value());
    CHECK(judge(*sane).strict == "rejects:version_item_unknown");
    CHECK(judge(*sane).lenient == "accepts");
}

TEST_CASE("a layer in no group is not looked at, whatever it is") {
    test::DatafileWriter writer;
    const std::int32_t version[] = {1};
    const std::int32_t group[] = {1, 0, 0, 100, 100, 0, 1};
    writer.add_item(kItemVersion, 0, version);
    writer.add_item(kItemGroup, 0, group);
    writer.add_item(kItemLayer, 0, tile_layer(2, 3, 3, kFlagGame, 0));
    writer.add_item(kItemLayer, 1, tile_layer(9, 0, 0, 63, 0));
    writer.add_block(Bytes(36));
    const auto map = Map::parse(writer.finish());
    REQUIRE(map.has_value());
    CHECK(judge(*map).strict == "accepts");
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

} // namespace tw::map
