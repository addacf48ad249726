// Covers: proxy/world/view.cpp
#include "proxy/world/view_collector.h"
#include "tests/proxy/world/view_script.h"
#include "tests/proxy/world/views.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tw::test {

TEST_CASE("a tick closes when all sessions that get every tick have reached it") {
    ViewScript script;
    script.add_views({1, 2}, 100, 108);
    CHECK(script.closed_worlds == Lines{"100:2", "102:2", "104:2"});
    CHECK(script.close_worlds().size() == 5);
    CHECK(script.collector.view_counts().late == 0);
}

TEST_CASE("without delay, a tick closes with the last expected view") {
    ViewScript script{{.min_ticks = 0, .max_ticks = 6}};
    script.add_views({1, 2}, 100, 104);
    CHECK(script.closed_worlds == Lines{"100:1", "102:2", "104:2"});
    script.add_view(2, 106);
    CHECK(script.closed_worlds.size() == 3);
    script.add_view(1, 106);
    CHECK(script.closed_worlds.size() == 4);
    script.add_view(1, 108); // and no view of the other session
    script.add_view(1, 112);
    CHECK(script.closed_worlds.size() == 4);
    script.add_view(1, 114);
    CHECK(script.closed_worlds.back() == "108:1!");
}

TEST_CASE("a tick waits for a lagging session for at most a second") {
    ViewScript script;
    script.add_view(1, 100);
    script.add_view(2, 100);
    script.add_view(1, 102);
    script.add_view(2, 102);
    script.add_views({1}, 104, 150);
    CHECK(script.closed_worlds == Lines{"100:2", "102:2"});
    script.add_view(2, 104); // arrives late, but within the waiting time
    script.add_view(1, 154);
    CHECK(script.closed_worlds.at(2) == "104:2");
    script.add_views({1}, 156, 170);
    script.add_view(2, 106);
    CHECK(script.collector.view_counts().late == 1);
    CHECK(script.closed_worlds.size() > 6);
}

TEST_CASE("a session with one snapshot a second delays no tick") {
    ViewScript script;
    script.add_view(2, 50);
    script.add_view(2, 100);
    script.add_views({1}, 100, 110);
    CHECK(script.closed_worlds.size() == 5);
    CHECK(script.closed_worlds.at(1) == "100:2");
}

TEST_CASE("a world without an expected view is incomplete") {
    ViewScript script;
    for (snapshot::Tick tick = 100; tick <= 120; tick += 2) {
        script.add_view(1, tick);
        if (tick != 108) {
            script.add_view(2, tick);
        }
    }
    CHECK(script.close_worlds() == Lines{"100:2", "102:2", "104:2", "106:2", "108:1!", "110:2",
                                         "112:2", "114:2", "116:2", "118:2", "120:2"});
}

TEST_CASE("only worlds without an expected view are incomplete") {
    struct Row {
        std::string_view name;
        std::vector<snapshot::Tick> missing; ///< ticks that the other session does not receive
        std::vector<snapshot::Tick> lacking; ///< those of `missing` whose worlds are incomplete
    };

    const Row rows[] = {
        {"one", {108}, {108}},
        {"two with one between", {108, 112}, {108, 112}},
        {"two with one between, after the first two", {104, 108}, {104, 108}},
        {"every other one", {104, 108, 112, 116, 120}, {104, 108, 112, 116, 120}},
        {"two in a row, and two more", {108, 110, 114, 116}, {108, 110, 114, 116}},
        {"before its first acknowledgement", {102, 104, 106, 108, 112}, {}},
        {"the same, and then one that was lost", {102, 104, 106, 108, 112, 120}, {120}},
    };
    for (const Row& row : rows) {
        for (const bool other_first : {false, true}) {
            CAPTURE(row.name);
            CAPTURE(other_first);
            ViewScript script;
            const auto other = [&](snapshot::Tick tick) {
                if (std::ranges::find(row.missing, tick) == row.missing.end()) {
                    script.add_view(2, tick);
                }
            };
            Lines expected;
            for (snapshot::Tick tick = 100; tick <= 140; tick += 2) {
                if (other_first) {
                    other(tick);
                }
                script.add_view(1, tick);
                if (!other_first) {
                    other(tick);
                }
                if (std::ranges::find(row.lacking, tick) != row.lacking.end()) {
                    expected.push_back(fmt::format("{}:1!", tick));
                }
            }
            Lines closed = script.close_worlds();
            std::erase_if(closed, [](const std::string& world) { return !world.ends_with('!'); });
            CHECK(closed == expected);
        }
    }
}

