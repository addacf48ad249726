// Covers: proxy/analyze/map_visits.cpp
#include "proxy/analyze/map_visits.h"

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using analyze::MapVisitReader;

namespace {

std::string line(std::string_view type, std::string_view rest, int session = 1) {
    return fmt::format(R"({{"v":1,"t":"2026-11-21T02:04:47.000000Z","type":"{}","session":{},{}}})",
                       type, session, rest);
}

std::string item(int type, int id, int x) {
    return fmt::format(R"({{"type":"pickup","type_id":{},"id":{},"fields":{{"x":{}}}}})", type, id,
                       x);
}

/// "4/1={"x":5} ..."
std::string show(const analyze::RecordedItems& items) {
    std::string text;
    for (const auto& [key, each] : items) {
        text += fmt::format("{}/{}={} ", key >> 16U, key & 0xffffU, each->fields);
    }
    return text;
}

std::string snapshot_line(int tick, std::string_view items, std::string_view more = "") {
    return line("snapshot",
                fmt::format(R"("tick":{},"ok":true{},"items":[{}])", tick, more, items));
}

} // namespace

TEST_CASE("snapshots are rebuilt from what their records say changed") {
    MapVisitReader stays;
    CHECK_FALSE(stays.on_line(snapshot_line(2, item(4, 1, 5)))); // nothing is known of the rest
    CHECK(stays.unusable() == 1);
    const auto whole =
        stays.on_line(snapshot_line(4, item(4, 2, 6) + "," + item(4, 1, 5), R"(,"full":true)"));
    REQUIRE(whole);
    CHECK(whole->tick == 4);
    CHECK(show(*whole->items) == R"(4/1={"x":5} 4/2={"x":6} )");
    const auto changed = stays.on_line(
        line("snapshot",
             fmt::format(R"("tick":6,"ok":true,"num_items":2,"items":[{},{}],"removed":[[4,1]])",
                         item(4, 2, 7), item(5, 0, 8))));
    REQUIRE(changed);
    CHECK(show(*changed->items) == R"(4/2={"x":7} 5/0={"x":8} )");
    CHECK(stays.stays().size() == 1);
    CHECK(stays.stays()[0].snapshots == 2);
}

TEST_CASE(
    "a snapshot that shows the same as the one before it has its items, and no copy of them") {
    MapVisitReader stays;
    const auto whole = stays.on_line(snapshot_line(4, item(4, 1, 5), R"(,"full":true)"));
    const auto same = stays.on_line(snapshot_line(6, ""));
    const auto less = stays.on_line(snapshot_line(8, "", R"(,"removed":[[4,1]])"));
    const auto listed = stays.on_line(snapshot_line(10, "", R"(,"full":true)"));
    REQUIRE((whole && same && less && listed));
    CHECK(same->tick == 6);
    CHECK(same->items == whole->items);
    CHECK(show(*whole->items) == R"(4/1={"x":5} )");
    CHECK(less->items->empty());
    CHECK(listed->items->empty());
}

TEST_CASE("after a hole in the records nothing is taken until all items are listed again") {
    const std::vector<std::string> holes{
        snapshot_line(4, item(4, 2, 7), R"(,"num_items":5)"),
        line("records_lost", R"("lost":3)", 0),
        line("session", R"("event":"close")"),
        "torn",
        snapshot_line(4, item(4, 2, 7)).substr(0, 60),
        line("message", R"("name":"x")").substr(0, 60) + snapshot_line(4, item(4, 2, 7)),
        line("snapshot", R"("tick":4,"items":[{]})"),
    };
    for (const std::string& hole : holes) {
        CAPTURE(hole);
        MapVisitReader stays;
        REQUIRE(stays.on_line(snapshot_line(2, item(4, 1, 5), R"(,"full":true)")));
        CHECK_FALSE(stays.on_line(hole));
        CHECK_FALSE(stays.on_line(snapshot_line(6, item(4, 2, 7))));
        CHECK(stays.on_line(snapshot_line(8, item(4, 2, 7), R"(,"full":true)")));
    }
}

