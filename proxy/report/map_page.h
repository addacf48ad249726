#pragma once

#include "map/game_layer.h"

#include <string>
#include <string_view>

namespace tw::report {

/// A map's description (map/describe.h) as lines for people.
[[nodiscard]] std::string map_page(std::string_view description);

/// One line for a position: its tile, what is there, and how a tee would stand.
[[nodiscard]] std::string place_line(const map::Physics& physics, double x, double y);

} // namespace tw::report
