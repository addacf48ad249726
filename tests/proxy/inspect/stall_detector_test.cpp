// Tests how stalls are detected from the snapshots and from the client's acknowledgements.
// Covers: proxy/inspect/snapshots/stall_detector.cpp
#include "proxy/inspect/snapshots/stall_detector.h"
#include "tests/support/doctest_lines.h"
#include "tests/support/record_sink.h"
#include "tests/support/session_script.h"
#include "tests/support/time.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;
using snapshot::kNoBase;

namespace {

Items pickup_at_step(std::int32_t step) {
    return {{{4, 1}, {10 + step, 20, 0, 0}}};
}

/// Collects the details of reported stalls.
struct StallDetails final : TypedRecordSink<StallDetails> {
    void on(const record::FindingRecord& found) {
        if (found.id == record::FindingId::snapshot_client_stalled) {
            details.emplace_back(found.detail);
        }
    }

    Lines details;
};

/// Simulates a server with a snapshot every second tick, and a client that acknowledges them.
class SimulatedPlay {
  public:
    SimulatedPlay() : SimulatedPlay{SessionScript{}} {}

    explicit SimulatedPlay(record::RecordSink& sink) : SimulatedPlay{SessionScript{{}, sink}} {}

    /// Skips this many snapshots.
    void skip_snapshots(int count) {
        tick_ += 2 * count;
        script.pause(count * 40 * kMillisecond);
    }

    void send_acked_snapshot(bool full = false) {
        send_unacked_snapshot(full);
        send_ack(tick_);
    }

    /// Waits until no more evidence of a stall's cause is expected.
    void wait_for_evidence() {
        for (int i = 0; i < 30; ++i) {
            send_acked_snapshot();
        }
    }

    /// Sends a correct snapshot without an acknowledgement.
    void send_unacked_snapshot(bool full = false) {
        advance_tick();
        script.snap(tick_, full ? kNoBase : base_, pickup_at_step(tick_));
        base_ = tick_;
    }

    /// Sends a snapshot that only the client receives.
    void send_unseen_snapshot() {
        advance_tick();
        static_cast<void>(script.snap_datagram(tick_, base_, pickup_at_step(tick_)));
        base_ = tick_;
    }

    void send_damaged_snapshot() {
        advance_tick();
        script.snap_body(tick_, base_, 1, delta_body({}, pickup_at_step(1)));
    }

    void send_ack(snapshot::Tick tick) { send_ack(tick, tick_); }

    /// `intended`: the tick for which the input is meant.
    void send_ack(snapshot::Tick tick, snapshot::Tick intended) {
        script.send(kC2s, {non_vital(input(tick, intended))});
        script.pause(-10 * kMillisecond);
    }

    void send_part_ahead() {
        const Bytes piece(snapshot::kMaxPartSize, std::byte{0});
        script.send(kS2c, {non_vital(snap_part(tick_ + 4, base_, 2, 0, 1, piece))});
        script.pause(-10 * kMillisecond);
    }

    void send_client_version(std::int32_t version) {
        script.send(kC2s, message("client_version")
                              .raw(Bytes(16, std::byte{1}))
                              .number(version)
                              .string("a client"));
        script.pause(-10 * kMillisecond);
    }

    [[nodiscard]] snapshot::Tick tick() const { return tick_; }

    SessionScript script;

  private:
    explicit SimulatedPlay(SessionScript&& begun) : script{std::move(begun)} {
        script.join_ddnet();
        script.enter_game();
        script.snap(tick_, kNoBase, pickup_at_step(0));
        base_ = tick_;
        send_ack(tick_);
        for (int i = 0; i < 21; ++i) { // the detector learns the usual interval
            send_acked_snapshot();
        }
    }

    void advance_tick() {
        tick_ += 2;
        script.pause(30 * kMillisecond); // each datagram takes 10 more
    }

    snapshot::Tick tick_ = 100;
    snapshot::Tick base_ = 0;
};

} // namespace

TEST_CASE("a client that receives all snapshots never stalls") {
    SimulatedPlay play;
    for (int i = 0; i < 100; ++i) {
        play.send_acked_snapshot();
    }
    CHECK(play.script.stats().frozen_ms == 0);
    CHECK(play.script.stats().freeze_us.count == 0);
}

