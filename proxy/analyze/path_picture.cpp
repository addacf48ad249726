#include "proxy/analyze/recorded_paths.h"
#include "proxy/filter/line_record.h"
#include "proxy/record/terminal_text.h"

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace tw::analyze {

namespace {

constexpr int kTicksPerSecond = 50;
/// The most players or sessions that get a colour each: a server has up to 64 players.
constexpr std::size_t kMaxGroups = 64;
constexpr std::uint32_t kOthersColor = 0x808080;
/// The first colours are easy to distinguish and to name. Each further colour differs as much as
/// possible from the colours before and from the dark background.
constexpr std::array<std::uint32_t, 24> kGroupColors = {
    0xff3030, 0x30ff30, 0x40a0ff, 0xffff40, 0xff40ff, 0x40ffff, 0xff9040, 0xffffff,
    0x2020e0, 0xa020c0, 0xe0a0e0, 0x20c050, 0x502080, 0xa0c0a0, 0x208020, 0xa02050,
    0xe050a0, 0x8050ff, 0xe0c020, 0x2050a0, 0xa080e0, 0xa05020, 0xa0a020, 0xffc0a0};
/// Colours from cold to hot: for early to late times of a path, and for the time spent in a tile.
constexpr std::array<std::uint32_t, 8> kColorRamp = {0x3b4cc0, 0x2f8fe0, 0x25c4b8, 0x58d65a,
                                                     0xc8e020, 0xffb000, 0xff6a00, 0xff1e1e};
constexpr std::uint32_t kDeathColor = 0xffffff;

/// Returns the colour of a player or session. If kGroupColors is used up, computes a colour from
/// its hue.
std::uint32_t group_color(std::size_t group) {
    if (group < kGroupColors.size()) {
        return kGroupColors.at(group);
    }
    constexpr double kGoldenAngle = 137.508;
    constexpr std::array<double, 3> kBrightness = {1.0, 0.65, 0.85};
    const double hue = std::fmod(static_cast<double>(group) * kGoldenAngle, 360.0) / 60.0;
    const double bright = kBrightness.at(group % kBrightness.size());
    std::uint32_t rgb = 0;
    for (const double shift : {5.0, 3.0, 1.0}) { // red, green, blue
        const double k = std::fmod(shift + hue, 6.0);
        const double value = bright * (1 - std::clamp(std::min(k, 4 - k), 0.0, 1.0));
        rgb = rgb << 8U | static_cast<std::uint32_t>(std::lround(255 * value));
    }
    return rgb;
}

double ticks_between(const PathPoint& from, const PathPoint& to) {
    return std::max(0.0, static_cast<double>(to.tick) - from.tick);
}

/// Adds a path to the overlay, with a new line at each change of colour. `color_of` returns the
/// colour of the line that ends at a point.
template <typename ColorOf>
void add_path_lines(map::Overlay& overlay, const RecordedPath& path, ColorOf color_of) {
    for (std::size_t i = 1; i < path.points.size(); ++i) {
        const std::uint8_t color = color_of(path.points[i]);
        if (i == 1 || overlay.paths.back().color != color) {
            overlay.paths.push_back({.points = {path.points[i - 1].at}, .color = color});
        }
        overlay.paths.back().points.push_back(path.points[i].at);
    }
}

/// Calls `use` for each line of all paths, with the line's player or session and number of ticks.
template <typename Use>
void for_each_line(const RecordedPaths& paths, PathColor color, Use use) {
    for (const RecordedPath& path : paths.paths) {
        for (std::size_t i = 1; i < path.points.size(); ++i) {
            const PathPoint& point = path.points[i];
            use(color == PathColor::player ? static_cast<std::int64_t>(path.player) : point.session,
                ticks_between(path.points[i - 1], point));
        }
    }
}

map::Overlay lines_by_group(const RecordedPaths& paths, PathColor color) {
    std::map<std::int64_t, double> ticks;
    for_each_line(paths, color, [&](std::int64_t group, double each) { ticks[group] += each; });
    std::vector<std::pair<std::int64_t, double>> groups{ticks.begin(), ticks.end()};
    std::ranges::stable_sort(groups, std::greater{}, &std::pair<std::int64_t, double>::second);

    map::Overlay overlay;
    std::map<std::int64_t, std::uint8_t> colors;
    for (const auto& [group, unused] : groups) {
        const std::size_t next = overlay.colors.size();
        if (next == kMaxGroups) {
            overlay.colors.push_back(
                {.rgb = kOthersColor,
                 .label = record::count_with_noun(groups.size() - kMaxGroups, "other[s]")});
        }
        colors[group] = static_cast<std::uint8_t>(std::min(next, kMaxGroups));
        if (next < kMaxGroups) {
            overlay.colors.push_back(
                {.rgb = group_color(next),
                 .label = color == PathColor::player
                              ? paths.players.at(static_cast<std::size_t>(group))
                          : group == 0 ? "merged snapshots"
                                       : fmt::format("session {}", group)});
        }
    }
    for (const RecordedPath& path : paths.paths) {
        add_path_lines(overlay, path, [&](const PathPoint& point) {
            return colors.at(color == PathColor::player ? static_cast<std::int64_t>(path.player)
                                                        : point.session);
        });
    }
    return overlay;
}

/// Returns the time `ms` milliseconds after RecordedPaths::begin as text, with the date if the
/// recording has more than one day.
std::string time_label(const RecordedPaths& paths, std::uint64_t ms) {
    const auto at = fmt::gmtime(static_cast<std::time_t>(
        (filter::parse_unix_ms(paths.begin) + static_cast<std::int64_t>(ms)) / 1000));
    const bool one_day = paths.begin.substr(0, 10) == paths.end.substr(0, 10);
    return one_day ? fmt::format("{:%H:%M:%S}", at) : fmt::format("{:%m-%d %H:%M}", at);
}

map::Overlay lines_by_time(const RecordedPaths& paths) {
    std::uint64_t last = 0;
    for (const RecordedPath& path : paths.paths) {
        last = std::max<std::uint64_t>(last, path.points.back().ms);
    }
    map::Overlay overlay;
    for (std::size_t i = 0; i < kColorRamp.size(); ++i) {
        overlay.colors.push_back(
            {.rgb = kColorRamp.at(i),
             .label = "from " + time_label(paths, (last + 1) * i / kColorRamp.size())});
    }
    for (const RecordedPath& path : paths.paths) {
        add_path_lines(overlay, path, [last](const PathPoint& point) {
            return static_cast<std::uint8_t>(point.ms * kColorRamp.size() / (last + 1));
        });
    }
    return overlay;
}

/// The time in ticks that tees spent in each tile; the index counts tiles in rows from the top.
using TileTicks = std::unordered_map<std::int64_t, double>;

/// Distributes the time between two positions evenly over the line between them.
void add_tile_ticks(TileTicks& tiles, const PathPoint& from, const PathPoint& to, int width,
                    int height) {
    /// The line is divided into equal pieces of about this length (world units). The pieces are
    /// longer if there would be more than kMaxSteps.
    constexpr std::int64_t kStep = map::kTileSize / 2;
    constexpr std::int64_t kMaxSteps = 4096;
    const std::int64_t dx = std::int64_t{to.at.x} - from.at.x;
    const std::int64_t dy = std::int64_t{to.at.y} - from.at.y;
    const std::int64_t steps =
        std::min(std::max(std::abs(dx), std::abs(dy)) / kStep + 1, kMaxSteps);
    const double ticks = ticks_between(from, to) / static_cast<double>(steps);
    for (std::int64_t i = 0; i < steps && ticks > 0; ++i) {
        const std::int64_t x = from.at.x + dx * (2 * i + 1) / (2 * steps);
        const std::int64_t y = from.at.y + dy * (2 * i + 1) / (2 * steps);
        if (x >= 0 && y >= 0 && x / map::kTileSize < width && y / map::kTileSize < height) {
            tiles[y / map::kTileSize * width + x / map::kTileSize] += ticks;
        }
    }
}

/// Returns the shortest time (seconds) for each colour, ascending: 1, 3, 10, 30 and so on. The last
/// of these times is at most `longest`, but at least 0.01.
std::array<double, kColorRamp.size()> heat_color_times(double longest) {
    const auto step = [](int n) {
        return std::pow(10, std::floor(n / 2.0)) * (n % 2 == 0 ? 1 : 3) / 1000;
    };
    int last = 2;
    while (step(last + 1) <= longest) {
        ++last;
    }
    std::array<double, kColorRamp.size()> seconds{};
    for (std::size_t i = seconds.size(); i-- > 1;) {
        seconds.at(i) = step(last--);
    }
    return seconds; // the first colour's time is 0
}

/// Returns a duration as "30 ms", "10 s", "5 min" or "3 h".
std::string duration_text(double seconds) {
    return seconds < 0.95   ? fmt::format("{:.3g} ms", seconds * 1000)
           : seconds < 120  ? fmt::format("{:.0f} s", seconds)
           : seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60)
                            : fmt::format("{:.0f} h", seconds / 3600);
}

} // namespace

