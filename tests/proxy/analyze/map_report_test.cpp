// Covers: proxy/analyze/map_report.cpp
#include "map/identity.h"
#include "map/items.h"
#include "map/tiles.h"
#include "proxy/analyze/map_report.h"
#include "proxy/record/json.h"
#include "tests/map/known_maps.h"
#include "tests/map/map_builder.h"
#include "tests/map/writer.h"
#include "tests/support/text.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tw::analyze {
namespace {

namespace json = boost::json;
using test::contains;

/// Keys about the file's origin, or whose values other programs define differently.
const std::set<std::string, std::less<>> kNotCompared = {"set", "verdict", "oddities"};

json::object describe_map(const map::test::KnownMap& known, const map::Map& map) {
    std::vector<MapPoint> points;
    for (const auto& row : known.entry.at("points").as_array()) {
        points.push_back({row.at(0).to_number<double>(), row.at(1).to_number<double>()});
    }
    std::vector<map::WorldPos> tee_centres;
    for (const auto& row : known.entry.at("boxes").as_array()) {
        tee_centres.push_back({row.at(0).to_number<int>(), row.at(1).to_number<int>()});
    }
    const auto description = map_json(map, known.path.filename().string(),
                                      {.points = points, .tee_centres = tee_centres});
    // Compares the parsed text, because programs read the text.
    return json::parse(record::json_text(description)).as_object();
}

/// Compares JSON values; 3 and 3.0 are equal, and numbers that differ after the third decimal.
bool are_equal(const json::value& a, const json::value& b) {
    if (a.is_number() && b.is_number()) {
        return std::abs(a.to_number<double>() - b.to_number<double>()) < 0.001;
    }
    if (a.is_array() && b.is_array()) {
        const auto& left = a.as_array();
        const auto& right = b.as_array();
        return std::equal(left.begin(), left.end(), right.begin(), right.end(), are_equal);
    }
    if (a.is_object() && b.is_object()) {
        const auto& left = a.as_object();
        const auto& right = b.as_object();
        return left.size() == right.size() && std::ranges::all_of(left, [&right](const auto& pair) {
                   const auto* const other = right.if_contains(pair.key());
                   return other != nullptr && are_equal(pair.value(), *other);
               });
    }
    return a == b;
}

} // namespace

TEST_CASE("the description of a real map equals the expected one in every key") {
    for (const auto& known : map::test::known_maps()) {
        CAPTURE(known.label);
        const auto file = map::Map::open(known.path);
        REQUIRE(file.has_value());
        const json::object got = describe_map(known, *file);
        for (const auto& pair : known.entry) {
            const std::string key{pair.key()};
            const json::value& value = pair.value();
            if (kNotCompared.contains(key)) {
                continue;
            }
            CAPTURE(key);
            REQUIRE(got.contains(key));
            CAPTURE(json::serialize(got.at(key)));
            CAPTURE(json::serialize(value));
            CHECK(are_equal(got.at(key), value));
        }
        for (const auto& pair : got) {
            const std::string key{pair.key()};
            CAPTURE(key);
            CHECK((known.entry.contains(key) || kNotCompared.contains(key)));
        }
    }
}

TEST_CASE("the strict verdict on a real map is that of DDNet master") {
    for (const auto& known : map::test::known_maps()) {
        CAPTURE(known.label);
        const auto file = map::Map::open(known.path);
        REQUIRE(file.has_value());
        const json::object got = map_json(*file, "");
        CHECK(got.at("verdict").at("strict") == known.entry.at("verdict").at("ddnet"));
        CHECK(got.at("verdict").at("lenient") == "accepts");
    }
}

