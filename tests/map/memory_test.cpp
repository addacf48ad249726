// Memory limits: a map takes at most three times its file's size, plus the requested layers.

#include "map/map.h"
#include "tests/map/known_maps.h"
#include "tests/map/map_builder.h"
#include "tests/map/writer.h"
#include "tests/support/allocation_count.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::map;
using namespace tw::map::test;

namespace {

/// Memory that does not depend on the file's size: a bit for each possible item type, small
/// strings, and the allocator's rounding. Not included: 40 KiB that zlib allocates with malloc.
constexpr std::uint64_t kSlack = 32 << 10U;

/// Returns the peak of allocated bytes during `work`, in addition to the bytes allocated before.
template <typename Work>
std::uint64_t peak_bytes_during(const Work& work) {
    const std::uint64_t before = tw::test::live_bytes();
    tw::test::reset_peak_bytes();
    work();
    return tw::test::peak_bytes() - before;
}

std::uint64_t plane_bytes(const PhysicsLayers& physics) {
    std::uint64_t bytes = 0;
    const auto tiles =
        static_cast<std::uint64_t>(physics.width()) * static_cast<std::uint64_t>(physics.height());
    for (int i = 0; i < kPhysicsLayers; ++i) {
        const auto layer = static_cast<Layer>(i);
        bytes += physics.has(layer) ? tiles * tile_bytes(layer) : 0;
    }
    return bytes;
}

/// Returns a file whose header declares these counts. All other bytes are zero.
std::vector<std::byte> make_false_header(const std::array<std::int32_t, 5>& counts,
                                         std::size_t size) {
    std::vector<std::byte> file(size);
    std::memcpy(file.data(), "DATA", 4);
    const std::array<std::int32_t, 3> front{4, static_cast<std::int32_t>(size - 16),
                                            static_cast<std::int32_t>(size - 16)};
    std::memcpy(file.data() + 4, front.data(), sizeof front);
    std::memcpy(file.data() + 16, counts.data(), sizeof counts);
    return file;
}

/// Returns a map with a game layer of this size and version, in a block with the declared size
/// `claimed`.
std::vector<std::byte> make_map_of_false_size(std::int32_t width, std::int32_t height,
                                              std::int32_t version, std::uint32_t claimed,
                                              std::size_t stored) {
    DatafileWriter writer;
    const std::int32_t map_version[] = {1};
    writer.add_item(kItemTypeVersion, 0, map_version);
    const std::int32_t group[] = {3, 0, 0, 100, 100, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    writer.add_item(kItemTypeGroup, 0, group);
    const std::int32_t block = writer.add_stored_block(std::vector<std::byte>(stored), claimed);
    const std::int32_t layer[] = {
        0,  kLayerTypeTiles, 0, version, width, height, kLayerFlagGame, 255, 255, 255, 255, -1, 0,
        -1, block,           0, 0,       0};
    writer.add_item(kItemTypeLayer, 0, layer);
    const std::int32_t image[] = {1, width, height, 0, -1, block};
    writer.add_item(kItemTypeImage, 0, image);
    return writer.finish();
}

std::vector<std::byte> make_file_of_items(std::uint16_t type, std::size_t ints) {
    constexpr int kItems = 60'000;
    DatafileWriter writer;
    const std::int32_t version[] = {1};
    writer.add_item(kItemTypeVersion, 0, version);
    const std::vector<std::int32_t> group{3, 0, 0, 100, 100, 0, kItems};
    writer.add_item(kItemTypeGroup, 0, group);
    const std::vector<std::int32_t> item(ints, 2);
    for (int i = 0; i < kItems; ++i) {
        writer.add_item(type, static_cast<std::uint16_t>(i), item);
    }
    return writer.finish();
}

std::vector<std::byte> make_file_of_blocks() {
    constexpr int kBlocks = 100'000;
    DatafileWriter writer;
    const std::int32_t version[] = {1};
    writer.add_item(kItemTypeVersion, 0, version);
    for (int i = 0; i < kBlocks; ++i) {
        writer.add_stored_block({}, 0);
    }
    return writer.finish();
}

} // namespace

TEST_CASE("a map takes at most three times its file's size, plus its physics layers") {
    if (!tw::test::counts_allocations()) {
        return;
    }
    std::size_t maps = 0;
    for (const KnownMap& known : known_maps()) {
        CAPTURE(known.label);
        const std::uint64_t size = std::filesystem::file_size(known.path);
        const std::uint64_t peak = peak_bytes_during([&] {
            const auto map = Map::open(known.path);
            CHECK(map.has_value());
        });
        CHECK(peak <= 3 * size + kSlack);
        std::uint64_t layers = 0;
        const std::uint64_t whole = peak_bytes_during([&] {
            const auto map = Map::open(known.path);
            if (map) {
                const auto physics = map->physics();
                layers = physics ? plane_bytes(*physics) : 0;
            }
        });
        // While a packed game layer is unpacked, the packed block is in memory, too. It is not
        // larger than the tiles.
        CHECK(whole <= 3 * size + 2 * layers + kSlack);
        ++maps;
    }
    MESSAGE(maps, " installed maps");
}

TEST_CASE("a file that declares more data than it has takes at most three times its size") {
    constexpr std::int32_t kMost = 0x7fffffff;
    constexpr std::int32_t kMuch = 0x10000000;

    struct Row {
        std::string_view name;
        std::vector<std::byte> file;
    };

    const Row rows[] = {
        {"item types", make_false_header({kMost, 0, 0, 0, 0}, 4096)},
        {"65536 item types", make_false_header({65536, 0, 0, 0, 0}, 4096)},
        {"items", make_false_header({0, kMost, 0, 0, 0}, 4096)},
        {"data blocks", make_false_header({0, 0, kMost, 0, 0}, 4096)},
        {"the item section", make_false_header({0, 0, 0, kMost - 3, 0}, 4096)},
        {"the data section", make_false_header({0, 0, 0, 0, kMost}, 4096)},
        {"everything", make_false_header({kMuch, kMuch, kMuch, kMuch, kMuch}, 4096)},
        {"a block of 2 GiB", make_map_of_false_size(100, 100, 3, 0x7fffffff, 100)},
        {"a layer of 2^60 tiles", make_map_of_false_size(1 << 30, 1 << 30, 3, 40'000, 100)},
        {"a layer of 2^26 tiles", make_map_of_false_size(1 << 13, 1 << 13, 3, 1 << 28, 100)},
        {"a packed layer of 2^26 tiles", make_map_of_false_size(1 << 13, 1 << 13, 4, 100, 100)},
        {"sides whose product wraps", make_map_of_false_size(65536, 65537, 3, 262144, 100)},
        {"negative sides", make_map_of_false_size(-5, -7, 3, 140, 100)},
        {"60000 layers of nothing", make_file_of_items(kItemTypeLayer, 0)},
        {"60000 short layers", make_file_of_items(kItemTypeLayer, 4)},
        {"60000 groups", make_file_of_items(9, 1)},
        {"60000 images", make_file_of_items(kItemTypeImage, 6)},
        {"60000 envelopes", make_file_of_items(kItemTypeEnvelope, 4)},
        {"100000 empty blocks", make_file_of_blocks()},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const std::uint64_t size = row.file.size();
        std::vector<std::byte> file = row.file; // a copy, so that the allocation is counted
        const std::uint64_t peak = peak_bytes_during([&] {
            const auto map = Map::parse(std::move(file));
            if (map) {
                const auto physics = map->physics();
                CHECK((!physics || plane_bytes(*physics) <= size));
            }
        });
        if (tw::test::counts_allocations()) {
            CHECK(peak + size <= 3 * size + kSlack);
        }
    }
}

TEST_CASE("reading all blocks takes at most eight times the largest block in addition") {
    if (!tw::test::counts_allocations()) {
        return;
    }
    for (const KnownMap& known : known_maps()) {
        CAPTURE(known.label);
        const std::uint64_t size = std::filesystem::file_size(known.path);
        std::uint64_t blocks = 0;
        const std::uint64_t peak = peak_bytes_during([&] {
            const auto map = Map::open(known.path);
            if (!map) {
                return;
            }
            for (std::size_t i = 0; i < map->datafile().block_count(); ++i) {
                blocks = std::max(blocks, map->datafile().block_info(i).size);
                static_cast<void>(map->datafile().block(static_cast<std::int64_t>(i)));
            }
            CHECK(map->physics().has_value());
        });
        // The physics layers stay in memory while each layer is examined. A growing vector doubles.
        CHECK(peak <= 3 * size + 8 * blocks + kSlack);
    }
}
