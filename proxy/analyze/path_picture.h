#pragma once

#include "map/picture.h"
#include "proxy/analyze/recorded_paths.h"

namespace tw::analyze {

/// What the colour of a path means.
enum class PathColor { player, session, time };

/// Returns the paths as lines. The players, or sessions, that were seen longest have a colour each;
/// the others share a grey. Times are UTC.
[[nodiscard]] map::Overlay path_lines(const RecordedPaths& paths, PathColor color);

/// Returns how long tees were in each tile of a map of this size, and where they died. Between two
/// positions, a tee counts as moving in a straight line at an even speed.
[[nodiscard]] map::Overlay heat_map(const RecordedPaths& paths, int width, int height);

} // namespace tw::analyze
