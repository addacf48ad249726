#include "map/items.h"
#include "map/map.h"
#include "tests/map/map_builder.h"
#include "tests/map/writer.h"

#include <array>
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
Ints count_up(std::size_t size) {
    Ints ints(size);
    std::iota(ints.begin(), ints.end(), 0);
    return ints;
}

Map parse(const test::DatafileWriter& writer) {
    auto map = Map::parse(writer.finish());
    REQUIRE(map.has_value());
    return *std::move(map);
}

} // namespace

TEST_CASE("who made a map is read, cut to its length, and absent where it is no text") {
    using namespace std::string_view_literals;
    test::DatafileWriter writer = test::MapBuilder{2, 2}.writer();
    const std::int32_t author = add_text(writer, "Ann\0"sv);
    const std::int32_t version = add_text(writer, "a version that is too long\0"sv);
    const std::int32_t credits = add_text(writer, "\xff\0"sv);
    writer.add_item(kItemInfo, 0, Ints{1, author, version, credits, -1});
    const auto info = read_info(parse(writer));
    REQUIRE(info.has_value());
    CHECK(info->item_ints == 5);
    CHECK(info->author == "Ann");
    CHECK(info->map_version == "a version that ");
    CHECK_FALSE(info->credits.has_value());
    CHECK_FALSE(info->license.has_value());
    CHECK_FALSE(info->settings.has_value());

    test::DatafileWriter cut = test::MapBuilder{2, 2}.writer();
    cut.add_item(kItemInfo, 0, Ints{1, -1, -1, -1});
    CHECK_FALSE(read_info(parse(cut)).has_value());
}

TEST_CASE("images and their pixels are read as far as they are there") {
    using namespace std::string_view_literals;
    test::DatafileWriter writer = test::MapBuilder{2, 2}.writer();
    const std::int32_t name = add_text(writer, "grass\0"sv);
    const std::int32_t path = add_text(writer, "../grass\0"sv);
    const std::int32_t pixels = add_ints(writer, count_up(6));
    writer.add_item(kItemImage, 0, Ints{1, 3, 2, 0, name, pixels});
    writer.add_item(kItemImage, 1, Ints{2, 4, 2, 1, path, pixels, 0});
    writer.add_item(kItemImage, 2, Ints{1, 0, 2, 0, name, pixels});
    writer.add_item(kItemImage, 3, Ints{1, 3, 2, 0, name});
    writer.add_item(kItemImage, 4, Ints{2, 3, 0, 0, name, pixels});
    const Map map = parse(writer);
    REQUIRE(image_count(map) == 5);
    CHECK_FALSE(read_image(map, 3).has_value());
    CHECK_FALSE(read_image(map, 4)->format.has_value()); // the item is too short for its version
    CHECK_FALSE(read_image(map, 5).has_value());

    const auto grass = read_image(map, 0);
    REQUIRE(grass.has_value());
    CHECK(grass->name == "grass");
    CHECK_FALSE(grass->external);
    CHECK_FALSE(grass->format.has_value());
    CHECK(read_pixels(map, *grass)->size() == 24);

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

TEST_CASE("sounds are read, with one source or the old kind of them") {
    using namespace std::string_view_literals;
    test::DatafileWriter writer = test::MapBuilder{2, 2}.writer();
    const std::int32_t name = add_text(writer, "birds\0"sv);
    writer.add_item(kItemSound, 0, Ints{1, 0, name, 7, 1234});
    writer.add_item(kItemSound, 1, Ints{1, 0, name, 7});
    const std::int32_t sources = add_ints(writer, Ints{1, 2, 1, 0, 5, 6, 7, 8, 9, 10, 1, 12, 13});
    const std::int32_t old = add_ints(writer, count_up(9));
    const Map map = parse(writer);
    REQUIRE(sound_count(map) == 2);
    const auto sound = read_sound(map, 0);
    REQUIRE(sound.has_value());
    CHECK(sound->name == "birds");
    CHECK(sound->data == 7);
    CHECK(sound->data_size == 1234);
    CHECK_FALSE(read_sound(map, 1).has_value());
    CHECK_FALSE(read_sound(map, 2).has_value());

    const auto read = read_sources(map, {.num_sources = 1, .data = sources, .name = {}});
    REQUIRE(read.has_value());
    REQUIRE(read->size() == 1);
    CHECK(read->front().position == FixedPoint{1, 2});
    CHECK(read->front().position != FixedPoint{1, 1});
    CHECK(read->front().position != FixedPoint{2, 2});
    CHECK(read->front().looping);
    CHECK_FALSE(read->front().panning);
    CHECK(read->front().circle);
    CHECK(read->front().height == 13);

    const auto circles =
        read_sources(map, {.old_format = true, .num_sources = 1, .data = old, .name = {}});
    REQUIRE(circles.has_value());
    CHECK(circles->front().circle);
    CHECK(circles->front().panning);
    CHECK(circles->front().width == 4);
    CHECK(circles->front().sound_envelope_offset == 8);
}

TEST_CASE("envelopes have their points, with tangents in or beside them") {
    test::DatafileWriter writer = test::MapBuilder{2, 2}.writer();
    Ints envelope{2, 4, 0, 2};
    std::array<std::int32_t, 8> name{};
    test::encode_int_text("fade", name);
    envelope.insert(envelope.end(), name.begin(), name.end());
    envelope.push_back(1);
    writer.add_item(kItemEnvelope, 0, envelope);
    writer.add_item(kItemEnvelopePoints, 0, Ints{0, 1, 10, 20, 30, 40, 500, 99, 1, 2, 3, 4});
    const Map map = parse(writer);
    REQUIRE(envelope_count(map) == 1);
    const auto read = read_envelope(map, 0);
    REQUIRE(read.has_value());
    CHECK(read->name == "fade");
    CHECK(read->synchronized);
    CHECK(read->channels == 4);
    const auto points = read_envelope_points(map);
    REQUIRE(points.size() == 2);
    CHECK(points[0].curve == Curve::linear);
    CHECK(points[0].values == std::array<std::int32_t, 4>{10, 20, 30, 40});
    CHECK(points[1].time == 500);
    CHECK(points[1].curve == Curve::linear); // an unknown curve is linear
    CHECK_FALSE(points[1].tangents.has_value());

    test::DatafileWriter wide = test::MapBuilder{2, 2}.writer();
    wide.add_item(kItemEnvelope, 0, Ints{3, 1, 0, 1});
    wide.add_item(kItemEnvelopePoints, 0, count_up(22));
    const auto bent = read_envelope_points(parse(wide));
    REQUIRE(bent.size() == 1);
    REQUIRE(bent[0].tangents.has_value());
    CHECK(bent[0].tangents->in_dx == std::array<std::int32_t, 4>{6, 7, 8, 9});
    CHECK(bent[0].tangents->out_dy == std::array<std::int32_t, 4>{18, 19, 20, 21});
}

TEST_CASE("an envelope is read as far as its item reaches") {
    test::DatafileWriter writer = test::MapBuilder{2, 2}.writer();
    Ints whole{2, 4, 0, 2};
    whole.insert(whole.end(), 8, static_cast<std::int32_t>(0x80808080U));
    whole.push_back(0);
    constexpr std::array<std::size_t, 5> kSizes{3, 4, 11, 12, 13};
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
        writer.add_item(kItemEnvelope, static_cast<std::uint16_t>(i),
                        std::span{whole}.first(kSizes.at(i)));
    }
    const Map map = parse(writer);
    CHECK_FALSE(read_envelope(map, 0).has_value());
    CHECK_FALSE(read_envelope(map, kSizes.size()).has_value());
    for (std::size_t i = 1; i < kSizes.size(); ++i) {
        CAPTURE(kSizes.at(i));
        const auto envelope = read_envelope(map, i);
        REQUIRE(envelope.has_value());
        CHECK(envelope->num_points == 2);
        CHECK(envelope->name.has_value() == (kSizes.at(i) >= 12));
        CHECK_FALSE(envelope->synchronized);
    }
    CHECK(read_envelope_points(map).empty());
}

