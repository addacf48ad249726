#pragma once

#include "map/picture.h"
#include "proxy/sink/line_reader.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tw::report {

/// More points than this would not be seen in a picture.
inline constexpr std::size_t kMaxPathPoints = 4'000'000;

struct RecordedPaths {
    std::vector<map::Path> paths;
    std::uint64_t elsewhere = 0; ///< positions on other maps
};

/// The ways of the tees in a file of records on the map with this checksum, or on one that nobody
/// named: one for each player and game; none where it holds no snapshot with characters. Each is told
/// by the player's own session while it shows the player, else by another one. Beyond
/// `max_points` every other one is left out.
[[nodiscard]] RecordedPaths read_recorded_paths(sink::LineReader& records, std::string_view map_crc,
                                                std::size_t max_points = kMaxPathPoints);

} // namespace tw::report
