#pragma once

#include "map/describe.h"
#include "map/game_layer.h"

#include <string>
#include <string_view>

namespace tw::report {

/// A map's description as lines for people, with the name of its file first.
[[nodiscard]] std::string map_page(const map::Description& map, std::string_view file);

/// One line for a position: its tile, what is there, and how a tee would stand.
[[nodiscard]] std::string place_line(const map::Physics& physics, double x, double y);

} // namespace tw::report