TEST_CASE("missing parts of a map are null, and unreadable data blocks are listed") {
    map::test::DatafileWriter writer;
    const std::int32_t version[] = {1};
    writer.add_item(map::kItemTypeVersion, 0, version);
    const auto empty = map::Map::parse(writer.finish());
    REQUIRE(empty.has_value());
    const json::object none = map_json(*empty, "x.map");
    CHECK(none.at("file") == "x.map");
    CHECK(none.at("info").is_null());
    CHECK(none.at("game_layer").is_null());
    CHECK(none.at("ddnet_layers").as_object().empty());
    CHECK(none.at("verdict").at("lenient") == "rejects:no_game_layer");
    CHECK_FALSE(none.contains("points"));

    map::test::MapBuilder builder{4, 3};
    builder.set_game(0, 0, map::kTileSolid).add_layer(map::Layer::front, 2, 2);
    writer = builder.writer();
    writer.add_block({});
    const std::byte garbage[] = {std::byte{1}, std::byte{2}};
    const std::int32_t bad = writer.add_stored_block(garbage, 5);
    const auto small = map::Map::parse(writer.finish());
    REQUIRE(small.has_value());
    const json::object got = map_json(*small, "x.map");
    CHECK(got.at("ddnet_layers").at("front").at("width") == 2);
    CHECK(got.at("points").as_array().empty());
    CHECK(got.at("unreadable_data") == json::array{bad}); // not the empty block
}

TEST_CASE("a description has the number of tiles by kind, and the tiles at given positions") {
    map::test::MapBuilder builder{4, 3};
    builder.set_game(1, 1, map::kTileSolid).set_game(2, 1, 192).set_game(3, 1, map::kTileSolid);
    const std::uint8_t tele[] = {7, 26};
    builder.set_record(map::Layer::tele, 2, 2, tele);
    const auto map = map::Map::parse(builder.build());
    REQUIRE(map.has_value());
    const MapPoint points[] = {{40, 40}, {63.5, 40}};
    const map::WorldPos tee_centres[] = {{48, 48}, {100, 16}};
    const json::object got = map_json(*map, "", {.points = points, .tee_centres = tee_centres});
    CHECK(got.at("groups") == 1);
    CHECK(got.at("layers") == 2);
    CHECK(got.at("physics_layer_counts") == json::parse(R"({"game": 1, "tele": 1})"));
    const json::object& game = got.at("game_layer").as_object();
    CHECK(game.at("width") == 4);
    CHECK(game.at("data_bytes") == 4 * 3 * 4);
    CHECK_FALSE(game.contains("packed_tiles"));
    CHECK(game.at("histogram") == json::parse(R"({"0": 9, "1": 2, "192": 1})"));
    CHECK(game.at("entities") == 1);
    CHECK(got.at("ddnet_layers").at("tele").at("histogram") ==
          json::parse(R"({"0": 11, "26": 1})"));
    // The tile, its index in three forms, no front layer, and the tile of a tee's effects.
    CHECK(got.at("points") ==
          json::parse(
              "[[40.0, 40.0, 1, 1, 1, 1, 1, -1, 1, 1], [63.5, 40.0, 2, 1, 192, 0, 0, -1, 1, 1]]"));
    CHECK(got.at("boxes") == json::parse("[[48, 48, 1, 0, 0, 0], [100, 16, 0, 1, 0, 0]]"));
}