TEST_CASE(
    "lines that are no records are counted, and cost other sessions only what they may have held") {
    MapVisitReader stays;
    const auto full = [](int session) {
        return line("snapshot", R"("tick":2,"ok":true,"full":true,"items":[])", session);
    };
    const auto next = [](int session, int tick) {
        return line("snapshot", fmt::format(R"("tick":{},"ok":true,"items":[])", tick), session);
    };
    REQUIRE(stays.on_line(full(1)));
    REQUIRE(stays.on_line(full(2)));
    CHECK_FALSE(stays.on_line(line("snapshot", R"("tick":4,"items":[{]})", 1)));
    CHECK(stays.broken() == 1);
    CHECK_FALSE(stays.on_line(next(1, 6)));
    CHECK(stays.on_line(next(2, 6)));
    CHECK_FALSE(stays.on_line("torn"));
    CHECK(stays.broken() == 2);
    CHECK_FALSE(stays.on_line(next(2, 8)));
}

TEST_CASE("another map and a tick far back begin another stay, what was overtaken is left out") {
    const auto full = [](int tick) { return snapshot_line(tick, "", R"(,"full":true)"); };
    MapVisitReader stays;
    CHECK_FALSE(stays.on_line(line("session", R"("event":"open","client":"ann:1")")));
    CHECK_FALSE(stays.on_line(line("map", R"("name":"dm1","crc":"1")")));
    CHECK(stays.on_line(full(1000))->stay == 0);
    CHECK_FALSE(stays.on_line(full(1000)));
    CHECK_FALSE(stays.on_line(full(998)));
    CHECK_FALSE(stays.on_line(line("map", R"("name":"dm1","crc":"1","again":true)")));
    CHECK(stays.on_line(full(1002))->stay == 0);
    CHECK(stays.on_line(full(2))->stay == 1);
    CHECK_FALSE(stays.on_line(line("map", R"("name":"dm2","crc":"2")")));
    CHECK(stays.on_line(full(4))->stay == 2);
    CHECK_FALSE(stays.on_line(line("session", R"("event":"open","client":"ann:1","again":true)")));
    CHECK(stays.on_line(full(6))->stay == 2);
    CHECK_FALSE(stays.on_line(line("session", R"("event":"open","client":"bob:1")")));
    CHECK(stays.on_line(full(8))->stay == 3);
    CHECK_FALSE(stays.on_line(line("session", R"("event":"close","reason":"reconnected")")));
    CHECK(stays.on_line(full(10))->stay == 4);
    REQUIRE(stays.stays().size() == 5);
    CHECK(stays.stays()[0].end == 1002);
    CHECK(stays.stays()[3].client == "bob:1");
    CHECK(stays.stays()[1].map == "dm1");
    CHECK(stays.stays()[2].map == "dm2");
    CHECK(stays.stays()[2].client == "ann:1");
    CHECK(stays.stays()[2].begin == 4);
}

TEST_CASE("a map that is announced anew begins another stay where the ticks begin anew") {
    const std::string map = line("map", R"("name":"dm1","crc":"1")");
    const std::string again = line("map", R"("name":"dm1","crc":"1","again":true)");
    MapVisitReader stays;
    static_cast<void>(stays.on_line(map));
    CHECK(stays.on_line(snapshot_line(50, item(4, 1, 5), R"(,"full":true)"))->stay == 0);
    static_cast<void>(stays.on_line(again)); // a segment begins with it
    CHECK_FALSE(stays.on_line(snapshot_line(48, item(4, 1, 5), R"(,"full":true)")));
    CHECK_FALSE(stays.on_line(snapshot_line(50, item(4, 1, 5), R"(,"full":true)")));
    CHECK(stays.behind() == 2);
    static_cast<void>(stays.on_line(map));
    CHECK(stays.on_line(snapshot_line(4, item(4, 1, 5), R"(,"full":true)"))->stay == 1);
    CHECK_FALSE(stays.on_line(snapshot_line(4, item(4, 1, 5), R"(,"full":true)")));
    CHECK(stays.stays().size() == 2);
    CHECK(stays.behind() == 3);
}

