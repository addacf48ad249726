#pragma once

#include "map/datafile.h"
#include "map/tiles.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace tw::map {

/// Rounds as the game does: converts to float, then rounds halves away from zero. Returns 0 for
/// NaN, and the nearest int for a value that no int can hold.
[[nodiscard]] int round_to_int(double value) noexcept;
/// Truncates toward zero, as DDNet does for the effects of tiles.
[[nodiscard]] int truncate_to_int(double value) noexcept;

/// The inflated game layer and DDNet layers of a map. Immutable, so several threads can read it.
///
/// Layout:  rows from the top, no padding. As in the game, the width of the game layer applies to
///          all layers, even to a layer with another width.
/// Source:  DDNet CCollision.
class PhysicsLayers {
  public:
    /// The tile records of each layer, inflated and unpacked; empty for an absent layer.
    struct Contents {
        int width = 0, height = 0;
        std::array<Block, kPhysicsLayers> records;
    };

    /// Preconditions: width and height are at least 1. The game layer's block and each other
    /// non-empty block have at least width * height records.
    explicit PhysicsLayers(Contents planes) noexcept : contents_{std::move(planes)} {}

    [[nodiscard]] int width() const noexcept { return contents_.width; }

    [[nodiscard]] int height() const noexcept { return contents_.height; }

    [[nodiscard]] std::size_t memory_bytes() const noexcept {
        std::size_t bytes = sizeof(*this);
        for (const Block& block : contents_.records) {
            bytes += block.size();
        }
        return bytes;
    }

    [[nodiscard]] bool has(Layer layer) const noexcept { return block_of(layer).size() > 0; }

    /// Returns the tile at a position, which is rounded to integers. For the effects of DDNet's
    /// tiles, the position is truncated instead; see effect_tile_at().
    [[nodiscard]] TilePos tile_at(WorldPos position) const noexcept;
    [[nodiscard]] TilePos tile_at(double x, double y) const noexcept;
    [[nodiscard]] TilePos effect_tile_at(double x, double y) const noexcept;

    [[nodiscard]] Location locate(WorldPos position) const noexcept;
    [[nodiscard]] Location locate(double x, double y) const noexcept;
    /// Returns the content of a tile. A tile outside the map has the content of the nearest tile at
    /// the border.
    [[nodiscard]] Location at(TilePos tile) const noexcept;
    /// Returns the tile's id byte in a layer, as in the file.
    [[nodiscard]] std::uint8_t index(Layer layer, TilePos tile) const noexcept;

    [[nodiscard]] bool is_outside(WorldPos position) const noexcept;
    [[nodiscard]] bool is_solid(WorldPos position) const noexcept;
    [[nodiscard]] bool is_solid(double x, double y) const noexcept;

    /// Whether a corner of the tee's box of 28 x 28 units around `centre` is in a wall.
    [[nodiscard]] bool tee_in_solid(WorldPos centre) const noexcept;
    /// Returns a wall tile in which a tee is: the tile at its centre if that is a wall, otherwise
    /// the tile at the first corner of its box that is in a wall; nullopt if the tee is not in a
    /// wall.
    [[nodiscard]] std::optional<TilePos> wall_at_tee(WorldPos centre) const noexcept;
    /// Whether the tee stands on a wall: a wall is 5 units below a lower corner of its box.
    [[nodiscard]] bool tee_on_ground(WorldPos centre) const noexcept;
    /// Whether one of the four points that the game checks around a tee is on a death tile of the
    /// given layer. Precondition: `layer` is the game layer or the front layer.
    [[nodiscard]] bool tee_touches_death(WorldPos centre, Layer layer) const noexcept;
    /// Whether the tee touches a death tile in the game layer or the front layer, as DDNet checks
    /// it.
    [[nodiscard]] bool tee_in_death(WorldPos centre) const noexcept;
    /// Whether the position is so far outside the map that the game kills a tee there.
    [[nodiscard]] bool beyond_border(WorldPos position) const noexcept;

  private:
    [[nodiscard]] const Block& block_of(Layer layer) const noexcept {
        return contents_.records[static_cast<std::size_t>(layer)];
    }

    [[nodiscard]] std::size_t cell_index(TilePos tile) const noexcept;
    [[nodiscard]] TilePos clamp_to_map(TilePos tile) const noexcept;

    Contents contents_;
};

} // namespace tw::map
