#pragma once

#include "map/describe.h"
#include "map/game_layer.h"
#include "map/picture.h"

#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

namespace tw::analyze {

/// Returns a map's description as one JSON object that starts with its file name.
///
/// Layout: map/FORMAT.md, section 8.
[[nodiscard]] boost::json::object map_json(const map::Description& map, std::string_view file);

/// Returns a map's description as lines for users, starting with its file name.
[[nodiscard]] std::string map_text(const map::Description& map, std::string_view file);

/// Returns one line about a position in world units: its tile, the tile's kinds in all layers, and
/// whether a tee at the position would be in a wall, on the ground or in the air.
[[nodiscard]] std::string describe_position(const map::PhysicsLayers& physics, double x, double y);

} // namespace tw::analyze
