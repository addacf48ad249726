#pragma once

#include "map/picture.h"
#include "proxy/sink/line_reader.h"

#include <vector>

namespace tw::report {

/// The ways of the tees in a file of records, one for each player; none where it holds no snapshot with
/// characters.
[[nodiscard]] std::vector<map::Path> read_recorded_paths(sink::LineReader& records);

} // namespace tw::report
