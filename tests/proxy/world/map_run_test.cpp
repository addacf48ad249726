// Tests how views are assigned to runs of a server.
#include "tests/proxy/world/view_script.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tw::test {

TEST_CASE("restarted ticks begin a new map run") {
    ViewScript script;
    script.add_view(1, 5000);
    script.add_view(2, 5000);
    script.collector.add_session(1);
    script.epoch += 6000 * kScriptTick;
    script.add_view(1, 10);
    CHECK(script.closed_worlds == std::vector<std::string>{"5000:2"});
    // The other session still receives the previous map.
    script.epoch -= 6000 * kScriptTick;
    script.add_view(2, 5002);
    CHECK(script.collector.view_counts().stray == 1);
    script.collector.add_session(2);
    script.epoch += 6000 * kScriptTick;
    script.add_view(2, 12);
    script.add_view(1, 12);
    CHECK(script.close_worlds() == std::vector<std::string>{"5000:2", "10:1", "12:2"});
}

TEST_CASE("a very short map run is separate from the next one") {
    struct Row {
        std::string_view name;
        std::string_view map;
        snapshot::Tick first; ///< the first tick that the session receives
    };

    const Row rows[] = {{"the same map again", "dm1", 10},
                        {"another map", "ctf1", 10},
                        {"another map, which took long to load", "ctf1", 50}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        ViewScript script;
        script.collector.add_session(1, {"dm1", 7});
        script.collector.add_session(2, {"dm1", 7});
        script.add_views({1, 2}, 10, 30);
        const record::Timestamp before = script.epoch;
        script.collector.add_session(1, {std::string{row.map}, 7});
        const std::uint64_t strays = row.map == "dm1" ? 0 : 1;
        if (strays != 0) {
            script.add_view(1, 32); // was still in transit
        }
        CHECK(script.collector.view_counts().stray == strays);
        script.epoch += 40 * kScriptTick;
        script.add_view(1, row.first);
        CHECK(script.closed_worlds.back() == "30:2");
        // The other session still receives the previous map.
        script.epoch = before;
        script.add_view(2, 32);
        CHECK(script.collector.view_counts().stray == strays + 1);
        script.epoch += 40 * kScriptTick;
        script.collector.add_session(2, {std::string{row.map}, 7});
        script.add_view(2, row.first + 2);
        script.add_view(1, row.first + 2);
        CHECK(script.close_worlds().back() == fmt::format("{}:2", row.first + 2));
        CHECK(script.run_count == 2);
    }
}

TEST_CASE("sessions on the current map stay in the map run") {
    ViewScript script;
    script.collector.add_session(1, {"dm1", 7});
    script.add_view(1, 100);
    script.collector.add_session(2, {"dm1", 8});
    script.dialect = snapshot::Dialect::seven;
    script.add_view(2, 102);
    script.dialect = snapshot::Dialect::six;
    script.collector.add_session(1, {"dm1", 7});
    script.add_view(1, 104);
    script.collector.add_session(3, {"other", 7}); // a server can have several maps at a time
    script.add_view(3, 106);
    script.close_worlds();
    CHECK(script.run_count == 1);
    CHECK(script.collector.view_counts().stray == 0);
}

TEST_CASE("extreme ticks cause no overflow") {
    ViewScript script;
    for (const snapshot::Tick tick : {0, 2147483647, 2147483646, -2147483647 - 1, 5, 2147483647}) {
        script.collector.add_session(1);
        script.add_view(1, tick);
        script.collector.add_session(2);
        script.add_view(2, tick);
    }
    CHECK_FALSE(script.close_worlds().empty());
}