TEST_CASE("lost snapshots stall a client for as long as they are overdue") {
    SimulatedPlay play;
    play.skip_snapshots(1);
    play.send_acked_snapshot();
    CHECK(play.script.stats().frozen_ms == 40);
    CHECK(play.script.log().count_of("snapshot.client_stalled") == 0);
    play.skip_snapshots(10);
    play.send_acked_snapshot();
    CHECK(play.script.stats().frozen_ms == 440);
    CHECK(play.script.stats().freeze_us.max == 400'000);
    play.wait_for_evidence();
    CHECK(play.script.stats().frozen_ms == 440);
    CHECK(play.script.log().findings().back() ==
          "finding snapshot.client_stalled tick 168 unknown");
}

TEST_CASE("rejected snapshots stall a client until a right one arrives") {
    SimulatedPlay play;
    for (int i = 0; i < 11; ++i) {
        play.send_damaged_snapshot();
    }
    play.send_ack(-1);
    play.send_acked_snapshot(true);
    CHECK(play.script.stats().frozen_ms == 440);
    const auto findings = play.script.log().findings();
    REQUIRE_FALSE(findings.empty());
    CHECK(play.script.log().count_of("snapshot.client_stalled") == 1);
    CHECK(findings.back() == "finding snapshot.client_stalled tick 166 rejected");
}

TEST_CASE("a client that acknowledges rejected snapshots does not stall") {
    SimulatedPlay play;
    for (int i = 0; i < 20; ++i) {
        play.send_damaged_snapshot();
        play.send_ack(144 + 2 * i);
    }
    CHECK(play.script.stats().frozen_ms == 0);
}

TEST_CASE("an acknowledged rejected snapshot counts from its arrival") {
    SimulatedPlay play;
    // The client's acknowledgements take 200 ms.
    for (int i = 0; i < 30; ++i) {
        play.send_damaged_snapshot();
        play.send_ack(play.tick() - 10);
    }
    CHECK(play.script.stats().frozen_ms == 0);
}

TEST_CASE("a client that acknowledges no new snapshot stalls") {
    struct Row {
        std::string_view name;
        int stuck; ///< number of snapshots without a newer acknowledgement
        std::uint64_t frozen;
        std::string_view told;
    };

    const Row rows[] = {
        {"a short one may be the way back", 6, 0, ""},
        {"half a second", 12, 480, "finding snapshot.client_stalled tick 168 lost_behind"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SimulatedPlay play;
        const snapshot::Tick stuck = play.tick();
        for (int i = 0; i < row.stuck; ++i) {
            play.send_unacked_snapshot();
            play.send_ack(stuck);
        }
        play.send_acked_snapshot();
        CHECK(play.script.stats().frozen_ms == row.frozen);
        CHECK(play.script.log().count_of("snapshot.client_stalled") ==
              (row.told.empty() ? 0U : 1U));
        if (!row.told.empty()) {
            CHECK(play.script.log().findings().back() == row.told);
        }
    }
}

TEST_CASE("a clock that steps back again and again makes no stall") {
    SimulatedPlay play;
    for (int i = 0; i < 20; ++i) {
        play.script.pause(-2000 * kMillisecond);
        play.wait_for_evidence();
        play.script.pause(2000 * kMillisecond);
        play.wait_for_evidence();
    }
    CHECK(play.script.stats().frozen_ms == 0);
    CHECK(play.script.log().count_of("snapshot.client_stalled") == 0);
    // One step back does not hide the stalls of the whole session.
    for (int i = 0; i < 20; ++i) {
        play.wait_for_evidence();
    }
    play.skip_snapshots(10);
    play.send_acked_snapshot();
    play.wait_for_evidence();
    CHECK(play.script.log().count_of("snapshot.client_stalled") == 1);
}

TEST_CASE("delayed or rare inputs are no stall") {
    SimulatedPlay play;
    // An input and all later ones are delayed by half a second.
    const snapshot::Tick before = play.tick();
    for (int i = 0; i < 12; ++i) {
        play.send_unacked_snapshot();
    }
    play.send_ack(before, before + 1);
    play.send_acked_snapshot();
    // In a menu, the client sends one input a second.
    for (int i = 0; i < 100; ++i) {
        play.send_unacked_snapshot();
        if (i % 25 == 0) {
            play.send_ack(play.tick() - 2);
        }
    }
    CHECK(play.script.stats().frozen_ms == 0);
}

TEST_CASE("a freeze that is detected in two ways is counted once") {
    SimulatedPlay play;
    const snapshot::Tick shown = play.tick();
    play.send_ack(shown);
    play.skip_snapshots(10);
    play.send_ack(shown, shown + 18);
    play.send_acked_snapshot();
    play.wait_for_evidence();
    CHECK(play.script.stats().frozen_ms >= 400);
    CHECK(play.script.stats().frozen_ms <= 440);
    CHECK(play.script.log().count_of("snapshot.client_stalled") == 1);
}

TEST_CASE("clients ignore a snapshot after a part of a newer one") {
    SimulatedPlay play;
    const snapshot::Tick shown = play.tick();
    play.send_part_ahead();
    play.send_unacked_snapshot();
    play.send_ack(shown);
    CHECK(play.script.stats().verified == 23);
    play.skip_snapshots(1);
    play.send_acked_snapshot(true);
    CHECK(play.script.stats().frozen_ms == 80);
}

TEST_CASE("a stall is reported with the client's version") {
    struct Row {
        std::int32_t version;
        std::string_view detail;
    };

    const Row rows[] = {
        {16040, "; the client is DDNet 16.4"},
        {20011, "; the client is DDNet 20.1.1"},
        {707, "; the client is DDNet 707"},
        {-5, ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.version);
        StallDetails sink;
        SimulatedPlay play{sink};
        play.send_client_version(row.version);
        play.skip_snapshots(10);
        play.wait_for_evidence();
        CHECK(sink.details ==
              Lines{"no input of that time says whether the server ran; or server_silent, lost" +
                    std::string{row.detail}});
    }
}

TEST_CASE("an acknowledgement of an unknown tick changes nothing") {
    SimulatedPlay play;
    play.send_damaged_snapshot();
    play.send_ack(2'000'000'000);
    play.skip_snapshots(10);
    play.send_acked_snapshot();
    CHECK(play.script.stats().frozen_ms == 440);
}

TEST_CASE("a pause after lost copies or at the end of a session is no stall") {
    SimulatedPlay play;
    play.script.lose_copies(5);
    play.skip_snapshots(50);
    play.send_acked_snapshot();
    CHECK(play.script.stats().frozen_ms == 0);
    play.skip_snapshots(50);
    play.script.close("idle");
    CHECK(play.script.stats().frozen_ms == 0);
}

TEST_CASE("a hole in a capture is no stall") {
    SimulatedPlay play;
    play.skip_snapshots(50);
    play.send_unseen_snapshot();
    play.send_acked_snapshot();
    CHECK(play.script.log().count_of("snapshot.unknown_base") == 1);
    play.send_acked_snapshot(true);
    play.send_acked_snapshot();
    CHECK(play.script.stats().frozen_ms == 0);
    play.skip_snapshots(10);
    play.send_acked_snapshot();
    CHECK(play.script.stats().frozen_ms == 400);
}

TEST_CASE("a client that acknowledges a snapshot missed by the capture did not stall") {
    SimulatedPlay play;
    play.skip_snapshots(50);
    play.send_unseen_snapshot();
    const snapshot::Tick unseen = play.tick();
    play.send_unacked_snapshot();
    play.send_ack(unseen);
    play.send_acked_snapshot(true);
    CHECK(play.script.log().count_of("snapshot.unknown_base") == 1);
    CHECK(play.script.stats().frozen_ms == 0);
}

TEST_CASE("vital chunks missed by the capture make the displayed snapshot unknown") {
    SimulatedPlay play;
    play.script.send_unseen(kS2c, message("rcon_line").string("in the hole"));
    play.skip_snapshots(50);
    play.script.send(kS2c, message("rcon_line").string("behind the hole"));
    play.send_ack(play.tick());
    CHECK(play.script.log().findings().back() == "finding chunk.unseen_ack");
    play.send_acked_snapshot(true);
    CHECK(play.script.stats().frozen_ms == 0);
}

TEST_CASE("a stall at the end of a session lasts until the client's last input") {
    SimulatedPlay play;
    for (int i = 0; i < 25; ++i) {
        play.send_damaged_snapshot();
        play.send_ack(140);
    }
    play.script.close("idle");
    CHECK(play.script.log().count_of("snapshot.client_stalled") == 1);
    REQUIRE(play.script.log().summaries().size() == 1);
    CHECK(play.script.log().summaries().front().frozen_ms >= 900);
}

using namespace tw::inspect;

namespace {

struct SentSnapshot {
    int tick;
    bool full = false;
};

struct CadenceTotals {
    std::uint64_t skipped = 0;
    std::uint64_t missed = 0;
    int reordered = 0;
};

CadenceTotals measure_cadence(const std::vector<SentSnapshot>& snapshots) {
    SnapshotCadence cadence;
    CadenceTotals totals;
    for (const SentSnapshot& sent : snapshots) {
        const SnapshotArrival arrival =
            cadence.on_arrival(sent.tick, std::int64_t{sent.tick} * 20 * kMillisecond, sent.full);
        totals.skipped += arrival.num_skipped_ticks;
        totals.missed += arrival.num_missed_snapshots;
        totals.reordered += arrival.is_reordered ? 1 : 0;
    }
    return totals;
}

} // namespace

TEST_CASE("ticks beyond the usual interval count as missed snapshots") {
    struct Row {
        const char* name;
        std::vector<SentSnapshot> snapshots;
        std::uint64_t skipped = 0;
        std::uint64_t missed = 0;
        int reordered = 0;
    };

    const Row rows[] = {
        {"every second tick", {{10, true}, {12}, {14}, {16}}},
        {"every tick", {{10, true}, {11}, {12}, {13}}},
        {"one missing", {{10, true}, {12}, {14}, {18}, {20}}, 2, 1},
        {"three missing", {{10, true}, {12}, {14}, {22}, {24}}, 6, 3},
        {"one missing of every tick", {{1, true}, {2}, {3}, {5}}, 1, 1},
        {"a full one after a pause is no loss", {{10, true}, {12}, {14}, {50, true}, {52}}},
        {"until one is acknowledged, servers send every 50th tick",
         {{10, true}, {12}, {14}, {50, true}, {100, true}, {124}, {126}}},
        {"right after a join, every 10th", {{10, true}, {12}, {14}, {20}, {30}, {32}, {34}}},
        {"a second after it, a 10th tick is like any other",
         {{10, true}, {12}, {14}, {60}, {62}, {64}, {70}, {72}},
         48,
         24},
        {"the first step has nothing to be held against", {{10, true}, {20}}},
        {"a late one is reported", {{10, true}, {12}, {14}, {18}, {16}, {20}}, 2, 1, 1},
        {"ticks as far apart as they can be",
         {{0, true}, {1}, {2}, {2147483647}},
         2147483644,
         2147483644},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const CadenceTotals totals = measure_cadence(row.snapshots);
        CHECK(totals.skipped == row.skipped);
        CHECK(totals.missed == row.missed);
        CHECK(totals.reordered == row.reordered);
    }
}

TEST_CASE("jitter is the difference between arrival times and ticks") {
    struct Row {
        const char* name;
        int tick;
        std::int64_t time_ms;
        std::optional<std::int64_t> deviation_us;
    };

    const Row rows[] = {
        {"the first", 100, 1000, std::nullopt},
        {"on time", 102, 1040, 0},
        {"5 ms late", 104, 1085, 5000},
        {"and the next is early by as much", 106, 1120, 5000},
        {"out of order", 105, 1121, std::nullopt},
        {"the same again", 106, 1122, std::nullopt},
        {"counted from the newest", 108, 1160, 0},
        {"behind a pause", 1000, 60000, std::nullopt},
        {"on time after the pause", 1001, 60020, 0},
        {"a map change: ticks start again", 1, 60040, std::nullopt},
        {"on time after it", 3, 60080, 0},
    };
    ArrivalJitter jitter;
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(jitter.on_arrival(row.tick, row.time_ms * kMillisecond) == row.deviation_us);
    }
}
