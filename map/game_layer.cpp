#include "map/game_layer.h"

#include "map/layers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tw::map {
namespace {

/// Half the width of a tee's box, in world units. Source: CCharacterCore::PhysicalSize() 28.
constexpr int kHalfTee = 14;
/// How far below a tee's centre the game looks for ground, in world units. Source:
/// CCharacter::IsGrounded.
constexpr int kGroundDistance = kHalfTee + 5;
/// Distance in x and y from a tee's centre to the points at which the game looks for death tiles.
/// Source: CCharacter::HandleTiles, GetProximityRadius() / 3.
constexpr float kDeathDistance = 28.0F / 3.0F;
/// The game kills a tee that is more than this many tiles outside the map. Source:
/// CCharacter::GameLayerClipped.
constexpr int kBorderTiles = 200;

/// The largest float that an int can hold.
constexpr float kIntLimit = 2147483520.0F;

int to_int(float value) noexcept {
    if (std::isnan(value)) {
        return 0;
    }
    if (value >= kIntLimit) {
        return std::numeric_limits<int>::max();
    }
    return value <= -kIntLimit ? std::numeric_limits<int>::min() : static_cast<int>(value);
}

/// Converts to float. A value beyond the range of float becomes the largest float.
float to_float(double value) noexcept {
    constexpr auto kMax = static_cast<double>(std::numeric_limits<float>::max());
    return static_cast<float>(std::isnan(value) ? value : std::clamp(value, -kMax, kMax));
}

/// The highest index of the switch tiles that the game turns into air when it loads a map.
constexpr std::uint8_t kLastFilteredSwitch = 107;

constexpr bool is_kept_switch_index(std::uint8_t index) {
    return index > kLastFilteredSwitch || (index >= 7 && index <= 95) || index == 98 || index == 99;
}

/// The offset of the id byte in a tile record of each layer.
constexpr std::array<std::size_t, kPhysicsLayers> kIdOffset = {0, 0, 1, 2, 1, 1};

bool is_beyond_border_tiles(int tile, int tiles) noexcept {
    return tile < -kBorderTiles || tile > tiles + kBorderTiles;
}

} // namespace

int round_to_int(double value) noexcept {
    const float f = to_float(value);
    return to_int(f > 0 ? f + 0.5F : f - 0.5F);
}

int truncate_to_int(double value) noexcept {
    return to_int(to_float(value));
}

TilePos PhysicsLayers::clamp_to_map(TilePos tile) const noexcept {
    return {std::clamp(tile.x, 0, contents_.width - 1),
            std::clamp(tile.y, 0, contents_.height - 1)};
}

std::size_t PhysicsLayers::cell_index(TilePos tile) const noexcept {
    return static_cast<std::size_t>(tile.y) * static_cast<std::size_t>(contents_.width) +
           static_cast<std::size_t>(tile.x);
}

TilePos PhysicsLayers::tile_at(WorldPos position) const noexcept {
    return clamp_to_map({position.x / kTileSize, position.y / kTileSize});
}

TilePos PhysicsLayers::tile_at(double x, double y) const noexcept {
    return tile_at(WorldPos{round_to_int(x), round_to_int(y)});
}

TilePos PhysicsLayers::effect_tile_at(double x, double y) const noexcept {
    return tile_at(WorldPos{truncate_to_int(x), truncate_to_int(y)});
}

bool PhysicsLayers::is_outside(WorldPos position) const noexcept {
    return position.x < 0 || position.y < 0 || position.x / kTileSize >= contents_.width ||
           position.y / kTileSize >= contents_.height;
}

Location PhysicsLayers::locate(WorldPos position) const noexcept {
    Location found = at(tile_at(position));
    found.position = position;
    found.outside = is_outside(position);
    return found;
}

Location PhysicsLayers::locate(double x, double y) const noexcept {
    return locate(WorldPos{round_to_int(x), round_to_int(y)});
}

std::uint8_t PhysicsLayers::index(Layer layer, TilePos tile) const noexcept {
    if (!has(layer)) {
        return kTileAir;
    }
    const std::size_t at = cell_index(clamp_to_map(tile)) * tile_bytes(layer) +
                           kIdOffset[static_cast<std::size_t>(layer)];
    return std::to_integer<std::uint8_t>(block_of(layer).bytes()[at]);
}

