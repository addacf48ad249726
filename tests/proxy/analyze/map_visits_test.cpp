#include "proxy/analyze/map_visits.h"

#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using analyze::MapVisit;
using analyze::MapVisitReader;

namespace {

std::string session_line(std::string_view type, std::string_view rest, int session = 1) {
    return fmt::format(R"({{"v":1,"t":"2026-11-21T02:04:47.000000Z","type":"{}","session":{},{}}})",
                       type, session, rest);
}

std::string item_json(int type, int id, int x) {
    return fmt::format(R"({{"type":"pickup","type_id":{},"id":{},"fields":{{"x":{}}}}})", type, id,
                       x);
}

/// Returns the items as "4/1={"x":5} ...".
std::string shown_text(const analyze::RecordedItems& items) {
    std::string text;
    for (const auto& [unused, each] : items) {
        text += fmt::format("{}/{}={} ", each->key.type, each->key.id, each->fields);
    }
    return text;
}

std::string snapshot_line(int tick, std::string_view items, std::string_view more = "") {
    return session_line("snapshot",
                        fmt::format(R"("tick":{},"ok":true{},"items":[{}])", tick, more, items));
}

std::string full_line(int tick, std::string_view items) {
    return snapshot_line(tick, items, R"(,"full":true)");
}

} // namespace

TEST_CASE("snapshots are rebuilt from the changes in records") {
    MapVisitReader reader;
    CHECK_FALSE(
        reader.on_line(snapshot_line(2, item_json(4, 1, 5)))); // the other items are unknown
    CHECK(reader.unusable_snapshot_count() == 1);
    const auto whole = reader.on_line(full_line(4, item_json(4, 2, 6) + "," + item_json(4, 1, 5)));
    REQUIRE(whole);
    CHECK(whole->tick == 4);
    CHECK(shown_text(*whole->items) == R"(4/1={"x":5} 4/2={"x":6} )");
    const auto changed = reader.on_line(session_line(
        "snapshot",
        fmt::format(R"("tick":6,"ok":true,"num_items":2,"items":[{},{}],"removed":[[4,1]])",
                    item_json(4, 2, 7), item_json(5, 0, 8))));
    REQUIRE(changed);
    CHECK(shown_text(*changed->items) == R"(4/2={"x":7} 5/0={"x":8} )");
    CHECK(reader.visits().size() == 1);
    CHECK(reader.visits()[0].num_snapshots == 2);
}

TEST_CASE("a snapshot without changes has the items of the one before it") {
    MapVisitReader reader;
    const auto whole = reader.on_line(full_line(4, item_json(4, 1, 5)));
    const auto same = reader.on_line(snapshot_line(6, ""));
    const auto less = reader.on_line(snapshot_line(8, "", R"(,"removed":[[4,1]])"));
    const auto listed = reader.on_line(full_line(10, ""));
    REQUIRE((whole && same && less && listed));
    CHECK(same->tick == 6);
    CHECK(*same->items == *whole->items);
    CHECK(shown_text(*whole->items) == R"(4/1={"x":5} )");
    CHECK(less->items->empty());
    CHECK(listed->items->empty());
}

TEST_CASE("after a gap in the records, snapshots are unusable until one lists all items") {
    const std::vector<std::string> holes{
        snapshot_line(4, item_json(4, 2, 7), R"(,"num_items":5)"),
        session_line("records_lost", R"("lost":3)", 0),
        session_line("session", R"("event":"close")"),
        "torn",
        snapshot_line(4, item_json(4, 2, 7)).substr(0, 60),
        session_line("message", R"("name":"x")").substr(0, 60) +
            snapshot_line(4, item_json(4, 2, 7)),
        session_line("snapshot", R"("tick":4,"items":[{]})"),
    };
    for (const std::string& hole : holes) {
        CAPTURE(hole);
        MapVisitReader reader;
        REQUIRE(reader.on_line(full_line(2, item_json(4, 1, 5))));
        CHECK_FALSE(reader.on_line(hole));
        CHECK_FALSE(reader.on_line(snapshot_line(6, item_json(4, 2, 7))));
        CHECK(reader.on_line(full_line(8, item_json(4, 2, 7))));
    }
}