TEST_CASE("a session at a reduced rate is soon no longer expected in every tick") {
    ViewScript script;
    for (snapshot::Tick tick = 100; tick <= 400; tick += 2) {
        script.add_view(1, tick);
        if (tick <= 120 || tick % 50 == 0) {
            script.add_view(2, tick);
        }
    }
    Lines lacking = script.close_worlds();
    std::erase_if(lacking, [](const std::string& world) { return !world.ends_with('!'); });
    REQUIRE(!lacking.empty()); // the view after tick 120 may have been lost
    CHECK(lacking.front() == "122:1!");
    CHECK(lacking.back() == "152:1!");
}

TEST_CASE("a joining session is not expected in every tick") {
    ViewScript script;
    for (snapshot::Tick tick = 100; tick <= 130; tick += 2) {
        script.add_view(1, tick);
        if (tick == 100 || tick == 110 || tick >= 120) {
            script.add_view(2, tick);
        }
    }
    script.close_worlds();
    CHECK(std::ranges::count_if(script.closed_worlds, [](const std::string& world) {
              return world.ends_with('!');
          }) == 0);
}

TEST_CASE("a session that ends is missing only in its last tick") {
    ViewScript script;
    for (snapshot::Tick tick = 100; tick <= 120; tick += 2) {
        script.add_view(1, tick);
        script.add_view(2, tick);
        if (tick < 110) {
            script.add_view(3, tick);
        } else if (tick == 110) {
            script.collector.remove_session(3);
        }
    }
    script.collector.remove_session(2); // has received all ticks
    script.close_worlds();
    CHECK(script.count_complete_worlds(3) == 5);
    CHECK(script.count_complete_worlds(2) == 5);
    CHECK(std::ranges::count(script.closed_worlds, "110:2!") == 1);
}

TEST_CASE("after a takeover, a tick of both processes is written by the first one only") {
    for (const std::uint32_t split : {1U, 6U, 8U}) {
        CAPTURE(split);
        ViewScript before;
        ViewScript after;
        for (std::uint32_t session = 1; session <= 8; ++session) {
            after.collector.add_resumed_session(session);
        }
        for (snapshot::Tick tick = 100; tick <= 200; tick += 2) {
            for (std::uint32_t session = 1; session <= 8; ++session) {
                ViewScript& who = tick < 150 || (tick == 150 && session <= split) ? before : after;
                who.add_view(session, tick);
            }
        }
        for (std::uint32_t session = 1; session <= 8; ++session) {
            before.collector.remove_session(session);
        }
        before.close_worlds();
        after.close_worlds();
        CHECK(before.closed_worlds.back() == fmt::format("150:{}{}", split, split == 8 ? "" : "!"));
        CHECK(before.count_complete_worlds(8) == (split == 8 ? 26 : 25));
        CHECK(after.closed_worlds.front() == "152:8");
        CHECK(after.count_complete_worlds(8) == 25);
        CHECK(after.collector.view_counts().late == 8 - split);
    }
}

