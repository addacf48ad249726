// Covers: proxy/game/timeline.cpp
#include "proxy/game/timeline.h"
#include "tests/proxy/game/views.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tw::test {

namespace {

constexpr record::Timestamp kTick = 20'000'000;

/// A timeline, and what it closed: "100:2!" is tick 100 with two views, and not complete.
struct Script {
    explicit Script(game::Patience ticks = {}) : patience{ticks} {}

    game::Patience patience;
    std::vector<std::string> closed;
    std::uint32_t runs = 0; ///< with a world
    snapshot::Dialect dialect = snapshot::Dialect::six;
    game::OpenWorlds memory;
    game::Timeline timeline{[this](const game::ClosedWorld& world) {
                                runs = world.run;
                                closed.push_back(fmt::format("{}:{}{}", world.views->tick(),
                                                             world.views->views(),
                                                             world.complete ? "" : "!"));
                            },
                            memory, 0, patience};
    snapshot::Snapshot items = to_snapshot({{{9, 0}, {1}}});
    record::Timestamp epoch = 1'000'000'000'000;

    void at(std::uint32_t session, snapshot::Tick tick, bool empty = false) {
        timeline.add({.kind = game::Input::Kind::snapshot,
                      .time = epoch + tick * kTick,
                      .session = session,
                      .tick = tick,
                      .items = empty ? snapshot::SnapshotView{} : items.view(),
                      .dialect = dialect});
    }

    /// What is shown at the time of `tick` is so far ahead of it.
    void ahead(std::uint32_t session, snapshot::Tick tick, snapshot::Tick by) {
        const record::Timestamp own = epoch;
        epoch -= by * kTick;
        at(session, tick + by);
        epoch = own;
    }

    std::vector<std::string> finish() {
        timeline.finish();
        return closed;
    }

    /// Worlds with so many views, complete.
    [[nodiscard]] std::ptrdiff_t with(int views) const {
        return std::ranges::count_if(closed, [&](const std::string& world) {
            return world.ends_with(fmt::format(":{}", views));
        });
    }
};

} // namespace

TEST_CASE("a tick closes when all who get every tick have reached it") {
    Script script;
    for (snapshot::Tick tick = 100; tick <= 108; tick += 2) {
        script.at(1, tick);
        script.at(2, tick);
    }
    CHECK(script.closed == std::vector<std::string>{"100:2", "102:2", "104:2"});
    CHECK(script.finish().size() == 5);
    CHECK(script.timeline.lateness().late == 0);
}

TEST_CASE("without patience a tick closes with the last of those who were there before") {
    Script script{{.least = 0, .most = 6}};
    for (snapshot::Tick tick = 100; tick <= 104; tick += 2) {
        script.at(1, tick);
        script.at(2, tick); // too late for the tick with which both begin
    }
    CHECK(script.closed == std::vector<std::string>{"100:1", "102:2", "104:2"});
    script.at(2, 106);
    CHECK(script.closed.size() == 3);
    script.at(1, 106);
    CHECK(script.closed.size() == 4);
    script.at(1, 108); // and nothing of the other
    script.at(1, 112);
    CHECK(script.closed.size() == 4);
    script.at(1, 114);
    CHECK(script.closed.back() == "108:1!");
}

TEST_CASE("whoever is behind is waited for, but no longer than a second") {
    Script script;
    script.at(1, 100);
    script.at(2, 100);
    script.at(1, 102);
    script.at(2, 102);
    for (snapshot::Tick tick = 104; tick <= 150; tick += 2) {
        script.at(1, tick);
    }
    CHECK(script.closed == std::vector<std::string>{"100:2", "102:2"});
    script.at(2, 104); // comes late, but in time
    script.at(1, 154);
    CHECK(script.closed.at(2) == "104:2");
    for (snapshot::Tick tick = 156; tick <= 170; tick += 2) {
        script.at(1, tick);
    }
    script.at(2, 106);
    CHECK(script.timeline.lateness().late == 1);
    CHECK(script.closed.size() > 6);
}

TEST_CASE("who is sent one snapshot a second holds nobody up") {
    Script script;
    script.at(2, 50);
    script.at(2, 100);
    for (snapshot::Tick tick = 100; tick <= 110; tick += 2) {
        script.at(1, tick);
    }
    CHECK(script.closed.size() == 5);
    CHECK(script.closed.at(1) == "100:2");
}