TEST_CASE("after a line that is not a record, each session needs a full snapshot") {
    MapVisitReader reader;
    const auto full = [](int session) {
        return session_line("snapshot", R"("tick":2,"ok":true,"full":true,"items":[])", session);
    };
    const auto next = [](int session, int tick) {
        return session_line("snapshot", fmt::format(R"("tick":{},"ok":true,"items":[])", tick),
                            session);
    };
    REQUIRE(reader.on_line(full(1)));
    REQUIRE(reader.on_line(full(2)));
    CHECK_FALSE(reader.on_line(session_line("snapshot", R"("tick":4,"items":[{]})", 1)));
    CHECK(reader.invalid_line_count() == 1);
    CHECK_FALSE(reader.on_line(next(1, 6)));
    CHECK(reader.on_line(next(2, 6)));
    CHECK_FALSE(reader.on_line("torn"));
    CHECK(reader.invalid_line_count() == 2);
    CHECK_FALSE(reader.on_line(next(2, 8)));
}

TEST_CASE(
    "another map or a much lower tick begins another visit, and late snapshots are left out") {
    const auto full = [](int tick) { return full_line(tick, ""); };
    MapVisitReader reader;
    CHECK_FALSE(reader.on_line(session_line("session", R"("event":"open","client":"ann:1")")));
    CHECK_FALSE(reader.on_line(session_line("map", R"("name":"dm1","crc":"1")")));
    CHECK(reader.on_line(full(1000))->visit == 0);
    CHECK_FALSE(reader.on_line(full(1000)));
    CHECK_FALSE(reader.on_line(full(998)));
    CHECK_FALSE(reader.on_line(session_line("map", R"("name":"dm1","crc":"1","again":true)")));
    CHECK(reader.on_line(full(1002))->visit == 0);
    CHECK(reader.on_line(full(2))->visit == 1);
    CHECK_FALSE(reader.on_line(session_line("map", R"("name":"dm2","crc":"2")")));
    CHECK(reader.on_line(full(4))->visit == 2);
    CHECK_FALSE(
        reader.on_line(session_line("session", R"("event":"open","client":"ann:1","again":true)")));
    CHECK(reader.on_line(full(6))->visit == 2);
    CHECK_FALSE(reader.on_line(session_line("session", R"("event":"open","client":"bob:1")")));
    CHECK(reader.on_line(full(8))->visit == 3);
    CHECK_FALSE(
        reader.on_line(session_line("session", R"("event":"close","reason":"reconnected")")));
    CHECK(reader.on_line(full(10))->visit == 4);
    REQUIRE(reader.visits().size() == 5);
    CHECK(reader.visits()[0].end == 1002);
    CHECK(reader.visits()[3].client == "bob:1");
    CHECK(reader.visits()[1].map == "dm1");
    CHECK(reader.visits()[2].map == "dm2");
    CHECK(reader.visits()[2].client == "ann:1");
    CHECK(reader.visits()[2].begin == 4);
}

TEST_CASE("a map announced again begins another visit if the ticks start again") {
    const std::string map = session_line("map", R"("name":"dm1","crc":"1")");
    const std::string again = session_line("map", R"("name":"dm1","crc":"1","again":true)");
    MapVisitReader reader;
    static_cast<void>(reader.on_line(map));
    CHECK(reader.on_line(full_line(50, item_json(4, 1, 5)))->visit == 0);
    static_cast<void>(reader.on_line(again)); // a segment begins with this record
    CHECK_FALSE(reader.on_line(full_line(48, item_json(4, 1, 5))));
    CHECK_FALSE(reader.on_line(full_line(50, item_json(4, 1, 5))));
    CHECK(reader.late_snapshot_count() == 2);
    static_cast<void>(reader.on_line(map));
    CHECK(reader.on_line(full_line(4, item_json(4, 1, 5)))->visit == 1);
    CHECK_FALSE(reader.on_line(full_line(4, item_json(4, 1, 5))));
    CHECK(reader.visits().size() == 2);
    CHECK(reader.late_snapshot_count() == 3);
}