TEST_CASE("tangents in an item of their own count only if there is a set for each point") {
    constexpr std::uint16_t kBezierType = 0x8000;
    for (std::size_t sets = 0; sets <= 3; ++sets) {
        CAPTURE(sets);
        test::DatafileWriter writer = test::MapBuilder{2, 2}.writer();
        writer.add_item(kItemEnvelope, 0, Ints{2});
        writer.add_item(kItemEnvelopePoints, 0, Ints{0, -1, 1, 2, 3, 4, 500, 5, 1, 2, 3, 4});
        writer.add_item(kBezierType, 0, count_up(16 * sets));
        Ints uuid;
        for (std::size_t i = 0; i < kUuidBezierPoints.size(); i += 4) {
            std::uint32_t value = 0;
            for (std::size_t k = 0; k < 4; ++k) {
                value = value << 8U | kUuidBezierPoints.at(i + k);
            }
            uuid.push_back(static_cast<std::int32_t>(value));
        }
        writer.add_item(kItemUuidIndex, kBezierType, uuid);
        const auto points = read_envelope_points(parse(writer));
        REQUIRE(points.size() == 2);
        CHECK(points[0].curve == Curve::linear);
        CHECK(points[1].curve == Curve::bezier);
        for (std::size_t i = 0; i < points.size(); ++i) {
            REQUIRE(points[i].tangents.has_value() == (sets == 2));
            CHECK((!points[i].tangents ||
                   points[i].tangents->in_dx[0] == static_cast<std::int32_t>(16 * i)));
        }
    }
}

