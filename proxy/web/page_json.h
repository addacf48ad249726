#pragma once

#include "proxy/record/stats.h"
#include "snapshot/objects.h"

#include <memory>
#include <string>
#include <vector>

namespace tw::web {

/// Returns the traffic by message and item type for viewers: the sum of the workers' ledgers, with
/// the most expensive rows as [direction, group, name, bits, count].
[[nodiscard]] std::string bytes_json(const std::vector<std::vector<record::LedgerRow>>& ledgers);

} // namespace tw::web

namespace tw::map {
class Physics;
} // namespace tw::map

namespace tw::web {

/// Returns the physics layers of a map for /api/map: the tiles of each layer in base64, one byte
/// each, rows from the top; the colours of the pictures; the names of the tiles in use.
[[nodiscard]] std::string map_json(const map::Physics& physics);

/// Caches compressed map_json() texts while the map is in use. A large map takes 0.1 s to convert.
class PackedMaps {
  public:
    [[nodiscard]] std::shared_ptr<const std::string>
    of(const std::shared_ptr<const map::Physics>& physics);

  private:
    struct Packed {
        std::weak_ptr<const map::Physics> physics;
        std::shared_ptr<const std::string> text;
    };

    std::vector<Packed> packed_; ///< texts in the order of their last request
};

/// Returns the known objects for /api/objects. Frames refer to an object by its index in this list.
[[nodiscard]] std::string objects_json(const snapshot::ObjectSet& objects);

} // namespace tw::web
