#pragma once

#include "map/game_layer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tw::analyze {

/// The most points of all paths; more could not be seen in a picture.
inline constexpr std::size_t kMaxPathPoints = 4'000'000;

/// A position of a tee.
struct PathPoint {
    map::WorldPos at{0, 0};
    std::int32_t tick = 0;    ///< of the position, which may be older than its snapshot
    std::uint32_t ms = 0;     ///< of its record, after RecordedPaths::begin
    std::int32_t session = 0; ///< the session that showed it; 0 for merged snapshots
};

/// A part of a player's way that was seen without a gap: at least two points.
struct RecordedPath {
    std::size_t player = 0; ///< index into RecordedPaths::players
    std::vector<PathPoint> points;
};

/// The paths of the tees of a recording on one map.
struct RecordedPaths {
    std::vector<std::string> players; ///< their names
    std::vector<RecordedPath> paths;  ///< by player, in their order in time
    std::vector<map::WorldPos> deaths;
    std::string begin;           ///< time of the record with the first position
    std::string end;             ///< and of the one with the last
    std::uint64_t elsewhere = 0; ///< positions on other maps
    std::uint64_t assumed = 0;   ///< positions on unknown maps, taken to be on this one
    std::uint64_t left_out = 0;  ///< positions and deaths beyond a limit on their number
};

/// Finds the paths of the tees in a recording, on the map with this checksum or on unknown maps.
/// There are none without snapshots that list characters. A path comes from the player's own
/// session while that shows the player, otherwise from another session or from merged snapshots.
///
/// A path ends
/// - where the tee was killed or paused: a kill message or a death event names it,
/// - where it was missing: the session that shows it received a snapshot without it, was given no
///   snapshot for more than a second, or lost records, and no other session shows it all along,
/// - where it jumped, as through a teleporter: farther than two tiles plus what the faster of the
///   velocities before and after allows in the ticks between.
///
/// Deaths are what kill messages name, except tees that the game removed, such as one that went to
/// spectate. A death is where its death event says, otherwise at the tee's last position.
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
