#pragma once

#include "map/game_layer.h"
#include "map/picture.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tw::analyze {

/// The most points of all paths together. A picture could not show more points.
inline constexpr std::size_t kMaxPathPoints = 4'000'000;
/// The most names in RecordedPaths::other_maps.
inline constexpr std::size_t kMaxOtherMaps = 8;
/// The most names in RecordedPaths::players_on_map, not counting the wanted players.
inline constexpr std::size_t kMaxPlayersOnMap = 64;

using PlayerNames = std::set<std::string>;
/// Calls `use` with each line of a recording.
using LineSource = std::function<void(const std::function<void(std::string_view line)>& use)>;

struct PathPoint {
    map::WorldPos at{0, 0};
    std::int32_t tick = 0;    ///< tick of the position; may be lower than the tick of its snapshot
    std::uint32_t ms = 0;     ///< milliseconds from RecordedPaths::begin to the position's record
    std::int32_t session = 0; ///< session whose snapshot has the position; 0: a merged snapshot
};

/// At least two positions of a player's tee, without a gap between them.
struct RecordedPath {
    std::size_t player = 0; ///< index into RecordedPaths::players
    std::vector<PathPoint> points;
};

/// The paths of the tees of a recording on one map.
struct RecordedPaths {
    std::vector<std::string> players; ///< names of the players
    PlayerNames players_on_map;       ///< names of all players on the map, wanted or not
    std::vector<RecordedPath> paths;  ///< sorted by player, then by time
    std::vector<map::WorldPos> deaths;
    bool are_deaths_known = false; ///< false if the records that tell of deaths are missing
    std::string begin;             ///< time of the record with the first position
    std::string end;               ///< time of the record with the last position
    std::uint64_t positions_on_other_maps =
        0;                            ///< number of the wanted players' positions on other maps
    std::set<std::string> other_maps; ///< names of other maps, at most kMaxOtherMaps
    std::uint64_t positions_on_unknown_maps =
        0;                          ///< number of positions on unknown maps, which are included
    std::uint64_t stopped_ms = 0;   ///< time without paths: the game was paused or over
    std::uint64_t num_left_out = 0; ///< number of positions and deaths beyond a limit
    std::uint64_t num_jumps = 0;    ///< number of jumps; paths do not contain them
    std::uint64_t jump_ticks = 0;   ///< total duration of the jumps in ticks
};

/// Finds the paths of the tees in a recording, on the map with the given checksum or on unknown
/// maps. Needs snapshots with characters. A path is taken from the player's own session while its
/// snapshots contain the tee, otherwise from another session or from merged snapshots.
///
/// A path ends
/// - when the tee was killed or paused: a kill message or a death event names the tee,
/// - when the game was paused or over,
/// - when the tee was missing: no other session had the tee, and the session from which the path is
///   taken got a snapshot without the tee, got no snapshot for more than a second, or lost records,
/// - when the tee jumped, for example through a teleporter: it moved more than two tiles farther
///   than its velocity, running, falling or a ninja's dash explains. The higher of the velocities
///   before and after the movement counts.
///
/// The path of a tee that stands still lasts to the last snapshot that has the tee.
///
/// Deaths are taken from kill messages. A tee that the game removed, for example to spectate, does
/// not count as killed. A death is at the position of its death event or, without such an event, at
/// the tee's last position. If there are more than `max_points` points, every second point is
/// dropped.
///
/// `map_name`: compared with records that name a map without its checksum; empty if unknown.
/// `wanted`: names of the players whose paths and deaths are needed; empty for all.
[[nodiscard]] RecordedPaths find_paths(const LineSource& read_lines, std::string_view map_crc,
                                       std::string_view map_name = {}, PlayerNames wanted = {},
                                       std::size_t max_points = kMaxPathPoints);

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
