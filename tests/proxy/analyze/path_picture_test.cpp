#include "proxy/analyze/recorded_paths.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using analyze::PathColor;
using analyze::PathPoint;
using analyze::RecordedPaths;

namespace {

/// Returns the paths of two players: ann for 100 ticks in session 1, then for 50 in session 2; bob for 10.
RecordedPaths paths_of_two_players() {
    RecordedPaths paths;
    paths.players = {"bob", "ann"};
    paths.paths = {
        {.player = 0,
         .points = {{.at = {0, 0}, .tick = 0, .ms = 0, .session = 1},
                    {.at = {320, 0}, .tick = 10, .ms = 200, .session = 1}}},
        {.player = 1,
         .points = {{.at = {16, 80}, .tick = 0, .ms = 0, .session = 1},
                    {.at = {16, 80}, .tick = 100, .ms = 2000, .session = 1},
                    {.at = {80, 80}, .tick = 150, .ms = 7999, .session = 2}}},
    };
    paths.begin = "2026-11-21T20:15:00.000000Z";
    paths.end = "2026-11-21T20:15:07.999000Z";
    return paths;
}

/// Returns the legend as "rrggbb label; ".
std::string legend_text(const map::Overlay& overlay) {
    std::string text;
    for (const map::OverlayColor& color : overlay.colors) {
        text += fmt::format("{:06x} {}; ", color.rgb, color.label);
    }
    return text;
}

/// Returns the colour and the points of each line as "0: 1,2 3,4; ".
std::string overlay_lines_text(const map::Overlay& overlay) {
    std::string text;
    for (const map::Path& path : overlay.paths) {
        text += fmt::format("{}:", path.color);
        for (const map::WorldPos& at : path.points) {
            text += fmt::format(" {},{}", at.x, at.y);
        }
        text += "; ";
    }
    return text;
}

} // namespace

TEST_CASE("lines have the colour of their player, their session or their time") {
    const RecordedPaths paths = paths_of_two_players();
    const map::Overlay players = path_overlay(paths, PathColor::player);
    CHECK(legend_text(players) == "ff3030 ann; 30ff30 bob; ");
    CHECK(overlay_lines_text(players) == "1: 0,0 320,0; 0: 16,80 16,80 80,80; ");
    CHECK(players.title == "Paths by player");

    const map::Overlay sessions = path_overlay(paths, PathColor::session);
    CHECK(legend_text(sessions) == "ff3030 session 1; 30ff30 session 2; ");
    CHECK(overlay_lines_text(sessions) == "0: 0,0 320,0; 0: 16,80 16,80; 1: 16,80 80,80; ");

    const map::Overlay times = path_overlay(paths, PathColor::time);
    REQUIRE(times.colors.size() == 8);
    CHECK(times.colors[0].label == "from 20:15:00");
    CHECK(times.colors[7].label == "from 20:15:07");
    CHECK(overlay_lines_text(times) == "0: 0,0 320,0; 2: 16,80 16,80; 7: 16,80 80,80; ");
    CHECK(times.crosses.empty());
}

TEST_CASE("times of several days have the date, and merged snapshots are named") {
    RecordedPaths paths = paths_of_two_players();
    paths.end = "2026-11-22T20:15:07.999000Z";
    CHECK(path_overlay(paths, PathColor::time).colors[0].label == "from 11-21 20:15");
    for (PathPoint& point : paths.paths[0].points) {
        point.session = 0;
    }
    CHECK(legend_text(path_overlay(paths, PathColor::session)) ==
          "ff3030 session 1; 30ff30 session 2; 40a0ff merged snapshots; ");
}

TEST_CASE("64 players have colours that differ, and further ones share a grey") {
    RecordedPaths paths;
    for (std::size_t i = 0; i < 70; ++i) {
        paths.players.push_back(fmt::format("player {}", i));
        paths.paths.push_back({.player = i, .points = {{.tick = 0}, {.tick = 10}}});
    }
    const map::Overlay overlay = path_overlay(paths, PathColor::player);
    REQUIRE(overlay.colors.size() == 65);
    CHECK(overlay.colors.back().label == "6 others");
    CHECK(overlay.paths.back().color == 64);
    std::vector<std::uint32_t> colors;
    for (const map::OverlayColor& color : overlay.colors) {
        colors.push_back(color.rgb);
    }
    std::ranges::sort(colors);
    CHECK(std::ranges::adjacent_find(colors) == colors.end());
}

TEST_CASE("tiles have the time that tees spent in them, and deaths a cross") {
    RecordedPaths paths = paths_of_two_players();
    paths.deaths = {{80, 80}, {-5, 7}};
    const map::Overlay overlay = heat_map_overlay(paths, 8, 4);
    CHECK(overlay.title == "Time in each tile, 2 players");
    paths.players = {"ann"};
    CHECK(heat_map_overlay(paths, 8, 4).title == "Time in each tile, ann");
    // The longest time: 100 ticks at one place, and a part of the 50 ticks to the next position.
    CHECK(legend_text(overlay) ==
          "3b4cc0 under 1 ms; 2f8fe0 from 1 ms; 25c4b8 from 3 ms; 58d65a from 10 ms; "
          "c8e020 from 30 ms; ffb000 from 100 ms; ff6a00 from 300 ms; ff1e1e from 1 s; "
          "ffffff 2 deaths; ");
    CHECK(overlay.crosses.size() == 2);
    CHECK(overlay.paths.empty());
    const auto color_of = [&overlay](int x, int y) {
        for (const map::ColoredTile& each : overlay.tiles) {
            if (each.tile.x == x && each.tile.y == y) {
                return int{each.color};
            }
        }
        return -1;
    };
    CHECK(color_of(0, 2) == 7);
    CHECK(color_of(2, 2) == 5);  // a quarter of a second
    CHECK(color_of(5, 0) == 3);  // a tick
    CHECK(color_of(7, 0) == 3);  // later positions are outside the map
    CHECK(color_of(5, 2) == -1); // no tee was here
    CHECK(overlay.tiles.size() == 8 + 3);
    // 15 ticks are exactly 300 ms.
    paths.paths = {{.player = 0, .points = {{.at = {16, 16}}, {.at = {16, 16}, .tick = 15}}}};
    paths.deaths.clear();
    CHECK(heat_map_overlay(paths, 8, 4).colors.back().label == "from 300 ms");
}

TEST_CASE("impossible positions are limited, and a recording without positions has no heat map") {
    RecordedPaths paths;
    paths.players = {"ann"};
    constexpr int kFar = 2147483647;
    paths.paths = {{.player = 0,
                    .points = {{.at = {-kFar - 1, kFar}, .tick = -kFar - 1},
                               {.at = {kFar, -kFar - 1}, .tick = kFar},
                               {.at = {1, 1}, .tick = 0}}}};
    CHECK(heat_map_overlay(paths, 8, 4).tiles.size() <= 32);
    CHECK(analyze::heat_map_overlay({}, 8, 4).tiles.empty());
    CHECK(analyze::path_overlay({}, PathColor::time).paths.empty());
    CHECK(analyze::path_overlay({}, PathColor::player).colors.empty());
}
