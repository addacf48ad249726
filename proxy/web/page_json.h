#pragma once

#include "proxy/record/stats.h"
#include "snapshot/objects.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tw::map {
class PhysicsLayers;
} // namespace tw::map

namespace tw::web {

/// Returns the traffic by message and item type as JSON: the sum of the workers' ledgers. Contains
/// the rows with the most bits, each as [direction, group, name, bits, count].
[[nodiscard]] std::string
traffic_json(const std::vector<std::vector<record::ByteLedgerRow>>& ledgers);

[[nodiscard]] std::string base64(const std::vector<unsigned char>& bytes);

/// Returns the physics layers of a map for /api/map: the tiles of each layer in base64, one byte
/// for each tile, rows from the top; the colours of the tiles' pictures; the names of the tiles in
/// use.
[[nodiscard]] std::string map_json(const map::PhysicsLayers& physics);

/// Stores compressed map_json() texts while the maps are in use, because converting a large map
/// takes 0.1 s.
class CompressedMapCache {
  public:
    [[nodiscard]] std::shared_ptr<const std::string>
    compressed_map_json(const std::shared_ptr<const map::PhysicsLayers>& physics);

  private:
    std::map<std::weak_ptr<const map::PhysicsLayers>, std::shared_ptr<const std::string>,
             std::owner_less<>>
        texts_;
};

/// Returns the known objects for /api/objects. Frames refer to an object by its index in this list.
[[nodiscard]] std::string objects_json(const snapshot::ObjectSet& objects);

} // namespace tw::web
