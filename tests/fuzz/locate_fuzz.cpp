#include "map/game_layer.h"
#include "map/layers.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/input.h"
#include "tests/map/motion.h"

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
using namespace tw::map::test;
using tw::fuzz::demand;
using tw::fuzz::Input;

/// Returns a map of at most 16 x 16 tiles with a game layer. The bits of a byte choose the other layers.
PhysicsLayers random_map(Input& in) {
    constexpr int kSides = 16;
    PhysicsLayers::Planes planes;
    planes.width = 1 + in.take<std::uint8_t>() % kSides;
    planes.height = 1 + in.take<std::uint8_t>() % kSides;
    const auto layers = in.take<std::uint8_t>() | 1U;
    for (std::size_t i = 0; i < kPhysicsLayers; ++i) {
        if ((layers >> i & 1U) != 0) {
            const auto tiles =
                static_cast<std::size_t>(planes.width) * static_cast<std::size_t>(planes.height);
            planes.records.at(i) = Block{tiles * record_size(static_cast<Layer>(i))};
            in.fill(planes.records.at(i).writable());
        }
    }
    return PhysicsLayers{std::move(planes)};
}

/// Returns the tile of a coordinate by DDNet's rule, calculated with wide integers.
int tile_of(std::int64_t position, int tiles) {
    return static_cast<int>(std::clamp<std::int64_t>(position / kTileSize, 0, tiles - 1));
}

void locate_point(const PhysicsLayers& map, WorldPos at) {
    const Location found = map.locate(at);
    demand(found.tile == TilePos{tile_of(at.x, map.width()), tile_of(at.y, map.height())});
    demand(found.game == map.index(Layer::game, found.tile));
    demand(found.position == at);
    demand(map.is_solid(at) == (found.game == 1 || found.game == 3));
    bool corner_in_wall = false;
    for (const WorldPos corner : tee_corners(at)) {
        corner_in_wall = corner_in_wall || map.is_solid(corner);
    }
    // Floats represent every integer up to this one. Above it, both sides round, but differently.
    constexpr int kExact = 1 << 24U;
    if (std::abs(std::int64_t{at.x}) < kExact - 100 &&
        std::abs(std::int64_t{at.y}) < kExact - 100) {
        demand(map.tee_in_solid(at) == corner_in_wall);
        demand(map.wall_at_tee(at).has_value() == corner_in_wall);
    }
    demand(!map.beyond_border(at) || found.outside);
    static_cast<void>(map.tee_on_ground(at));
    static_cast<void>(map.tee_in_death(at));
    static_cast<void>(has_tile(found, "freeze"));
}

void locate_fraction(const PhysicsLayers& map, double x, double y) {
    const Location found = map.locate(x, y);
    demand(found.tile == map.tile_at(x, y));
    const TilePos effect = map.effect_tile_at(x, y);
    demand(effect.x >= 0 && effect.x < map.width() && effect.y >= 0 && effect.y < map.height());
    demand(map.is_solid(x, y) == (found.game == 1 || found.game == 3));
}

void follow_line(const PhysicsLayers& map, WorldVec from, WorldVec to) {
    const auto hit = intersect_line(map, from, to);
    if (!hit) {
        return;
    }
    demand(map.is_solid(hit->point.x, hit->point.y));
    demand(hit->tile == map.tile_at(hit->point.x, hit->point.y));
    demand(hit->index == map.index(Layer::game, hit->tile));
    demand(hit->before == from || !map.is_solid(hit->before.x, hit->before.y));
}

void shoot(const PhysicsLayers& map, Input& in) {
    Tunings tunings;
    std::array<std::int32_t, kTunings> message{};
    in.fill(std::as_writable_bytes(std::span{message})
                .first(in.take<std::uint8_t>() % 40 * std::size_t{3}));
    tunings.apply_message(std::span{message}.first(in.take<std::uint8_t>() % (kTunings + 1)));
    constexpr std::array kWeapons{FlyingWeapon::gun, FlyingWeapon::shotgun, FlyingWeapon::grenade};
    const FlyingWeapon weapon = kWeapons.at(in.take<std::uint8_t>() % kWeapons.size());
    const WorldVec start{static_cast<double>(in.take<std::int32_t>()),
                         static_cast<double>(in.take<std::int32_t>())};
    const WorldVec direction{in.take<double>(), in.take<double>()};
    demand(projectile_at(start, {1, 0}, weapon, 0, tunings) == start);
    const WorldVec before = projectile_at(start, direction, weapon, in.take<double>(), tunings);
    const WorldVec after = projectile_at(start, direction, weapon, in.take<double>(), tunings);
    locate_fraction(map, after.x, after.y);
    follow_line(map, before, after);
    static_cast<void>(projectile_lifetime(weapon, tunings));
}

} // namespace

/// Locates random positions, lines and shots on a random map. The results must agree with the game's rules.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in{std::as_bytes(std::span{data, size})};
    const PhysicsLayers map = random_map(in);
    constexpr int kMost = std::numeric_limits<int>::max();
    locate_point(map, {0, 0});
    locate_point(map, {-kMost - 1, kMost});
    constexpr int kQuestions = 64; // few, because a line may be a million steps long
    constexpr int kLongLines = 2;
    int long_lines = 0;
    for (int i = 0; i < kQuestions && !in.empty(); ++i) {
        switch (in.take<std::uint8_t>() % 5) {
        case 0:
            locate_point(map, {in.take<std::int32_t>(), in.take<std::int32_t>()});
            break;
        case 1:
            locate_point(map, {in.take<std::int16_t>(), in.take<std::int16_t>()});
            break;
        case 2: {
            const auto x = in.take<double>();
            locate_fraction(map, x, in.take<double>());
            break;
        }
        case 3: {
            const WorldVec from{static_cast<double>(in.take<std::int16_t>()),
                                static_cast<double>(in.take<std::int16_t>())};
            follow_line(map, from,
                        {from.x + in.take<std::int8_t>(), from.y + in.take<std::int8_t>()});
            break;
        }
        default:
            if (long_lines++ < kLongLines) {
                shoot(map, in);
            }
            break;
        }
    }
    return 0;
}
