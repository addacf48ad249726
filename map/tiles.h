#pragma once

#include <cstdint>
#include <string_view>

namespace tw::map {

/// The kinds of physics layers, whose tiles affect the game.
// NOLINTNEXTLINE(readability-identifier-naming): `switch` is a keyword
enum class Layer : std::uint8_t { game, front, tele, speedup, switch_, tune };
inline constexpr int kPhysicsLayers = 6;

/// Returns the layer's name: "game", "front", "tele", "speedup", "switch" or "tune".
[[nodiscard]] std::string_view layer_name(Layer layer);

/// Returns the name of a tile: the name of DDNet's constant in lower case without TILE_, for
/// example "freeze" or "entity_spawn"; empty for an index without a meaning in the layer.
///
/// Source:  DDNet game/mapitems.h.
[[nodiscard]] std::string_view tile_name(Layer layer, std::uint8_t index);

// Tile indices of the game and front layers.
inline constexpr std::uint8_t kTileAir = 0;
inline constexpr std::uint8_t kTileSolid = 1;
inline constexpr std::uint8_t kTileDeath = 2;
inline constexpr std::uint8_t kTileNohook = 3;
inline constexpr std::uint8_t kTileNolaser = 4;
/// The first tile index that creates an entity, in the game, front and switch layers.
inline constexpr std::uint8_t kFirstEntity = 192;

/// Whether a tile of the game layer is a wall, which stops tees. Tiles of other layers are never
/// walls.
[[nodiscard]] constexpr bool is_wall(std::uint8_t game_index) {
    return game_index == kTileSolid || game_index == kTileNohook;
}

/// Returns `game_index` if the game checks such tiles for collisions (wall, death, unhookable wall,
/// laser stop); otherwise 0.
[[nodiscard]] constexpr std::uint8_t collision_index(std::uint8_t game_index) {
    return game_index >= kTileSolid && game_index <= kTileNolaser ? game_index : kTileAir;
}

/// A position in the world. Units: world units (pixels), 32 per tile; x grows right, y down.
struct WorldPos {
    int x = 0, y = 0;

    friend bool operator==(const WorldPos&, const WorldPos&) = default;
};

/// A tile of the game layer: column x from the left, row y from the top.
struct TilePos {
    int x = 0, y = 0;

    friend bool operator==(const TilePos&, const TilePos&) = default;
};

struct TeleTile {
    std::uint8_t number = 0, index = 0;

    friend bool operator==(const TeleTile&, const TeleTile&) = default;
};

struct SpeedupTile {
    std::uint8_t force = 0, max_speed = 0, index = 0;
    std::int16_t angle = 0; ///< degrees

    friend bool operator==(const SpeedupTile&, const SpeedupTile&) = default;
};

struct SwitchTile {
    std::uint8_t number = 0, index = 0, flags = 0, delay = 0;

    friend bool operator==(const SwitchTile&, const SwitchTile&) = default;
};

struct TuneTile {
    std::uint8_t number = 0, index = 0; ///< number is the tune zone

    friend bool operator==(const TuneTile&, const TuneTile&) = default;
};

/// The tiles of all physics layers at a position. The tile is air (index 0) for a layer that the
/// map does not have.
struct Location {
    WorldPos position;    ///< the position, rounded to integers
    TilePos tile;         ///< the tile there; outside the map, the nearest tile at the border
    bool outside = false; ///< the position is outside the map
    std::uint8_t game = 0, game_flags = 0;
    std::uint8_t front = 0, front_flags = 0;
    TeleTile tele;
    SpeedupTile speedup;
    SwitchTile switch_; ///< air (index 0) if the game discards the tile when it loads the map
    TuneTile tune;

    friend bool operator==(const Location&, const Location&) = default;
};

} // namespace tw::map
