#pragma once

#include "map/datafile.h"
#include "map/tiles.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tw::map {

/// A position in the world. Framing: world units (pixels), 32 a tile; x grows right, y down.
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

/// What is where. A layer the map does not have says index 0, air.
struct Location {
    WorldPos position; ///< rounded, if it was a fraction
    TilePos tile;      ///< inside the map always: outside, the border tile counts
    bool outside = false;
    std::uint8_t game = 0, game_flags = 0;
    std::uint8_t front = 0, front_flags = 0;
    TeleTile tele;
    SpeedupTile speedup;
    SwitchTile switch_; ///< index 0 where the game drops the tile's index when it loads the map
    TuneTile tune;

    friend bool operator==(const Location&, const Location&) = default;
};

/// Rounds as the reference does: in float, halves away from zero. What is no number counts as 0,
/// what does not fit an int as the nearest one.
[[nodiscard]] int round_to_int(double value) noexcept;
/// The same cut toward zero: the rule of DDNet's tile effects.
[[nodiscard]] int truncate_to_int(double value) noexcept;

/// Game layer and DDNet's layers of one map, inflated. Immutable; safe to read from many threads.
///
/// Layout:  rows from the top, no padding; every layer is indexed with the game layer's width, as
///          the game does even where a layer is larger.
/// Source:  DDNet CCollision.
class Physics {
  public:
    /// The inflated records of each layer; an absent one has no bytes.
    struct Planes {
        int width = 0, height = 0;
        std::array<Block, kPhysicsLayers> records;
    };

    /// Preconditions: width, height >= 1; the game layer's block and every other that is not empty
    /// have at least width * height records.
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

    /// The tile a position falls on. A fraction is rounded; DDNet's effects truncate instead.
    [[nodiscard]] TilePos tile_at(WorldPos position) const noexcept;
    [[nodiscard]] TilePos tile_at(double x, double y) const noexcept;
    [[nodiscard]] TilePos effect_tile_at(double x, double y) const noexcept;

    [[nodiscard]] Location locate(WorldPos position) const noexcept;
    [[nodiscard]] Location locate(double x, double y) const noexcept;
    /// What is on a tile; one that is not on the map counts as the nearest border tile.
    [[nodiscard]] Location at(TilePos tile) const noexcept;
    /// The id byte of one layer's record, as it stands in the file.
    [[nodiscard]] std::uint8_t index(Layer layer, TilePos tile) const noexcept;

    [[nodiscard]] bool is_outside(WorldPos position) const noexcept;
    [[nodiscard]] bool is_solid(WorldPos position) const noexcept;
    [[nodiscard]] bool is_solid(double x, double y) const noexcept;

    /// A tee's box of 28 x 28 around its centre: one of its corners is in a wall.
    [[nodiscard]] bool tee_in_solid(WorldPos centre) const noexcept;
    /// The wall it is in: that under its centre if there is one, or the first at a corner.
    [[nodiscard]] std::optional<TilePos> wall_at_tee(WorldPos centre) const noexcept;
    /// 5 units below a corner of its feet is a wall.
    [[nodiscard]] bool tee_on_ground(WorldPos centre) const noexcept;
    /// One of the four points that die is on a death tile of the layer (game or front).
    [[nodiscard]] bool tee_touches_death(WorldPos centre, Layer layer) const noexcept;
    /// The same for both layers, as DDNet does.
    [[nodiscard]] bool tee_in_death(WorldPos centre) const noexcept;
    /// So far outside the map that the game kills.
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
