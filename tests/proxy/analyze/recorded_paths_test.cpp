#include "proxy/analyze/recorded_paths.h"

#include <sstream>

#include <boost/algorithm/string/replace.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;

namespace {

constexpr std::string_view kMap = "d92129a0";

std::string line(std::string_view type, int session, std::string_view rest) {
    return fmt::format(R"({{"v":1,"t":"2026-11-21T02:04:47.000000Z","type":"{}","session":{},{}}})",
                       type, session, rest) +
           '\n';
}

std::string opens(int session, std::string_view server = "a:1") {
    return line("session", session, fmt::format(R"("event":"open","server":"{}")", server));
}

std::string closes(int session) {
    return line("session", session, R"("event":"close")");
}

std::string map_of(int session, std::string_view crc, std::string_view more = "") {
    return line("map", session, fmt::format(R"("name":"x","crc":"{}"{})", crc, more));
}

/// Returns the item of a tee at (x, 0). `more`: further fields, such as `,"vel_x":256`.
std::string tee_item(int id, std::string_view player, int x, std::string_view more = "") {
    return fmt::format(R"({{"type":"character","type_id":9,"id":{},"player":"{}",)"
                       R"("fields":{{"x":{},"y":0{}}}}})",
                       id, player, x, more);
}

/// Ends a snapshot's list of items, and begins its list of removed items with this tee.
std::string gone(int id) {
    return fmt::format(R"(],"removed":[[9,{}])", id);
}

std::string killed(int session, int victim, int weapon = 1) {
    return line("message", session,
                fmt::format(R"("name":"sv_kill_msg","fields":{{"victim":{},"weapon":{}}})", victim,
                            weapon));
}

std::string dies(int id, int x) {
    return fmt::format(
        R"({{"type":"death","type_id":17,"id":0,"fields":{{"x":{},"y":0,"client_id":{}}}}})", x,
        id);
}

/// Returns the item that names the session's own player.
std::string own_info(int id) {
    return fmt::format(R"({{"type":"player_info","id":{},"fields":{{"local":1}}}})", id);
}

std::string snap(int session, int tick, std::string_view items) {
    return line("snapshot", session, fmt::format(R"("tick":{},"items":[{}])", tick, items));
}

std::string world(int tick, std::string_view items, std::string_view server = "a:1") {
    return line(
        "world", 0,
        fmt::format(R"("server":"{}","run":1,"tick":{},"items":[{}])", server, tick, items));
}

/// Returns a snapshot of session 1 in which ann's tee is at (x, 0).
std::string ann(int tick, int x, std::string_view more = "") {
    return snap(1, tick, tee_item(0, "ann", x, more));
}

std::string ann_in_world(int tick, int x) {
    return world(tick, tee_item(0, "ann", x));
}

std::string bob(int session, int tick, int x) {
    return snap(session, tick, tee_item(1, "bob", x));
}

/// Returns a merged snapshot that session 1 received.
std::string world_on(std::string_view map, int run, int tick, int x) {
    return line("world", 0,
                fmt::format(R"("server":"a:1","run":{},"map":"{}","tick":{},"items":[{{)"
                            R"("type":"character","type_id":9,"id":0,"player":"ann","seen_by":[1],)"
                            R"("fields":{{"x":{},"y":0}}}}])",
                            run, map, tick, x));
}

std::string map_named(std::string_view name, std::string_view crc) {
    return line("map", 1, fmt::format(R"("name":"{}","crc":"{}")", name, crc));
}

analyze::RecordedPaths paths_in(const std::string& text, std::size_t max_points = 1000,
                                const analyze::PlayerNames& wanted = {},
                                std::string_view map_name = "") {
    const auto read_lines = [&](const auto& use) {
        std::istringstream lines{text};
        for (std::string each; std::getline(lines, each);) {
            use(each);
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

    const std::string both = snap(1, 2, tee_item(0, "ann", 1) + "," + tee_item(1, "bob", 5)) +
                             bob(2, 2, 5) + bob(1, 4, 6) + bob(2, 4, 6);
    const Row rows[] = {
        {"the first session closes", opens(1) + opens(2) + both + closes(1) + bob(2, 6, 7),
         "1 1; 5 6 7; "},
        {"the first session loses sight, the second does not",
         opens(1) + opens(2) + both + snap(1, 6, gone(1)) + bob(2, 8, 7) + bob(1, 8, 8) +
             bob(2, 10, 9),
         "1 1; 5 6 7 9; "},
        {"the first session is sent no more snapshots",
         opens(1) + opens(2) + both + bob(2, 56, 7) + bob(2, 58, 8) + bob(1, 500, 80),
         "1 1; 5 6; 7 8; "},
        {"another session is late",
         opens(1) + opens(2) + both + closes(1) + bob(2, 4, 1) + bob(2, 3, 1) + bob(2, 6, 7),
         "1 1; 5 6 7; "},
        {"worlds are recorded, too",
         opens(1) + ann(2, 1) + ann(4, 3) + ann_in_world(2, 1) + ann(6, 5) + world(4, "") +
             closes(1) + ann_in_world(8, 6) + opens(2) + snap(2, 10, tee_item(0, "ann", 7)) +
             ann_in_world(10, 8),
         "1 3 5 6 8; "},
        {"the player's own session tells",
         opens(1) + opens(2) + both + snap(2, 6, own_info(1) + "," + tee_item(1, "bob", 7)) +
             bob(1, 8, 20) + bob(2, 10, 8),
         "1 1; 5 6 7 8; "},
        {"players of one name on two servers",
         opens(1, "a:1") + opens(2, "b:1") + ann(2, 1) + snap(2, 900, tee_item(0, "ann", 31)) +
             ann(4, 2) + snap(2, 902, tee_item(0, "ann", 32)),
         "1 2; 31 32; "},
        {"players of one name on one server",
         snap(1, 2, tee_item(0, "ann", 1) + "," + tee_item(1, "ann", 31)) +
             snap(1, 4, tee_item(0, "ann", 2) + "," + tee_item(1, "ann", 32)),
         "1 2; 31 32; "},
        {"another map, and back",
         opens(1) + map_of(1, kMap) + ann(2, 1) + ann(4, 2) + map_of(1, "00000007") + ann(2, 3) +
             ann(4, 4) + map_of(1, kMap) + ann(2, 5) + ann(4, 6),
         "1 2; 5 6; ", 2},
        {"the same map, told again in another segment",
         map_of(1, kMap) + ann(2, 1) + map_of(1, kMap, R"(,"again":true)") + ann(4, 2), "1 2; "},
        {"worlds of another map",
         map_of(1, "00000007") +
             world(2, R"({"type":"character","seen_by":[1],"player":"a","fields":{"x":1,"y":1}})"),
         "", 1},
        {"hostile",
         "torn\n[]\n{}\n" + line("snapshot", 1, R"("items":[1,{},{"type":"character"}])") +
             snap(1, -5, tee_item(0, "ann", 1)) +
             line("snapshot", 1, R"("tick":9223372036854775807,"items":[])") +
             line("map", 0, R"("crc":"")") +
             line("world", 0, R"("server":"","run":9223372036854775807,"tick":2,"items":[])") +
             line("map", 0, R"("crc":"")") + killed(9, 9) +
             line("message", 1, R"("name":"sv_kill_msg","fields":{}")") +
             line("snapshot", 1, R"("tick":2,"items":[],"removed":[1,[],[9],["a",2],[9,0]])"),
         ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto found = paths_in(row.text);
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

    const std::string begin = ann(2, 1) + ann(4, 2);
    const std::string next = ann(8, 3) + ann(10, 4);
    const Row rows[] = {
        {"nothing happened", begin + next, "1 2 3 4; "},
        {"it stood still, and is not listed", begin + snap(1, 6, "") + next, "1 2 3 4; "},
        {"killed", begin + killed(1, 0) + next, "1 2; 3 4; ", "2 "},
        {"killed, where its event says",
         begin + killed(1, 0) + snap(1, 6, dies(0, 7) + gone(0)) + next, "1 2; 3 4; ", "7 "},
        {"paused: a death event, and no kill message",
         begin + snap(1, 6, dies(0, 7) + gone(0)) + next, "1 2; 3 4; "},
        {"killed with the team",
         begin + line("message", 1, R"("name":"sv_kill_msg_team","fields":{"team":1,"first":5})") +
             snap(1, 6, dies(0, 7) + gone(0)) + next,
         "1 2; 3 4; ", "7 "},
        {"the team of others is killed",
         begin + line("message", 1, R"("name":"sv_kill_msg_team","fields":{"team":1,"first":5})") +
             next,
         "1 2 3 4; "},
        {"worlds of another map, after their session closed",
         opens(1) + map_of(1, "00000007") + closes(1) +
             world(2, R"({"type":"character","seen_by":[1],"player":"a","fields":{"x":1,"y":1}})") +
             world(4, R"({"type":"character","seen_by":[1],"player":"a","fields":{"x":2,"y":1}})"),
         ""},
        {"killed, and the message comes after the event",
         begin + snap(1, 6, dies(0, 7) + gone(0)) + killed(1, 0) + next, "1 2; 3 4; ", "7 "},
        {"killed, and back before the next snapshot",
         begin + killed(1, 0) + snap(1, 6, dies(0, 2) + "," + tee_item(0, "ann", 30)) + ann(8, 31),
         "1 2; 30 31; ", "2 "},
        {"killed twice",
         begin + killed(1, 0) + snap(1, 6, gone(0)) + ann(34, 3) + ann(36, 4) + killed(1, 0),
         "1 2; 3 4; ", "2 4 "},
        {"killed, as two sessions are told",
         opens(1) + opens(2) + begin + snap(2, 4, tee_item(0, "ann", 2)) + killed(1, 0) +
             killed(2, 0) + snap(1, 6, gone(0)) + snap(2, 6, gone(0)) + next,
         "1 2; 3 4; ", "2 "},
        {"killed, in merged snapshots",
         opens(1) + opens(2) + ann_in_world(2, 1) + ann_in_world(4, 2) + killed(1, 0) +
             killed(2, 0) + world(6, dies(0, 7) + gone(0)) + ann_in_world(40, 3) +
             ann_in_world(42, 4),
         "1 2; 3 4; ", "7 "},
        {"killed, on another server",
         opens(1, "a:1") + opens(2, "b:1") + begin + killed(2, 0) + next, "1 2 3 4; "},
        {"went to spectate: killed by the game, and a death event",
         begin + killed(1, 0, -3) + snap(1, 6, dies(0, 7) + gone(0)) + next, "1 2; 3 4; "},
        {"missing", begin + snap(1, 6, gone(0)) + next, "1 2; 3 4; "},
        {"missing in a full list",
         begin + line("snapshot", 1, R"("tick":6,"full":true,"items":[])") + next, "1 2; 3 4; "},
        {"an item of another type is removed",
         begin + line("snapshot", 1, R"("tick":6,"items":[],"removed":[[11,0]])") + next,
         "1 2 3 4; "},
        {"records were lost", begin + line("records_lost", 0, R"("lost":1)") + next, "1 2; 3 4; "},
        {"no snapshot for more than a second", begin + ann(60, 3) + ann(62, 4), "1 2; 3 4; "},
        {"left, and joined again",
         opens(1) + begin + closes(1) + opens(2) + snap(2, 8, tee_item(0, "ann", 3)) +
             snap(2, 10, tee_item(0, "ann", 4)),
         "1 2; 3 4; "},
        {"the server began anew", begin + ann(1000, 3) + begin, "1 2; 1 2; "},
        {"a jump of more than two tiles", begin + ann(6, 68) + next, "1 2; 3 4; "},
        {"two tiles", begin + ann(6, 66) + ann(8, 2), "1 2 66 2; "},
        {"as fast as it was", ann(2, 1, R"(,"vel_x":-12800)") + ann(4, -163), "1 -163; "},
        {"as fast as it is", ann(2, 1) + ann(4, 165, R"(,"vel_x":12800)"), "1 165; "},
        {"faster", ann(2, 1) + ann(4, 166, R"(,"vel_x":12800)") + ann(6, 167), "166 167; "},
        {"fast, in the ticks between two positions that the server repeated",
         ann(50, 1, R"(,"tick":10)") + ann(52, 401, R"(,"tick":50,"vel_x":2560)"), "1 401; "},
        {"running as predicted, from half the speed to full speed, and against a wall",
         ann(50, 1, R"(,"tick":2,"vel_x":1280,"direction":1)") + snap(1, 90, "") +
             ann(110, 1065, R"(,"tick":108,"vel_x":256)"),
         "1 1065; "},
        {"farther than a tee runs",
         ann(50, 1, R"(,"tick":2,"vel_x":1280)") + snap(1, 90, "") +
             ann(110, 1126, R"(,"tick":108,"vel_x":256)"),
         ""},
        {"a tee that stands does not run",
         ann(2, 1, R"(,"tick":2)") + ann(22, 190, R"(,"tick":22)"), ""},
        {"falling as predicted",
         ann(2, 1, R"(,"vel_y":256)") + ann(52, 2, R"(,"y":1189,"tick":52)"), "1 2; "},
        {"farther than a tee falls",
         ann(2, 1, R"(,"vel_y":256)") + ann(52, 2, R"(,"y":1190,"tick":52)"), ""},
        {"a ninja's dash", ann(2, 1, R"(,"weapon":5)") + ann(4, 101, R"(,"weapon":5)"), "1 101; "},
        {"no further than one dash", ann(2, 1, R"(,"weapon":5)") + ann(42, 566, R"(,"tick":42)"),
         ""},
        {"hostile velocities and ticks",
         ann(2, 1, R"(,"vel_x":-9223372036854775808,"tick":-7)") +
             ann(4, 2, R"(,"tick":9223372036854775807)"),
         "1 2; "},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto found = paths_in(row.text);
        CHECK(points_text(found) == row.paths);
        CHECK(deaths_text(found) == row.deaths);
    }
    const auto found = paths_in(ann(2, 1) + ann(6, 500) + ann(8, 501));
    CHECK(found.num_jumps == 1);
    CHECK(found.jump_ticks == 4);
}

TEST_CASE("merged snapshots are on their own map, also if the next map was announced before them") {
    const std::string next = opens(1) + map_named("a", "00000007") + world_on("a", 1, 98, 1) +
                             map_named("b", kMap) + world_on("a", 1, 100, 2) +
                             world_on("a", 1, 102, 3) + world_on("b", 2, 10, 31) +
                             world_on("b", 2, 12, 32) + killed(1, 0);
    const auto found = paths_in(next);
    CHECK(points_text(found) == "31 32; ");
    CHECK(deaths_text(found) == "32 ");
    CHECK(found.positions_on_other_maps == 3);
    CHECK(found.other_maps == std::set<std::string>{"a"});
    CHECK(found.positions_on_unknown_maps == 0);

    // Another version of a map, under the same name.
    CHECK(points_text(paths_in(map_named("a", "00000007") + world_on("a", 1, 98, 1) +
                               map_named("a", kMap) + world_on("a", 1, 100, 2) +
                               world_on("a", 1, 102, 3) + world_on("a", 2, 10, 31) +
                               world_on("a", 2, 12, 32))) == "31 32; ");
    // The recording begins after the next map was announced, before the last merged snapshots of this map.
    const auto unknown = paths_in(map_named("b", "00000007") + world_on("a", 1, 100, 2) +
                                  world_on("a", 1, 102, 3) + world_on("b", 2, 10, 31));
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
        const auto found = paths_in(world_on(row.world, 1, 2, 1) + world_on(row.world, 1, 4, 2),
                                    1000, {}, row.file);
        CHECK(found.positions_on_other_maps == row.positions_on_other_maps);
        CHECK(found.positions_on_unknown_maps == row.positions_on_unknown_maps);
        CHECK(found.other_maps.contains(std::string{row.world}) ==
              (row.positions_on_other_maps != 0));
    }
    // Only the wanted players' positions are counted.
    const auto of_bob = paths_in(
        map_of(1, "00000007") + snap(1, 2, tee_item(0, "ann", 1) + "," + tee_item(1, "bob", 1)),
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
        return ann(tick, 1, fmt::format(R"(,"tick":2{})", more));
    };
    const std::string ten_ticks = stands(2) + stands(7) + stands(12);
    const Row rows[] = {
        {"to the end", ten_ticks, "2 12; "},
        {"not listed while nothing changes", stands(2) + snap(1, 12, ""), "2 12; "},
        {"killed", ten_ticks + killed(1, 0) + snap(1, 17, gone(0)), "2 12; "},
        {"gone", ten_ticks + snap(1, 17, gone(0)) + snap(1, 22, ""), "2 12; "},
        {"teleported", ten_ticks + ann(14, 400), "2 12; "},
        {"moves on", ten_ticks + ann(14, 2), "2 14; "},
        {"another game", ten_ticks + map_of(1, kMap) + ten_ticks, "2 12; 2 12; "},
        {"falls, as predicted", stands(2, R"(,"vel_y":600)") + stands(12, R"(,"vel_y":600)"), ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        std::string ticks;
        for (const analyze::RecordedPath& path : paths_in(row.text).paths) {
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
    const std::string begin = ann(2, 1) + ann(4, 2);
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
        const auto found = paths_in(
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
    CHECK(deaths_text(paths_in(begin + killed(1, 0) + snap(1, 6, info("game_info", "gameover")))) ==
          "2 ");
    CHECK(
        deaths_text(paths_in(begin + snap(1, 6, dies(0, 7) + "," + info("game_info", "gameover")) +
                             killed(1, 0))) == "7 ");
    // A kill message long after the last recorded snapshot is about another game.
    std::string later = killed(1, 0);
    CHECK(deaths_text(paths_in(begin + later)) == "2 ");
    later.replace(later.find("02:04"), 5, "02:05");
    CHECK(deaths_text(paths_in(begin + later)).empty());
    // A kill message after a change of the map is about another game than merged snapshots before it.
    const std::string worlds = opens(1) + map_of(1, kMap) + ann_in_world(2, 1) + ann_in_world(4, 2);
    CHECK(deaths_text(paths_in(worlds + killed(1, 0))) == "2 ");
    std::string next_game = map_of(1, kMap) + killed(1, 0);
    boost::algorithm::replace_all(next_game, "02:04:47", "02:04:49");
    CHECK(deaths_text(paths_in(worlds + next_game)).empty());
    // Only the stops on this map count, each from its own beginning.
    const std::string stop =
        at("48.0000", 1, 2, info("game_info", "paused")) + at("48.5000", 1, 4, "");
    CHECK(paths_in(map_of(1, kMap) + stop).stopped_ms == 500);
    CHECK(paths_in(map_of(1, "00000007") + stop).stopped_ms == 0);
    CHECK(paths_in(map_of(1, "00000007") + stop + map_of(1, kMap) +
                   at("59.0000", 1, 2, info("game_info", "paused")) + at("59.2000", 1, 4, ""))
              .stopped_ms == 200);
    CHECK(paths_in(map_of(1, kMap) + stop + at("bad", 1, 6, "") + at("49.0000", 1, 8, ""))
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
    CHECK(paths_in(map_named("a", kMap) + worlds).stopped_ms == 1000);
    CHECK(paths_in(map_named("a", "00000007") + worlds).stopped_ms == 0);
}

TEST_CASE("deaths are known if messages were recorded and, with merged snapshots, sessions") {
    const std::string chat = line("message", 1, R"("name":"sv_chat","fields":{})");
    CHECK_FALSE(paths_in(opens(1) + ann(2, 1)).are_deaths_known);
    CHECK(paths_in(chat + ann(2, 1)).are_deaths_known);
    CHECK_FALSE(paths_in(chat + ann_in_world(2, 1)).are_deaths_known);
    CHECK(paths_in(opens(1) + chat + ann_in_world(2, 1)).are_deaths_known);
}

TEST_CASE("only the paths and deaths of the wanted players are kept") {
    const std::string both = snap(1, 2, tee_item(0, "ann", 1) + "," + tee_item(1, "bob", 5)) +
                             snap(1, 4, tee_item(0, "ann", 2) + "," + tee_item(1, "bob", 6)) +
                             killed(1, 0) + killed(1, 1);
    const auto bob = paths_in(both, 1000, {"bob", "cy"});
    CHECK(points_text(bob) == "5 6; ");
    CHECK(deaths_text(bob) == "6 ");
    CHECK(bob.players == std::vector<std::string>{"bob"});
    CHECK(bob.players_on_map == analyze::PlayerNames{"ann", "bob"});
    CHECK(points_text(paths_in(both, 1000, {"cy"})).empty());
    CHECK(points_text(paths_in(both)) == "1 2; 5 6; ");
}

TEST_CASE("a point has the tick of its position, the time of its record and the session") {
    const auto at = [](std::string_view time, std::string_view rest) {
        return fmt::format(R"({{"v":1,"t":"2026-12-{}Z","type":"snapshot","session":3,{}}})", time,
                           rest) +
               '\n';
    };
    const auto found =
        paths_in(at("31T23:59:59.500000", R"("tick":10,"items":[)" + tee_item(0, "ann", 1) + "]") +
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
        text += snap(1, 2 * i, tee_item(0, "ann", i));
    }
    const auto found = paths_in(text, 100);
    REQUIRE(found.paths.size() == 1);
    const auto& points = found.paths[0].points;
    CHECK(points.size() >= 50);
    CHECK(points.size() <= 100);
    CHECK(points.front().at.x == 0);
    CHECK(points.back().at.x > 960);
}
