#include "proxy/analyze/recorded_paths.h"

#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include <boost/algorithm/string/replace.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;

namespace {

constexpr std::string_view kMap = "d92129a0";

std::string session_record(std::string_view type, int session, std::string_view rest) {
    return fmt::format(R"({{"v":1,"t":"2026-11-21T02:04:47.000000Z","type":"{}","session":{},{}}})",
                       type, session, rest) +
           '\n';
}

std::string open_record(int session, std::string_view server = "a:1") {
    return session_record("session", session,
                          fmt::format(R"("event":"open","server":"{}")", server));
}

std::string close_record(int session) {
    return session_record("session", session, R"("event":"close")");
}

std::string map_record(int session, std::string_view crc, std::string_view more = "") {
    return session_record("map", session, fmt::format(R"("name":"x","crc":"{}"{})", crc, more));
}

/// Returns the item of a tee at (x, 0). `more`: further fields, such as `,"vel_x":256`.
std::string tee_item(int id, std::string_view player, int x, std::string_view more = "") {
    return fmt::format(R"({{"type":"character","type_id":9,"id":{},"player":"{}",)"
                       R"("fields":{{"x":{},"y":0{}}}}})",
                       id, player, x, more);
}

/// Ends a snapshot's list of items, and begins its list of removed items with this tee.
std::string removed_tee(int id) {
    return fmt::format(R"(],"removed":[[9,{}])", id);
}

std::string kill_record(int session, int victim, int weapon = 1) {
    return session_record(
        "message", session,
        fmt::format(R"("name":"sv_kill_msg","fields":{{"victim":{},"weapon":{}}})", victim,
                    weapon));
}

std::string death_event(int id, int x) {
    return fmt::format(
        R"({{"type":"death","type_id":17,"id":0,"fields":{{"x":{},"y":0,"client_id":{}}}}})", x,
        id);
}

/// Returns the item that names the session's own player.
std::string own_player_info(int id) {
    return fmt::format(R"({{"type":"player_info","id":{},"fields":{{"local":1}}}})", id);
}

std::string snapshot_record(int session, int tick, std::string_view items) {
    return session_record("snapshot", session,
                          fmt::format(R"("tick":{},"items":[{}])", tick, items));
}

std::string world_record(int tick, std::string_view items, std::string_view server = "a:1") {
    return session_record(
        "world", 0,
        fmt::format(R"("server":"{}","run":1,"tick":{},"items":[{}])", server, tick, items));
}

/// Returns a merged snapshot that session 1 received.
std::string world_record_on(std::string_view map, int run, int tick, int x) {
    return session_record(
        "world", 0,
        fmt::format(R"("server":"a:1","run":{},"map":"{}","tick":{},"items":[{{)"
                    R"("type":"character","type_id":9,"id":0,"player":"ann","seen_by":[1],)"
                    R"("fields":{{"x":{},"y":0}}}}])",
                    run, map, tick, x));
}

std::string named_map_record(std::string_view name, std::string_view crc) {
    return session_record("map", 1, fmt::format(R"("name":"{}","crc":"{}")", name, crc));
}

analyze::RecordedPaths find_paths_in(const std::string& text, std::size_t max_points = 1000,
                                     const analyze::PlayerNames& wanted = {},
                                     std::string_view map_name = "") {
    const auto read_lines = [&](const auto& use) {
        std::istringstream lines{text};
        for (std::string line; std::getline(lines, line);) {
            use(line);
        }
    };
    return analyze::find_paths(read_lines, kMap, map_name, wanted, max_points);
}

/// Returns the x of each path's points as "1 2 3; 7 8; ".
std::string points_text(const analyze::RecordedPaths& found) {
    std::string text;
    for (const analyze::RecordedPath& path : found.paths) {
        for (const analyze::PathPoint& point : path.points) {
            text += fmt::format("{}{}", &point == path.points.data() ? "" : " ", point.at.x);
        }
        text += "; ";
    }
    return text;
}

/// Returns the x of each death as "1 7 ".
std::string deaths_text(const analyze::RecordedPaths& found) {
    std::string text;
    for (const map::WorldPos& at : found.deaths) {
        text += fmt::format("{} ", at.x);
    }
    return text;
}

} // namespace