TEST_CASE("merged snapshots of different servers and runs are kept apart") {
    MapVisitReader reader;
    const auto world = [](std::string_view server, int run, int tick, std::string_view rest) {
        return session_line("world",
                            fmt::format(R"("tick":{},"server":"{}","run":{},"num_items":1,{})",
                                        tick, server, run, rest),
                            0);
    };
    const auto whole = [](int x) {
        return fmt::format(R"("full":true,"items":[{}])", item_json(4, 1, x));
    };
    REQUIRE(reader.on_line(world("a:1", 1, 1000, whole(5))));
    REQUIRE(reader.on_line(world("b:1", 1, 10, whole(6))));
    const auto a = reader.on_line(world("a:1", 1, 1002, R"("items":[],"removed":[])"));
    REQUIRE(a);
    CHECK(a->visit == 0);
    CHECK(shown_text(*a->items) == R"(4/1={"x":5} )");
    const auto b = reader.on_line(world("b:1", 1, 12, R"("items":[],"removed":[])"));
    REQUIRE(b);
    CHECK(b->visit == 1);
    CHECK(shown_text(*b->items) == R"(4/1={"x":6} )");
    const auto next = reader.on_line(world("a:1", 2, 1010, whole(7)));
    REQUIRE(next);
    CHECK(next->visit == 2);
    CHECK(reader.visits()[1].client == "b:1");
    CHECK(reader.visits().size() == 3);
    CHECK(reader.unusable_snapshot_count() == 0);
}

TEST_CASE("the map of merged snapshots is that of a session that received them") {
    MapVisitReader reader;
    const auto map = [](int session, std::string_view name, std::string_view crc) {
        return session_line("map", fmt::format(R"("name":"{}","crc":"{}")", name, crc), session);
    };
    const auto world = [](int run, int tick, std::string_view seen_by,
                          std::string_view its_map = "") {
        return session_line(
            "world",
            fmt::format(R"("tick":{},"server":"a:1","run":{}{},"num_items":1,"full":true,)"
                        R"("items":[{{"type":"pickup","type_id":4,"id":1,"fields":{{}}{}}}])",
                        tick, run, its_map, seen_by),
            0);
    };
    CHECK_FALSE(reader.on_line(map(1, "ctf5", "aa")));
    CHECK_FALSE(reader.on_line(map(2, "dm1", "bb")));
    REQUIRE(reader.on_line(world(1, 10, R"(,"seen_by":[2,1])")));
    REQUIRE(reader.on_line(world(2, 20, R"(,"seen_by":[1])")));
    REQUIRE(reader.on_line(world(3, 30, R"(,"seen_by":[9])"))); // the session is unknown
    // The recording begins when the session is already on the next map.
    REQUIRE(reader.on_line(world(4, 40, R"(,"seen_by":[1])", R"(,"map":"dm1")")));
    REQUIRE(reader.on_line(world(5, 50, R"(,"seen_by":[1])", R"(,"map":"ctf5")")));
    REQUIRE(reader.visits().size() == 5);
    CHECK(reader.visits()[0].map == "dm1");
    CHECK(reader.visits()[0].crc == "bb");
    CHECK(reader.visits()[1].map == "ctf5");
    CHECK(reader.visits()[2].map.empty());
    CHECK(reader.visits()[3].map == "dm1");
    CHECK(reader.visits()[3].crc.empty());
    CHECK(reader.visits()[4].crc == "aa");
}

TEST_CASE("hostile lines give no snapshots and do no harm") {
    const std::vector<std::string> lines{
        "",
        "{",
        "[]",
        "hello",
        session_line("snapshot", R"("tick":1)"),
        session_line("snapshot", R"("tick":99999999999,"full":true,"items":[])"),
        session_line("snapshot", R"("tick":"1","full":true,"items":[])"),
        session_line("snapshot", R"("tick":1,"full":1,"items":[])"),
        session_line("snapshot", R"("tick":1,"full":true,"items":{})"),
        session_line("snapshot",
                     R"("tick":1,"full":true,"num_items":7,"items":[1,[],{},{"type_id":-1}]})"),
        session_line("snapshot", R"("tick":1,"full":true,"items":[])", 0),
        session_line("snapshot", R"("tick":1,"full":true,"items":[])", -5),
        session_line("map", R"("name":5)"),
        session_line("session", R"("client":[])"),
    };
    MapVisitReader reader;
    for (const std::string& each : lines) {
        CAPTURE(each);
        CHECK_FALSE(reader.on_line(each));
    }
    CHECK(reader.visits().empty());
    // Values that are not items are ignored; of two items with the same key, the first one counts.
    const auto odd = reader.on_line(snapshot_line(
        1, "1,{},{\"type_id\":70000,\"id\":1}," + item_json(4, 1, 5) + "," + item_json(4, 1, 6),
        R"(,"full":true)"));
    REQUIRE(odd);
    CHECK(shown_text(*odd->items) == R"(4/1={"x":5} )");
    CHECK(reader.on_line(snapshot_line(2, "", R"(,"removed":[[4],4,[4,"1"],[4,1]])"))
              ->items->empty());
}

