// Covers: map/tiles.cpp
#include "map/game_layer.h"
#include "map/identity.h"
#include "map/layers.h"
#include "map/map.h"
#include "tests/map/known_maps.h"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tw::map {
namespace {

namespace json = boost::json;

Map open_map(const test::KnownMap& known) {
    return Map::open(known.path).value();
}

PhysicsLayers load_physics(const Map& map) {
    return map.physics().value();
}

std::map<std::string, std::int64_t> count_indices(const PhysicsLayers& physics, Layer layer) {
    std::map<std::string, std::int64_t> histogram;
    for (int y = 0; y < physics.height(); ++y) {
        for (int x = 0; x < physics.width(); ++x) {
            ++histogram[std::to_string(physics.index(layer, {x, y}))];
        }
    }
    return histogram;
}

std::map<std::string, std::int64_t> expected_histogram(const json::object& layer) {
    std::map<std::string, std::int64_t> histogram;
    for (const auto& [index, count] : layer.at("histogram").as_object()) {
        histogram[std::string{index}] = count.as_int64();
    }
    return histogram;
}

} // namespace

TEST_CASE("the installed real maps are all there") {
    CHECK(test::known_maps().size() >= 31); // the packages of Debian 12 contain 37
}

TEST_CASE("a real map has the checksum and size it is known for") {
    for (const auto& known : test::known_maps()) {
        CAPTURE(known.label);
        const Map map = open_map(known);
        const Identity identity = identify(map.datafile().bytes());
        CHECK(to_hex(identity.crc) == known.entry.at("crc32").as_string());
        CHECK(to_hex(identity.sha256) == known.entry.at("sha256").as_string());
        CHECK(identity.size == known.entry.at("size").to_number<std::uint64_t>());
        CHECK_FALSE(map.warnings().first_warning_rejected_by_ddnet().has_value());
    }
}

TEST_CASE("every tile of a real map's game layer is the known one") {
    for (const auto& known : test::known_maps()) {
        CAPTURE(known.label);
        const PhysicsLayers physics = load_physics(open_map(known));
        const auto& game = known.entry.at("game_layer").as_object();
        CHECK(physics.width() == game.at("width").as_int64());
        CHECK(physics.height() == game.at("height").as_int64());
        std::vector<std::byte> indices;
        std::vector<std::byte> flags;
        for (int y = 0; y < physics.height(); ++y) {
            for (int x = 0; x < physics.width(); ++x) {
                const Location tile = physics.at({x, y});
                indices.push_back(std::byte{tile.game});
                flags.push_back(std::byte{tile.game_flags});
            }
        }
        CHECK(to_hex(identify(indices).sha256) == game.at("index_sha256").as_string());
        CHECK(to_hex(identify(flags).sha256) == game.at("flags_sha256").as_string());
    }
}

TEST_CASE("every tile of a real map's other physics layers is the known one") {
    for (const auto& known : test::known_maps()) {
        CAPTURE(known.label);
        const PhysicsLayers physics = load_physics(open_map(known));
        const auto* const layers = known.entry.if_contains("ddnet_layers");
        for (const Layer kind :
             {Layer::front, Layer::tele, Layer::speedup, Layer::switch_, Layer::tune}) {
            CAPTURE(layer_name(kind));
            const auto* const layer =
                layers != nullptr ? layers->as_object().if_contains(layer_name(kind)) : nullptr;
            REQUIRE(physics.has(kind) == (layer != nullptr));
            if (layer != nullptr) {
                CHECK(count_indices(physics, kind) == expected_histogram(layer->as_object()));
            }
        }
    }
}

TEST_CASE("a position falls on the known tile of a real map") {
    for (const auto& known : test::known_maps()) {
        CAPTURE(known.label);
        const PhysicsLayers physics = load_physics(open_map(known));
        for (const auto& row : known.entry.at("points").as_array()) {
            const auto& point = row.as_array();
            CAPTURE(json::serialize(row));
            const auto x = point.at(0).to_number<double>();
            const auto y = point.at(1).to_number<double>();
            const Location found = physics.locate(x, y);
            CHECK(found.tile.x == point.at(2).as_int64());
            CHECK(found.tile.y == point.at(3).as_int64());
            CHECK(found.game == point.at(4).as_int64());
            CHECK(collision_index(found.game) == point.at(5).as_int64());
            CHECK(physics.is_solid(x, y) == (point.at(6).as_int64() == 1));
            CHECK((physics.has(Layer::front) ? int{found.front} : -1) == point.at(7).as_int64());
            const TilePos effect = physics.effect_tile_at(x, y);
            CHECK(effect.x == point.at(8).as_int64());
            CHECK(effect.y == point.at(9).as_int64());
        }
    }
}

TEST_CASE("the walls, ground and death tiles at tees of real maps are the known ones") {
    for (const auto& known : test::known_maps()) {
        CAPTURE(known.label);
        const PhysicsLayers physics = load_physics(open_map(known));
        for (const auto& row : known.entry.at("boxes").as_array()) {
            const auto& box = row.as_array();
            CAPTURE(json::serialize(row));
            const WorldPos centre{box.at(0).to_number<int>(), box.at(1).to_number<int>()};
            CHECK(physics.tee_in_solid(centre) == (box.at(2).as_int64() == 1));
            const auto wall = physics.wall_at_tee(centre);
            CHECK(wall.has_value() == (box.at(2).as_int64() == 1));
            if (wall) {
                const auto index = physics.index(Layer::game, *wall);
                CHECK((index == 1 || index == 3)); // 1 is solid, 3 is unhookable
            }
            CHECK(physics.tee_on_ground(centre) == (box.at(3).as_int64() == 1));
            CHECK(physics.tee_touches_death(centre, Layer::game) == (box.at(4).as_int64() == 1));
            CHECK(physics.tee_touches_death(centre, Layer::front) == (box.at(5).as_int64() == 1));
        }
    }
}

TEST_CASE("numbers are rounded like in the game, without undefined behaviour") {
    struct Row {
        double value;
        int rounded;
        int truncated;
    };

    const Row rows[] = {
        {0, 0, 0},
        {31.49, 31, 31},
        {31.5, 32, 31},
        {-0.49, 0, 0},
        {-0.5, -1, 0},
        {-31.5, -32, -31},
        {1e300, std::numeric_limits<int>::max(), std::numeric_limits<int>::max()},
        {-1e300, std::numeric_limits<int>::min(), std::numeric_limits<int>::min()},
        {std::numeric_limits<double>::infinity(), std::numeric_limits<int>::max(),
         std::numeric_limits<int>::max()},
        {std::numeric_limits<double>::quiet_NaN(), 0, 0},
    };
    for (const auto& row : rows) {
        CAPTURE(row.value);
        CHECK(round_to_int(row.value) == row.rounded);
        CHECK(truncate_to_int(row.value) == row.truncated);
    }
}

} // namespace tw::map
