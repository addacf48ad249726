#pragma once

#include "proxy/record/stats.h"
#include "snapshot/objects.h"

#include <memory>
#include <string>
#include <vector>

namespace tw::web {

/// Where the bytes went, for viewers: adds up the accounts of the workers; the rows that cost the most,
/// as [direction, group, name, bits, count].
[[nodiscard]] std::string bytes_json(const std::vector<std::vector<record::LedgerRow>>& ledgers);

} // namespace tw::web

namespace tw::map {
class Physics;
} // namespace tw::map

namespace tw::web {

/// The physics layers of a map, as /api/map gives them: the tiles of each layer in base64, a byte each,
/// rows from the top; the colours of pictures; the names of the tiles in use.
[[nodiscard]] std::string map_json(const map::Physics& physics);

/// The same, compressed: of a large map it takes a tenth of a second to make, so it is made once for as
/// long as somebody plays there.
class PackedMaps {
  public:
    [[nodiscard]] std::shared_ptr<const std::string>
    of(const std::shared_ptr<const map::Physics>& physics);

  private:
    struct Packed {
        std::weak_ptr<const map::Physics> physics;
        std::shared_ptr<const std::string> text;
    };

    std::vector<Packed> packed_; ///< the one that was asked for last comes last
};

/// What is known of items, as /api/objects gives it: frames name an object by its place in this list.
[[nodiscard]] std::string objects_json(const snapshot::ObjectSet& objects);

} // namespace tw::web
