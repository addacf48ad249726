#pragma once

#include "map/picture.h"
#include "proxy/analyze/recorded_paths.h"

namespace tw::analyze {

/// The property of a path that decides its colour.
enum class PathColor { player, session, time };

/// Returns the paths as lines. The players, or sessions, with the longest paths have a colour each; the
/// others share a grey. Times are UTC.
[[nodiscard]] map::Overlay path_lines(const RecordedPaths& paths, PathColor color);

/// Returns the time that tees spent in each tile of a map of this size, and the positions of their deaths.
/// A tee counts as moving in a straight line at constant speed between two positions.
[[nodiscard]] map::Overlay heat_map(const RecordedPaths& paths, int width, int height);

} // namespace tw::analyze