TEST_CASE("quads are read whole, and more than their block holds is refused") {
    test::DatafileWriter writer = test::MapBuilder{2, 2}.writer();
    const std::int32_t block = add_ints(writer, count_up(38));
    const Map map = parse(writer);
    const auto quads = read_quads(map, {.num_quads = 1, .data = block, .name = {}});
    REQUIRE(quads.has_value());
    REQUIRE(quads->size() == 1);
    const Quad& quad = quads->front();
    CHECK(quad.corners[3] == FixedPoint{6, 7});
    CHECK(quad.pivot == FixedPoint{8, 9});
    CHECK(quad.colors[3] == Color{22, 23, 24, 25});
    for (const Color other :
         {Color{0, 23, 24, 25}, Color{22, 0, 24, 25}, Color{22, 23, 0, 25}, Color{22, 23, 24, 0}}) {
        CHECK(quad.colors[3] != other);
    }
    CHECK(quad.texture[3] == FixedPoint{32, 33});
    CHECK(quad.position_envelope == 34);
    CHECK(quad.color_envelope_offset == 37);

    const auto error = [&](std::int32_t count, std::int32_t data) {
        return read_quads(map, {.num_quads = count, .data = data, .name = {}}).error().code;
    };
    CHECK(error(2, block) == MapErrc::wrong_record_size);
    CHECK(error(-1, block) == MapErrc::wrong_record_size);
    CHECK(error(1, 99) == MapErrc::block_index_out_of_range);
    CHECK(error(1, -1) == MapErrc::block_index_out_of_range);
    CHECK(read_quads(map, {.num_quads = 0, .data = -1, .name = {}})->empty());
}

namespace {

constexpr std::uint16_t kAutomapperType = 0x8000;
constexpr std::uint16_t kGroupType = 0x8001;

/// Returns a UUID as the ints of an index item. The first byte is in an int's highest bits.
std::vector<std::int32_t> index_ints(const Uuid& uuid) {
    std::vector<std::int32_t> ints;
    for (std::size_t i = 0; i < uuid.size(); i += 4) {
        std::uint32_t value = 0;
        for (std::size_t k = 0; k < 4; ++k) {
            value = value << 8U | uuid.at(i + k);
        }
        ints.push_back(static_cast<std::int32_t>(value));
    }
    return ints;
}

Datafile parse_file(const test::DatafileWriter& writer) {
    auto file = Datafile::parse(writer.finish());
    REQUIRE(file.has_value());
    return *std::move(file);
}

} // namespace

TEST_CASE("a UUID is written in five groups of hex digits") {
    CHECK(to_text(kUuidTest) == "b1ab2186-5ac3-39d9-9fbc-47cf03efdf1e");
}

TEST_CASE("item types named by UUID are found through the file's index") {
    test::DatafileWriter writer = test::MapBuilder{2, 2}.writer();
    writer.add_item(kItemUuidIndex, kAutomapperType, index_ints(kUuidAutomapper));
    writer.add_item(kItemUuidIndex, kGroupType, index_ints(kUuidGroup));
    writer.add_item(kItemUuidIndex, 0x8002, std::vector<std::int32_t>{1, 2, 3}); // too short
    writer.add_item(kItemUuidIndex, kGroupType,
                    index_ints(kUuidTest)); // the first definition is used
    writer.add_item(kAutomapperType, 0, std::vector<std::int32_t>{1, 2, 3, 4, -5, 1});
    writer.add_item(kAutomapperType, 1, std::vector<std::int32_t>{1, 2, 3, 4, 5}); // too short
    writer.add_item(kAutomapperType, 2, std::vector<std::int32_t>{1, 0, 1, -1, 0, 2});
    writer.add_item(kGroupType, 0, std::vector<std::int32_t>{1, 250});
    writer.add_item(kGroupType, 1, std::vector<std::int32_t>{1}); // too short
    const Datafile file = parse_file(writer);

    CHECK(uuid_types(file) ==
          std::vector<UuidType>{{kAutomapperType, kUuidAutomapper}, {kGroupType, kUuidGroup}});
    CHECK(UuidType{kGroupType, kUuidGroup} != UuidType{kAutomapperType, kUuidGroup});
    CHECK(UuidType{kGroupType, kUuidGroup} != UuidType{kGroupType, kUuidAutomapper});
    CHECK(find_uuid_type(file, kUuidGroup) == kGroupType);
    CHECK_FALSE(find_uuid_type(file, kUuidTest).has_value());
    CHECK(find_uuid_item(file, kUuidGroup)->ints[1] == 250);
    CHECK_FALSE(find_uuid_item(file, kUuidGroup, 2).has_value());

    const auto automappers = read_automappers(file);
    REQUIRE(automappers.size() == 2);
    CHECK(automappers[0].group == 2);
    CHECK(automappers[0].layer == 3);
    CHECK(automappers[0].config == 4);
    CHECK(automappers[0].seed == -5);
    CHECK(automappers[0].automatic);
    CHECK_FALSE(automappers[1].automatic);

    const auto extras = read_group_extras(file);
    REQUIRE(extras.size() == 1);
    CHECK(extras[0].parallax_zoom == 250);
}

TEST_CASE("a file without an index has no such types") {
    const Datafile file = parse_file(test::MapBuilder{2, 2}.writer());
    CHECK(uuid_types(file).empty());
    CHECK(read_automappers(file).empty());
    CHECK(read_group_extras(file).empty());
}

} // namespace tw::map
