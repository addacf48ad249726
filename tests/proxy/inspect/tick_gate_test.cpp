// Covers: proxy/inspect/snapshots/snapshot_tracker.cpp
#include "proxy/inspect/snapshots/snapshot_tracker.h"
#include "tests/support/session_script.h"

#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::test;
using tw::inspect::TickClass;
using tw::inspect::TickPlausibility;
using tw::snapshot::kNoBase;
using tw::snapshot::Tick;

namespace {

using Lines = std::vector<std::string>;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr Tick kLastTick = std::numeric_limits<Tick>::max();
const Items kItems{{{4, 1}, {10, 20, 0, 0}}};

} // namespace

TEST_CASE("where a restart may have passed unseen, the first tick from elsewhere is believed") {
    using enum TickClass;
    TickPlausibility gate;
    REQUIRE(gate.classify(100'000, 0) == follows);
    gate.expect_restart(kSecond);
    CHECK(gate.classify(100'050, kSecond) == follows);  // under way
    CHECK(gate.classify(2, 60 * kSecond) == restarted); // a map takes its time
    CHECK(gate.classify(90'000, 60 * kSecond) == stray);
    gate.expect_restart(60 * kSecond);
    CHECK(gate.classify(500, 70 * kSecond) == follows); // the server goes on as before
    CHECK(gate.classify(90'000, 70 * kSecond) == stray);
}

TEST_CASE("a tick is believed when the clock allows it, or when the last three agree") {
    struct Step {
        Tick tick;
        std::int64_t time; ///< seconds
        TickClass verdict;
    };

    struct Row {
        std::string name;
        std::vector<Step> steps;
    };

    using enum TickClass;
    const Row rows[] = {
        {"the first, whatever it is", {{kLastTick, 0, follows}}},
        {"up to the slack at once", {{100, 0, follows}, {350, 0, follows}, {601, 0, stray}}},
        {"more after a pause",
         {{100, 0, follows}, {850, 10, follows}, {1600, 20, follows}, {2351, 30, stray}}},
        {"late ones", {{1000, 0, follows}, {750, 0, follows}, {749, 0, stray}, {1002, 0, follows}}},
        {"a clock that goes back", {{100, 50, follows}, {102, 0, follows}, {104, 0, follows}}},
        {"one of the far future",
         {{100, 0, follows}, {kLastTick, 0, stray}, {102, 0, follows}, {104, 0, follows}}},
        {"now and then one of the far future",
         {{100, 0, follows},
          {kLastTick, 0, stray},
          {102, 0, follows},
          {kLastTick - 1, 0, stray},
          {104, 0, follows},
          {kLastTick - 2, 0, stray},
          {106, 0, follows}}},
        {"parts of one tick count once",
         {{100, 0, follows}, {9000, 0, stray}, {9000, 0, stray}, {9000, 0, stray}}},
        {"a restart that nobody told",
         {{100'000, 0, follows}, {2, 1, stray}, {4, 1, stray}, {6, 1, restarted}, {8, 1, follows}}},
        {"strays that do not agree",
         {{100, 0, follows}, {9000, 0, stray}, {50'000, 0, stray}, {90'000, 0, stray}}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        TickPlausibility gate;
        for (const Step& step : row.steps) {
            CAPTURE(step.tick);
            CHECK(gate.classify(step.tick, step.time * kSecond) == step.verdict);
        }
    }
}

TEST_CASE("a forged snapshot of the far future is reported and stops nothing") {
    SessionScript script;
    script.join_ddnet();
    script.enter_game();
    script.snap(10, kNoBase, kItems);
    script.log().clear();
    script.snap(kLastTick - 1, kNoBase, kItems);
    script.send(tw::wire::Direction::s2c, {non_vital(snap_empty(kLastTick, kNoBase))});
    script.snap(12, 10, kItems);
    script.snap(14, 12, kItems);
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"finding snapshot.tick_jump tick 2147483646",
                "finding snapshot.tick_jump tick 2147483647", "snapshot 12<-10 ok 1",
                "snapshot 14<-12 ok 1"});
}

TEST_CASE("a forged snapshot that comes first is given up when the server goes on") {
    SessionScript script;
    script.join_ddnet();
    script.enter_game();
    script.snap(kLastTick - 1, kNoBase, kItems);
    script.log().clear();
    for (Tick tick = 10; tick <= 18; tick += 2) {
        script.snap(tick, kNoBase, kItems);
    }
    CHECK(script.log().lines({"snapshot"}) ==
          Lines{"snapshot 14<--1 ok 1", "snapshot 16<--1 ok 1", "snapshot 18<--1 ok 1"});
    CHECK(script.log().count_of("snapshot.tick_jump") == 3);
}

TEST_CASE("a map change that passed unseen costs two snapshots, not the session") {
    SessionScript script;
    script.join_ddnet();
    script.enter_game();
    script.snap(100'000, kNoBase, kItems);
    script.log().clear();
    script.snap(2, kNoBase, kItems);
    script.snap(4, kNoBase, kItems);
    script.snap(6, kNoBase, kItems);
    script.snap(8, 6, kItems);
    CHECK(script.log().lines({"snapshot"}) == Lines{"snapshot 6<--1 ok 1", "snapshot 8<-6 ok 1"});
}
