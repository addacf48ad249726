#pragma once

#include "map/game_layer.h"
#include "map/map.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/fwd.hpp>

namespace tw::analyze {

/// A position, which may be fractional. Units: world units.
struct MapPoint {
    double x = 0, y = 0;
};

/// Positions that map_json() describes in addition to the map.
struct MapPositions {
    std::span<const MapPoint> points{};
    std::span<const map::WorldPos> tee_centres{}; ///< the centres of tees
};

/// Returns a map's description as one JSON object that starts with its file name. This is slow,
/// because it inflates all data blocks.
///
/// Layout: map/FORMAT.md, section 8.
[[nodiscard]] boost::json::object map_json(const map::Map& map, std::string_view file,
                                           const MapPositions& positions = {});

/// Returns the description of a file that is not a map, as far as it can be read. `error`: why the
/// file is not a map.
[[nodiscard]] boost::json::object
rejected_map_json(std::vector<std::byte> bytes, const map::MapError& error, std::string_view file);

/// Returns a description from map_json() as lines for users.
[[nodiscard]] std::string map_text(const boost::json::object& map);

/// Returns one line about a position in world units: its tile, the tile's kinds in all layers, and
/// whether a tee at the position would be in a wall, on the ground or in the air.
[[nodiscard]] std::string describe_position(const map::PhysicsLayers& physics, double x, double y);

} // namespace tw::analyze
