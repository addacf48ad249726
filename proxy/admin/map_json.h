#pragma once

#include <string>

namespace tw::map {
class Physics;
} // namespace tw::map

namespace tw::admin {

/// The physics layers of a map, as /api/map gives them: the tiles of each layer in base64, a byte each,
/// rows from the top; the colours of pictures; the names of the tiles in use.
[[nodiscard]] std::string map_json(const map::Physics& physics);

} // namespace tw::admin
