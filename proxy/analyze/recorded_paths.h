#pragma once

#include "map/game_layer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tw::analyze {

/// The most points of all paths together. A picture could not show more.
inline constexpr std::size_t kMaxPathPoints = 4'000'000;
/// The most names of other maps that are kept.
inline constexpr std::size_t kMaxOtherMaps = 8;

struct PathPoint {
    map::WorldPos at{0, 0};
    std::int32_t tick = 0;    ///< tick of the position, which may be older than its snapshot
    std::uint32_t ms = 0;     ///< milliseconds from RecordedPaths::begin to the position's record
    std::int32_t session = 0; ///< the session that showed it; 0 for merged snapshots
};

/// At least two positions of a player's tee that were seen without a gap.
struct RecordedPath {
    std::size_t player = 0; ///< index into RecordedPaths::players
    std::vector<PathPoint> points;
};

/// The paths of the tees of a recording on one map.
struct RecordedPaths {
    std::vector<std::string> players; ///< names of the players
    std::vector<RecordedPath> paths;  ///< sorted by player, then by time
    std::vector<map::WorldPos> deaths;
    std::string begin;                 ///< time of the record with the first position
    std::string end;                   ///< time of the record with the last position
    std::uint64_t on_other_maps = 0;   ///< positions on other maps, which are left out
    std::set<std::string> other_maps;  ///< names of these maps; the first kMaxOtherMaps
    std::uint64_t on_unknown_maps = 0; ///< positions on unknown maps, which count as on this map
    std::uint64_t left_out = 0;        ///< positions and deaths beyond a limit on their number
};

/// Finds the paths of the tees in a recording, on the map with this checksum or on unknown maps. Needs
/// snapshots that list characters. A path comes from the player's own session while that session shows
/// the player, otherwise from another session or from merged snapshots.
///
/// A path ends
/// - when the tee was killed or paused: a kill message or a death event names the tee,
/// - when the tee was missing: the session that shows it received a snapshot without the tee, received no
///   snapshot for more than a second, or lost records, and no other session showed the tee meanwhile,
/// - when the tee jumped, as through a teleporter: it moved farther than two tiles plus the distance that
///   the higher of its velocities before and after allows in the ticks between.
///
/// Kill messages name the deaths; tees that the game removed, for example to spectate, do not count. A
/// death is at the position of its death event, or without an event at the tee's last position. Beyond
/// `max_points`, every second point is dropped.
class PathReader {
  public:
    explicit PathReader(std::string_view map_crc, std::size_t max_points = kMaxPathPoints);
    ~PathReader();
    PathReader(const PathReader&) = delete;
    PathReader& operator=(const PathReader&) = delete;

    void on_line(std::string_view line);

    /// Returns the result. No line may follow.
    [[nodiscard]] RecordedPaths finish();

  private:
    class Collector;
    std::unique_ptr<Collector> collector_;
};

} // namespace tw::analyze
