// The design of usual and of damaged maps, as it is sent to the page.

#include "map/layers.h"
#include "map/map.h"
#include "proxy/web/page_json.h"
#include "tests/map/map_builder.h"
#include "tests/map/writer.h"
#include "tests/proxy/web/sample_state.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>
#include <doctest/doctest.h>

using namespace tw;
namespace json = boost::json;

namespace {

using Ints = std::vector<std::int32_t>;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kImageBytes = std::size_t{16} * 16 * 4;

Bytes filled_bytes(std::size_t size, unsigned value) {
    return Bytes(size, static_cast<std::byte>(value));
}

/// A page that knows the map of session 1.
struct MapPage final : test::SamplePageData {
    explicit MapPage(std::shared_ptr<const Bytes> map_file) : file{std::move(map_file)} {}

    inspect::MapSearchResult map_of_session(std::uint32_t session) const override {
        return {.file_bytes = session == 1 ? file : nullptr};
    }

    std::shared_ptr<const Bytes> file;
};

/// A map of groups and layers, with the blocks that tests share.
struct DesignMap {
    map::test::DatafileWriter writer{};
    std::int32_t tiles = writer.add_block(filled_bytes(2 * std::size_t{4}, 3));
    std::int32_t pixels = writer.add_block(filled_bytes(kImageBytes, 200));
    std::int32_t layers = 0;
    std::uint16_t groups = 0;
    std::uint16_t images = 0;

    DesignMap() { writer.add_item(map::kItemTypeVersion, 0, Ints{1}); }

    /// Starts a group that holds the next `count` layers.
    void begin_group(std::int32_t count, std::int32_t parallax = 100, std::int32_t offset = 0) {
        writer.add_item(map::kItemTypeGroup, groups++,
                        Ints{1, offset, -offset, parallax, parallax, layers, count});
    }

    void add_layer(const Ints& ints) {
        writer.add_item(map::kItemTypeLayer, static_cast<std::uint16_t>(layers++), ints);
    }

    void add_layer(std::int32_t image, std::int32_t flags = 0,
                   const Ints& color = {255, 128, 0, 64}) {
        Ints ints = map::test::tile_layer(2, 2, 1, flags, tiles);
        std::copy(color.begin(), color.end(), ints.begin() + 7);
        ints[13] = image;
        add_layer(ints);
    }

    void add_image(std::int32_t width, std::int32_t height, std::int32_t data,
                   bool external = false, const Ints& format = {}) {
        Ints ints{format.empty() ? 1 : 2, width, height, external ? 1 : 0, -1, data};
        ints.insert(ints.end(), format.begin(), format.end());
        writer.add_item(map::kItemTypeImage, images++, ints);
    }

    [[nodiscard]] json::object design_json() const {
        const auto text = web::map_design_json(writer.finish());
        REQUIRE(text.has_value());
        return json::parse(*text).as_object();
    }
};

std::string json_text_of(const json::value& value) {
    return json::serialize(value);
}

} // namespace

