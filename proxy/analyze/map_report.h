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

/// A map's description as one JSON object, with the name of its file first.
///
/// Layout:  map/FORMAT.md, section 8.
[[nodiscard]] boost::json::object map_json(const map::Description& map, std::string_view file);

/// A map's description as lines for people, with the name of its file first.
[[nodiscard]] std::string map_page(const map::Description& map, std::string_view file);

/// One line for a position: its tile, what is there, and how a tee would stand.
[[nodiscard]] std::string place_line(const map::Physics& physics, double x, double y);

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

} // namespace tw::analyze
