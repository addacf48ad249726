#pragma once

#include "proxy/record/stats.h"
#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw::map {
class PhysicsLayers;
} // namespace tw::map

namespace tw::web {

/// Returns the traffic totals by message and item type as JSON. The totals are the sums of the
/// workers' ledgers. Each row is [direction, group, name, bits, count]; only the rows with the most
/// bits are contained.
[[nodiscard]] std::string
traffic_json(const std::vector<std::vector<record::ByteLedgerRow>>& ledgers);

/// Returns the physics layers of a map as JSON for /api/map: the tiles of each layer in base64 (one
/// byte for each tile, rows from the top), the names of these tiles, and the colours of all tiles.
[[nodiscard]] std::string map_json(const map::PhysicsLayers& physics);

/// Stores a compressed map_json() for each map in use, because converting a large map takes 0.1 s.
class CompressedMapCache {
  public:
    [[nodiscard]] std::shared_ptr<const std::string>
    compressed_map_json(const std::shared_ptr<const map::PhysicsLayers>& physics);

  private:
    std::map<std::weak_ptr<const map::PhysicsLayers>, std::shared_ptr<const std::string>,
             std::owner_less<>>
        texts_;
};

/// Returns the design of a map file as JSON: the design layers with tiles that move with the game
/// layer, from back to front, and the embedded images that these layers use. Tiles are in base64,
/// with the index and flags of each tile, rows from the top. Layers and images that are too large
/// to send are left out; all layers are left out if no image can be sent. Returns nullopt if the
/// file is too large or not a map.
[[nodiscard]] std::optional<std::string> map_design_json(std::span<const std::byte> file);

/// Returns the pixels of an embedded image of a map file: RGBA, rows from the top. Returns nullopt
/// if the image is not embedded, has no usable size or cannot be read.
[[nodiscard]] std::optional<std::string> image_pixels(std::span<const std::byte> file,
                                                      std::uint32_t number);

/// Returns the list of known objects as JSON for /api/objects. Frames refer to an object by its
/// index in this list.
[[nodiscard]] std::string objects_json(const snapshot::ObjectSet& objects);

} // namespace tw::web