TEST_CASE("a design has the plain layers that move with the game layer, from back to front") {
    DesignMap map;
    map.begin_group(1, 50); // moves slower than the game
    map.add_layer(0);
    map.begin_group(3, 7, 99); // the game ignores the parallax of the game layer's group
    map.add_layer(0);
    map.add_layer(-1, map::kLayerFlagGame);
    map.add_layer(1, 0, {999, -1, 0, 255});
    map.begin_group(2, 100, 16);
    map.add_layer(-1);
    map.add_layer(Ints{0, map::kLayerTypeQuads, 0, 1, 0, -1, -1});
    map.add_image(16, 16, map.pixels);
    map.add_image(16, 16, -1, true);
    const json::object design = map.design_json();
    CHECK(json_text_of(design.at("images")) == R"([{"number":0,"width":16,"height":16}])");
    const json::array& layers = design.at("layers").as_array();
    REQUIRE(layers.size() == 3);
    CHECK(json_text_of(layers[0]) == R"({"image":0,"width":2,"height":1,"offset":[0,0],)"
                                     R"("color":[255,128,0,64],"tiles":"AwMDAw=="})");
    CHECK(layers[1].at("image").is_null()); // the image is not in the file
    CHECK(json_text_of(layers[1].at("color")) == "[255,0,0,255]");
    CHECK(json_text_of(layers[2].at("offset")) == "[16,-16]");
    CHECK(layers[2].at("image").is_null());

    const auto pixels = web::image_pixels(map.writer.finish(), 0);
    CHECK(pixels == std::string(kImageBytes, '\xc8'));
    CHECK_FALSE(web::image_pixels(map.writer.finish(), 1).has_value());
    CHECK_FALSE(web::image_pixels(map.writer.finish(), 2).has_value());
    CHECK_FALSE(web::image_pixels(map.writer.finish(), std::numeric_limits<std::uint32_t>::max()));
}

