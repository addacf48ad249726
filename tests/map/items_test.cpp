#include "map/items.h"
#include "map/map.h"
#include "tests/map/map_builder.h"
#include "tests/map/writer.h"

#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::map {
namespace {

using Ints = std::vector<std::int32_t>;

std::int32_t add_text(test::DatafileWriter& writer, std::string_view nul_terminated) {
    return writer.add_block(std::as_bytes(std::span{nul_terminated}));
}

std::int32_t add_ints(test::DatafileWriter& writer, const Ints& ints) {
    return writer.add_block(std::as_bytes(std::span{ints}));
}

/// Returns the numbers 0 to size - 1.
Ints consecutive_ints(std::size_t size) {
    Ints ints(size);
    std::iota(ints.begin(), ints.end(), 0);
    return ints;
}

Map parse_map(const test::DatafileWriter& writer) {
    auto map = Map::parse(writer.finish());
    REQUIRE(map.has_value());
    return *std::move(map);
}

} // namespace

TEST_CASE("the author of a map is read, truncated, and absent if it is not a text") {
    using namespace std::string_view_literals;
    test::DatafileWriter writer = test::MapBuilder{2, 2}.writer();
    const std::int32_t author = add_text(writer, "Ann\0"sv);
    const std::int32_t version = add_text(writer, "a version that is too long\0"sv);
    const std::int32_t credits = add_text(writer, "\xff\0"sv);
    writer.add_item(kItemTypeInfo, 0, Ints{1, author, version, credits, -1});
    const auto info = read_info(parse_map(writer)).value();
    CHECK(info.num_item_ints == 5);
    CHECK(info.author == "Ann");
    CHECK(info.map_version == "a version that ");
    CHECK_FALSE(info.credits.has_value());
    CHECK_FALSE(info.license.has_value());
    CHECK_FALSE(info.settings.has_value());

    test::DatafileWriter cut = test::MapBuilder{2, 2}.writer();
    cut.add_item(kItemTypeInfo, 0, Ints{1, -1, -1, -1});
    CHECK_FALSE(read_info(parse_map(cut)).has_value());
}

TEST_CASE("images and their pixels are read as far as possible") {
    using namespace std::string_view_literals;
    test::DatafileWriter writer = test::MapBuilder{2, 2}.writer();
    const std::int32_t name = add_text(writer, "grass\0"sv);
    const std::int32_t path = add_text(writer, "../grass\0"sv);
    const std::int32_t pixels = add_ints(writer, consecutive_ints(6));
    writer.add_item(kItemTypeImage, 0, Ints{1, 3, 2, 0, name, pixels});
    writer.add_item(kItemTypeImage, 1, Ints{2, 4, 2, 1, path, pixels, 0});
    writer.add_item(kItemTypeImage, 2, Ints{1, 0, 2, 0, name, pixels});
    writer.add_item(kItemTypeImage, 3, Ints{1, 3, 2, 0, name});
    writer.add_item(kItemTypeImage, 4, Ints{2, 3, 0, 0, name, pixels});
    const Map map = parse_map(writer);
    REQUIRE(map.count_items(kItemTypeImage) == 5);
    CHECK_FALSE(read_image(map, 3).has_value());
    CHECK_FALSE(read_image(map, 4)->format.has_value()); // the item is too short for its version
    CHECK_FALSE(read_image(map, 5).has_value());

    const auto grass = read_image(map, 0).value();
    CHECK(grass.name == "grass");
    CHECK_FALSE(grass.external);
    CHECK_FALSE(grass.format.has_value());
    CHECK(read_pixels(map, grass)->size() == 24);

    Image rgb = *read_image(map, 1);
    CHECK(rgb.external);
    CHECK_FALSE(rgb.name.has_value()); // the name could point to another folder
    CHECK(rgb.format == 0);
    CHECK(read_pixels(map, rgb).has_value()); // three bytes per pixel
    rgb.format = 1;
    CHECK(read_pixels(map, rgb).error().code == MapErrc::wrong_record_size);
    CHECK(read_pixels(map, *read_image(map, 2)).error().code == MapErrc::layer_bad_dimensions);
    CHECK(read_pixels(map, *read_image(map, 4)).error().code == MapErrc::layer_bad_dimensions);
}

TEST_CASE("an envelope is read if its item has the ints up to the number of points") {
    test::DatafileWriter writer = test::MapBuilder{2, 2}.writer();
    writer.add_item(kItemTypeEnvelope, 0, Ints{2, 4, 0});
    writer.add_item(kItemTypeEnvelope, 1, Ints{2, 4, 5, 6});
    const Map map = parse_map(writer);
    CHECK_FALSE(read_envelope(map, 0).has_value());
    CHECK_FALSE(read_envelope(map, 2).has_value());
    const auto envelope = read_envelope(map, 1).value();
    CHECK(envelope.num_item_ints == 4);
    CHECK(envelope.version == 2);
    CHECK(envelope.channels == 4);
    CHECK(envelope.first_point == 5);
    CHECK(envelope.num_points == 6);
}

TEST_CASE("a UUID is written in five groups of hex digits") {
    Uuid uuid{};
    std::iota(uuid.begin(), uuid.end(), std::uint8_t{0x78});
    CHECK(to_text(uuid) == "78797a7b-7c7d-7e7f-8081-828384858687");
}

TEST_CASE("the first definition of a UUID type counts") {
    test::DatafileWriter writer = test::MapBuilder{2, 2}.writer();
    CHECK(uuid_types(*Datafile::parse(writer.finish())).empty());
    writer.add_item(kItemTypeUuidIndex, 0x8001,
                    Ints{0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f});
    writer.add_item(kItemTypeUuidIndex, 0x8002, Ints{1, 2, 3}); // too short for a UUID
    writer.add_item(kItemTypeUuidIndex, 0x8001, Ints{1, 2, 3, 4});
    const auto file = Datafile::parse(writer.finish()).value();
    Uuid uuid{};
    std::iota(uuid.begin(), uuid.end(), std::uint8_t{0});
    CHECK(uuid_types(file) == std::vector<UuidType>{{0x8001, uuid}});
}

} // namespace tw::map
