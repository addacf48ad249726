// Covers: map/items.cpp
#include "map/items.h"
#include "map/map.h"
#include "tests/map/map_builder.h"
#include "tests/map/writer.h"

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

namespace tw::map {
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

Datafile parse(const test::DatafileWriter& writer) {
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
    const Datafile file = parse(writer);

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
    const Datafile file = parse(test::MapBuilder{2, 2}.writer());
    CHECK(uuid_types(file).empty());
    CHECK(read_automappers(file).empty());
    CHECK(read_group_extras(file).empty());
}

} // namespace tw::map
