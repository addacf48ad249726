#include "map/items.h"
#include "map/map.h"
#include "proxy/analyze/map_report.h"
#include "tests/fuzz/demand.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <variant>

#include <boost/json.hpp>

namespace {

using namespace tw::map;

void read_layers(const Map& map) {
    for (std::size_t i = 0; i < map.layer_count(); ++i) {
        const auto layer = map.layer(i);
        if (!layer) {
            continue;
        }
        if (const auto* const tiles = std::get_if<TileLayer>(&layer->content)) {
            static_cast<void>(read_tiles(map, *tiles));
        }
    }
}

void locate_positions(const PhysicsLayers& physics) {
    constexpr int kMost = std::numeric_limits<int>::max();
    for (const WorldPos position : {WorldPos{0, 0}, WorldPos{-kMost - 1, kMost},
                                    WorldPos{kMost, -kMost - 1}, WorldPos{100, 70}}) {
        const Location found = physics.locate(position);
        tw::fuzz::demand(found.tile.x >= 0 && found.tile.x < physics.width());
        tw::fuzz::demand(found.tile.y >= 0 && found.tile.y < physics.height());
        static_cast<void>(physics.tee_in_solid(position));
        static_cast<void>(physics.tee_on_ground(position));
        static_cast<void>(physics.tee_in_death(position));
    }
}

} // namespace

/// Reads and describes everything in a map, and locates a few positions.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span{data, size});
    Limits limits; // limits the fuzzer's memory
    limits.max_block_bytes = std::uint64_t{1} << 20U;
    limits.max_tiles = std::uint64_t{1} << 18U;
    const auto map = Map::parse({bytes.begin(), bytes.end()}, limits);
    if (!map) {
        return 0;
    }
    read_layers(*map);
    for (std::size_t i = 0; i < map->count_items(kItemTypeImage); ++i) {
        if (const auto image = read_image(*map, i)) {
            static_cast<void>(read_pixels(*map, *image));
        }
    }
    static_cast<void>(read_info(*map));
    if (const auto physics = map->physics()) {
        locate_positions(*physics);
    }
    const tw::analyze::MapPoint points[] = {{1e300, -0.5}};
    const auto description = tw::analyze::map_json(*map, "", {.points = points});
    tw::fuzz::demand(!tw::analyze::map_text(description).empty());
    tw::fuzz::demand(!description.contains("points") ||
                     description.at("points").as_array().size() == 1);
    return 0;
}