Location PhysicsLayers::at(TilePos tile) const noexcept {
    Location found;
    found.tile = clamp_to_map(tile);
    found.position = {found.tile.x * kTileSize, found.tile.y * kTileSize};
    const std::size_t number = cell_index(found.tile);
    const auto byte = [&](Layer layer, std::size_t i) {
        const std::size_t at = number * tile_bytes(layer) + i;
        return std::to_integer<std::uint8_t>(block_of(layer).bytes()[at]);
    };
    found.game = byte(Layer::game, 0);
    found.game_flags = byte(Layer::game, 1);
    if (has(Layer::front)) {
        found.front = byte(Layer::front, 0);
        found.front_flags = byte(Layer::front, 1);
    }
    if (has(Layer::tele)) {
        found.tele = {byte(Layer::tele, 0), byte(Layer::tele, 1)};
    }
    if (has(Layer::speedup)) {
        const std::size_t at = number * tile_bytes(Layer::speedup);
        found.speedup = {byte(Layer::speedup, 0), byte(Layer::speedup, 1), byte(Layer::speedup, 2),
                         read_i16(block_of(Layer::speedup).bytes(), at + 4)};
    }
    if (has(Layer::switch_)) {
        found.switch_ = {byte(Layer::switch_, 0), byte(Layer::switch_, 1), byte(Layer::switch_, 2),
                         byte(Layer::switch_, 3)};
        if (!is_kept_switch_index(found.switch_.index)) {
            found.switch_.index = kTileAir;
        }
    }
    if (has(Layer::tune)) {
        found.tune = {byte(Layer::tune, 0), byte(Layer::tune, 1)};
    }
    return found;
}

bool PhysicsLayers::is_solid(WorldPos position) const noexcept {
    return is_wall(index(Layer::game, tile_at(position)));
}

bool PhysicsLayers::is_solid(double x, double y) const noexcept {
    return is_wall(index(Layer::game, tile_at(x, y)));
}

bool PhysicsLayers::tee_in_solid(WorldPos centre) const noexcept {
    const double x = centre.x;
    const double y = centre.y;
    return is_solid(x - kHalfTee, y - kHalfTee) || is_solid(x + kHalfTee, y - kHalfTee) ||
           is_solid(x - kHalfTee, y + kHalfTee) || is_solid(x + kHalfTee, y + kHalfTee);
}

std::optional<TilePos> PhysicsLayers::wall_at_tee(WorldPos centre) const noexcept {
    struct Offset {
        int x, y;
    };

    // The first point in a wall decides which tile is returned. The centre comes first, because a
    // corner may be in a neighbouring wall.
    constexpr Offset kTouching[] = {{0, 0},
                                    {-kHalfTee, -kHalfTee},
                                    {kHalfTee, -kHalfTee},
                                    {-kHalfTee, kHalfTee},
                                    {kHalfTee, kHalfTee}};
    const double x = centre.x;
    const double y = centre.y;
    for (const Offset& offset : kTouching) {
        const TilePos tile = tile_at(x + offset.x, y + offset.y);
        if (is_wall(index(Layer::game, tile))) {
            return tile;
        }
    }
    return std::nullopt;
}

bool PhysicsLayers::tee_on_ground(WorldPos centre) const noexcept {
    const double x = centre.x;
    const double y = centre.y;
    return is_solid(x + kHalfTee, y + kGroundDistance) ||
           is_solid(x - kHalfTee, y + kGroundDistance);
}

bool PhysicsLayers::tee_touches_death(WorldPos centre, Layer layer) const noexcept {
    const auto x = static_cast<float>(centre.x);
    const auto y = static_cast<float>(centre.y);
    for (const float dx : {kDeathDistance, -kDeathDistance}) {
        for (const float dy : {kDeathDistance, -kDeathDistance}) {
            const TilePos tile = tile_at(static_cast<double>(x + dx), static_cast<double>(y + dy));
            if (index(layer, tile) == kTileDeath) {
                return true;
            }
        }
    }
    return false;
}

bool PhysicsLayers::tee_in_death(WorldPos centre) const noexcept {
    return tee_touches_death(centre, Layer::game) || tee_touches_death(centre, Layer::front);
}

bool PhysicsLayers::beyond_border(WorldPos position) const noexcept {
    return is_beyond_border_tiles(position.x / kTileSize, contents_.width) ||
           is_beyond_border_tiles(position.y / kTileSize, contents_.height);
}

} // namespace tw::map