TEST_CASE("a world that lacks a view that was lost is not complete") {
    Script script;
    for (snapshot::Tick tick = 100; tick <= 120; tick += 2) {
        script.at(1, tick);
        if (tick != 108) {
            script.at(2, tick);
        }
    }
    CHECK(script.finish() == std::vector<std::string>{"100:2", "102:2", "104:2", "106:2", "108:1!",
                                                      "110:2", "112:2", "114:2", "116:2", "118:2",
                                                      "120:2"});
}

TEST_CASE(
    "worlds lack each view that was lost, however few are between, and none that was never due") {
    struct Row {
        std::string_view name;
        std::vector<snapshot::Tick> missing; ///< ticks that the other session does not get
        std::vector<snapshot::Tick> lacking; ///< of these, those that lack its view
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
            Script script;
            const auto other = [&](snapshot::Tick tick) {
                if (std::ranges::find(row.missing, tick) == row.missing.end()) {
                    script.at(2, tick);
                }
            };
            std::vector<std::string> expected;
            for (snapshot::Tick tick = 100; tick <= 140; tick += 2) {
                if (other_first) {
                    other(tick);
                }
                script.at(1, tick);
                if (!other_first) {
                    other(tick);
                }
                if (std::ranges::find(row.lacking, tick) != row.lacking.end()) {
                    expected.push_back(fmt::format("{}:1!", tick));
                }
            }
            std::vector<std::string> closed = script.finish();
            std::erase_if(closed, [](const std::string& world) { return !world.ends_with('!'); });
            CHECK(closed == expected);
        }
    }
}

TEST_CASE("who is sent one snapshot a second again is due in no other for long") {
    Script script;
    for (snapshot::Tick tick = 100; tick <= 400; tick += 2) {
        script.at(1, tick);
        if (tick <= 120 || tick % 50 == 0) {
            script.at(2, tick);
        }
    }
    std::vector<std::string> lacking = script.finish();
    std::erase_if(lacking, [](const std::string& world) { return !world.ends_with('!'); });
    REQUIRE(!lacking.empty()); // what follows 120 may have been lost
    CHECK(lacking.front() == "122:1!");
    CHECK(lacking.back() == "152:1!");
}

TEST_CASE("who joins is sent some ticks only, and worlds are complete without the others") {
    Script script;
    for (snapshot::Tick tick = 100; tick <= 130; tick += 2) {
        script.at(1, tick);
        if (tick == 100 || tick == 110 || tick >= 120) {
            script.at(2, tick);
        }
    }
    script.finish();
    CHECK(std::ranges::count_if(
              script.closed, [](const std::string& world) { return world.ends_with('!'); }) == 0);
}

TEST_CASE("ticks that begin anew are another run") {
    Script script;
    script.at(1, 5000);
    script.at(2, 5000);
    script.timeline.enter(1);
    script.epoch += 6000 * kTick;
    script.at(1, 10);
    CHECK(script.closed == std::vector<std::string>{"5000:2"});
    // The other one is still shown the map before.
    script.epoch -= 6000 * kTick;
    script.at(2, 5002);
    CHECK(script.timeline.lateness().stray == 1);
    script.timeline.enter(2);
    script.epoch += 6000 * kTick;
    script.at(2, 12);
    script.at(1, 12);
    CHECK(script.finish() == std::vector<std::string>{"5000:2", "10:1", "12:2"});
}

TEST_CASE("a run that is over within a second is not taken for the next one") {
    struct Row {
        std::string_view name;
        std::string_view map;
        snapshot::Tick first; ///< that is shown of it
    };

    const Row rows[] = {{"the same map again", "dm1", 10},
                        {"another map", "ctf1", 10},
                        {"another map, which took long to load", "ctf1", 50}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Script script;
        script.timeline.enter(1, {"dm1", 7});
        script.timeline.enter(2, {"dm1", 7});
        for (snapshot::Tick tick = 10; tick <= 30; tick += 2) {
            script.at(1, tick);
            script.at(2, tick);
        }
        const record::Timestamp before = script.epoch;
        script.timeline.enter(1, {std::string{row.map}, 7});
        const std::uint64_t strays = row.map == "dm1" ? 0 : 1;
        if (strays != 0) {
            script.at(1, 32); // was on its way
        }
        CHECK(script.timeline.lateness().stray == strays);
        script.epoch += 40 * kTick;
        script.at(1, row.first);
        CHECK(script.closed.back() == "30:2");
        // The other one is still shown the map before.
        script.epoch = before;
        script.at(2, 32);
        CHECK(script.timeline.lateness().stray == strays + 1);
        script.epoch += 40 * kTick;
        script.timeline.enter(2, {std::string{row.map}, 7});
        script.at(2, row.first + 2);
        script.at(1, row.first + 2);
        CHECK(script.finish().back() == fmt::format("{}:2", row.first + 2));
        CHECK(script.runs == 2);
    }
}

