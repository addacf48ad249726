// Compares the cost of a snapshot in 0.6 and in 0.7: the same tees and projectiles with the same movements, each dialect in its own
// session. `per_snapshot` counts the verified snapshots.

#include "tests/support/captured_traffic.h"
#include "tests/support/session_script.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using namespace tw;
using snapshot::Dialect;
using snapshot::ItemKey;

constexpr int kTees = 12;
constexpr int kShots = 6;
constexpr snapshot::Tick kFirst = 1000;
constexpr snapshot::Tick kStep = 2;
constexpr int kSnapshots = 2000;
/// A client acknowledges with a delay of this many snapshots.
constexpr int kAckLag = 2;

/// The items that are equal in both dialects: they have the same ints, but different type numbers.
test::Items items_of_step(int step, Dialect dialect) {
    test::Items items;
    for (int tee = 0; tee < kTees; ++tee) {
        std::vector<std::int32_t> character(22, 3);
        character[0] = kFirst + step;
        character[1] = 1600 + 40 * tee + step % 200; // x
        character[2] = 1000 + 7 * tee;
        character[3] = 256;                // speed
        character[5] = (step * 13) % 1600; // aim
        items[ItemKey{snapshot::character_type(dialect), static_cast<std::uint16_t>(tee)}] =
            character;
    }
    for (int shot = 0; shot < kShots; ++shot) {
        const int since = step / 25; // a new projectile twice a second
        items[ItemKey{snapshot::kProjectileType, static_cast<std::uint16_t>(shot + since)}] = {
            1600 + 100 * shot, 900, 700, -40 * shot, 2, kFirst + 50 * since};
    }
    return items;
}

std::vector<test::Bytes> snapshot_datagrams_of(test::SessionScript& script) {
    std::vector<test::Bytes> datagrams;
    for (int step = 0; step < kSnapshots; ++step) {
        const snapshot::Tick tick = kFirst + step * kStep;
        const snapshot::Tick base = step < kAckLag ? snapshot::kNoBase : tick - kAckLag * kStep;
        datagrams.push_back(
            script.snap_datagram(tick, base, items_of_step(step, script.dialect())));
    }
    return datagrams;
}

template <Dialect kDialect>
void measure_snapshots(benchmark::State& state) {
    using Clock = std::chrono::steady_clock;
    test::NoSink sink;
    std::size_t bytes = 0;
    for (auto _ : state) {
        test::SessionScript script{{}, sink};
        script.compression = wire::Compression::if_shorter;
        if (kDialect == Dialect::seven) {
            script.join_seven();
        } else {
            script.join_ddnet();
        }
        script.enter_game();
        const auto datagrams = snapshot_datagrams_of(script);
        const auto begin = Clock::now();
        for (const test::Bytes& datagram : datagrams) {
            script.send_datagram(wire::Direction::s2c, datagram);
        }
        state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
        if (script.stats().verified != kSnapshots) {
            state.SkipWithError("not every snapshot was verified");
            break;
        }
        bytes = script.stats(wire::Direction::s2c).bytes;
    }
    state.counters["per_snapshot"] = benchmark::Counter(
        kSnapshots, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
    state.counters["bytes"] = static_cast<double>(bytes);
}

BENCHMARK(measure_snapshots<Dialect::six>)
    ->Name("snapshots<six>")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(measure_snapshots<Dialect::seven>)
    ->Name("snapshots<seven>")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
