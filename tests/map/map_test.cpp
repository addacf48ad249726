// Covers: map/layers.cpp
#include "map/items.h"
#include "map/map.h"
#include "map/text.h"
#include "tests/map/map_builder.h"
#include "tests/map/writer.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::map {
namespace {

using test::map_with_layers;
using test::MapBuilder;
using test::tile_layer;
using Bytes = std::vector<std::byte>;
using Ints = std::vector<std::int32_t>;

MapBuilder make_walled_map() {
    MapBuilder builder{4, 3};
    for (int x = 0; x < 4; ++x) {
        builder.set_game(x, 2, kTileSolid);
    }
    return builder;
}

PhysicsLayers load_physics_from(const Bytes& file, Warnings* warnings = nullptr) {
    const auto map = Map::parse(file).value();
    return map.physics(warnings).value();
}

MapAcceptance acceptance_of_map(const Map& map) {
    Warnings warnings = map.warnings();
    const auto physics = map.physics(&warnings);
    return map::acceptance_of(warnings, physics);
}

} // namespace

TEST_CASE("a position gives the tiles of all six physics layers") {
    const std::uint8_t front[] = {9, 8};
    const std::uint8_t tele[] = {3, 26};
    const std::uint8_t speedup[] = {5, 6, 28, 0, 0xa6, 0xff};
    const std::uint8_t switch_tile[] = {1, 24, 2, 7};
    const std::uint8_t tune[] = {4, 68};
    for (const int version : {2, 3}) {
        CAPTURE(version);
        const PhysicsLayers physics =
            load_physics_from(make_walled_map()
                                  .set_tilemap_version(version)
                                  .set_record(Layer::front, 1, 2, front)
                                  .set_record(Layer::tele, 1, 2, tele)
                                  .set_record(Layer::speedup, 1, 2, speedup)
                                  .set_record(Layer::switch_, 1, 2, switch_tile)
                                  .set_record(Layer::tune, 1, 2, tune)
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

TEST_CASE("outside the map, the nearest border tile counts") {
    const PhysicsLayers physics = load_physics_from(make_walled_map().build());

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

TEST_CASE("a switch tile that the game discards has index 0") {
    struct Row {
        std::uint8_t index;
        bool kept;
    };

    for (const Row row : {Row{6, false}, Row{7, true}, Row{95, true}, Row{96, false}, Row{98, true},
                          Row{99, true}, Row{100, false}, Row{107, false}, Row{108, true}}) {
        CAPTURE(row.index);
        const std::uint8_t record[] = {1, row.index, 0, 0};
        const PhysicsLayers physics =
            load_physics_from(make_walled_map().set_record(Layer::switch_, 0, 0, record).build());
        CHECK(physics.locate(WorldPos{0, 0}).switch_.index == (row.kept ? row.index : 0));
        CHECK(physics.index(Layer::switch_, {0, 0}) == row.index);
    }
}

TEST_CASE("packed tiles are unpacked if their entries fill the layer") {
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
        const auto map =
            Map::parse(map_with_layers({tile_layer(4, 3, 2, kLayerFlagGame, 0)}, data)).value();
        CHECK(acceptance_of_map(map).strict == row.strict);
        const auto physics = map.physics();
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
        auto layer = tile_layer(2, 2, 2, kLayerFlagGame, 0);
        layer.pop_back();
        return layer;
    };
    const Row rows[] = {
        {"plain layer", tile_layer(2, 2, 2, 0, 0), MapErrc::no_game_layer},
        {"quads", {0, 3, 0, 1, 0, 0, -1}, MapErrc::no_game_layer},
        {"short item", cut(), MapErrc::no_game_layer},
        {"no width", tile_layer(2, 0, 2, kLayerFlagGame, 0), MapErrc::layer_bad_dimensions},
        {"negative height", tile_layer(2, 2, -2, kLayerFlagGame, 0), MapErrc::layer_bad_dimensions},
        {"huge", tile_layer(2, 0x7fffffff, 0x7fffffff, kLayerFlagGame, 0),
         MapErrc::layer_bad_dimensions},
        {"no data", tile_layer(2, 2, 2, kLayerFlagGame, -1), MapErrc::tile_data_missing},
        {"data out of range", tile_layer(2, 2, 2, kLayerFlagGame, 1), MapErrc::tile_data_missing},
        {"too few tiles", tile_layer(2, 5, 2, kLayerFlagGame, 0), MapErrc::tile_data_short},
        {"too few packed", tile_layer(4, 2560, 1, kLayerFlagGame, 0), MapErrc::tile_data_short},
        {"packed cannot", tile_layer(4, 8192, 8192, kLayerFlagGame, 0), MapErrc::tile_data_short},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        const auto map = Map::parse(map_with_layers({row.layer}, Bytes(36))).value();
        const auto physics = map.physics();
        REQUIRE_FALSE(physics.has_value());
        CHECK(error_info(physics.error().code).name == error_info(row.code).name);
        CHECK(acceptance_of_map(map).lenient.substr(0, 8) == "rejects:");
    }
}

TEST_CASE("a physics layer is indexed with the game layer's width, and ignored if it is smaller") {
    std::vector<std::uint8_t> record = {7, 26};
    MapBuilder larger = make_walled_map().add_layer(Layer::tele, 5, 3);
    larger.set_record(Layer::tele, 4, 0, record);
    Warnings warnings;
    const PhysicsLayers shifted = load_physics_from(larger.build(), &warnings);
    CHECK(shifted.locate(WorldPos{0, 32}).tele == TeleTile{7, 26});
    const auto map = Map::parse(larger.build()).value();
    CHECK(map.warnings().contains(WarningId::physics_layer_differs));

    const auto smaller = Map::parse(make_walled_map().add_layer(Layer::tele, 3, 3).build()).value();
    CHECK(acceptance_of_map(smaller).strict == "rejects:physics_layer_too_small");
    CHECK_FALSE(smaller.physics()->has(Layer::tele));
}

TEST_CASE("the last physics layer of a kind counts") {
    MapBuilder builder =
        make_walled_map().add_layer(Layer::front, 4, 3).add_layer(Layer::front, 4, 3);
    const std::uint8_t record[] = {9};
    builder.set_record(Layer::front, 0, 0, record); // set_record() writes to the first front layer
    const auto map = Map::parse(builder.build()).value();
    CHECK(map.warnings().contains(WarningId::physics_layer_twice));
    CHECK(map.physics_layer(Layer::front) == LayerPlace{0, 2});
    CHECK(map.physics()->locate(WorldPos{0, 0}).front == 0);
}

TEST_CASE("text in ints is bytes plus 128 and ends at its NUL") {
    for (const std::string_view text : {"", "Game", "eleven byte", "\xc3\xa4"}) {
        CAPTURE(text);
        std::array<std::int32_t, 3> ints{};
        test::encode_int_text(text, ints);
        CHECK(decode_int_text(ints) == text);
    }
    std::array<std::int32_t, 3> ints{};
    test::encode_int_text("longer than eleven", ints);
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
        const auto map = Map::parse(make_walled_map().set_settings(row.block).build()).value();
        const auto info = read_info(map).value();
        CHECK(info.settings == row.lines);
    }
}

TEST_CASE("unusable parts of a map are absent, and other parts are read") {
    const auto tele = [](int version, int width) {
        auto layer = tile_layer(version, width, 3, kLayerFlagTele, -1);
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
            Map::parse(
                map_with_layers({tile_layer(2, 3, 3, kLayerFlagGame, 0), row.layer}, Bytes(36), 2))
                .value();
        Warnings warnings;
        const auto physics = map.physics(&warnings).value();
        CHECK(physics.has(Layer::tele) == row.there);
        CHECK(warnings.contains(WarningId::physics_layer_packed) == row.packed);
    }
    CHECK(Map::open("/not there/dm1.map").error().code == MapErrc::file_unreadable);
    const auto map = Map::parse(make_walled_map().build()).value();
    CHECK_FALSE(map.group(1).has_value());
    CHECK_FALSE(map.layer(1).has_value());
}

TEST_CASE("the last group with a layer of a kind determines the layer that counts") {
    struct Row {
        std::string_view name;
        int flags;
        std::array<std::int32_t, 2> group_of_layer;
        std::size_t counts;
    };

    constexpr int kMixed = kLayerFlagGame | kLayerFlagTele;
    const Row rows[] = {{"in order", kLayerFlagGame, {0, 1}, 1},
                        {"the other way round", kLayerFlagGame, {1, 0}, 0},
                        {"which are tele, too", kMixed, {0, 1}, 1},
                        {"which are tele, too, the other way round", kMixed, {1, 0}, 0}};
    for (const auto& row : rows) {
        CAPTURE(row.name);
        test::DatafileWriter writer;
        writer.add_item(kItemTypeVersion, 0, std::vector<std::int32_t>{1});
        for (std::int32_t group = 0; group < 2; ++group) {
            const std::int32_t first = row.group_of_layer[0] == group ? 0 : 1;
            writer.add_item(kItemTypeGroup, static_cast<std::uint16_t>(group),
                            std::vector<std::int32_t>{1, 0, 0, 100, 100, first, 1});
        }
        for (std::uint16_t i = 0; i < 2; ++i) {
            writer.add_item(kItemTypeLayer, i, tile_layer(2, 3, 3, row.flags, i));
            writer.add_block(Bytes(36));
        }
        const auto map = Map::parse(writer.finish()).value();
        CHECK(map.physics_layer(Layer::game) == LayerPlace{1, row.counts});
    }
}

TEST_CASE("a tee dies in death tiles of the game layer and of the front layer") {
    const std::uint8_t death[] = {kTileDeath};
    const PhysicsLayers front =
        load_physics_from(make_walled_map().set_record(Layer::front, 1, 1, death).build());
    const PhysicsLayers game =
        load_physics_from(make_walled_map().set_game(1, 1, kTileDeath).build());
    const WorldPos inside{48, 48};
    for (const PhysicsLayers* physics : {&front, &game}) {
        CHECK(physics->tee_in_death(inside));
        CHECK_FALSE(physics->tee_in_death({112, 16}));
    }
    CHECK(front.tee_touches_death(inside, Layer::front));
    CHECK_FALSE(front.tee_touches_death(inside, Layer::game));
}

TEST_CASE("maps that DDNet rejects are read with a warning") {
    struct Row {
        std::string_view name;
        std::vector<std::vector<std::int32_t>> layers;
        std::string_view strict;
    };

    const auto game = tile_layer(2, 3, 3, kLayerFlagGame, 0);
    auto named = tile_layer(3, 3, 3, kLayerFlagGame, 0);
    named.at(15) = 0x7fffffff;
    auto nameless = tile_layer(3, 3, 3, kLayerFlagGame, 0);
    nameless.pop_back();
    auto too_red = tile_layer(2, 3, 3, 0, 1);
    too_red.at(7) = 256;
    auto red_tele = tile_layer(2, 3, 3, kLayerFlagTele, 0);
    red_tele.at(7) = 256;
    red_tele.push_back(1);
    auto tele_nowhere = tile_layer(2, 3, 3, kLayerFlagTele, 0);
    tele_nowhere.push_back(2);
    auto taller = tile_layer(2, 3, 4, kLayerFlagTele, -1);
    taller.push_back(1);
    const Row rows[] = {
        {"plain", {game}, "accepts"},
        {"one column", {tile_layer(2, 1, 9, kLayerFlagGame, 0)}, "rejects:game_layer_too_small"},
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
         {game, tile_layer(2, 3, 3, kLayerFlagTele, -1)},
         "rejects:physics_index_missing"},
        {"name is no text", {named}, "rejects:layer_name_not_utf8"},
        {"item too short", {game, {0, 2, 0}}, "rejects:layer_item_short"},
        {"item without a head", {game, {0, 2}}, "rejects:layer_item_short"},
        {"a physics layer that is only taller", {game, taller}, "accepts"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        const auto map = Map::parse(map_with_layers(row.layers, Bytes(36), 2)).value();
        CHECK(acceptance_of_map(map).strict == row.strict);
        CHECK(acceptance_of_map(map).lenient == "accepts");
    }
}

TEST_CASE("groups with shared or missing layers are read with a warning") {
    struct Row {
        std::string_view name;
        std::vector<std::array<std::int32_t, 2>> groups; ///< first layer and number of layers
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
        writer.add_item(kItemTypeVersion, 0, version);
        writer.add_item(kItemTypeLayer, 0, tile_layer(2, 3, 3, kLayerFlagGame, 0));
        for (std::size_t i = 0; i < row.groups.size(); ++i) {
            const std::int32_t group[] = {1, 0, 0, 100, 100, row.groups[i][0], row.groups[i][1]};
            writer.add_item(kItemTypeGroup, static_cast<std::uint16_t>(i), group);
        }
        writer.add_block(Bytes(36));
        const auto map = Map::parse(writer.finish()).value();
        CHECK(acceptance_of_map(map).strict == row.strict);
        CHECK(acceptance_of_map(map).lenient == row.lenient);
    }
}

TEST_CASE("many groups that include all layers are read in linear time") {
    constexpr int kMany = 30000;
    test::DatafileWriter writer;
    const std::int32_t version[] = {1};
    const std::int32_t group[] = {1, 0, 0, 100, 100, 0, kMany};
    writer.add_item(kItemTypeVersion, 0, version);
    const auto layer = tile_layer(2, 3, 3, kLayerFlagGame, 0);
    for (int i = 0; i < kMany; ++i) {
        writer.add_item(kItemTypeGroup, static_cast<std::uint16_t>(i), group);
        writer.add_item(kItemTypeLayer, static_cast<std::uint16_t>(i), layer);
    }
    writer.add_block(Bytes(36));
    const auto map = Map::parse(writer.finish()).value();
    CHECK(map.physics_layer(Layer::game) == LayerPlace{kMany - 1, kMany - 1});
}

TEST_CASE("a map without version item is read only if its items look like a map's") {
    test::DatafileWriter stripped;
    const std::int32_t group[] = {1, 0, 0, 100, 100, 0, 1};
    stripped.add_item(kItemTypeGroup, 0, group);
    stripped.add_item(kItemTypeLayer, 0, tile_layer(2, 3, 3, kLayerFlagGame, 0));
    stripped.add_block(Bytes(36));
    const auto map = Map::parse(stripped.finish()).value();
    CHECK(acceptance_of_map(map).strict == "rejects:version_item_missing");
    CHECK(acceptance_of_map(map).lenient == "accepts");

    CHECK(Map::parse(test::DatafileWriter{}.finish()).error().code == MapErrc::no_version_item);
    test::DatafileWriter wrong;
    const std::int32_t version[] = {2};
    wrong.add_item(kItemTypeVersion, 0, version);
    CHECK(Map::parse(wrong.finish()).error().code == MapErrc::unknown_map_version);
    wrong.add_item(kItemTypeGroup, 0, group);
    wrong.add_item(kItemTypeLayer, 0, tile_layer(2, 3, 3, kLayerFlagGame, 0));
    wrong.add_block(Bytes(36));
    const auto sane = Map::parse(wrong.finish()).value();
    CHECK(acceptance_of_map(sane).strict == "rejects:version_item_unknown");
    CHECK(acceptance_of_map(sane).lenient == "accepts");
}

TEST_CASE("a layer without a group is not checked") {
    test::DatafileWriter writer;
    const std::int32_t version[] = {1};
    const std::int32_t group[] = {1, 0, 0, 100, 100, 0, 1};
    writer.add_item(kItemTypeVersion, 0, version);
    writer.add_item(kItemTypeGroup, 0, group);
    writer.add_item(kItemTypeLayer, 0, tile_layer(2, 3, 3, kLayerFlagGame, 0));
    writer.add_item(kItemTypeLayer, 1, tile_layer(9, 0, 0, 63, 0));
    writer.add_block(Bytes(36));
    const auto map = Map::parse(writer.finish()).value();
    CHECK(acceptance_of_map(map).strict == "accepts");
}

TEST_CASE("a colour has four parts of a byte each") {
    constexpr std::size_t kColorAt = 7;
    for (std::size_t part = 0; part < 4; ++part) {
        for (const std::int32_t value : {-1, 0, 255, 256}) {
            CAPTURE(part);
            CAPTURE(value);
            Ints plain = tile_layer(2, 3, 3, 0, 1);
            plain.at(kColorAt + part) = value;
            const auto map =
                Map::parse(
                    map_with_layers({tile_layer(2, 3, 3, kLayerFlagGame, 0), plain}, Bytes(36), 2))
                    .value();
            CHECK(map.warnings().contains(WarningId::layer_color) == (value < 0 || value > 255));
        }
    }
}

TEST_CASE("a group item that is too short gives a warning and has no layers") {
    test::DatafileWriter writer;
    writer.add_item(kItemTypeVersion, 0, Ints{1});
    writer.add_item(kItemTypeGroup, 0, Ints{1, 0, 0, 100, 100, 0});
    writer.add_item(kItemTypeGroup, 1, Ints{1, 0, 0, 100, 100, 0, 1});
    writer.add_item(kItemTypeLayer, 0, tile_layer(2, 3, 3, kLayerFlagGame, 0));
    writer.add_block(Bytes(36));
    const auto map = Map::parse(writer.finish()).value();
    CHECK(map.warnings().contains(WarningId::group_item_short));
    CHECK(layers_of(map, 0).first == layers_of(map, 0).end);
    CHECK(layers_of(map, 1).end == 1);
    CHECK(layers_of(map, 2).end == 0);
    CHECK(map.physics_layer(Layer::game) == LayerPlace{1, 0});
}

TEST_CASE("without a known version item, a file with an invalid group or layer is not a map") {
    struct Row {
        std::string_view name;
        std::vector<Ints> groups;
        std::vector<Ints> layers;
        bool map;
    };

    const auto group = [](std::int32_t version) { return Ints{version, 0, 0, 100, 100, 0, 1}; };
    const auto layer = [](int version, int width, int height) {
        return tile_layer(version, width, height, kLayerFlagGame, 0);
    };
    const Row rows[] = {
        {"oldest", {group(1)}, {layer(2, 1, 1)}, true},
        {"newest", {group(3)}, {layer(4, 9, 4)}, true},
        {"quads beside", {group(2)}, {layer(3, 3, 3), {0, 3, 0, 2, 0, 0, -1}}, true},
        {"group version 0", {group(1), group(0)}, {layer(2, 3, 3)}, false},
        {"group version 4", {group(4)}, {layer(2, 3, 3)}, false},
        {"group too short", {{1, 0, 0, 100, 100, 0}}, {layer(2, 3, 3)}, false},
        {"no group", {}, {layer(2, 3, 3)}, false},
        {"no layer", {group(1)}, {}, false},
        {"layer without a head", {group(1)}, {{0, 2}}, false},
        {"layer too short", {group(1)}, {{0, 2, 0}}, false},
        {"layer of a type no one knows", {group(1)}, {{0, 77, 0, 1, 2, 3, 4}}, false},
        {"tilemap version 1", {group(1)}, {layer(1, 3, 3)}, false},
        {"tilemap version 5", {group(1)}, {layer(5, 3, 3)}, false},
        {"no width", {group(1)}, {layer(2, 0, 3)}, false},
        {"no height", {group(1)}, {layer(2, 3, 0)}, false},
    };
    for (const auto& row : rows) {
        for (const Ints& version : {Ints{}, Ints{2}}) {
            CAPTURE(row.name);
            CAPTURE(version.size());
            test::DatafileWriter writer;
            writer.add_item(kItemTypeVersion, 0, version);
            for (std::size_t i = 0; i < row.groups.size(); ++i) {
                writer.add_item(kItemTypeGroup, static_cast<std::uint16_t>(i), row.groups[i]);
            }
            for (std::size_t i = 0; i < row.layers.size(); ++i) {
                writer.add_item(kItemTypeLayer, static_cast<std::uint16_t>(i), row.layers[i]);
            }
            writer.add_block(Bytes(36));
            const auto map = Map::parse(writer.finish());
            REQUIRE(map.has_value() == row.map);
            if (map) {
                CHECK(map->warnings().contains(version.empty() ? WarningId::version_item_missing
                                                               : WarningId::version_item_unknown));
            } else {
                CHECK(map.error().code ==
                      (version.empty() ? MapErrc::no_version_item : MapErrc::unknown_map_version));
            }
        }
    }
}

} // namespace tw::map