TEST_CASE(
    "who joins on the run's map, comes back to it or has its file of 0.7 enters no other run") {
    Script script;
    script.timeline.enter(1, {"dm1", 7});
    script.at(1, 100);
    script.timeline.enter(2, {"dm1", 8});
    script.dialect = snapshot::Dialect::seven;
    script.at(2, 102);
    script.dialect = snapshot::Dialect::six;
    script.timeline.enter(1, {"dm1", 7});
    script.at(1, 104);
    script.timeline.enter(3, {"other", 7}); // where a server has several at one time
    script.at(3, 106);
    script.finish();
    CHECK(script.runs == 1);
    CHECK(script.timeline.lateness().stray == 0);
}

TEST_CASE("a session that leaves within a tick is missing in it, and in none behind it") {
    Script script;
    for (snapshot::Tick tick = 100; tick <= 120; tick += 2) {
        script.at(1, tick);
        script.at(2, tick);
        if (tick < 110) {
            script.at(3, tick);
        } else if (tick == 110) {
            script.timeline.leave(3);
        }
    }
    script.timeline.leave(2); // has all there is
    script.finish();
    CHECK(script.with(3) == 5);
    CHECK(script.with(2) == 5);
    CHECK(std::ranges::count(script.closed, "110:2!") == 1);
}

TEST_CASE("a tick that comes to two processes is told by the first, as not complete") {
    for (const std::uint32_t split : {1U, 6U, 8U}) {
        CAPTURE(split);
        Script before;
        Script after;
        for (std::uint32_t session = 1; session <= 8; ++session) {
            after.timeline.resume(session);
        }
        for (snapshot::Tick tick = 100; tick <= 200; tick += 2) {
            for (std::uint32_t session = 1; session <= 8; ++session) {
                Script& who = tick < 150 || (tick == 150 && session <= split) ? before : after;
                who.at(session, tick);
            }
        }
        for (std::uint32_t session = 1; session <= 8; ++session) {
            before.timeline.leave(session);
        }
        before.finish();
        after.finish();
        CHECK(before.closed.back() == fmt::format("150:{}{}", split, split == 8 ? "" : "!"));
        CHECK(before.with(8) == (split == 8 ? 26 : 25));
        CHECK(after.closed.front() == "152:8");
        CHECK(after.with(8) == 25);
        CHECK(after.timeline.lateness().late == 8 - split);
    }
}

TEST_CASE("worlds of sessions that another process had are complete when their rate is known") {
    struct Row {
        std::string_view name;
        snapshot::Tick first;
        snapshot::Tick step;
        std::string_view last; ///< that is not complete
    };

    const Row rows[] = {{"at full rate", 152, 2, "none"},
                        {"of which the first were lost", 160, 2, "158:1!"},
                        {"once a second", 150, 50, "none"},
                        {"never", 1000, 50, "198:1!"}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Script script;
        script.timeline.resume(1);
        script.timeline.resume(2);
        for (snapshot::Tick tick = 150; tick <= 300; tick += 2) {
            script.at(1, tick);
            if (tick >= row.first && (tick - row.first) % row.step == 0) {
                script.at(2, tick);
            }
        }
        script.finish();
        std::erase_if(script.closed,
                      [](const std::string& world) { return !world.ends_with('!'); });
        CHECK((script.closed.empty() ? "none" : script.closed.back()) == row.last);
    }
}

TEST_CASE("empty snapshots of a handshake, with ticks made up, are no game") {
    Script script;
    script.at(1, 1491157375, true);
    script.at(1, 100);
    script.at(2, 100);
    CHECK(script.finish() == std::vector<std::string>{"100:2"});
}

