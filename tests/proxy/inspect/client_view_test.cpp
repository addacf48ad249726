// What the player saw, beside what the client itself acknowledged.

#include "proxy/inspect/client_view.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/session_script.h"

#include <string>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;
using snapshot::kNoBase;

namespace {

constexpr auto kC2s = wire::Direction::c2s;
constexpr auto kS2c = wire::Direction::s2c;
constexpr record::Timestamp kMillisecond = 1'000'000;

Items world(std::int32_t step) {
    return {{{4, 1}, {10 + step, 20, 0, 0}}};
}

/// A server that sends every second tick, and a client that acknowledges.
class Play {
  public:
    Play() {
        script.join_ddnet();
        script.enter();
        script.snap(tick_, kNoBase, world(0));
        base_ = tick_;
        ack(tick_);
        usable();
    }

    /// Nothing comes for so many snapshots.
    void lose(int count) {
        tick_ += 2 * count;
        script.pause(count * 40 * kMillisecond);
    }

    void usable(bool full = false) {
        next();
        script.snap(tick_, full ? kNoBase : base_, world(tick_));
        base_ = tick_;
        ack(tick_);
    }

    void refused() {
        next();
        script.tell(kS2c, {plain(snap_single(tick_, base_, 1, delta_body({}, world(1))))});
    }

    void ack(snapshot::Tick tick) {
        script.tell(kC2s, {plain(message("input").number(tick).number(tick).number(40).raw(
                              Bytes(10, std::byte{0})))});
        script.pause(-10 * kMillisecond);
    }

    SessionScript script;

  private:
    void next() {
        tick_ += 2;
        script.pause(30 * kMillisecond); // and 10 that each datagram takes
    }

    snapshot::Tick tick_ = 100;
    snapshot::Tick base_ = 0;
};

} // namespace

TEST_CASE("a client that has all it needs is never frozen") {
    Play play;
    for (int i = 0; i < 100; ++i) {
        play.usable();
    }
    CHECK(play.script.stats().frozen_ms == 0);
    CHECK(play.script.stats().freeze_us.count == 0);
}

TEST_CASE("lost snapshots freeze a client for as long as they are overdue") {
    Play play;
    for (int i = 0; i < 20; ++i) {
        play.usable();
    }
    play.lose(1);
    play.usable();
    CHECK(play.script.stats().frozen_ms == 40);
    CHECK(play.script.log().count_of("snapshot.client_stalled") == 0);
    play.lose(10);
    play.usable();
    CHECK(play.script.stats().frozen_ms == 440);
    CHECK(play.script.stats().freeze_us.max == 400'000);
    CHECK(play.script.log().findings().back() == "finding snapshot.client_stalled tick 168 lost");
}

TEST_CASE("refused snapshots freeze a client until one is right, and its giving up is told") {
    Play play;
    for (int i = 0; i < 20; ++i) {
        play.usable();
    }
    for (int i = 0; i < 11; ++i) {
        play.refused();
    }
    play.ack(-1);
    play.usable(true);
    CHECK(play.script.stats().frozen_ms == 440);
    const auto findings = play.script.log().findings();
    REQUIRE_FALSE(findings.empty());
    CHECK(play.script.log().count_of("snapshot.client_stalled") == 1);
    CHECK(findings.back() == "finding snapshot.client_stalled tick 166 rejected");
}

TEST_CASE("a client that goes on although we cannot is not frozen") {
    Play play;
    for (int i = 0; i < 20; ++i) {
        play.usable();
    }
    for (int i = 0; i < 20; ++i) {
        play.refused();
        play.ack(144 + 2 * i);
    }
    CHECK(play.script.stats().frozen_ms == 0);
}

TEST_CASE("an acknowledgement of what never came changes nothing") {
    Play play;
    for (int i = 0; i < 20; ++i) {
        play.usable();
    }
    play.refused();
    play.ack(2'000'000'000);
    play.lose(10);
    play.usable();
    CHECK(play.script.stats().frozen_ms == 440);
}

TEST_CASE("a gap in the copies, another map and a quiet end count nothing") {
    Play play;
    for (int i = 0; i < 20; ++i) {
        play.usable();
    }
    play.script.gap(5);
    play.lose(50);
    play.usable();
    CHECK(play.script.stats().frozen_ms == 0);
    play.lose(50);
    play.script.close("idle");
    CHECK(play.script.stats().frozen_ms == 0);
}

TEST_CASE("a client that waits to the end has been frozen until its last input") {
    Play play;
    for (int i = 0; i < 20; ++i) {
        play.usable();
    }
    for (int i = 0; i < 25; ++i) {
        play.refused();
        play.ack(140);
    }
    play.script.close("idle");
    CHECK(play.script.log().count_of("snapshot.client_stalled") == 1);
    REQUIRE(play.script.log().summaries().size() == 1);
    CHECK(play.script.log().summaries().front().frozen_ms >= 900);
}
