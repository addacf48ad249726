// Covers: proxy/inspect/snapshots/snapshot_tracker.cpp
#include "proxy/inspect/snapshots/snapshot_tracker.h"
#include "tests/support/doctest_lines.h"
#include "tests/support/session_script.h"
#include "tests/support/time.h"

#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::test;
using tw::snapshot::kNoBase;
using tw::snapshot::Tick;

namespace {

constexpr Tick kLastTick = std::numeric_limits<Tick>::max();

/// Returns `count` projectiles; with enough of them, the delta has several parts.
Items many_projectiles(std::uint16_t count, std::int32_t value = 1'000'000) {
    Items items;
    for (std::uint16_t id = 0; id < count; ++id) {
        items[{13, id}] = {value, value + id};
    }
    return items;
}

void send_messages(SessionScript& script, const std::vector<Bytes>& messages,
                   const std::vector<std::size_t>& order) {
    for (const std::size_t index : order) {
        script.send(kS2c, {non_vital(messages.at(index))});
    }
}

} // namespace

TEST_CASE("parts of several ticks may arrive in any order") {
    const Items items = many_projectiles(330);
    const Bytes body = delta_body({}, items);
    const auto first = snap_parts(10, kNoBase, checksum_of(items), body);
    const auto second = snap_parts(12, kNoBase, checksum_of(items), body);
    REQUIRE(first.size() == 4);
    SUBCASE("in order") {
        auto script = playing_session();
        send_messages(script, first, {0, 1, 2, 3});
        CHECK(script.log().lines({"snapshot", "finding"}) == Lines{"snapshot 10<--1 ok 330"});
        CHECK(script.stats().parts == 4);
    }
    SUBCASE("the last one first, one twice") {
        auto script = playing_session();
        send_messages(script, first, {3, 1, 1, 0, 2, 2});
        CHECK(script.log().lines({"snapshot", "finding"}) == Lines{"snapshot 10<--1 ok 330"});
        CHECK(script.stats().repeated == 2);
    }
    SUBCASE("interleaved, the older tick completes later") {
        auto script = playing_session();
        send_messages(script, first, {0, 1});
        send_messages(script, second, {0, 1, 2, 3});
        send_messages(script, first, {2, 3});
        CHECK(script.log().lines({"snapshot", "finding"}) ==
              Lines{"snapshot 12<--1 ok 330", "snapshot 10<--1 ok 330"});
    }
    SUBCASE("one never comes") {
        auto script = playing_session();
        send_messages(script, first, {0, 1, 3});
        script.snap(40, kNoBase, kPickupAndPlayer);
        CHECK(script.log().lines({"snapshot", "finding"}) ==
              Lines{"finding snapshot.part_missing tick 10 part 2", "snapshot 40<--1 ok 2"});
        CHECK(script.stats().incomplete == 1);
    }
}

TEST_CASE("an empty snapshot is a copy of its base") {
    auto script = playing_session();
    script.snap(10, kNoBase, kPickupAndPlayer);
    script.send(kS2c, {non_vital(snap_empty(12, 10))});
    script.send(kS2c, {non_vital(snap_empty(12, 10))});
    script.send(kS2c, {non_vital(snap_empty(14, 12))});
    script.send(kS2c, {non_vital(snap_empty(16, 3))});
    CHECK(script.log().lines({"snapshot"}) == Lines{"snapshot 10<--1 ok 2", "snapshot 12<-10 ok 2",
                                                    "snapshot 14<-12 ok 2", "snapshot 16<-3 bad"});
    CHECK(script.stats().empty == 3);
}

TEST_CASE("an empty snapshot without a base has no items and may be a base") {
    auto script = playing_session();
    script.send(kS2c, {non_vital(snap_empty(10, kNoBase))});
    script.send(kS2c, {non_vital(snap_between(12, 10, {}, kPickupAndPlayer))});
    CHECK(script.log().lines({"snapshot"}) ==
          Lines{"snapshot 10<--1 ok 0", "snapshot 12<-10 ok 2"});
    CHECK(script.stats().repeated == 0);
}

TEST_CASE("a duplicate item in a snapshot is reported with its key") {
    auto script = playing_session();
    script.snap(10, kNoBase, kPickupAndPlayer);
    // The server's checksum counts both items (10,2), with +5 and with +7 and +1; clients keep one.
    const Bytes body = body_of({0, 2, 0, 10, 2, 0, 0, 0, 5, 0, 10, 2, 0, 0, 0, 7, 1});
    const std::int32_t both = (10 + 20) + (1 + 2 + 5 + 30) + (1 + 2 + 7 + 31);
    script.snap_body(12, 10, both, body);
    script.snap(14, 10, kPickupAndPlayer);
    CHECK(script.log().lines({"finding", "snapshot"}) ==
          Lines{"snapshot 10<--1 ok 2", "finding snapshot.duplicate_update tick 12 player_info 2",
                "finding snapshot.crc_mismatch tick 12 player_info 2 duplicate_update",
                "snapshot 12<-10 bad", "snapshot 14<-10 ok 2"});
    CHECK(script.stats().mismatched == 1);
}

