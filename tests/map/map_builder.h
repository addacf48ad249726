#pragma once

#include "map/layers.h"
#include "tests/map/writer.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tw::map::test {

/// Builds small maps for tests: a version item, one group, and the requested layers.
class MapBuilder {
  public:
    MapBuilder(int width, int height) : width_{width}, height_{height} {}

    /// Sets a tile record of a physics layer (`tile_bytes(kind)` bytes). Other records are zero.
    MapBuilder& set_record(Layer kind, int x, int y, std::span<const std::uint8_t> record);
    MapBuilder& set_game(int x, int y, std::uint8_t index, std::uint8_t flags = 0);
    /// Adds an empty layer of this kind. Its dimensions may differ from those of the game layer.
    MapBuilder& add_layer(Layer kind, int width, int height);
    /// Sets the tilemap version of all layers. Version 4 packs the game layer, one tile per entry.
    MapBuilder& set_tilemap_version(int version);
    MapBuilder& set_settings(std::string_view nul_terminated_lines);

    [[nodiscard]] std::vector<std::byte> build(int datafile_version = 4) const;
    /// Returns the writer of the map, to which more items and blocks can be added.
    [[nodiscard]] DatafileWriter writer(int datafile_version = 4) const;

  private:
    struct Plane {
        Layer kind;
        int width, height;
        std::vector<std::byte> records;
    };

    Plane& find_or_add_plane(Layer kind);
    [[nodiscard]] std::vector<std::int32_t> layer_ints(DatafileWriter& writer,
                                                       const Plane& plane) const;

    int width_, height_;
    int tilemap_version_ = 3;
    std::string_view settings_;
    std::vector<Plane> planes_;
};

/// Returns the ints of a tile layer's item, without a name and without DDNet's blocks.
[[nodiscard]] std::vector<std::int32_t> tile_layer(int version, int width, int height, int flags,
                                                   int data);

/// Returns a map with these layer items in one group. All data blocks are copies of `block`.
[[nodiscard]] std::vector<std::byte>
map_with_layers(const std::vector<std::vector<std::int32_t>>& layers,
                const std::vector<std::byte>& block, int blocks = 1);

} // namespace tw::map::test