TEST_CASE("a visit has the name of the session's own player") {
    const auto own = [](int local, std::string_view name) {
        return fmt::format(R"({{"type":"player_info","type_id":10,"id":{},)"
                           R"("fields":{{"local":{}}},"player":"{}"}})",
                           local, local, name);
    };
    const auto told = [](std::string_view local, std::string_view name) {
        return session_line("message", fmt::format(R"("dir":"s2c","name":"sv_client_info",)"
                                                   R"("fields":{{"local":{},"name":"{}"}})",
                                                   local, name));
    };
    const std::string of_demo = R"({"type":"de_client_info","type_id":13,"id":0,)"
                                R"("fields":{"local":1,"name":"ann"}})";

    struct Row {
        std::string_view what;
        std::vector<std::string> lines;
        std::string_view name;
    };

    const std::string other = R"({"type":"de_client_info","type_id":13,"id":1,"fields":)"
                              R"({"local":0,"name":"bob"}})";
    const Row rows[] = {
        {"0.6", {full_line(2, own(0, "bob") + "," + own(1, "ann"))}, "ann"},
        {"0.6, the first of two names",
         {full_line(2, own(1, "ann")), snapshot_line(4, own(1, "bob"))},
         "ann"},
        {"0.6, known later", {full_line(2, ""), snapshot_line(4, own(1, "ann"))}, "ann"},
        {"0.7", {told("false", "bob"), told("true", "ann"), full_line(2, "")}, "ann"},
        {"a demo of 0.7", {full_line(2, other + "," + of_demo)}, "ann"},
        {"unknown", {full_line(2, own(0, "bob") + "," + other)}, ""},
        {"not a text",
         {session_line("message", R"("name":"sv_client_info","fields":{"local":true})"),
          session_line("message", R"("name":"sv_client_info","fields":[])"), full_line(2, "")},
         ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.what);
        MapVisitReader reader;
        for (const std::string& each : row.lines) {
            static_cast<void>(reader.on_line(each));
        }
        REQUIRE(reader.visits().size() == 1);
        CHECK(reader.visits().front().name == row.name);
    }
}

namespace {

/// Reads visits such as "1 ann c:1 0 900 dm1; 2 - c:2": session, name, client, first and last tick,
/// map. A dash is an empty text.
std::vector<MapVisit> parse_visits(const std::string& text) {
    std::vector<MapVisit> found;
    std::istringstream all{text};
    for (std::string each; std::getline(all, each, ';');) {
        MapVisit visit;
        std::string map = "dm1";
        std::istringstream words{each};
        words >> visit.session >> visit.name >> visit.client;
        if (words >> visit.begin >> visit.end) {
            words >> map;
        } else {
            visit.end = 1000;
        }
        visit.name = visit.name == "-" ? "" : visit.name;
        visit.map = map == "-" ? "" : map;
        found.push_back(visit);
    }
    return found;
}

/// Returns the pairs as "0-1 1-0 ".
std::string shown_text(const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
    std::string text;
    for (const auto& [a, b] : pairs) {
        text += fmt::format("{}-{} ", a, b);
    }
    return text;
}

/// Returns the unpaired visits as "1 2? "; a question mark marks visits with several possible partners.
std::string shown_text(const std::vector<analyze::UnpairedVisit>& unpaired) {
    std::string text;
    for (const auto& each : unpaired) {
        text += fmt::format("{}{} ", each.visit, each.is_ambiguous ? "?" : "");
    }
    return text;
}

} // namespace