TEST_CASE("unusual deltas are applied as clients apply them, and reported") {
    struct Row {
        std::string_view name;
        Ints delta;
        std::int32_t crc;
        Lines findings;
    };

    const Row rows[] = {
        {"an unknown delete",
         {1, 0, 0, 262221},
         63,
         {"finding snapshot.unknown_delete tick 12 pickup 77"}},
        {"a double delete",
         {2, 0, 0, 262145, 262145},
         33,
         {"finding snapshot.duplicate_delete tick 12 pickup 1"}},
        {"deleted and updated",
         {1, 1, 0, 655362, 10, 2, 0, 0, 0, 5, 0},
         68,
         {"finding snapshot.deleted_and_updated tick 12 player_info 2"}},
        {"surplus ints", {1, 0, 0, 262145, 1, 2, 3}, 33, {"finding snapshot.surplus_ints tick 12"}},
        {"no updates by a negative count", {0, -3, 0}, 63, {}},
        {"the third int", {0, 0, 9}, 63, {}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        auto script = playing_session();
        script.snap(10, kNoBase, kPickupAndPlayer);
        script.snap_body(12, 10, row.crc, body_of(row.delta));
        CHECK(script.log().findings() == row.findings);
        CHECK(script.stats().verified == 2);
    }
}

TEST_CASE("a snapshot near a limit is reported once until it is smaller again") {
    auto script = playing_session();
    const auto send = [&](Tick tick, std::uint16_t count) {
        const Items items = many_projectiles(count, 0);
        script.snap_body(tick, kNoBase, checksum_of(items), delta_body({}, items));
    };
    send(10, 921);
    CHECK(script.log().count_of("snapshot.item_cap") == 0);
    send(12, 922);
    send(14, 1024);
    CHECK(script.log().findings() == Lines{"finding snapshot.item_cap tick 12 items"});
    send(16, 100);
    send(18, 950);
    CHECK(script.log().count_of("snapshot.item_cap") == 2);
}

TEST_CASE("impossible ticks and bases are reported and do no harm") {
    struct Row {
        std::string_view name;
        Bytes message;
        Lines lines;
    };

    const Bytes body = delta_body({}, kPickupAndPlayer);
    const std::int32_t crc = checksum_of(kPickupAndPlayer);
    const Row rows[] = {
        {"the last tick but one",
         snap_single(kLastTick - 1, kNoBase, crc, body),
         {"snapshot 2147483646<--1 ok 2"}},
        {"a negative tick",
         snap_single(-5, kNoBase, crc, body),
         {"finding snapshot.part_out_of_range tick -5"}},
        {"the first tick there is",
         snap_single(std::numeric_limits<Tick>::min(), 0, crc, body),
         {"finding snapshot.part_out_of_range tick -2147483648"}},
        {"a base below none",
         snap_single(20, -7, crc, body),
         {"finding snapshot.negative_base tick 20", "snapshot 20<--1 ok 2"}},
        {"a base in the future",
         snap_single(20, 30, crc, body),
         {"finding snapshot.unknown_base tick 20", "snapshot 20<-30 bad"}},
        {"a distance that leaves the ints",
         message("snap_single").number(kLastTick).number(-kLastTick).number(crc).number(0).bytes(),
         {"finding snapshot.unknown_base tick 2147483647", "snapshot 2147483647<-2147483647 bad"}},
        {"part 5 of 3",
         snap_part(20, kNoBase, 3, 5, crc, body),
         {"finding snapshot.part_out_of_range tick 20"}},
        {"65 parts",
         snap_part(20, kNoBase, 65, 0, crc, Bytes(900)),
         {"finding snapshot.part_out_of_range tick 20"}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        auto script = playing_session();
        script.send(kS2c, {non_vital(row.message)});
        CHECK(script.log().lines({"snapshot", "finding"}) == row.lines);
        // After a map change, snapshots are accepted again.
        script.enter_game();
        script.log().clear();
        script.snap(2, kNoBase, kPickupAndPlayer);
        CHECK(script.log().lines({"snapshot"}) == Lines{"snapshot 2<--1 ok 2"});
    }
}

TEST_CASE("snapshot messages cut at every byte are reported and rebuild nothing") {
    const Bytes whole = snap_between(10, kNoBase, {}, kPickupAndPlayer);
    for (std::size_t size = 1; size < whole.size(); ++size) {
        CAPTURE(size);
        auto script = playing_session();
        script.send(kS2c,
                    {non_vital(Bytes{whole.begin(), whole.begin() + static_cast<int>(size)})});
        CHECK(script.log().findings() == Lines{"finding message.truncated snap_single"});
        CHECK(script.stats().snapshots == 0);
    }
}

using tw::inspect::TickClass;
using tw::inspect::TickPlausibility;

TEST_CASE("after lost datagrams, the first implausible tick counts as a restart") {
    using enum TickClass;
    TickPlausibility gate;
    REQUIRE(gate.classify_tick(100'000, 0) == plausible);
    gate.expect_tick_restart(kSecond);
    CHECK(gate.classify_tick(100'050, kSecond) == plausible); // within the elapsed time
    CHECK(gate.classify_tick(2, 60 * kSecond) == restarted);  // loading a map takes time
    CHECK(gate.classify_tick(90'000, 60 * kSecond) == implausible);
    gate.expect_tick_restart(60 * kSecond);
    CHECK(gate.classify_tick(500, 70 * kSecond) == plausible); // the server goes on as before
    CHECK(gate.classify_tick(90'000, 70 * kSecond) == implausible);
}

TEST_CASE("a tick is plausible by the elapsed time, or if three ticks fit each other") {
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
        {"the first, whatever it is", {{kLastTick, 0, plausible}}},
        {"up to the slack at once",
         {{100, 0, plausible}, {350, 0, plausible}, {601, 0, implausible}}},
        {"more after a pause",
         {{100, 0, plausible},
          {850, 10, plausible},
          {1600, 20, plausible},
          {2351, 30, implausible}}},
        {"late ones",
         {{1000, 0, plausible}, {750, 0, plausible}, {749, 0, implausible}, {1002, 0, plausible}}},
        {"a clock that goes back",
         {{100, 50, plausible}, {102, 0, plausible}, {104, 0, plausible}}},
        {"one of the far future",
         {{100, 0, plausible},
          {kLastTick, 0, implausible},
          {102, 0, plausible},
          {104, 0, plausible}}},
        {"now and then one of the far future",
         {{100, 0, plausible},
          {kLastTick, 0, implausible},
          {102, 0, plausible},
          {kLastTick - 1, 0, implausible},
          {104, 0, plausible},
          {kLastTick - 2, 0, implausible},
          {106, 0, plausible}}},
        {"parts of one tick count once",
         {{100, 0, plausible},
          {9000, 0, implausible},
          {9000, 0, implausible},
          {9000, 0, implausible}}},
        {"a restart that nobody told",
         {{100'000, 0, plausible},
          {2, 1, implausible},
          {4, 1, implausible},
          {6, 1, restarted},
          {8, 1, plausible}}},
        {"strays that do not agree",
         {{100, 0, plausible},
          {9000, 0, implausible},
          {50'000, 0, implausible},
          {90'000, 0, implausible}}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        TickPlausibility gate;
        for (const Step& step : row.steps) {
            CAPTURE(step.tick);
            CHECK(gate.classify_tick(step.tick, step.time * kSecond) == step.verdict);
        }
    }
}

TEST_CASE("a forged tick in the far future is reported and stops nothing") {
    auto script = playing_session();
    script.snap(10, kNoBase, kOnePickup);
    script.log().clear();
    script.snap(kLastTick - 1, kNoBase, kOnePickup);
    script.send(tw::wire::Direction::s2c, {non_vital(snap_empty(kLastTick, kNoBase))});
    script.snap(12, 10, kOnePickup);
    script.snap(14, 12, kOnePickup);
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"finding snapshot.tick_jump tick 2147483646",
                "finding snapshot.tick_jump tick 2147483647", "snapshot 12<-10 ok 1",
                "snapshot 14<-12 ok 1"});
}

TEST_CASE("a forged first tick is dropped when the server's ticks continue") {
    auto script = playing_session();
    script.snap(kLastTick - 1, kNoBase, kOnePickup);
    script.log().clear();
    for (Tick tick = 10; tick <= 18; tick += 2) {
        script.snap(tick, kNoBase, kOnePickup);
    }
    CHECK(script.log().lines({"snapshot"}) ==
          Lines{"snapshot 14<--1 ok 1", "snapshot 16<--1 ok 1", "snapshot 18<--1 ok 1"});
    CHECK(script.log().count_of("snapshot.tick_jump") == 3);
}