TEST_CASE("a clock that jumps and returns costs at most a second of views") {
    for (const record::Timestamp step : {10'000'000'000, -10'000'000'000, 3'600'000'000'000}) {
        CAPTURE(step);
        ViewScript script;
        snapshot::Tick tick = 1000;
        const auto play = [&](int count) {
            const std::uint64_t before = script.collector.view_counts().stray;
            for (int i = 0; i < count; ++i, tick += 2) {
                script.add_view(1, tick);
                script.add_view(2, tick);
            }
            return script.collector.view_counts().stray - before;
        };
        CHECK(play(100) == 0);
        script.epoch += step;
        CHECK(play(100) <= 60);
        script.epoch -= step;
        CHECK(play(100) <= 60);
        CHECK(play(100) == 0);
        // A silence is detected with the current clock.
        const std::size_t closed = script.closed_worlds.size();
        script.collector.advance_time(script.epoch + tick * kScriptTick +
                                      world::ViewCollector::kMaxSilence);
        CHECK(script.closed_worlds.size() > closed);
    }
}

TEST_CASE("late views of the previous map run do not bring it back") {
    ViewScript script;
    script.add_view(1, 5000);
    script.add_view(2, 5000);
    script.collector.add_session(1);
    script.collector.add_session(2); // announced, but still receives the previous map
    for (snapshot::Tick tick = 10; tick < 210; tick += 2) {
        script.epoch += 6000 * kScriptTick;
        script.add_view(1, tick);
        script.epoch -= 6000 * kScriptTick;
        script.add_view(2, 5000 + tick);
    }
    CHECK(script.collector.view_counts().stray == 100);
    CHECK(script.close_worlds().back() == "208:1");
}

TEST_CASE("a single deviating session does not end the map run") {
    struct Row {
        std::string_view name;
        snapshot::Tick by;   ///< ticks ahead of the other sessions
        snapshot::Tick from; ///< the tick at which the session enters
        snapshot::Tick until;
        bool told; ///< the session's map is announced
    };

    constexpr snapshot::Tick kBegin = 1000;
    constexpr snapshot::Tick kEnd = 1600;
    const Row rows[] = {{"far ahead", 100000, 1150, kEnd, false},
                        {"far ahead, on another map", 100000, 1150, kEnd, true},
                        {"far ahead, and leaves", 100000, 1150, 1300, false},
                        {"once", 100000, 1150, 1150, false},
                        {"behind", -900, 1150, kEnd, false},
                        {"behind, on another map", -900, 1150, kEnd, true},
                        {"a little behind", -140, 1150, kEnd, false},
                        {"a little ahead", 140, 1150, kEnd, false},
                        {"a little ahead, on another map", 140, 1150, kEnd, true}};
    for (const Row& row : rows) {
        for (const int others : {1, 3}) {
            CAPTURE(row.name);
            CAPTURE(others);
            ViewScript script;
            std::uint64_t strays = 0;
            for (snapshot::Tick tick = kBegin; tick <= kEnd; tick += 2) {
                for (std::uint32_t session = 1; static_cast<int>(session) <= others; ++session) {
                    script.add_view(session, tick);
                }
                if (tick == row.from && row.told) {
                    script.collector.add_session(9, {"other", 7});
                }
                if (tick >= row.from && tick <= row.until) {
                    script.add_view_ahead(9, tick, row.by);
                    ++strays;
                } else if (tick == row.until + 2) {
                    script.collector.remove_session(9);
                }
            }
            script.close_worlds();
            CHECK(script.count_complete_worlds(others) == (kEnd - kBegin) / 2 + 1);
            CHECK(script.run_count == 1);
            CHECK(script.collector.view_counts().late == 0);
            CHECK(script.collector.view_counts().stray == strays);
        }
    }
}

TEST_CASE("a session more than a second ahead of the others is stray") {
    ViewScript script;
    for (snapshot::Tick tick = 1000; tick <= 1600; tick += 2) {
        for (const std::uint32_t session : {1U, 2U, 3U}) {
            script.add_view(session, tick);
        }
        script.add_view_ahead(9, tick, (tick - 1000) / 2);
    }
    script.close_worlds();
    CHECK(script.collector.view_counts().late == 0);
    CHECK(script.collector.view_counts().stray > 200);
    CHECK(script.run_count == 1);
}

