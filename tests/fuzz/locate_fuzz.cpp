#include "map/game_layer.h"
#include "map/layers.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/input.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

namespace {

using namespace tw::map;
using tw::fuzz::demand;
using tw::fuzz::Input;

/// Returns a map of at most 16 x 16 tiles with a game layer. The bits of a byte choose the other layers.
PhysicsLayers random_map(Input& in) {
    constexpr int kSides = 16;
    PhysicsLayers::Contents planes;
    planes.width = 1 + in.take<std::uint8_t>() % kSides;
    planes.height = 1 + in.take<std::uint8_t>() % kSides;
    const auto layers = in.take<std::uint8_t>() | 1U;
    for (std::size_t i = 0; i < kPhysicsLayers; ++i) {
        if ((layers >> i & 1U) != 0) {
            const auto tiles =
                static_cast<std::size_t>(planes.width) * static_cast<std::size_t>(planes.height);
            planes.records.at(i) = Block{tiles * tile_bytes(static_cast<Layer>(i))};
            in.fill(planes.records.at(i).writable_bytes());
        }
    }
    return PhysicsLayers{std::move(planes)};
}

/// Returns the tile of a coordinate by DDNet's rule, calculated with wide integers.
int tile_of(std::int64_t position, int tiles) {
    return static_cast<int>(std::clamp<std::int64_t>(position / kTileSize, 0, tiles - 1));
}

/// The four corners of a tee's box, which collide with walls.
std::array<WorldPos, 4> tee_corners(WorldPos centre) {
    constexpr int kHalf = 14;
    const int left = centre.x - kHalf;
    const int right = centre.x + kHalf;
    const int top = centre.y - kHalf;
    const int bottom = centre.y + kHalf;
    return {{{left, top}, {right, top}, {left, bottom}, {right, bottom}}};
}

void locate_point(const PhysicsLayers& map, WorldPos at) {
    const Location found = map.locate(at);
    demand(found.tile == TilePos{tile_of(at.x, map.width()), tile_of(at.y, map.height())});
    demand(found.game == map.index(Layer::game, found.tile));
    demand(found.position == at);
    demand(map.is_solid(at) == (found.game == 1 || found.game == 3));
    // Floats represent every integer up to this one. Above it, both sides round, but differently.
    constexpr int kExact = 1 << 24U;
    if (std::abs(std::int64_t{at.x}) < kExact - 100 &&
        std::abs(std::int64_t{at.y}) < kExact - 100) {
        const bool corner_in_wall = std::ranges::any_of(
            tee_corners(at), [&](WorldPos corner) { return map.is_solid(corner); });
        demand(map.tee_in_solid(at) == corner_in_wall);
        demand(map.wall_at_tee(at).has_value() == corner_in_wall);
    }
    demand(!map.beyond_border(at) || found.outside);
    static_cast<void>(map.tee_on_ground(at));
    static_cast<void>(map.tee_in_death(at));
}

void locate_fraction(const PhysicsLayers& map, double x, double y) {
    const Location found = map.locate(x, y);
    demand(found.tile == map.tile_at(x, y));
    const TilePos effect = map.effect_tile_at(x, y);
    demand(effect.x >= 0 && effect.x < map.width() && effect.y >= 0 && effect.y < map.height());
    demand(map.is_solid(x, y) == (found.game == 1 || found.game == 3));
}

} // namespace

/// Locates random positions on a random map. The results must agree with the game's rules.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in{std::as_bytes(std::span{data, size})};
    const PhysicsLayers map = random_map(in);
    constexpr int kMost = std::numeric_limits<int>::max();
    locate_point(map, {0, 0});
    locate_point(map, {-kMost - 1, kMost});
    while (!in.empty()) {
        switch (in.take<std::uint8_t>() % 3) {
        case 0:
            locate_point(map, {in.take<std::int32_t>(), in.take<std::int32_t>()});
            break;
        case 1:
            locate_point(map, {in.take<std::int16_t>(), in.take<std::int16_t>()});
            break;
        default: {
            const auto x = in.take<double>();
            locate_fraction(map, x, in.take<double>());
            break;
        }
        }
    }
    return 0;
}