TEST_CASE("visits are paired by name, address, map and ticks") {
    struct Row {
        std::string_view what;
        std::string a;
        std::string b;
        std::string_view pairs;
        std::string_view only_a = "";
        std::string_view only_b = "";
        std::optional<std::int64_t> session_a = std::nullopt;
        std::optional<std::int64_t> session_b = std::nullopt;
    };

    const std::string two = "1 ann c:1; 2 bob c:2";
    const std::string rounds = "1 ann c:1 0 900; 2 bob c:2; 1 ann c:1 0 500";
    const std::string same_name = "1 ann c:1; 2 ann c:2";
    const Row rows[] = {
        {"the same", two, two, "0-0 1-1 "},
        {"another order", two, "2 bob c:2; 1 ann c:1", "0-1 1-0 "},
        {"other addresses", two, "1 bob d:1; 2 ann d:2", "0-1 1-0 "},
        {"names count more than addresses", two, "1 bob c:1; 2 ann c:2", "0-1 1-0 "},
        {"names are unknown", two, "2 - c:2; 1 - c:1", "0-1 1-0 "},
        {"one has another name and address", two, "1 ann c:1; 2 cy d:2", "0-0 ", "1 ", "1 "},
        {"a demo of the second", two, "1 bob x.demo 100 200", "1-0 ", "0 "},
        {"a demo of a server", two, "1 - x.demo 100 200", "", "0 1 ", "0 "},
        {"a demo of a server, and one session", two, "1 - x.demo 100 200", "1-0 ", "", "", 2},
        {"one session each", "1 ann c:1", "2 bob c:2", "0-0 "},
        {"selected sessions", two, two, "0-1 ", "", "", 1, 2},
        {"selected session of A", two, two, "1-1 ", "", "0 ", 2},
        {"other maps", two, "1 ann c:1 0 1000 dm2; 2 bob c:2", "1-1 ", "0 ", "0 "},
        {"one does not know its map", two, "1 ann c:1 5 900 -", "0-0 ", "1 "},
        {"other ticks", "1 ann c:1", "1 ann c:1 1001 2000", "", "0 ", "0 "},
        {"two that have the same name", same_name, "1 ann x.demo", "", "0? 1? ", "0? "},
        {"the same names and addresses", same_name, "1 ann c:2; 2 ann c:1", "0-1 1-0 "},
        {"two rounds on one map", rounds, rounds, "0-0 1-1 2-2 "},
        {"the second of two rounds", rounds, "1 ann c:1 0 500", "2-0 ", "0 1 "},
        {"a part of the first round only", rounds, "1 ann x.demo 600 800", "0-0 ", "1 2 "},
        {"a part of either round", rounds, "1 ann x.demo 100 200", "", "0? 1 2? ", "0? "},
        {"a player who left and came back, a little later in B",
         "1 ann c:1 0 500; 2 ann c:2 520 2000", "1 ann d:1 100 600; 2 ann d:2 640 2100",
         "0-0 1-1 "},
        {"worlds and sessions", "1 ann c:1; 0 - s:1", "0 - s:1; 1 ann c:1", "0-1 1-0 "},
        {"worlds of several servers", "0 - s:1; 0 - s:2", "0 - s:2; 0 - s:3", "1-0 ", "0 ", "1 "},
        {"nothing", "", "", ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.what);
        const std::vector<MapVisit> a = parse_visits(row.a);
        const std::vector<MapVisit> b = parse_visits(row.b);
        const auto found = *pair_map_visits(a, b, row.session_a, row.session_b);
        CHECK(shown_text(found.pairs) == row.pairs);
        CHECK(shown_text(found.unpaired[0]) == row.only_a);
        CHECK(shown_text(found.unpaired[1]) == row.only_b);
        const auto turned = *pair_map_visits(b, a, row.session_b, row.session_a);
        CHECK(turned.pairs.size() == found.pairs.size());
        CHECK(shown_text(turned.unpaired[1]) == row.only_a);
    }
}

TEST_CASE("too many possible pairs are refused") {
    const std::vector<MapVisit> many(2001, parse_visits("1 ann c:1").front());
    CHECK_FALSE(pair_map_visits(many, many, {}, {}));
}
