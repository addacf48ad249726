// Covers: proxy/analyze/map_report.cpp
#include "proxy/analyze/map_report.h"

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

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

std::string opened(int session, std::string_view server = "a:1") {
    return line("session", session, fmt::format(R"("event":"open","server":"{}")", server));
}

std::string closed(int session) {
    return line("session", session, R"("event":"close")");
}

std::string map_of(int session, std::string_view crc, std::string_view more = "") {
    return line("map", session, fmt::format(R"("name":"x","crc":"{}"{})", crc, more));
}

std::string tee(int id, std::string_view player, int x) {
    return fmt::format(R"({{"type":"character","id":{},"player":"{}","fields":{{"x":{},"y":0}}}})",
                       id, player, x);
}

std::string own(int id) {
    return fmt::format(R"({{"type":"player_info","id":{},"fields":{{"local":1}}}})", id);
}

std::string seen(int session, int tick, std::string_view items) {
    return line("snapshot", session, fmt::format(R"("tick":{},"items":[{}])", tick, items));
}

std::string world(std::string_view items) {
    return line("world", 0, fmt::format(R"("server":"a:1","run":1,"tick":1,"items":[{}])", items));
}

analyze::RecordedPaths read(const std::string& text, std::size_t max_points = 1000) {
    analyze::PathReader paths{kMap, max_points};
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
        paths.on_line(line);
    }
    return paths.take();
}

/// "1 2 3; 7 8; ": the x of each way's points.
std::string show(const analyze::RecordedPaths& found) {
    std::string text;
    for (const map::Path& path : found.paths) {
        for (const map::WorldPos& at : path) {
            text += fmt::format("{}{}", &at == path.data() ? "" : " ", at.x);
        }
        text += "; ";
    }
    return text;
}

} // namespace

TEST_CASE("a player's way is as long as any session shows it, and on this map only") {
    struct Row {
        std::string_view name;
        std::string text;
        std::string_view ways;
        std::uint64_t elsewhere = 0;
    };

    const std::string both = seen(1, 2, tee(0, "ann", 1) + "," + tee(1, "bob", 5)) +
                             seen(2, 2, tee(1, "bob", 5)) + seen(1, 4, tee(1, "bob", 6)) +
                             seen(2, 4, tee(1, "bob", 6));
    const Row rows[] = {
        {"the first session closes",
         opened(1) + opened(2) + both + closed(1) + seen(2, 6, tee(1, "bob", 7)), "5 6 7; "},
        {"it shows the player no longer",
         opened(1) + opened(2) + both + seen(1, 200, "") + seen(2, 200, tee(1, "bob", 9)) +
             seen(1, 202, tee(1, "bob", 8)) + seen(2, 202, tee(1, "bob", 10)),
         "5 6 9 10; "},
        {"worlds are recorded, too",
         opened(1) + seen(1, 2, tee(0, "ann", 1)) + seen(1, 4, tee(0, "ann", 3)) +
             world(tee(0, "ann", 2)) + seen(1, 6, tee(0, "ann", 5)) + closed(1) +
             world(tee(0, "ann", 6)) + opened(2) + seen(2, 2, tee(0, "ann", 7)) +
             world(tee(0, "ann", 8)),
         "1 3 5 6 8; "},
        {"the player's own session tells",
         opened(1) + opened(2) + both + seen(2, 5, own(1) + "," + tee(1, "bob", 7)) +
             seen(1, 6, tee(1, "bob", 20)) + seen(2, 100, tee(1, "bob", 8)),
         "5 6 7 8; "},
        {"players of one name on two servers",
         opened(1, "a:1") + opened(2, "b:1") + seen(1, 2, tee(0, "ann", 1)) +
             seen(2, 900, tee(0, "ann", 31)) + seen(1, 4, tee(0, "ann", 2)) +
             seen(2, 902, tee(0, "ann", 32)),
         "1 2; 31 32; "},
        {"another map, and back",
         opened(1) + map_of(1, kMap) + seen(1, 2, tee(0, "ann", 1)) + seen(1, 4, tee(0, "ann", 2)) +
             map_of(1, "00000007") + seen(1, 2, tee(0, "ann", 3)) + seen(1, 4, tee(0, "ann", 4)) +
             map_of(1, kMap) + seen(1, 2, tee(0, "ann", 5)) + seen(1, 4, tee(0, "ann", 6)),
         "1 2; 5 6; ", 2},
        {"the same map, told again in another segment",
         map_of(1, kMap) + seen(1, 2, tee(0, "ann", 1)) + map_of(1, kMap, R"(,"again":true)") +
             seen(1, 4, tee(0, "ann", 2)),
         "1 2; "},
        {"worlds of another map",
         map_of(1, "00000007") +
             world(R"({"type":"character","seen_by":[1],"player":"a","fields":{"x":1,"y":1}})"),
         "", 1},
        {"a jump",
         seen(1, 2, tee(0, "ann", 1)) + seen(1, 4, tee(0, "ann", 2)) +
             seen(1, 6, tee(0, "ann", 3000)) + seen(1, 8, tee(0, "ann", 3001)),
         "1 2; 3000 3001; "},
        {"nothing",
         "torn\n[]\n{}\n" + line("snapshot", 1, R"("items":[1,{},{"type":"character"}])"), ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto found = read(row.text);
        CHECK(show(found) == row.ways);
        CHECK(found.elsewhere == row.elsewhere);
    }
}

TEST_CASE("beyond so many points the ways lose every other one, and none ends early") {
    std::string text;
    for (int i = 0; i < 1000; ++i) {
        text += seen(1, 2 * i, tee(0, "ann", i));
    }
    const auto found = read(text, 100);
    REQUIRE(found.paths.size() == 1);
    CHECK(found.paths[0].size() >= 50);
    CHECK(found.paths[0].size() <= 100);
    CHECK(found.paths[0].front().x == 0);
    CHECK(found.paths[0].back().x > 960);
}
