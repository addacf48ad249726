// Covers: map/map.cpp
#include "map/describe.h"
#include "map/map.h"
#include "tests/map/map_builder.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::map {
namespace {

using test::map_of;
using test::tile_layer;
using Bytes = std::vector<std::byte>;
using Ints = std::vector<std::int32_t>;

} // namespace

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
    auto taller = tile_layer(2, 3, 4, kFlagTele, -1);
    taller.push_back(1);
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
        {"item without a head", {game, {0, 2}}, "rejects:layer_item_short"},
        {"a physics layer that is only taller", {game, taller}, "accepts"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        const auto map = Map::parse(map_of(row.layers, Bytes(36), 2));
        REQUIRE(map.has_value());
        CHECK(judge(*map).strict == row.strict);
        CHECK(judge(*map).lenient == "accepts");
    }
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

TEST_CASE("a colour has four parts of a byte each") {
    constexpr std::size_t kColorAt = 7;
    for (std::size_t part = 0; part < 4; ++part) {
        for (const std::int32_t value : {-1, 0, 255, 256}) {
            CAPTURE(part);
            CAPTURE(value);
            Ints plain = tile_layer(2, 3, 3, 0, 1);
            plain.at(kColorAt + part) = value;
            const auto map =
                Map::parse(map_of({tile_layer(2, 3, 3, kFlagGame, 0), plain}, Bytes(36), 2));
            REQUIRE(map.has_value());
            CHECK(map->warnings().contains(WarningId::layer_color) == (value < 0 || value > 255));
        }
    }
}

TEST_CASE("a group that is too short is named and has no layers") {
    test::DatafileWriter writer;
    writer.add_item(kItemVersion, 0, Ints{1});
    writer.add_item(kItemGroup, 0, Ints{1, 0, 0, 100, 100, 0});
    writer.add_item(kItemGroup, 1, Ints{1, 0, 0, 100, 100, 0, 1});
    writer.add_item(kItemLayer, 0, tile_layer(2, 3, 3, kFlagGame, 0));
    writer.add_block(Bytes(36));
    const auto map = Map::parse(writer.finish());
    REQUIRE(map.has_value());
    CHECK(map->warnings().contains(WarningId::group_item_short));
    CHECK(layers_of(*map, 0).first == layers_of(*map, 0).end);
    CHECK(layers_of(*map, 1).end == 1);
    CHECK(layers_of(*map, 2).end == 0);
    CHECK(map->physics_layer(Layer::game) == LayerPlace{1, 0});
}

TEST_CASE("without a version item one item that no map has is enough to be none") {
    struct Row {
        std::string_view name;
        std::vector<Ints> groups;
        std::vector<Ints> layers;
        bool map;
    };

    const auto group = [](std::int32_t version) { return Ints{version, 0, 0, 100, 100, 0, 1}; };
    const auto layer = [](int version, int width, int height) {
        return tile_layer(version, width, height, kFlagGame, 0);
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
            writer.add_item(kItemVersion, 0, version);
            for (std::size_t i = 0; i < row.groups.size(); ++i) {
                writer.add_item(kItemGroup, static_cast<std::uint16_t>(i), row.groups[i]);
            }
            for (std::size_t i = 0; i < row.layers.size(); ++i) {
                writer.add_item(kItemLayer, static_cast<std::uint16_t>(i), row.layers[i]);
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
