
#include "map/describe.h"
#include "tests/map/map_builder.h"
#include "tests/map/truth.h"
#include "tests/map/writer.h"

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

// The whole description of each installed map is compared in tests/proxy/analyze/map_report_test.cpp.

namespace tw::map {

TEST_CASE("a description counts what the layers hold") {
    test::MapBuilder builder{4, 3};
    builder.set_game(1, 1, kTileSolid).set_game(2, 1, 192).set_game(3, 1, kTileSolid);
    const std::uint8_t tele[] = {7, 26};
    builder.set(Layer::tele, 2, 2, tele);
    const auto map = Map::parse(builder.build());
    REQUIRE(map.has_value());
    const Description description = describe(*map);

    CHECK(description.identity == identify(map->datafile().bytes()));
    REQUIRE(description.container.has_value());
    CHECK(description.container->header.version == 4);
    CHECK(description.container->size_field == SizeField::full);
    CHECK(description.container->unreadable_blocks.empty());
    REQUIRE(description.content.has_value());
    CHECK(description.content->layers.groups == 1);
    CHECK(description.content->layers.layers == 2);
    CHECK(description.content->layers.physics ==
          std::map<Layer, std::size_t>{{Layer::game, 1}, {Layer::tele, 1}});

    const auto& game = description.content->game_layer;
    REQUIRE(game.has_value());
    CHECK(game->layer.width == 4);
    CHECK(game->data_bytes == 4 * 3 * 4);
    CHECK_FALSE(game->packed_tiles.has_value());
    REQUIRE(game->tiles.has_value());
    CHECK(game->tiles->histogram == Histogram{{0, 9}, {kTileSolid, 2}, {192, 1}});
    CHECK(game->tiles->entities == 1);

    REQUIRE(description.content->ddnet_layers.size() == 1);
    const DdnetLayerDescription& layer = description.content->ddnet_layers.front();
    CHECK(layer.kind == Layer::tele);
    REQUIRE(layer.tiles.has_value());
    CHECK(layer.tiles->histogram == Histogram{{0, 11}, {26, 1}});
}

TEST_CASE("a description says what is at the positions it is asked for") {
    test::MapBuilder builder{4, 3};
    builder.set_game(1, 1, kTileSolid);
    const auto map = Map::parse(builder.build());
    REQUIRE(map.has_value());
    const PointToDescribe points[] = {{40, 40}, {63.5, 40}};
    const WorldPos boxes[] = {{48, 48}, {100, 16}};
    const auto places = describe(*map, {.points = points, .boxes = boxes}).places;
    REQUIRE(places.has_value());
    REQUIRE(places->points.size() == 2);
    CHECK(places->points[0].at.game == kTileSolid);
    CHECK_FALSE(places->points[0].front.has_value());
    CHECK(places->points[1].at.tile == TilePos{2, 1});
    CHECK(places->points[1].effect_tile == TilePos{1, 1});
    REQUIRE(places->boxes.size() == 2);
    CHECK(places->boxes[0].in_solid);
    CHECK_FALSE(places->boxes[1].in_solid);
}

TEST_CASE("a map whose game layer cannot be used is described without positions") {
    test::DatafileWriter writer;
    const std::int32_t version[] = {1};
    writer.add_item(kItemVersion, 0, version);
    const auto map = Map::parse(writer.finish());
    REQUIRE(map.has_value());
    const Description description = describe(*map);
    REQUIRE(description.content.has_value());
    CHECK_FALSE(description.content->info.has_value());
    CHECK_FALSE(description.content->game_layer.has_value());
    CHECK_FALSE(description.places.has_value());
    CHECK(description.acceptance.lenient == "rejects:no_game_layer");
}

TEST_CASE("a file that is no map is described as far as it goes") {
    struct Row {
        std::string_view name;
        std::vector<std::byte> file;
        bool container;
        std::string_view verdict;
    };

    test::DatafileWriter writer;
    const std::int32_t version[] = {7};
    writer.add_item(kItemVersion, 0, version);
    const std::vector<std::byte> other = writer.finish();
    const std::vector<std::byte> cut{other.begin(), other.end() - 1};
    const Row rows[] = {
        {"nothing", {}, false, "rejects:file_too_short"},
        {"cut", cut, false, "rejects:file_truncated"},
        {"another version", other, true, "rejects:unknown_map_version"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        const auto map = Map::parse(row.file);
        REQUIRE_FALSE(map.has_value());
        const Description got = describe_rejected(row.file, map.error());
        CHECK(got.identity == identify(row.file));
        CHECK(got.container.has_value() == row.container);
        CHECK_FALSE(got.content.has_value());
        CHECK_FALSE(got.places.has_value());
        CHECK(got.acceptance.strict == row.verdict);
        CHECK(got.acceptance.lenient == row.verdict);
    }
}

TEST_CASE("the strict verdict on a real map is that of DDNet master") {
    for (const auto& truth : test::truths()) {
        CAPTURE(truth.label);
        const auto map = Map::open(truth.path);
        REQUIRE(map.has_value());
        const MapAcceptance verdict = judge(*map);
        CHECK(verdict.strict == truth.entry.at("verdict").at("ddnet").as_string());
        CHECK(verdict.lenient == "accepts");
    }
}

TEST_CASE("what is too short to be read is counted, and says nothing else") {
    using Ints = std::vector<std::int32_t>;
    test::DatafileWriter writer;
    writer.add_item(kItemVersion, 0, Ints{1});
    writer.add_item(kItemImage, 0, Ints{1, 2, 2, 1, -1, -1});
    writer.add_item(kItemImage, 1, Ints{2, 2, 2, 0, -1});
    writer.add_item(kItemEnvelope, 0, Ints{1, 4, 6, 3});
    writer.add_item(kItemEnvelope, 1, Ints{2, 4, 90});
    writer.add_item(kItemGroup, 0, Ints{2, 0, 0, 100, 100, 0, 3});
    writer.add_item(kItemGroup, 1, Ints{3, 0, 0});
    writer.add_item(kItemLayer, 0, test::tile_layer(4, 3, 3, kFlagGame, 0));
    writer.add_item(kItemLayer, 1, Ints{0, 2});
    Ints packed = test::tile_layer(4, 3, 3, kFlagTele, -1);
    packed.push_back(0);
    writer.add_item(kItemLayer, 2, packed);
    writer.add_item(kItemEnvelopePoints, 0, Ints(12));
    writer.add_block(std::vector<std::byte>(36));
    const auto map = Map::parse(writer.finish());
    REQUIRE(map.has_value());
    const auto content = describe(*map).content;
    REQUIRE(content.has_value());
    CHECK(content->images.total == 2);
    CHECK(content->images.external == 1);
    CHECK(content->images.versions == std::set<std::int32_t>{1});
    CHECK(content->envelopes.total == 2);
    CHECK(content->envelopes.versions == std::set<std::int32_t>{1});
    CHECK(content->envelopes.points_needed == 9);
    CHECK(content->envelopes.points_ints == std::vector<std::size_t>{12});
    CHECK(content->layers.groups == 2);
    CHECK(content->layers.group_versions == std::set<std::int32_t>{2});
    CHECK(content->layers.layers == 3);
    CHECK(content->layers.types == std::map<std::int32_t, std::size_t>{{2, 2}});
    REQUIRE(content->game_layer.has_value());
    CHECK(content->game_layer->packed_tiles == 9);
    REQUIRE(content->ddnet_layers.size() == 1);
    CHECK(content->ddnet_layers[0].tiles.error().code == MapErrc::unknown_tile_record);
}

TEST_CASE("a block that does not inflate is named by its place, one that is empty is not") {
    test::DatafileWriter writer = test::MapBuilder{4, 3}.set_game(0, 0, 1).writer();
    writer.add_block({});
    const std::byte garbage[] = {std::byte{1}, std::byte{2}};
    const std::int32_t bad = writer.add_stored_block(garbage, 5);
    const auto map = Map::parse(writer.finish());
    REQUIRE(map.has_value());
    const auto container = describe(*map).container;
    REQUIRE(container.has_value());
    CHECK(container->unreadable_blocks == std::vector<std::size_t>{static_cast<std::size_t>(bad)});
}

} // namespace tw::map
