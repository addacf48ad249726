// Covers: proxy/inspect/snapshots/client_view.cpp
#include "proxy/inspect/snapshots/client_view.h"

#include <vector>

#include <doctest/doctest.h>

using namespace tw::inspect;

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

struct Sent {
    int tick;
    bool full = false;
};

struct Totals {
    std::uint64_t skipped = 0;
    std::uint64_t missed = 0;
    int reordered = 0;
};

Totals feed(const std::vector<Sent>& snapshots) {
    SnapshotCadence cadence;
    Totals totals;
    for (const Sent& sent : snapshots) {
        const Arrival arrival =
            cadence.on_arrival(sent.tick, std::int64_t{sent.tick} * 20 * kMillisecond, sent.full);
        totals.skipped += arrival.skipped;
        totals.missed += arrival.missed;
        totals.reordered += arrival.reordered ? 1 : 0;
    }
    return totals;
}

} // namespace

TEST_CASE("ticks beyond the usual step are missed snapshots") {
    struct Row {
        const char* name;
        std::vector<Sent> snapshots;
        std::uint64_t skipped;
        std::uint64_t missed;
        int reordered;
    };

    const Row rows[] = {
        {"every second tick", {{10, true}, {12}, {14}, {16}}, 0, 0, 0},
        {"every tick", {{10, true}, {11}, {12}, {13}}, 0, 0, 0},
        {"one missing", {{10, true}, {12}, {14}, {18}, {20}}, 2, 1, 0},
        {"three missing", {{10, true}, {12}, {14}, {22}, {24}}, 6, 3, 0},
        {"one missing of every tick", {{1, true}, {2}, {3}, {5}}, 1, 1, 0},
        {"a full one after a pause is no loss",
         {{10, true}, {12}, {14}, {50, true}, {52}},
         0,
         0,
         0},
        {"until one is acknowledged, servers send every 50th tick",
         {{10, true}, {12}, {14}, {50, true}, {100, true}, {124}, {126}},
         0,
         0,
         0},
        {"right after a join, every 10th",
         {{10, true}, {12}, {14}, {20}, {30}, {32}, {34}},
         0,
         0,
         0},
        {"a second after it, a 10th tick is like any other",
         {{10, true}, {12}, {14}, {60}, {62}, {64}, {70}, {72}},
         48,
         24,
         0},
        {"the first step has nothing to be held against", {{10, true}, {20}}, 0, 0, 0},
        {"a late one is reported", {{10, true}, {12}, {14}, {18}, {16}, {20}}, 2, 1, 1},
        {"ticks as far apart as they can be",
         {{0, true}, {1}, {2}, {2147483647}},
         2147483644,
         2147483644,
         0},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Totals totals = feed(row.snapshots);
        CHECK(totals.skipped == row.skipped);
        CHECK(totals.missed == row.missed);
        CHECK(totals.reordered == row.reordered);
    }
}

TEST_CASE("jitter is what arrival and game time differ by") {
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