TEST_CASE("worlds of several servers are told apart, and so are the runs of each") {
    MapVisitReader stays;
    const auto world = [](std::string_view server, int run, int tick, std::string_view rest) {
        return line("world",
                    fmt::format(R"("tick":{},"server":"{}","run":{},"num_items":1,{})", tick,
                                server, run, rest),
                    0);
    };
    const auto whole = [](int x) {
        return fmt::format(R"("full":true,"items":[{}])", item(4, 1, x));
    };
    REQUIRE(stays.on_line(world("a:1", 1, 1000, whole(5))));
    REQUIRE(stays.on_line(world("b:1", 1, 10, whole(6))));
    const auto a = stays.on_line(world("a:1", 1, 1002, R"("items":[],"removed":[])"));
    REQUIRE(a);
    CHECK(a->stay == 0);
    CHECK(show(*a->items) == R"(4/1={"x":5} )");
    const auto b = stays.on_line(world("b:1", 1, 12, R"("items":[],"removed":[])"));
    REQUIRE(b);
    CHECK(b->stay == 1);
    CHECK(show(*b->items) == R"(4/1={"x":6} )");
    const auto next = stays.on_line(world("a:1", 2, 1010, whole(7)));
    REQUIRE(next);
    CHECK(next->stay == 2);
    CHECK(stays.stays()[1].client == "b:1");
    CHECK(stays.stays().size() == 3);
    CHECK(stays.unusable() == 0);
}

TEST_CASE("a world's map is that of a session that was shown it") {
    MapVisitReader stays;
    const auto map = [](int session, std::string_view name, std::string_view crc) {
        return line("map", fmt::format(R"("name":"{}","crc":"{}")", name, crc), session);
    };
    const auto world = [](int run, int tick, std::string_view seen_by) {
        return line(
            "world",
            fmt::format(R"("tick":{},"server":"a:1","run":{},"num_items":1,"full":true,)"
                        R"("items":[{{"type":"pickup","type_id":4,"id":1,"fields":{{}}{}}}])",
                        tick, run, seen_by),
            0);
    };
    CHECK_FALSE(stays.on_line(map(1, "ctf5", "aa")));
    CHECK_FALSE(stays.on_line(map(2, "dm1", "bb")));
    REQUIRE(stays.on_line(world(1, 10, R"(,"seen_by":[2,1])")));
    REQUIRE(stays.on_line(world(2, 20, R"(,"seen_by":[1])")));
    REQUIRE(stays.on_line(world(3, 30, R"(,"seen_by":[9])"))); // nobody knows that session
    REQUIRE(stays.stays().size() == 3);
    CHECK(stays.stays()[0].map == "dm1");
    CHECK(stays.stays()[0].crc == "bb");
    CHECK(stays.stays()[1].map == "ctf5");
}

TEST_CASE("hostile lines are no snapshots, and do no harm") {
    const std::vector<std::string> lines{
        "",
        "{",
        "[]",
        "hello",
        line("snapshot", R"("tick":1)"),
        line("snapshot", R"("tick":99999999999,"full":true,"items":[])"),
        line("snapshot", R"("tick":"1","full":true,"items":[])"),
        line("snapshot", R"("tick":1,"full":1,"items":[])"),
        line("snapshot", R"("tick":1,"full":true,"items":{})"),
        line("snapshot", R"("tick":1,"full":true,"num_items":7,"items":[1,[],{},{"type_id":-1}]})"),
        line("snapshot", R"("tick":1,"full":true,"items":[])", 0),
        line("snapshot", R"("tick":1,"full":true,"items":[])", -5),
        line("map", R"("name":5)"),
        line("session", R"("client":[])"),
    };
    MapVisitReader stays;
    for (const std::string& each : lines) {
        CAPTURE(each);
        CHECK_FALSE(stays.on_line(each));
    }
    CHECK(stays.stays().empty());
    // What is no item is not there; of two with one key the first counts.
    const auto odd = stays.on_line(
        snapshot_line(1, "1,{},{\"type_id\":70000,\"id\":1}," + item(4, 1, 5) + "," + item(4, 1, 6),
                      R"(,"full":true)"));
    REQUIRE(odd);
    CHECK(show(*odd->items) == R"(4/1={"x":5} )");
    CHECK(
        stays.on_line(snapshot_line(2, "", R"(,"removed":[[4],4,[4,"1"],[4,1]])"))->items->empty());
}