TEST_CASE("an image that cannot be drawn is left out, and a design without images is empty") {
    constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();

    struct Row {
        std::string_view name;
        std::int32_t width, height, data;
        Ints format;
    };

    const Row rows[] = {
        {"no width", 0, 16, 1, {}},
        {"negative height", 16, -16, 1, {}},
        {"huge sides", kMax, kMax, 1, {}},
        {"one side above the limit", 1040, 16, 1, {}},
        {"tiles of a fraction of a pixel", 24, 16, 1, {}},
        {"RGB", 16, 16, 1, {0}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        DesignMap map;
        map.begin_group(2);
        map.add_layer(-1, map::kLayerFlagGame);
        map.add_layer(0);
        map.add_image(row.width, row.height, row.data, false, row.format);
        CHECK(json_text_of(map.design_json()) == R"({"v":1,"images":[],"layers":[]})");
        CHECK_FALSE(web::image_pixels(map.writer.finish(), 0).has_value());
    }
}

TEST_CASE("an image whose data are missing or too short has no pixels") {
    for (const std::int32_t data : {-1, 0, 99}) { // block 0 has the tiles, 8 bytes
        CAPTURE(data);
        DesignMap map;
        map.begin_group(1);
        map.add_layer(-1, map::kLayerFlagGame);
        map.add_image(16, 16, data);
        CHECK_FALSE(web::image_pixels(map.writer.finish(), 0).has_value());
    }
}

TEST_CASE("a layer whose tiles are missing or too many is left out") {
    constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();

    struct Row {
        std::string_view name;
        std::int32_t width, height, data;
    };

    const Row rows[] = {{"more than the block has", 2, 2, 0},
                        {"no block", 2, 1, -1},
                        {"no such block", 2, 1, 99},
                        {"no width", 0, 1, 0},
                        {"huge", kMax, kMax, 0},
                        {"negative", -2, -1, 0},
                        {"a block above the limit", 2048, 2048, 2}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        DesignMap map;
        map.writer.add_block(filled_bytes(std::size_t{2048} * 2048 * 4, 1));
        map.begin_group(3);
        map.add_layer(-1, map::kLayerFlagGame);
        Ints layer = map::test::tile_layer(2, row.width, row.height, 0, row.data);
        layer[13] = 0;
        map.add_layer(layer);
        map.add_layer(0);
        map.add_image(16, 16, map.pixels);
        CHECK(map.design_json().at("layers").as_array().size() == 1);
    }
}

TEST_CASE("a design has no more layers, tiles and images than the limits") {
    DesignMap many;
    many.begin_group(1000);
    many.add_layer(-1, map::kLayerFlagGame);
    for (std::int32_t i = 0; i < 100; ++i) {
        many.add_layer(i);
        many.add_image(16, 16, many.pixels);
    }
    CHECK(many.design_json().at("layers").as_array().size() == 64);
    CHECK(many.design_json().at("images").as_array().size() == 32);

    DesignMap large;
    const std::int32_t tiles =
        large.writer.add_block(filled_bytes(std::size_t{1024} * 1024 * 4, 1));
    const std::int32_t pixels =
        large.writer.add_block(filled_bytes(std::size_t{1024} * 1024 * 4, 1));
    large.begin_group(1000);
    large.add_layer(-1, map::kLayerFlagGame);
    for (std::int32_t i = 0; i < 20; ++i) {
        Ints layer = map::test::tile_layer(2, 1024, 1024, 0, tiles);
        layer[13] = i;
        large.add_layer(i < 2 ? layer : map::test::tile_layer(2, 2, 1, 0, large.tiles));
        large.add_layer(i);
        large.add_image(1024, 1024, pixels);
    }
    const json::object design = large.design_json();
    CHECK(design.at("images").as_array().size() == 16); // 64 MiB
    CHECK(design.at("layers").as_array().size() == 40);

    DesignMap tiled; // each of the small layers claims a block of 4 MiB
    const std::int32_t block =
        tiled.writer.add_block(filled_bytes(std::size_t{1024} * 1024 * 4, 1));
    tiled.begin_group(1000);
    tiled.add_layer(-1, map::kLayerFlagGame);
    for (int i = 0; i < 10; ++i) {
        Ints layer = map::test::tile_layer(2, 2, 1, 0, block);
        layer[13] = 0;
        tiled.add_layer(layer);
    }
    tiled.add_image(16, 16, tiled.pixels);
    CHECK(tiled.design_json().at("layers").as_array().size() == 8); // 32 MiB
}

TEST_CASE("a map file that is cut at any byte or too large gives no design, or one within it") {
    DesignMap map;
    map.begin_group(2);
    map.add_layer(-1, map::kLayerFlagGame);
    map.add_layer(0);
    map.add_image(16, 16, map.pixels);
    const Bytes whole = map.writer.finish();
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        const std::span<const std::byte> cut{whole.data(), size};
        if (const auto design = web::map_design_json(cut)) {
            CHECK(json::parse(*design).as_object().at("layers").as_array().size() <= 1);
        }
        CHECK_FALSE(web::image_pixels(cut, 0).has_value());
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
        for (const unsigned mask : {0x01U, 0x80U, 0xffU}) {
            Bytes damaged = whole;
            damaged[at] ^= static_cast<std::byte>(mask);
            static_cast<void>(web::map_design_json(damaged));
            static_cast<void>(web::image_pixels(damaged, 0));
        }
    }
    Bytes large = whole;
    large.resize((std::size_t{8} << 20U) + 1);
    CHECK_FALSE(web::map_design_json(large).has_value());
    CHECK_FALSE(web::image_pixels(large, 0).has_value());
}

TEST_CASE("a request for a design names a session whose map is known") {
    DesignMap map;
    map.begin_group(2);
    map.add_layer(-1, map::kLayerFlagGame);
    map.add_layer(0);
    map.add_image(16, 16, map.pixels);
    const auto file = std::make_shared<const Bytes>(map.writer.finish());
    MapPage page{file};
    CHECK(test::request_response(page, "GET /api/map_design?session=1") ==
          "200 " + *web::map_design_json(*file));
    CHECK(test::request_response(page, "GET /api/map_image?session=1&image=0").size() ==
          4 + kImageBytes);
    for (const std::string query :
         {"map_design", "map_design?session=2", "map_design?session=x", "map_design?session=-1",
          "map_image?session=1", "map_image?session=1&image=1", "map_image?session=1&image=-1",
          "map_image?session=2&image=0", "map_image?image=0"}) {
        CAPTURE(query);
        CHECK(test::request_response(page, "GET /api/" + query).starts_with("404 "));
    }
    test::SamplePageData without; // a collector has no maps
    CHECK(test::request_response(without, "GET /api/map_design?session=1").starts_with("404 "));
}