TEST_CASE("after a takeover, worlds are complete once all sessions' rates are known") {
    struct Row {
        std::string_view name;
        snapshot::Tick first;
        snapshot::Tick step;
        std::string_view last; ///< the last world that is incomplete
    };

    const Row rows[] = {{"at full rate", 152, 2, "none"},
                        {"of which the first were lost", 160, 2, "158:1!"},
                        {"once a second", 150, 50, "none"},
                        {"never", 1000, 50, "198:1!"}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        ViewScript script;
        script.collector.add_resumed_session(1);
        script.collector.add_resumed_session(2);
        for (snapshot::Tick tick = 150; tick <= 300; tick += 2) {
            script.add_view(1, tick);
            if (tick >= row.first && (tick - row.first) % row.step == 0) {
                script.add_view(2, tick);
            }
        }
        script.close_worlds();
        std::erase_if(script.closed_worlds,
                      [](const std::string& world) { return !world.ends_with('!'); });
        CHECK((script.closed_worlds.empty() ? "none" : script.closed_worlds.back()) == row.last);
    }
}

TEST_CASE("empty snapshots of a handshake are ignored") {
    ViewScript script;
    script.add_view(1, 1491157375, true);
    script.add_view(1, 100);
    script.add_view(2, 100);
    CHECK(script.close_worlds() == Lines{"100:2"});
}

TEST_CASE("a session that stops delays no tick for long") {
    ViewScript script;
    script.add_view(1, 100);
    script.add_view(2, 100);
    script.add_view(2, 102);
    script.collector.remove_session(1);
    script.add_views({2}, 104, 110);
    CHECK(script.closed_worlds.size() == 4);
    script.collector.advance_time(script.epoch + 110 * kScriptTick +
                                  world::ViewCollector::kMaxSilence);
    CHECK(script.closed_worlds.size() == 6);
}

TEST_CASE("the oldest tick can be closed early") {
    ViewScript script;
    CHECK_FALSE(script.collector.close_oldest_tick_early());
    script.add_view(1, 100);
    script.add_view(1, 102);
    CHECK(script.collector.memory_bytes() > 0);
    CHECK(script.collector.close_oldest_tick_early());
    CHECK(script.closed_worlds == Lines{"100:1"});
    CHECK(script.close_worlds().size() == 2);
    CHECK(script.collector.memory_bytes() == 0);
}

TEST_CASE("a tick has the time of its earliest view, and its best view comes first") {
    struct Row {
        std::uint32_t session;
        std::int32_t version;
        std::uint16_t client;
        bool translated;
    };

    const Row rows[] = {
        {3, 16040, 0, true}, {9, 16040, 1, false}, {2, 20011, 2, false}, {4, 16040, 3, false}};
    const auto items_of = [](const Row& row) {
        Items items{
            {{snapshot::kCharacterType, row.client}, make_ints(22, {{1, row.version}, {15, 8}})},
            {{snapshot::kPlayerInfoType, row.client}, {1, row.client, 0, 0, 0}}};
        if (row.translated) {
            items[{snapshot::kClientInfoType, 15}] = client_info(" ");
        }
        return to_snapshot(items);
    };
    int closed = 0;
    world::ViewCollector collector{[&](const world::ClosedTick& world) {
        REQUIRE(world.views.size() == std::size(rows));
        std::size_t at = 0;
        for (const Row* const row : {&rows[2], &rows[3], &rows[1], &rows[0]}) {
            CAPTURE(row->session);
            const world::View& view = world.views[at++];
            CHECK(view.session == row->session);
            CHECK(view.items == items_of(*row).view());
            CHECK(view.own_client_id == row->client);
            CHECK(view.shows_scoreboard);
            CHECK(view.has_translated_ids == row->translated);
        }
        CHECK(world.time == 1000);
        ++closed;
    }};
    for (const bool earliest_first : {true, false}) {
        const snapshot::Tick tick = earliest_first ? 100 : 101;
        record::Timestamp time = earliest_first ? 1000 : 1003;
        for (const Row& row : rows) {
            const world::MergerInput input{
                .kind = world::MergerInput::Kind::snapshot,
                .time = time,
                .session = row.session,
                .tick = tick,
                .items = std::make_shared<const snapshot::Snapshot>(items_of(row)),
                .client_version = row.version};
            collector.add_view(input);
            collector.add_view(input); // a repeated snapshot is ignored
            time += earliest_first ? 1 : -1;
        }
    }
    collector.close_all_ticks();
    CHECK(closed == 2);
}

} // namespace tw::test
