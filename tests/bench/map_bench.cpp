// Compares opening a map and locating one position with inflating the map's physics blocks alone, which
// every reader must do. The difference is the cost of our reader.

#include "map/map.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using namespace tw::map;

const std::filesystem::path kFolder =
    "/usr/share/games/ddnet/data/maps"; // from the package ddnet-data
constexpr const char* kMaps[] = {"dm1.map", "Gold Mine.map", "Tutorial.map"};

std::vector<std::byte> read_map_file(benchmark::State& state) {
    const char* const name = kMaps[state.range(0)];
    state.SetLabel(name);
    auto file = read_file(kFolder / name, Limits{}.max_file_bytes);
    if (!file) {
        state.SkipWithError("the package ddnet-data is not installed");
        return {};
    }
    return std::move(*file);
}

std::vector<std::int32_t> physics_blocks(const Map& map) {
    std::vector<std::int32_t> blocks;
    for (int kind = 0; kind < kPhysicsLayers; ++kind) {
        const auto layer = static_cast<Layer>(kind);
        if (const auto place = map.physics_layer(layer)) {
            const auto item = map.layer(place->layer);
            blocks.push_back(*tile_block(std::get<TileLayer>(item->content), layer));
        }
    }
    return blocks;
}

void open_and_locate(benchmark::State& state) {
    const auto file = read_map_file(state);
    for (auto _ : state) {
        const auto map = Map::parse(file);
        const auto physics = map->physics();
        benchmark::DoNotOptimize(physics->locate(WorldPos{500, 500}));
    }
}

void inflate_alone(benchmark::State& state) {
    const auto file = read_map_file(state);
    const auto map = Map::parse(file);
    const auto blocks = map ? physics_blocks(*map) : std::vector<std::int32_t>{};
    for (auto _ : state) {
        std::vector<Result<Block>> inflated; // holds all blocks at once, like a reader
        for (const std::int32_t block : blocks) {
            inflated.push_back(map->datafile().block(block));
        }
        benchmark::DoNotOptimize(inflated.data());
    }
}

void locate(benchmark::State& state) {
    const auto map = Map::parse(read_map_file(state));
    const auto physics = map->physics();
    int x = 0;
    for (auto _ : state) {
        x = (x + 97) & 0x3fff;
        benchmark::DoNotOptimize(physics->locate(WorldPos{x, x / 3}));
    }
}

} // namespace

BENCHMARK(open_and_locate)->DenseRange(0, 2);
BENCHMARK(inflate_alone)->DenseRange(0, 2);
BENCHMARK(locate)->Arg(2);

BENCHMARK_MAIN();