TEST_CASE("a session that stops does not stop the world, nor does the end of the traffic") {
    Script script;
    script.at(1, 100);
    script.at(2, 100);
    script.at(2, 102);
    script.timeline.leave(1);
    for (snapshot::Tick tick = 104; tick <= 110; tick += 2) {
        script.at(2, tick);
    }
    CHECK(script.closed.size() == 4);
    script.timeline.advance(script.epoch + 110 * kTick + game::Timeline::kSilence);
    CHECK(script.closed.size() == 6);
}

TEST_CASE("ticks at the ends of their range overflow nothing") {
    Script script;
    for (const snapshot::Tick tick : {0, 2147483647, 2147483646, -2147483647 - 1, 5, 2147483647}) {
        script.timeline.enter(1);
        script.at(1, tick);
        script.timeline.enter(2);
        script.at(2, tick);
    }
    CHECK_FALSE(script.finish().empty());
}

TEST_CASE("a clock that steps and steps back loses a second of the game, not the rest of it") {
    for (const record::Timestamp step : {10'000'000'000, -10'000'000'000, 3'600'000'000'000}) {
        CAPTURE(step);
        Script script;
        snapshot::Tick tick = 1000;
        const auto play = [&](int count) {
            const std::uint64_t before = script.timeline.lateness().stray;
            for (int i = 0; i < count; ++i, tick += 2) {
                script.at(1, tick);
                script.at(2, tick);
            }
            return script.timeline.lateness().stray - before;
        };
        CHECK(play(100) == 0);
        script.epoch += step;
        CHECK(play(100) <= 60);
        script.epoch -= step;
        CHECK(play(100) <= 60);
        CHECK(play(100) == 0);
        // Silence is noticed by the clock as it is now.
        const std::size_t closed = script.closed.size();
        script.timeline.advance(script.epoch + tick * kTick + game::Timeline::kSilence);
        CHECK(script.closed.size() > closed);
    }
}

TEST_CASE("a session that is still shown the run before does not bring it back") {
    Script script;
    script.at(1, 5000);
    script.at(2, 5000);
    script.timeline.enter(1);
    script.timeline.enter(2); // said to be, but is shown what was before
    for (snapshot::Tick tick = 10; tick < 210; tick += 2) {
        script.epoch += 6000 * kTick;
        script.at(1, tick);
        script.epoch -= 6000 * kTick;
        script.at(2, 5000 + tick);
    }
    CHECK(script.timeline.lateness().stray == 100);
    CHECK(script.finish().back() == "208:1");
}

TEST_CASE("what one session alone is shown ends the run of no other") {
    struct Row {
        std::string_view name;
        snapshot::Tick by;   ///< ahead of the others
        snapshot::Tick from; ///< when it enters
        snapshot::Tick until;
        bool told; ///< of a map
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
            Script script;
            std::uint64_t strays = 0;
            for (snapshot::Tick tick = kBegin; tick <= kEnd; tick += 2) {
                for (std::uint32_t session = 1; static_cast<int>(session) <= others; ++session) {
                    script.at(session, tick);
                }
                if (tick == row.from && row.told) {
                    script.timeline.enter(9, {"other", 7});
                }
                if (tick >= row.from && tick <= row.until) {
                    script.ahead(9, tick, row.by);
                    ++strays;
                } else if (tick == row.until + 2) {
                    script.timeline.leave(9);
                }
            }
            script.finish();
            CHECK(script.with(others) == (kEnd - kBegin) / 2 + 1);
            CHECK(script.runs == 1);
            CHECK(script.timeline.lateness().late == 0);
            CHECK(script.timeline.lateness().stray == strays);
        }
    }
}

TEST_CASE("whoever runs away from the others is a stray once a second ahead of them") {
    Script script;
    for (snapshot::Tick tick = 1000; tick <= 1600; tick += 2) {
        for (const std::uint32_t session : {1U, 2U, 3U}) {
            script.at(session, tick);
        }
        script.ahead(9, tick, (tick - 1000) / 2);
    }
    script.finish();
    CHECK(script.timeline.lateness().late == 0);
    CHECK(script.timeline.lateness().stray > 200);
    CHECK(script.runs == 1);
}

