#pragma once

#include "map/datafile.h"
#include "map/tiles.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tw::map {

/// A position in the world. Framing: world units (pixels), 32 per tile; x grows right, y down.
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

/// The tiles at a position. Layers that the map does not have are air (index 0).
struct Location {
    WorldPos position; ///< rounded if fractional
    TilePos tile;      ///< always inside the map; outside positions get the nearest border tile
    bool outside = false;
    std::uint8_t game = 0, game_flags = 0;
    std::uint8_t front = 0, front_flags = 0;
    TeleTile tele;
    SpeedupTile speedup;
    SwitchTile switch_; ///< air (index 0) if the game ignores the tile when it loads the map
    TuneTile tune;

    friend bool operator==(const Location&, const Location&) = default;
};

/// Rounds as the reference does: in float, halves away from zero. NaN gives 0; values beyond an int
/// give the nearest int.
[[nodiscard]] int round_to_int(double value) noexcept;
/// Truncates toward zero, as DDNet's tile effects do.
[[nodiscard]] int truncate_to_int(double value) noexcept;

/// The inflated game layer and DDNet layers of a map. Immutable; safe to read from many threads.
///
/// Layout:  rows from the top, no padding. All layers are indexed with the game layer's width, as
///          the game does, even if a layer has another width.
/// Source:  DDNet CCollision.
class Physics {
  public:
    /// The inflated records of each layer; empty for an absent layer.
    struct Planes {
        int width = 0, height = 0;
        std::array<Block, kPhysicsLayers> records;
    };

    /// Preconditions: width and height are at least 1. The game layer's block, and each other block
    /// that is not empty, has at least width * height records.
    explicit Physics(Planes planes) noexcept : planes_{std::move(planes)} {}

    [[nodiscard]] int width() const noexcept { return planes_.width; }

    [[nodiscard]] int height() const noexcept { return planes_.height; }

    [[nodiscard]] std::size_t memory_bytes() const noexcept {
        std::size_t bytes = sizeof(*this);
        for (const Block& block : planes_.records) {
            bytes += block.size();
        }
        return bytes;
    }

    [[nodiscard]] bool has(Layer layer) const noexcept { return plane(layer).size() > 0; }

    /// The tile at a position. Fractions are rounded; DDNet's effects truncate instead.
    [[nodiscard]] TilePos tile_at(WorldPos position) const noexcept;
    [[nodiscard]] TilePos tile_at(double x, double y) const noexcept;
    [[nodiscard]] TilePos effect_tile_at(double x, double y) const noexcept;

    [[nodiscard]] Location locate(WorldPos position) const noexcept;
    [[nodiscard]] Location locate(double x, double y) const noexcept;
    /// The content of a tile. Outside the map, the nearest border tile counts.
    [[nodiscard]] Location at(TilePos tile) const noexcept;
    /// The id byte of a layer's tile record, as in the file.
    [[nodiscard]] std::uint8_t index(Layer layer, TilePos tile) const noexcept;

    [[nodiscard]] bool is_outside(WorldPos position) const noexcept;
    [[nodiscard]] bool is_solid(WorldPos position) const noexcept;
    [[nodiscard]] bool is_solid(double x, double y) const noexcept;

    /// Whether any corner of a tee's box (28 x 28 around the centre) is in a wall.
    [[nodiscard]] bool tee_in_solid(WorldPos centre) const noexcept;
    /// The wall tile that a tee is in: the tile at its centre if it is a wall, else at its first
    /// corner that is in a wall; nullopt if the tee is in no wall.
    [[nodiscard]] std::optional<TilePos> wall_at_tee(WorldPos centre) const noexcept;
    /// Whether there is a wall 5 units below one of the tee's lower corners.
    [[nodiscard]] bool tee_on_ground(WorldPos centre) const noexcept;
    /// Whether one of the four points that the game checks is on a death tile of the layer (game or
    /// front).
    [[nodiscard]] bool tee_touches_death(WorldPos centre, Layer layer) const noexcept;
    /// Whether the tee touches a death tile in the game or front layer, as DDNet checks.
    [[nodiscard]] bool tee_in_death(WorldPos centre) const noexcept;
    /// Whether the position is so far outside the map that the game kills a tee there.
    [[nodiscard]] bool beyond_border(WorldPos position) const noexcept;

  private:
    [[nodiscard]] const Block& plane(Layer layer) const noexcept {
        return planes_.records[static_cast<std::size_t>(layer)];
    }

    [[nodiscard]] std::size_t cell(TilePos tile) const noexcept;
    [[nodiscard]] TilePos clamp(TilePos tile) const noexcept;

    Planes planes_;
};

} // namespace tw::map