map::Overlay path_overlay(const RecordedPaths& paths, PathColor color) {
    map::Overlay overlay =
        color == PathColor::time ? lines_by_time(paths) : lines_by_group(paths, color);
    overlay.title = color == PathColor::player    ? "Paths by player"
                    : color == PathColor::session ? "Paths by the session that showed the player"
                                                  : "Paths by time (UTC)";
    return overlay;
}

map::Overlay heat_map_overlay(const RecordedPaths& paths, int width, int height) {
    TileTicks tiles;
    for (const RecordedPath& path : paths.paths) {
        for (std::size_t i = 1; i < path.points.size(); ++i) {
            add_tile_ticks(tiles, path.points[i - 1], path.points[i], width, height);
        }
    }
    double longest = 0;
    for (const auto& [unused, ticks] : tiles) {
        longest = std::max(longest, ticks / kTicksPerSecond);
    }
    const auto steps = heat_color_times(longest);

    const std::string players = paths.players.size() == 1
                                    ? paths.players.front()
                                    : record::count_with_noun(paths.players.size(), "player[s]");
    map::Overlay overlay{.title = "Time in each tile, " + players,
                         .colors = {},
                         .tiles = {},
                         .paths = {},
                         .crosses = {}};
    for (std::size_t i = 0; i < kColorRamp.size(); ++i) {
        overlay.colors.push_back({.rgb = kColorRamp.at(i),
                                  .label = i == 0 ? "under " + duration_text(steps.at(1))
                                                  : "from " + duration_text(steps.at(i))});
    }
    for (const auto& [tile, ticks] : tiles) {
        const auto* const above =
            std::upper_bound(steps.begin() + 1, steps.end(), ticks / kTicksPerSecond);
        overlay.tiles.push_back(
            {.tile = {static_cast<int>(tile % width), static_cast<int>(tile / width)},
             .color = static_cast<std::uint8_t>(above - steps.begin() - 1)});
    }
    if (!paths.deaths.empty()) {
        const auto color = static_cast<std::uint8_t>(overlay.colors.size());
        overlay.colors.push_back(
            {.rgb = kDeathColor,
             .label = record::count_with_noun(paths.deaths.size(), "death[s]")});
        for (const map::WorldPos& at : paths.deaths) {
            overlay.crosses.push_back({.at = at, .color = color});
        }
    }
    return overlay;
}

} // namespace tw::analyze
