#pragma once

#include "map/picture.h"
#include "proxy/analyze/recorded_paths.h"

namespace tw::analyze {

/// The property of a path that decides its colour.
enum class PathColor { player, session, time };

/// Returns the paths as lines for a picture of the map. The players or sessions with the longest
/// paths get a colour each, all others are grey. Times are in UTC.
[[nodiscard]] map::Overlay path_overlay(const RecordedPaths& paths, PathColor color);

/// Returns the time that tees spent in each tile, as colours for a picture of the map, and the
/// positions of their deaths. Between two positions, a tee counts as moving straight at constant
/// speed. `width`, `height`: size of the map in tiles.
[[nodiscard]] map::Overlay heat_map_overlay(const RecordedPaths& paths, int width, int height);

} // namespace tw::analyze
