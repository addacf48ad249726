#pragma once

#include <cstdint>
#include <string_view>

namespace tw::map {

/// The layers that take part in the game's physics.
// NOLINTNEXTLINE(readability-identifier-naming): `switch` is a keyword
enum class Layer : std::uint8_t { game, front, tele, speedup, switch_, tune };
inline constexpr int kPhysicsLayers = 6;

/// The layer's name: "game", "front", "tele", "speedup", "switch" or "tune".
[[nodiscard]] std::string_view layer_name(Layer layer);

/// The name of a tile: DDNet's constant in lower case without TILE_, for example "freeze" or
/// "entity_spawn". Empty for an index that means nothing in that layer.
///
/// Source:  DDNet game/mapitems.h.
[[nodiscard]] std::string_view tile_name(Layer layer, std::uint8_t index);

/// Tile indices of the game and front layers.
inline constexpr std::uint8_t kTileAir = 0;
inline constexpr std::uint8_t kTileSolid = 1;
inline constexpr std::uint8_t kTileDeath = 2;
inline constexpr std::uint8_t kTileNohook = 3;
inline constexpr std::uint8_t kTileNolaser = 4;
/// In the game, front and switch layers, tiles with this index or a higher one create entities.
inline constexpr std::uint8_t kFirstEntity = 192;

/// Whether the tile is one of the game layer's two walls. No other index, in any layer, stops a
/// tee.
[[nodiscard]] constexpr bool is_wall(std::uint8_t game_index) {
    return game_index == kTileSolid || game_index == kTileNohook;
}

/// The tile's index if the game uses it for collisions (wall, death, unhookable wall, laser stop); else
/// 0.
[[nodiscard]] constexpr std::uint8_t collision_index(std::uint8_t game_index) {
    return game_index >= kTileSolid && game_index <= kTileNolaser ? game_index : kTileAir;
}

} // namespace tw::map
