// What decoding one snapshot costs, on captures of real servers. Each step includes those before
// it; the sessions of a capture take turns as they did on the wire, so their histories compete for
// the cache as they do in the proxy.

#include "snapshot/delta.h"
#include "snapshot/history.h"
#include "snapshot/varint.h"
#include "tests/bench/captured_snapshots.h"

#include <vector>

#include <benchmark/benchmark.h>

namespace {

using namespace tw::snapshot;
using tw::bench::Capture;
using tw::bench::CapturedSnapshot;

const Capture& capture(std::int64_t players) {
    static const Capture four = tw::bench::read_snapshots("bench-4.pcap.gz");
    static const Capture many = tw::bench::read_snapshots("bench-64.pcap.gz");
    return players == 4 ? four : many;
}

void per_snapshot(benchmark::State& state, std::size_t snapshots) {
    state.counters["per_snapshot"] = benchmark::Counter(
        static_cast<double>(snapshots),
        benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void varints(benchmark::State& state) {
    const auto& snapshots = capture(state.range(0)).snapshots;
    std::vector<std::int32_t> ints(kMaxDeltaInts);
    for (auto _ : state) {
        for (const auto& each : snapshots) {
            benchmark::DoNotOptimize(decode_varints(each.body, ints));
        }
    }
    per_snapshot(state, snapshots.size());
}

void decode(benchmark::State& state) {
    const auto& snapshots = capture(state.range(0)).snapshots;
    Delta delta;
    std::size_t updates = 0;
    for (auto _ : state) {
        updates = 0;
        for (const auto& each : snapshots) {
            if (!decode_delta(each.body, delta)) {
                state.SkipWithError("a delta does not decode");
            }
            updates += delta.updates.size();
        }
    }
    per_snapshot(state, snapshots.size());
    state.counters["updates"] =
        static_cast<double>(updates) / static_cast<double>(snapshots.size());
}

struct Totals {
    std::size_t items = 0;
    std::size_t ints = 0;
    std::size_t history_bytes = 0;
};

const char* replay(const Capture& capture, std::vector<History>& histories, Totals& totals) {
    Delta delta;
    DeltaOddities oddities;
    for (const CapturedSnapshot& each : capture.snapshots) {
        History& history = histories[each.session];
        if (!each.crc) {
            history.repeat(each.delta_tick, each.tick);
            continue;
        }
        if (!decode_delta(each.body, delta)) {
            return "a delta does not decode";
        }
        const auto base = [&] { return history.find(each.delta_tick).value_or(SnapshotView{}); };
        const auto room = history.reserve(room_for(base(), delta));
        const auto built = apply_delta(base(), delta, room, oddities);
        if (!built || built->checksum() != *each.crc || !history.commit(each.tick, *built)) {
            return "a snapshot is wrong";
        }
        totals.items += built->size();
        totals.ints += built->data().size();
    }
    return nullptr;
}

void all(benchmark::State& state) {
    const Capture& captured = capture(state.range(0));
    std::vector<History> histories(captured.num_sessions);
    Totals totals;
    static_cast<void>(replay(captured, histories, totals)); // lets the rings grow
    for (auto _ : state) {
        totals = {};
        for (auto& history : histories) {
            history.clear();
        }
        if (const char* error = replay(captured, histories, totals)) {
            state.SkipWithError(error);
            break;
        }
    }
    for (const auto& history : histories) {
        totals.history_bytes += history.capacity_bytes();
    }
    const auto count = static_cast<double>(captured.snapshots.size());
    per_snapshot(state, captured.snapshots.size());
    state.counters["items"] = static_cast<double>(totals.items) / count;
    state.counters["ints"] = static_cast<double>(totals.ints) / count;
    state.counters["history_KiB"] =
        static_cast<double>(totals.history_bytes) / 1024.0 / static_cast<double>(histories.size());
}

BENCHMARK(varints)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK(decode)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK(all)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
