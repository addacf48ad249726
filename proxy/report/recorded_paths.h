#pragma once

#include "map/picture.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace tw::report {

/// More points than this would not be seen in a picture.
inline constexpr std::size_t kMaxPathPoints = 4'000'000;

struct RecordedPaths {
    std::vector<map::Path> paths;
    std::uint64_t elsewhere = 0; ///< positions on other maps
};

/// Finds the ways of the tees in the lines of a recording, on the map with this checksum or on one that
/// nobody named: one for each player and game; none where there is no snapshot with characters. Each is
/// told by the player's own session while it shows the player, else by another one. Beyond `max_points`
/// every other one is left out.
class PathReader {
  public:
    explicit PathReader(std::string_view map_crc, std::size_t max_points = kMaxPathPoints);
    ~PathReader();
    PathReader(const PathReader&) = delete;
    PathReader& operator=(const PathReader&) = delete;
    PathReader(PathReader&&) = delete;
    PathReader& operator=(PathReader&&) = delete;

    void on_line(std::string_view line);

    /// At the end.
    [[nodiscard]] RecordedPaths take();

  private:
    class Collector;
    std::unique_ptr<Collector> collector_;
};

} // namespace tw::report
