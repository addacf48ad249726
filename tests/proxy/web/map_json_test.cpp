// Maps and objects as JSON for the page.
// Covers: proxy/web/page_json.cpp

#include "map/game_layer.h"
#include "map/picture.h"
#include "proxy/web/page.h"
#include "proxy/web/page_json.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <doctest/doctest.h>

using namespace tw;
namespace json = boost::json;

namespace {

map::PhysicsLayers small_map() {
    map::PhysicsLayers::Planes planes;
    planes.width = 2;
    planes.height = 2;
    const auto fill = [](map::Block& block, std::initializer_list<unsigned> bytes) {
        block = map::Block{bytes.size()};
        std::ranges::transform(bytes, block.writable().begin(),
                               [](unsigned byte) { return static_cast<std::byte>(byte); });
    };
    // A game tile has four bytes, a tele tile two: number and index.
    fill(planes.records[0], {1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 192, 0, 0, 0});
    fill(planes.records[2], {0, 0, 7, 26, 0, 0, 0, 0});
    return map::PhysicsLayers{std::move(planes)};
}

} // namespace

TEST_CASE("map_json() contains the layers' tiles, names and colours") {
    const json::object map = json::parse(web::map_json(small_map())).as_object();
    CHECK(map.at("width") == 2);
    CHECK(map.at("height") == 2);
    const json::object& layers = map.at("layers").as_object();
    CHECK(layers.size() == 2);
    CHECK(layers.at("game").at("tiles") == "AQAJwA==");
    CHECK(layers.at("game").at("names").at("1") == "solid");
    CHECK(layers.at("game").at("names").at("9") == "freeze");
    CHECK(layers.at("game").as_object().if_contains("numbers") == nullptr);
    CHECK(layers.at("tele").at("tiles") == "ABoAAA==");
    CHECK(layers.at("tele").at("numbers") == "AAcAAA==");
    const json::array& swatches = map.at("swatches").as_array();
    CHECK(swatches.size() == map::swatches().size());
    CHECK(swatches.at(1).at("label") == "solid");
    CHECK(swatches.at(1).at("color") == "#b08d57");
}

TEST_CASE("a client accepts gzip if it names gzip without a quality of 0") {
    struct Row {
        std::string_view header;
        bool takes;
    };

    const Row rows[] = {{"gzip", true},
                        {"gzip, deflate, br", true},
                        {"br, GZIP;q=0.5", true},
                        {"x-gzip", true},
                        {"deflate, gzip;q=1.0", true},
                        {"gzip ; q=0.001", true},
                        {"", false},
                        {"identity", false},
                        {"deflate;q=1, gzip;q=0", false},
                        {"gzip;q=0.000", false},
                        {"gzip; q=0.0, br", false},
                        {"notgzip", false},
                        {"gzip;q=0, br;q=1", false}};
    for (const Row& row : rows) {
        CAPTURE(row.header);
        CHECK(web::accepts_gzip(row.header) == row.takes);
    }
}

TEST_CASE("gunzipped() reverses gzipped()") {
    const std::string text(3'000'000, 'x');
    CHECK(web::gunzipped(web::gzipped(text)) == text);
    CHECK(web::gunzipped(web::gzipped("")).empty());
    CHECK(web::gunzipped("nonsense").empty());
}

TEST_CASE("a map in use is packed once, and few packed maps are kept") {
    web::CompressedMapCache packed;
    std::vector<std::shared_ptr<const map::PhysicsLayers>> maps;
    maps.reserve(9);
    for (int i = 0; i < 9; ++i) {
        maps.push_back(std::make_shared<const map::PhysicsLayers>(small_map()));
    }
    const auto first = packed.compressed_json(maps[0]);
    CHECK(*first == web::gzipped(web::map_json(*maps[0])));
    for (int i = 1; i < 8; ++i) {
        CHECK(packed.compressed_json(maps[static_cast<std::size_t>(i)]) != first);
        CHECK(packed.compressed_json(maps[0]) == first);
    }
    const std::weak_ptr second = packed.compressed_json(maps[1]);
    const std::weak_ptr third = packed.compressed_json(maps[2]);
    CHECK(packed.compressed_json(maps[0]) == first);
    CHECK(packed.compressed_json(maps[1]) == second.lock());
    CHECK(packed.compressed_json(maps[8]) !=
          nullptr); // replaces the map that was requested longest ago
    CHECK(packed.compressed_json(maps[0]) == first);
    maps[1].reset();
    CHECK(packed.compressed_json(maps[2]) == third.lock());
    CHECK(second.expired());
}

TEST_CASE("objects_json() lists every object with its fields in order") {
    const auto& set = snapshot::ObjectSet::standard();
    const json::object all = json::parse(web::objects_json(set)).as_object();
    const json::array& objects = all.at("objects").as_array();
    REQUIRE(objects.size() == snapshot::object_table().size());
    for (const snapshot::ObjectSpec& spec : snapshot::object_table()) {
        const json::object& object = objects.at(set.index_of(spec)).as_object();
        CHECK(object.at("name") == json::string_view{spec.name.data(), spec.name.size()});
        CHECK(object.at("fields").as_array().size() == spec.fields.size());
        CHECK((object.if_contains("position") != nullptr) == spec.position.has_value());
    }
    const json::object& character = objects
                                        .at(set.index_of(*snapshot::find_object(
                                            snapshot::kCharacterType, snapshot::Dialect::six)))
                                        .as_object();
    CHECK(character.at("client") == "id");
    CHECK(character.at("position").at("per_unit") == 1);
}
