#pragma once

#include "map/describe.h"
#include "map/game_layer.h"
#include "map/picture.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/fwd.hpp>

namespace tw::analyze {

/// Returns a map's description as one JSON object that starts with its file name.
///
/// Layout: map/FORMAT.md, section 8.
[[nodiscard]] boost::json::object map_json(const map::Description& map, std::string_view file);

/// Returns a map's description as lines for users, starting with its file name.
[[nodiscard]] std::string map_page(const map::Description& map, std::string_view file);

/// Returns one line about a position: its tile, what is there, and how a tee would stand.
[[nodiscard]] std::string place_line(const map::Physics& physics, double x, double y);

/// The most points of all paths; more could not be seen in a picture.
inline constexpr std::size_t kMaxPathPoints = 4'000'000;

struct RecordedPaths {
    std::vector<map::Path> paths;
    std::uint64_t elsewhere = 0; ///< positions on other maps
};

/// Finds the paths of the tees in a recording, on the map with this checksum or on unknown maps:
/// one path for each player and game. There are none without snapshots that list characters. A path
/// comes from the player's own session while that shows the player, otherwise from another session.
/// Beyond `max_points` every second point is dropped.
class PathReader {
  public:
    explicit PathReader(std::string_view map_crc, std::size_t max_points = kMaxPathPoints);
    ~PathReader();
    PathReader(const PathReader&) = delete;
    PathReader& operator=(const PathReader&) = delete;
    PathReader(PathReader&&) = delete;
    PathReader& operator=(PathReader&&) = delete;

    void on_line(std::string_view line);

    /// Returns the result. Call this at the end.
    [[nodiscard]] RecordedPaths take();

  private:
    class Collector;
    std::unique_ptr<Collector> collector_;
};

} // namespace tw::analyze
