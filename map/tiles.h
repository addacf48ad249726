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

/// Returns the index of a tile that the game uses for collisions (wall, death, unhookable wall,
/// laser stop); 0 for any other tile.
[[nodiscard]] constexpr std::uint8_t collision_index(std::uint8_t game_index) {
    return game_index >= kTileSolid && game_index <= kTileNolaser ? game_index : kTileAir;
}

} // namespace tw::map