TEST_CASE("images, envelopes and layers whose items are too short are only counted") {
    using Ints = std::vector<std::int32_t>;
    map::test::DatafileWriter writer;
    writer.add_item(map::kItemTypeVersion, 0, Ints{1});
    writer.add_item(map::kItemTypeImage, 0, Ints{1, 2, 2, 1, -1, -1});
    writer.add_item(map::kItemTypeImage, 1, Ints{2, 2, 2, 0, -1});
    writer.add_item(map::kItemTypeEnvelope, 0, Ints{1, 4, 6, 3});
    writer.add_item(map::kItemTypeEnvelope, 1, Ints{2, 4, 90});
    writer.add_item(map::kItemTypeGroup, 0, Ints{2, 0, 0, 100, 100, 0, 3});
    writer.add_item(map::kItemTypeGroup, 1, Ints{3, 0, 0});
    writer.add_item(map::kItemTypeLayer, 0, map::test::tile_layer(4, 3, 3, map::kLayerFlagGame, 0));
    writer.add_item(map::kItemTypeLayer, 1, Ints{0, 2});
    Ints packed = map::test::tile_layer(4, 3, 3, map::kLayerFlagTele, -1);
    packed.push_back(0);
    writer.add_item(map::kItemTypeLayer, 2, packed);
    writer.add_item(map::kItemTypeEnvelopePoints, 0, Ints(12));
    writer.add_block(std::vector<std::byte>(36));
    const auto map = map::Map::parse(writer.finish());
    REQUIRE(map.has_value());
    const json::object got = map_json(*map, "");
    CHECK(got.at("images") == json::parse(R"({"total": 2, "external": 1, "versions": [1]})"));
    const json::object& envelopes = got.at("envelopes").as_object();
    CHECK(envelopes.at("total") == 2);
    CHECK(envelopes.at("versions") == json::array{1});
    CHECK(envelopes.at("points_needed") == 9);
    CHECK(envelopes.at("points_ints") == json::array{12});
    CHECK(got.at("groups") == 2);
    CHECK(got.at("group_versions") == json::array{2});
    CHECK(got.at("layers") == 3);
    CHECK(got.at("layer_types") == json::parse(R"({"2": 2})"));
    CHECK(got.at("game_layer").at("packed_tiles") == 9);
    CHECK(got.at("ddnet_layers").at("tele").at("problem") == "unknown_tile_record");
}

TEST_CASE("of a file that is not a map, the readable part is described") {
    struct Row {
        std::string_view name;
        std::vector<std::byte> file;
        bool container;
        std::string_view verdict;
    };

    map::test::DatafileWriter writer;
    const std::int32_t version[] = {7};
    writer.add_item(map::kItemTypeVersion, 0, version);
    const std::vector<std::byte> other = writer.finish();
    const Row rows[] = {
        {"nothing", {}, false, "rejects:file_too_short"},
        {"noise", std::vector<std::byte>(100, std::byte{1}), false, "rejects:bad_magic"},
        {"cut", {other.begin(), other.end() - 1}, false, "rejects:file_truncated"},
        {"another version", other, true, "rejects:unknown_map_version"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto map = map::Map::parse(row.file);
        REQUIRE_FALSE(map.has_value());
        const json::object got = rejected_map_json(row.file, map.error(), "caf\xe9\x1b.map");
        CHECK(record::json_text(got).starts_with(fmt::format(
            "{{\"file\":\"caf\xef\xbf\xbd\\u001b.map\",\"size\":{},", row.file.size())));
        CHECK(record::text_of(got, "sha256") == map::to_hex(map::identify(row.file).sha256));
        CHECK(got.contains("datafile") == row.container);
        CHECK_FALSE(got.contains("info"));
        CHECK_FALSE(got.contains("points"));
        CHECK(got.at("verdict").at("strict") == json::string_view{row.verdict});
        CHECK(got.at("verdict").at("lenient") == json::string_view{row.verdict});
        CHECK(got.at("oddities").as_array().empty());
    }
}

namespace {

/// Returns a map of 4 x 3 tiles: a floor, a freeze tile, a finish line, a teleporter, and one byte too many.
map::Map sample_map() {
    map::test::MapBuilder builder{4, 3};
    for (int x = 0; x < 4; ++x) {
        builder.set_game(x, 2, map::kTileSolid);
    }
    builder.set_game(1, 0, 9).set_game(2, 0, 34);
    const std::uint8_t tele[] = {7, 26};
    builder.set_record(map::Layer::tele, 3, 1, tele);
    auto bytes = builder.build();
    bytes.push_back(std::byte{0});
    auto map = map::Map::parse(std::move(bytes));
    REQUIRE(map.has_value());
    return std::move(*map);
}

} // namespace

TEST_CASE("the description of a map as text has a line for each kind of content") {
    const map::Map map = sample_map();
    const std::string page = map_text(map_json(map, "caf\x1b.map"));
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
        CHECK(contains(page, line));
    }
    CHECK_FALSE(contains(page, "author")); // there is no info item
}

TEST_CASE("the line about a position names its tiles, and whether a tee there is in a wall or on "
          "the ground") {
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