TEST_CASE("the map run of the majority of sessions continues") {
    for (const snapshot::Tick by : {100000, -900, -140, 140}) {
        for (const bool told : {false, true}) {
            CAPTURE(by);
            CAPTURE(told);
            ViewScript script;
            for (snapshot::Tick tick = 1000; tick <= 1600; tick += 2) {
                for (const std::uint32_t session : {1U, 2U, 3U}) {
                    if (told && tick == 1100) {
                        script.collector.add_session(session, {"dm1", 7});
                    }
                    if (tick >= 1100 + 2 * static_cast<snapshot::Tick>(session)) {
                        script.add_view(session, tick);
                    }
                }
                script.add_view_ahead(9, tick, by);
            }
            script.close_worlds();
            CHECK(script.count_complete_worlds(3) > 240);
            CHECK(script.run_count == 2);
            CHECK(script.collector.view_counts().stray < 300);
        }
    }
}

TEST_CASE("sessions that return from a silence replace a map run that began meanwhile") {
    ViewScript script;
    for (snapshot::Tick tick = 1000; tick <= 1600; tick += 2) {
        if (tick <= 1100 || tick >= 1150) {
            for (const std::uint32_t session : {1U, 2U, 3U}) {
                script.add_view(session, tick);
            }
        }
        if (tick >= 1130) {
            script.add_view_ahead(9, tick, 100000);
        }
    }
    script.close_worlds();
    CHECK(script.run_count == 3);
    // The views of each session were stray for half a second.
    CHECK(script.count_complete_worlds(3) >= (1600 - 1150) / 2 + 1 + 51 - 27);
}

TEST_CASE("of two games behind one address, the one with more sessions is merged") {
    ViewScript script;
    for (snapshot::Tick tick = 1000; tick <= 2000; tick += 2) {
        for (const std::uint32_t session : {1U, 2U, 3U}) {
            script.add_view(session, tick);
        }
        // The sessions enter the other game one after the other.
        for (const std::uint32_t session : {11U, 12U, 13U, 14U}) {
            if (tick >= 1000 + 10 * static_cast<snapshot::Tick>(session)) {
                script.add_view_ahead(session, tick, 5000);
            }
        }
    }
    script.close_worlds();
    CHECK(script.run_count == 2);
    CHECK(script.count_complete_worlds(3) >= 69);
    CHECK(script.count_complete_worlds(4) >= 400);
}

TEST_CASE("an announced map change takes effect with the first view") {
    for (const bool all : {true, false}) {
        CAPTURE(all);
        ViewScript script;
        script.add_views({1, 2, 3}, 5000, 5100);
        script.collector.add_session(1, {"ctf1", 7});
        script.collector.add_session(2, {"ctf1", 7});
        if (all) {
            script.collector.add_session(3, {"ctf1", 7});
        }
        // The run ends at once, or when the session whose message was lost has had enough stray
        // views.
        script.epoch += (all ? 5100 : 5112) * kScriptTick;
        for (snapshot::Tick tick = 2; tick <= 100; tick += 2) {
            script.add_view(1, tick);
            if (tick >= 20) {
                script.add_view(2, tick);
            }
            if (tick >= 40) {
                script.add_view(3, tick); // with or without an announcement
            }
        }
        script.close_worlds();
        CHECK(script.run_count == 2);
        CHECK(script.collector.view_counts().stray == 0);
        CHECK(script.count_complete_worlds(3) >= 51 + 30);
    }
}

TEST_CASE("an unseen server restart begins a new map run") {
    ViewScript script;
    script.add_views({1, 2}, 5000, 5100);
    script.epoch += 5100 * kScriptTick;
    script.add_views({1, 2}, 2, 200);
    script.close_worlds();
    CHECK(script.run_count == 2);
    CHECK(script.collector.view_counts().stray <= 50);
    CHECK(script.count_complete_worlds(2) >= 51 + 75);
}

} // namespace tw::test
