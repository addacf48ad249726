// Covers: proxy/analyze/map_report.cpp
#include "map/describe.h"
#include "map/tiles.h"
#include "proxy/analyze/map_report.h"
#include "proxy/record/json.h"
#include "tests/map/map_builder.h"
#include "tests/map/truth.h"
#include "tests/map/writer.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <doctest/doctest.h>

namespace tw::analyze {
namespace {

namespace json = boost::json;

/// Keys about the file's origin, or whose values other programs define differently.
const std::set<std::string, std::less<>> kNotCompared = {"set", "verdict", "oddities"};

json::object describe(const map::test::Truth& truth, const map::Map& map) {
    std::vector<map::PointToDescribe> points;
    for (const auto& row : truth.entry.at("points").as_array()) {
        points.push_back({row.at(0).to_number<double>(), row.at(1).to_number<double>()});
    }
    std::vector<map::WorldPos> boxes;
    for (const auto& row : truth.entry.at("boxes").as_array()) {
        boxes.push_back({row.at(0).to_number<int>(), row.at(1).to_number<int>()});
    }
    const auto description = map::describe(map, {.points = points, .boxes = boxes});
    // Compares the parsed text, because programs read the text.
    return json::parse(record::json_text(map_json(description, truth.path.filename().string())))
        .as_object();
}

/// Compares JSON values; 3 and 3.0 are equal, and numbers that differ after the third decimal.
bool same(const json::value& a, const json::value& b) {
    if (a.is_number() && b.is_number()) {
        return std::abs(a.to_number<double>() - b.to_number<double>()) < 0.001;
    }
    if (a.is_array() && b.is_array()) {
        const auto& left = a.as_array();
        const auto& right = b.as_array();
        return std::equal(left.begin(), left.end(), right.begin(), right.end(), same);
    }
    if (a.is_object() && b.is_object()) {
        const auto& left = a.as_object();
        const auto& right = b.as_object();
        return left.size() == right.size() && std::ranges::all_of(left, [&right](const auto& pair) {
                   const auto* const other = right.if_contains(pair.key());
                   return other != nullptr && same(pair.value(), *other);
               });
    }
    return a == b;
}

} // namespace

TEST_CASE("the description of a real map equals the expected one in every key") {
    for (const auto& truth : map::test::truths()) {
        CAPTURE(truth.label);
        const auto file = map::Map::open(truth.path);
        REQUIRE(file.has_value());
        const json::object got = describe(truth, *file);
        for (const auto& pair : truth.entry) {
            const std::string key{pair.key()};
            const json::value& value = pair.value();
            if (kNotCompared.contains(key)) {
                continue;
            }
            CAPTURE(key);
            REQUIRE(got.contains(key));
            CAPTURE(json::serialize(got.at(key)));
            CAPTURE(json::serialize(value));
            CHECK(same(got.at(key), value));
        }
        for (const auto& pair : got) {
            const std::string key{pair.key()};
            CAPTURE(key);
            CHECK((truth.entry.contains(key) || kNotCompared.contains(key)));
        }
    }
}

TEST_CASE("missing parts of a map are null, and unreadable parts are named") {
    map::test::DatafileWriter writer;
    const std::int32_t version[] = {1};
    writer.add_item(map::kItemVersion, 0, version);
    const auto empty = map::Map::parse(writer.finish());
    REQUIRE(empty.has_value());
    const json::object none = map_json(map::describe(*empty), "x.map");
    CHECK(none.at("file") == "x.map");
    CHECK(none.at("info").is_null());
    CHECK(none.at("game_layer").is_null());
    CHECK(none.at("ddnet_layers").as_object().empty());
    CHECK(none.at("verdict").at("lenient") == "rejects:no_game_layer");
    CHECK_FALSE(none.contains("points"));

    map::test::MapBuilder builder{4, 3};
    builder.set_game(0, 0, map::kTileSolid).add_layer(map::Layer::front, 2, 2);
    const auto small = map::Map::parse(builder.build());
    REQUIRE(small.has_value());
    const json::object got = map_json(map::describe(*small), "x.map");
    CHECK(got.at("ddnet_layers").at("front").at("width") == 2);
    CHECK(got.at("points").as_array().empty());
}

TEST_CASE("the JSON of a file that is not a map has the checksums and the error") {
    const std::vector<std::byte> noise(100, std::byte{1});
    const auto map = map::Map::parse(noise);
    REQUIRE_FALSE(map.has_value());
    const json::object got =
        map_json(map::describe_rejected(noise, map.error()), "caf\xe9\x1b.map");
    CHECK(record::json_text(got).starts_with(
        "{\"file\":\"caf\xef\xbf\xbd\\u001b.map\",\"size\":100,"));
    CHECK(got.contains("sha256"));
    CHECK_FALSE(got.contains("datafile"));
    CHECK_FALSE(got.contains("info"));
    CHECK(got.at("verdict").at("strict") == "rejects:bad_magic");
    CHECK(got.at("oddities").as_array().empty());
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