TEST_CASE("a player's path lasts as long as any session shows the player on this map") {
    struct Row {
        std::string_view name;
        std::string text;
        std::string_view paths;
        std::uint64_t positions_on_other_maps = 0;
    };

    const std::string both =
        snapshot_record(1, 2, tee_item(0, "ann", 1) + "," + tee_item(1, "bob", 5)) +
        snapshot_record(2, 2, tee_item(1, "bob", 5)) +
        snapshot_record(1, 4, tee_item(1, "bob", 6)) + snapshot_record(2, 4, tee_item(1, "bob", 6));
    const Row rows[] = {
        {"the first session closes",
         open_record(1) + open_record(2) + both + close_record(1) +
             snapshot_record(2, 6, tee_item(1, "bob", 7)),
         "1 1; 5 6 7; "},
        {"the first session loses sight, the second does not",
         open_record(1) + open_record(2) + both + snapshot_record(1, 6, removed_tee(1)) +
             snapshot_record(2, 8, tee_item(1, "bob", 7)) +
             snapshot_record(1, 8, tee_item(1, "bob", 8)) +
             snapshot_record(2, 10, tee_item(1, "bob", 9)),
         "1 1; 5 6 7 9; "},
        {"the first session is sent no more snapshots",
         open_record(1) + open_record(2) + both + snapshot_record(2, 56, tee_item(1, "bob", 7)) +
             snapshot_record(2, 58, tee_item(1, "bob", 8)) +
             snapshot_record(1, 500, tee_item(1, "bob", 80)),
         "1 1; 5 6; 7 8; "},
        {"another session is late",
         open_record(1) + open_record(2) + both + close_record(1) +
             snapshot_record(2, 4, tee_item(1, "bob", 1)) +
             snapshot_record(2, 3, tee_item(1, "bob", 1)) +
             snapshot_record(2, 6, tee_item(1, "bob", 7)),
         "1 1; 5 6 7; "},
        {"worlds are recorded, too",
         open_record(1) + snapshot_record(1, 2, tee_item(0, "ann", 1)) +
             snapshot_record(1, 4, tee_item(0, "ann", 3)) + world_record(2, tee_item(0, "ann", 1)) +
             snapshot_record(1, 6, tee_item(0, "ann", 5)) + world_record(4, "") + close_record(1) +
             world_record(8, tee_item(0, "ann", 6)) + open_record(2) +
             snapshot_record(2, 10, tee_item(0, "ann", 7)) +
             world_record(10, tee_item(0, "ann", 8)),
         "1 3 5 6 8; "},
        {"the player's own session tells",
         open_record(1) + open_record(2) + both +
             snapshot_record(2, 6, own_player_info(1) + "," + tee_item(1, "bob", 7)) +
             snapshot_record(1, 8, tee_item(1, "bob", 20)) +
             snapshot_record(2, 10, tee_item(1, "bob", 8)),
         "1 1; 5 6 7 8; "},
        {"players of one name on two servers",
         open_record(1, "a:1") + open_record(2, "b:1") +
             snapshot_record(1, 2, tee_item(0, "ann", 1)) +
             snapshot_record(2, 900, tee_item(0, "ann", 31)) +
             snapshot_record(1, 4, tee_item(0, "ann", 2)) +
             snapshot_record(2, 902, tee_item(0, "ann", 32)),
         "1 2; 31 32; "},
        {"players of one name on one server",
         snapshot_record(1, 2, tee_item(0, "ann", 1) + "," + tee_item(1, "ann", 31)) +
             snapshot_record(1, 4, tee_item(0, "ann", 2) + "," + tee_item(1, "ann", 32)),
         "1 2; 31 32; "},
        {"another map, and back",
         open_record(1) + map_record(1, kMap) + snapshot_record(1, 2, tee_item(0, "ann", 1)) +
             snapshot_record(1, 4, tee_item(0, "ann", 2)) + map_record(1, "00000007") +
             snapshot_record(1, 2, tee_item(0, "ann", 3)) +
             snapshot_record(1, 4, tee_item(0, "ann", 4)) + map_record(1, kMap) +
             snapshot_record(1, 2, tee_item(0, "ann", 5)) +
             snapshot_record(1, 4, tee_item(0, "ann", 6)),
         "1 2; 5 6; ", 2},
        {"the same map, told again in another segment",
         map_record(1, kMap) + snapshot_record(1, 2, tee_item(0, "ann", 1)) +
             map_record(1, kMap, R"(,"again":true)") + snapshot_record(1, 4, tee_item(0, "ann", 2)),
         "1 2; "},
        {"worlds of another map",
         map_record(1, "00000007") +
             world_record(
                 2, R"({"type":"character","seen_by":[1],"player":"a","fields":{"x":1,"y":1}})"),
         "", 1},
        {"hostile",
         "torn\n[]\n{}\n" +
             session_record("snapshot", 1, R"("items":[1,{},{"type":"character"}])") +
             snapshot_record(1, -5, tee_item(0, "ann", 1)) +
             session_record("snapshot", 1, R"("tick":9223372036854775807,"items":[])") +
             session_record("map", 0, R"("crc":"")") +
             session_record("world", 0,
                            R"("server":"","run":9223372036854775807,"tick":2,"items":[])") +
             session_record("map", 0, R"("crc":"")") + kill_record(9, 9) +
             session_record("message", 1, R"("name":"sv_kill_msg","fields":{}")") +
             session_record("snapshot", 1,
                            R"("tick":2,"items":[],"removed":[1,[],[9],["a",2],[9,0]])"),
         ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto found = find_paths_in(row.text);
        CHECK(points_text(found) == row.paths);
        CHECK(found.positions_on_other_maps == row.positions_on_other_maps);
    }
}

TEST_CASE("a path ends when the tee is killed, is missing or jumps") {
    struct Row {
        std::string_view name;
        std::string text;
        std::string_view paths;
        std::string_view deaths = "";
    };

    const std::string begin =
        snapshot_record(1, 2, tee_item(0, "ann", 1)) + snapshot_record(1, 4, tee_item(0, "ann", 2));
    const std::string next = snapshot_record(1, 8, tee_item(0, "ann", 3)) +
                             snapshot_record(1, 10, tee_item(0, "ann", 4));
    const Row rows[] = {
        {"nothing happened", begin + next, "1 2 3 4; "},
        {"it stood still, and is not listed", begin + snapshot_record(1, 6, "") + next,
         "1 2 3 4; "},
        {"killed", begin + kill_record(1, 0) + next, "1 2; 3 4; ", "2 "},
        {"killed, where its event says",
         begin + kill_record(1, 0) + snapshot_record(1, 6, death_event(0, 7) + removed_tee(0)) +
             next,
         "1 2; 3 4; ", "7 "},
        {"paused: a death event, and no kill message",
         begin + snapshot_record(1, 6, death_event(0, 7) + removed_tee(0)) + next, "1 2; 3 4; "},
        {"killed with the team",
         begin +
             session_record("message", 1,
                            R"("name":"sv_kill_msg_team","fields":{"team":1,"first":5})") +
             snapshot_record(1, 6, death_event(0, 7) + removed_tee(0)) + next,
         "1 2; 3 4; ", "7 "},
        {"the team of others is killed",
         begin +
             session_record("message", 1,
                            R"("name":"sv_kill_msg_team","fields":{"team":1,"first":5})") +
             next,
         "1 2 3 4; "},
        {"worlds of another map, after their session closed",
         open_record(1) + map_record(1, "00000007") + close_record(1) +
             world_record(
                 2, R"({"type":"character","seen_by":[1],"player":"a","fields":{"x":1,"y":1}})") +
             world_record(
                 4, R"({"type":"character","seen_by":[1],"player":"a","fields":{"x":2,"y":1}})"),
         ""},
        {"killed, and the message comes after the event",
         begin + snapshot_record(1, 6, death_event(0, 7) + removed_tee(0)) + kill_record(1, 0) +
             next,
         "1 2; 3 4; ", "7 "},
        {"killed, and back before the next snapshot",
         begin + kill_record(1, 0) +
             snapshot_record(1, 6, death_event(0, 2) + "," + tee_item(0, "ann", 30)) +
             snapshot_record(1, 8, tee_item(0, "ann", 31)),
         "1 2; 30 31; ", "2 "},
        {"killed twice",
         begin + kill_record(1, 0) + snapshot_record(1, 6, removed_tee(0)) +
             snapshot_record(1, 34, tee_item(0, "ann", 3)) +
             snapshot_record(1, 36, tee_item(0, "ann", 4)) + kill_record(1, 0),
         "1 2; 3 4; ", "2 4 "},
        {"killed, as two sessions are told",
         open_record(1) + open_record(2) + begin + snapshot_record(2, 4, tee_item(0, "ann", 2)) +
             kill_record(1, 0) + kill_record(2, 0) + snapshot_record(1, 6, removed_tee(0)) +
             snapshot_record(2, 6, removed_tee(0)) + next,
         "1 2; 3 4; ", "2 "},
        {"killed, in merged snapshots",
         open_record(1) + open_record(2) + world_record(2, tee_item(0, "ann", 1)) +
             world_record(4, tee_item(0, "ann", 2)) + kill_record(1, 0) + kill_record(2, 0) +
             world_record(6, death_event(0, 7) + removed_tee(0)) +
             world_record(40, tee_item(0, "ann", 3)) + world_record(42, tee_item(0, "ann", 4)),
         "1 2; 3 4; ", "7 "},
        {"killed, on another server",
         open_record(1, "a:1") + open_record(2, "b:1") + begin + kill_record(2, 0) + next,
         "1 2 3 4; "},
        {"went to spectate: killed by the game, and a death event",
         begin + kill_record(1, 0, -3) + snapshot_record(1, 6, death_event(0, 7) + removed_tee(0)) +
             next,
         "1 2; 3 4; "},
        {"missing", begin + snapshot_record(1, 6, removed_tee(0)) + next, "1 2; 3 4; "},
        {"missing in a full list",
         begin + session_record("snapshot", 1, R"("tick":6,"full":true,"items":[])") + next,
         "1 2; 3 4; "},
        {"an item of another type is removed",
         begin + session_record("snapshot", 1, R"("tick":6,"items":[],"removed":[[11,0]])") + next,
         "1 2 3 4; "},
        {"records were lost", begin + session_record("records_lost", 0, R"("lost":1)") + next,
         "1 2; 3 4; "},
        {"no snapshot for more than a second",
         begin + snapshot_record(1, 60, tee_item(0, "ann", 3)) +
             snapshot_record(1, 62, tee_item(0, "ann", 4)),
         "1 2; 3 4; "},
        {"left, and joined again",
         open_record(1) + begin + close_record(1) + open_record(2) +
             snapshot_record(2, 8, tee_item(0, "ann", 3)) +
             snapshot_record(2, 10, tee_item(0, "ann", 4)),
         "1 2; 3 4; "},
        {"the server began anew", begin + snapshot_record(1, 1000, tee_item(0, "ann", 3)) + begin,
         "1 2; 1 2; "},
        {"a jump of more than two tiles",
         begin + snapshot_record(1, 6, tee_item(0, "ann", 68)) + next, "1 2; 3 4; "},
        {"two tiles",
         begin + snapshot_record(1, 6, tee_item(0, "ann", 66)) +
             snapshot_record(1, 8, tee_item(0, "ann", 2)),
         "1 2 66 2; "},
        {"as fast as it was",
         snapshot_record(1, 2, tee_item(0, "ann", 1, R"(,"vel_x":-12800)")) +
             snapshot_record(1, 4, tee_item(0, "ann", -163)),
         "1 -163; "},
        {"as fast as it is",
         snapshot_record(1, 2, tee_item(0, "ann", 1)) +
             snapshot_record(1, 4, tee_item(0, "ann", 165, R"(,"vel_x":12800)")),
         "1 165; "},
        {"faster",
         snapshot_record(1, 2, tee_item(0, "ann", 1)) +
             snapshot_record(1, 4, tee_item(0, "ann", 166, R"(,"vel_x":12800)")) +
             snapshot_record(1, 6, tee_item(0, "ann", 167)),
         "166 167; "},
        {"fast, in the ticks between two positions that the server repeated",
         snapshot_record(1, 50, tee_item(0, "ann", 1, R"(,"tick":10)")) +
             snapshot_record(1, 52, tee_item(0, "ann", 401, R"(,"tick":50,"vel_x":2560)")),
         "1 401; "},
        {"hostile velocities and ticks",
         snapshot_record(1, 2,
                         tee_item(0, "ann", 1, R"(,"vel_x":-9223372036854775808,"tick":-7)")) +
             snapshot_record(1, 4, tee_item(0, "ann", 2, R"(,"tick":9223372036854775807)")),
         "1 2; "},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto found = find_paths_in(row.text);
        CHECK(points_text(found) == row.paths);
        CHECK(deaths_text(found) == row.deaths);
    }
}

TEST_CASE("merged snapshots are on their own map, also if the next map was announced before them") {
    const std::string next = open_record(1) + named_map_record("a", "00000007") +
                             world_record_on("a", 1, 98, 1) + named_map_record("b", kMap) +
                             world_record_on("a", 1, 100, 2) + world_record_on("a", 1, 102, 3) +
                             world_record_on("b", 2, 10, 31) + world_record_on("b", 2, 12, 32) +
                             kill_record(1, 0);
    const auto found = find_paths_in(next);
    CHECK(points_text(found) == "31 32; ");
    CHECK(deaths_text(found) == "32 ");
    CHECK(found.positions_on_other_maps == 3);
    CHECK(found.other_maps == std::set<std::string>{"a"});
    CHECK(found.positions_on_unknown_maps == 0);

    // Another version of a map, under the same name.
    CHECK(points_text(
              find_paths_in(named_map_record("a", "00000007") + world_record_on("a", 1, 98, 1) +
                            named_map_record("a", kMap) + world_record_on("a", 1, 100, 2) +
                            world_record_on("a", 1, 102, 3) + world_record_on("a", 2, 10, 31) +
                            world_record_on("a", 2, 12, 32))) == "31 32; ");
    // The recording begins after the next map was announced, before the last merged snapshots of this map.
    const auto unknown =
        find_paths_in(named_map_record("b", "00000007") + world_record_on("a", 1, 100, 2) +
                      world_record_on("a", 1, 102, 3) + world_record_on("b", 2, 10, 31));
    CHECK(unknown.positions_on_unknown_maps == 2);
    CHECK(unknown.positions_on_other_maps == 1);
}

TEST_CASE("without a map record, the map of merged snapshots is known by name") {
    struct Row {
        std::string_view file;
        std::string_view world;
        std::uint64_t positions_on_other_maps = 0;
        std::uint64_t positions_on_unknown_maps = 0;
    };

    const Row rows[] = {
        {"ctf5", "Gold Mine", 2, 0}, {"ctf5", "ctf5", 0, 2}, {"ctf5_d92129a0", "ctf5", 0, 2},
        {"ctf5", "ctf", 2, 0},       {"ctf5", "", 0, 2},     {"", "ctf5", 0, 2}};
    for (const Row& row : rows) {
        CAPTURE(row.file);
        CAPTURE(row.world);
        const auto found =
            find_paths_in(world_record_on(row.world, 1, 2, 1) + world_record_on(row.world, 1, 4, 2),
                          1000, {}, row.file);
        CHECK(found.positions_on_other_maps == row.positions_on_other_maps);
        CHECK(found.positions_on_unknown_maps == row.positions_on_unknown_maps);
        CHECK(found.other_maps.contains(std::string{row.world}) ==
              (row.positions_on_other_maps != 0));
    }
    // Only the wanted players' positions are counted.
    const auto of_bob = find_paths_in(
        map_record(1, "00000007") +
            snapshot_record(1, 2, tee_item(0, "ann", 1) + "," + tee_item(1, "bob", 1)),
        1000, {"bob"});
    CHECK(of_bob.positions_on_other_maps == 1);
}

TEST_CASE("a path lasts to the last snapshot in which its tee stood still") {
    struct Row {
        std::string_view name;
        std::string text;
        std::string_view ticks;
    };

    const auto stands = [](int tick, std::string_view more = "") {
        return snapshot_record(1, tick, tee_item(0, "ann", 1, fmt::format(R"(,"tick":2{})", more)));
    };
    const std::string ten_ticks = stands(2) + stands(7) + stands(12);
    const Row rows[] = {
        {"to the end", ten_ticks, "2 12; "},
        {"not listed while nothing changes", stands(2) + snapshot_record(1, 12, ""), "2 12; "},
        {"killed", ten_ticks + kill_record(1, 0) + snapshot_record(1, 17, removed_tee(0)),
         "2 12; "},
        {"gone", ten_ticks + snapshot_record(1, 17, removed_tee(0)) + snapshot_record(1, 22, ""),
         "2 12; "},
        {"teleported", ten_ticks + snapshot_record(1, 14, tee_item(0, "ann", 400)), "2 12; "},
        {"moves on", ten_ticks + snapshot_record(1, 14, tee_item(0, "ann", 2)), "2 14; "},
        {"another game", ten_ticks + map_record(1, kMap) + ten_ticks, "2 12; 2 12; "},
        {"falls, as predicted", stands(2, R"(,"vel_y":600)") + stands(12, R"(,"vel_y":600)"), ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        std::string ticks;
        for (const analyze::RecordedPath& path : find_paths_in(row.text).paths) {
            ticks += fmt::format("{} {}; ", path.points.front().tick, path.points.back().tick);
        }
        CHECK(ticks == row.ticks);
    }
}

TEST_CASE("the time in which the game is paused or over is left out") {
    const auto info = [](std::string_view type, std::string_view flag) {
        return fmt::format(R"({{"type":"{}","id":0,"fields":{{"game_state_flags":1}},)"
                           R"("names":{{"game_state_flags":["{}"]}}}})",
                           type, flag);
    };
    const std::string begin =
        snapshot_record(1, 2, tee_item(0, "ann", 1)) + snapshot_record(1, 4, tee_item(0, "ann", 2));
    const auto at = [](std::string_view seconds, int session, int tick, std::string_view items) {
        return fmt::format(R"({{"v":1,"t":"2026-11-21T02:04:{}00Z","type":"snapshot",)"
                           R"("session":{},"tick":{},"items":[{}]}})",
                           seconds, session, tick, items) +
               '\n';
    };

    struct Row {
        std::string_view type;
        std::string_view flag;
    };

    const Row rows[] = {{"game_info", "paused"},
                        {"game_info", "gameover"},
                        {"game_data", "roundover"},
                        {"game_data", "paused"}};
    for (const Row& row : rows) {
        CAPTURE(row.flag);
        const auto found = find_paths_in(
            at("48.0000", 1, 2, tee_item(0, "ann", 1)) +
            at("48.0400", 1, 4, tee_item(0, "ann", 2)) +
            at("48.0800", 1, 6, tee_item(0, "ann", 3) + "," + info(row.type, row.flag)) +
            at("48.0801", 2, 6, info(row.type, row.flag)) + at("49.0800", 1, 8, "") +
            at("49.0801", 2, 8, tee_item(0, "ann", 4)) + at("49.5800", 1, 10, "") +
            at("49.6000", 1, 12, tee_item(0, "ann", 5) + "," + info(row.type, "suddendeath")) +
            at("49.6400", 1, 14, tee_item(0, "ann", 6)));
        CHECK(points_text(found) == "1 2; 5 6; ");
        CHECK(found.stopped_ms == 1500);
    }
    // The last kill ends the game.
    CHECK(deaths_text(find_paths_in(begin + kill_record(1, 0) +
                                    snapshot_record(1, 6, info("game_info", "gameover")))) == "2 ");
    CHECK(
        deaths_text(find_paths_in(
            begin + snapshot_record(1, 6, death_event(0, 7) + "," + info("game_info", "gameover")) +
            kill_record(1, 0))) == "7 ");
    // A kill message long after the last recorded snapshot is about another game.
    std::string later = kill_record(1, 0);
    CHECK(deaths_text(find_paths_in(begin + later)) == "2 ");
    later.replace(later.find("02:04"), 5, "02:05");
    CHECK(deaths_text(find_paths_in(begin + later)).empty());
    // A kill message after a change of the map is about another game than merged snapshots before it.
    const std::string worlds = open_record(1) + map_record(1, kMap) +
                               world_record(2, tee_item(0, "ann", 1)) +
                               world_record(4, tee_item(0, "ann", 2));
    CHECK(deaths_text(find_paths_in(worlds + kill_record(1, 0))) == "2 ");
    std::string next_game = map_record(1, kMap) + kill_record(1, 0);
    boost::algorithm::replace_all(next_game, "02:04:47", "02:04:49");
    CHECK(deaths_text(find_paths_in(worlds + next_game)).empty());
    // Only the stops on this map count, each from its own beginning.
    const std::string stop =
        at("48.0000", 1, 2, info("game_info", "paused")) + at("48.5000", 1, 4, "");
    CHECK(find_paths_in(map_record(1, kMap) + stop).stopped_ms == 500);
    CHECK(find_paths_in(map_record(1, "00000007") + stop).stopped_ms == 0);
    CHECK(find_paths_in(map_record(1, "00000007") + stop + map_record(1, kMap) +
                        at("59.0000", 1, 2, info("game_info", "paused")) + at("59.2000", 1, 4, ""))
              .stopped_ms == 200);
    CHECK(find_paths_in(map_record(1, kMap) + stop + at("bad", 1, 6, "") + at("49.0000", 1, 8, ""))
              .stopped_ms == 1000);
}

TEST_CASE("merged snapshots without tees, such as those of a paused game, set the map, too") {
    const auto paused = [](std::string_view seconds, int tick) {
        return fmt::format(
                   R"({{"v":1,"t":"2026-11-21T02:04:{}00Z","type":"world","session":0,)"
                   R"("server":"a:1","run":1,"map":"a","tick":{},"items":[{{"type":"game_info",)"
                   R"("id":0,"seen_by":[1],"fields":{{"game_state_flags":4}},)"
                   R"("names":{{"game_state_flags":["paused"]}}}}]}})",
                   seconds, tick) +
               '\n';
    };
    const std::string worlds = paused("48.0000", 2) + paused("49.0000", 4);
    CHECK(find_paths_in(named_map_record("a", kMap) + worlds).stopped_ms == 1000);
    CHECK(find_paths_in(named_map_record("a", "00000007") + worlds).stopped_ms == 0);
}

TEST_CASE("deaths are known if messages were recorded and, with merged snapshots, sessions") {
    const std::string chat = session_record("message", 1, R"("name":"sv_chat","fields":{})");
    CHECK_FALSE(find_paths_in(open_record(1) + snapshot_record(1, 2, tee_item(0, "ann", 1)))
                    .are_deaths_known);
    CHECK(find_paths_in(chat + snapshot_record(1, 2, tee_item(0, "ann", 1))).are_deaths_known);
    CHECK_FALSE(find_paths_in(chat + world_record(2, tee_item(0, "ann", 1))).are_deaths_known);
    CHECK(find_paths_in(open_record(1) + chat + world_record(2, tee_item(0, "ann", 1)))
              .are_deaths_known);
}

TEST_CASE("only the paths and deaths of the wanted players are kept") {
    const std::string both =
        snapshot_record(1, 2, tee_item(0, "ann", 1) + "," + tee_item(1, "bob", 5)) +
        snapshot_record(1, 4, tee_item(0, "ann", 2) + "," + tee_item(1, "bob", 6)) +
        kill_record(1, 0) + kill_record(1, 1);
    const auto bob = find_paths_in(both, 1000, {"bob", "cy"});
    CHECK(points_text(bob) == "5 6; ");
    CHECK(deaths_text(bob) == "6 ");
    CHECK(bob.players == std::vector<std::string>{"bob"});
    CHECK(bob.players_on_map == analyze::PlayerNames{"ann", "bob"});
    CHECK(points_text(find_paths_in(both, 1000, {"cy"})).empty());
    CHECK(points_text(find_paths_in(both)) == "1 2; 5 6; ");
}

TEST_CASE("a point has the tick of its position, the time of its record and the session") {
    const auto at = [](std::string_view time, std::string_view rest) {
        return fmt::format(R"({{"v":1,"t":"2026-12-{}Z","type":"snapshot","session":3,{}}})", time,
                           rest) +
               '\n';
    };
    const auto found = find_paths_in(
        at("31T23:59:59.500000", R"("tick":10,"items":[)" + tee_item(0, "ann", 1) + "]") +
        at("31T23:59:59.750000",
           R"("tick":12,"items":[)" + tee_item(0, "ann", 2, R"(,"tick":11)") + "]"));
    REQUIRE(found.paths.size() == 1);
    const auto& points = found.paths[0].points;
    REQUIRE(points.size() == 3);
    CHECK(points[2].tick == 12); // the tee still stands there in the last snapshot
    CHECK(points[0].tick == 10);
    CHECK(points[0].ms == 0);
    CHECK(points[1].tick == 11);
    CHECK(points[1].ms == 250);
    CHECK(points[1].session == 3);
    CHECK(found.players.at(found.paths[0].player) == "ann");
    CHECK(found.begin == "2026-12-31T23:59:59.500000Z");
    CHECK(found.end == "2026-12-31T23:59:59.750000Z");
}

TEST_CASE("above the limit of points, every path keeps every second point") {
    std::string text;
    for (int i = 0; i < 1000; ++i) {
        text += snapshot_record(1, 2 * i, tee_item(0, "ann", i));
    }
    const auto found = find_paths_in(text, 100);
    REQUIRE(found.paths.size() == 1);
    const auto& points = found.paths[0].points;
    CHECK(points.size() >= 50);
    CHECK(points.size() <= 100);
    CHECK(points.front().at.x == 0);
    CHECK(points.back().at.x > 960);
}
