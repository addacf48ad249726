#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tw::map {
class Physics;
} // namespace tw::map

namespace tw::admin {

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

} // namespace tw::admin