TEST_CASE("the run goes on with the majority, whoever began it") {
    for (const snapshot::Tick by : {100000, -900, -140, 140}) {
        for (const bool told : {false, true}) {
            CAPTURE(by);
            CAPTURE(told);
            Script script;
            for (snapshot::Tick tick = 1000; tick <= 1600; tick += 2) {
                for (const std::uint32_t session : {1U, 2U, 3U}) {
                    if (told && tick == 1100) {
                        script.timeline.enter(session, {"dm1", 7});
                    }
                    if (tick >= 1100 + 2 * static_cast<snapshot::Tick>(session)) {
                        script.at(session, tick);
                    }
                }
                script.ahead(9, tick, by);
            }
            script.finish();
            CHECK(script.with(3) > 240);
            CHECK(script.runs == 2);
            CHECK(script.timeline.lateness().stray < 300);
        }
    }
}

TEST_CASE("a run that began while its sessions were silent goes on when they are back") {
    Script script;
    for (snapshot::Tick tick = 1000; tick <= 1600; tick += 2) {
        if (tick <= 1100 || tick >= 1150) {
            for (const std::uint32_t session : {1U, 2U, 3U}) {
                script.at(session, tick);
            }
        }
        if (tick >= 1130) {
            script.ahead(9, tick, 100000);
        }
    }
    script.finish();
    CHECK(script.runs == 3);
    // Each had to be a stray for half a second.
    CHECK(script.with(3) >= (1600 - 1150) / 2 + 1 + 51 - 27);
}

TEST_CASE("of two games behind one address the one with more sessions is the world") {
    Script script;
    for (snapshot::Tick tick = 1000; tick <= 2000; tick += 2) {
        for (const std::uint32_t session : {1U, 2U, 3U}) {
            script.at(session, tick);
        }
        // One after the other comes to the other game.
        for (const std::uint32_t session : {11U, 12U, 13U, 14U}) {
            if (tick >= 1000 + 10 * static_cast<snapshot::Tick>(session)) {
                script.ahead(session, tick, 5000);
            }
        }
    }
    script.finish();
    CHECK(script.runs == 2);
    CHECK(script.with(3) >= 69);
    CHECK(script.with(4) >= 400);
}

TEST_CASE("a map that all are told of begins with the first who is shown it") {
    for (const bool all : {true, false}) {
        CAPTURE(all);
        Script script;
        for (snapshot::Tick tick = 5000; tick <= 5100; tick += 2) {
            script.at(1, tick);
            script.at(2, tick);
            script.at(3, tick);
        }
        script.timeline.enter(1, {"ctf1", 7});
        script.timeline.enter(2, {"ctf1", 7});
        if (all) {
            script.timeline.enter(3, {"ctf1", 7});
        }
        // At once; or as soon as the one whose message was lost must have been shown something.
        script.epoch += (all ? 5100 : 5112) * kTick;
        for (snapshot::Tick tick = 2; tick <= 100; tick += 2) {
            script.at(1, tick);
            if (tick >= 20) {
                script.at(2, tick);
            }
            if (tick >= 40) {
                script.at(3, tick); // told or not
            }
        }
        script.finish();
        CHECK(script.runs == 2);
        CHECK(script.timeline.lateness().stray == 0);
        CHECK(script.with(3) >= 51 + 30);
    }
}

TEST_CASE("a server that starts again, unheard, is another run") {
    Script script;
    for (snapshot::Tick tick = 5000; tick <= 5100; tick += 2) {
        script.at(1, tick);
        script.at(2, tick);
    }
    script.epoch += 5100 * kTick;
    for (snapshot::Tick tick = 2; tick <= 200; tick += 2) {
        script.at(1, tick);
        script.at(2, tick);
    }
    script.finish();
    CHECK(script.runs == 2);
    CHECK(script.timeline.lateness().stray <= 50);
    CHECK(script.with(2) >= 51 + 75);
}

TEST_CASE("the oldest tick can be asked to close with what it has") {
    Script script;
    CHECK_FALSE(script.timeline.close_oldest_early());
    script.at(1, 100);
    script.at(1, 102);
    CHECK(script.timeline.bytes() > 0);
    CHECK(script.timeline.close_oldest_early());
    CHECK(script.closed == std::vector<std::string>{"100:1"});
    CHECK(script.finish().size() == 2);
    CHECK(script.timeline.bytes() == 0);
}

} // namespace tw::test
