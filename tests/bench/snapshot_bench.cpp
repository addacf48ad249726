// Measures the cost of decoding one snapshot, on captures of real servers. Each step includes the previous
// ones. The sessions of a capture take turns as on the network, so their histories compete for the cache as
// in the proxy.

#include "proxy/wire/packet.h"
#include "snapshot/cursor.h"
#include "snapshot/delta.h"
#include "snapshot/history.h"
#include "tests/bench/captured_snapshots.h"
#include "tests/bench/plain_decoder.h"
#include "tests/bench/server_datagrams.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using namespace tw::snapshot;
using tw::bench::Capture;
using tw::bench::CapturedSnapshot;
using tw::bench::ServerDatagram;
using tw::bench::ServerDatagrams;

const Capture& captured_snapshots(std::int64_t players) {
    static const Capture four = tw::bench::read_snapshots("bench-4.pcap.gz");
    static const Capture many = tw::bench::read_snapshots("bench-64.pcap.gz");
    return players == 4 ? four : many;
}

void set_per_snapshot_counter(benchmark::State& state, std::size_t snapshots) {
    state.counters["per_snapshot"] = benchmark::Counter(
        static_cast<double>(snapshots),
        benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void varints(benchmark::State& state) {
    const auto& snapshots = captured_snapshots(state.range(0)).snapshots;
    std::vector<std::int32_t> ints(kMaxDeltaInts);
    for (auto _ : state) {
        for (const auto& each : snapshots) {
            benchmark::DoNotOptimize(decode_varints(each.body, ints));
        }
    }
    set_per_snapshot_counter(state, snapshots.size());
}

void decode(benchmark::State& state) {
    const auto& snapshots = captured_snapshots(state.range(0)).snapshots;
    Delta delta;
    std::size_t updates = 0;
    for (auto _ : state) {
        updates = 0;
        for (const auto& each : snapshots) {
            if (!decode_delta(each.body, delta, tw::snapshot::kAgreedSizes)) {
                state.SkipWithError("a delta does not decode");
            }
            updates += delta.updates.size();
        }
    }
    set_per_snapshot_counter(state, snapshots.size());
    state.counters["updates"] =
        static_cast<double>(updates) / static_cast<double>(snapshots.size());
}

struct SnapshotTotals {
    std::size_t items = 0;
    std::size_t ints = 0;
    std::size_t history_bytes = 0;
};

std::vector<History> make_histories(std::size_t sessions, Arena& arena) {
    std::vector<History> histories;
    histories.reserve(sessions);
    for (std::size_t i = 0; i < sessions; ++i) {
        histories.emplace_back(arena);
    }
    return histories;
}

const char* replay_snapshots(const Capture& capture, std::vector<History>& histories,
                             SnapshotTotals& totals) {
    Delta delta;
    DeltaWarnings warnings;
    for (const CapturedSnapshot& each : capture.snapshots) {
        History& history = histories[each.session];
        if (!each.crc) {
            history.store_unchanged(each.delta_tick, each.tick);
            continue;
        }
        if (!decode_delta(each.body, delta, tw::snapshot::kAgreedSizes)) {
            return "a delta does not decode";
        }
        const auto base = [&] { return history.find(each.delta_tick).value_or(SnapshotView{}); };
        const auto built = apply_delta(base(), delta, history, warnings);
        if (!built || built->checksum() != *each.crc || !history.commit(each.tick, *built)) {
            return "a snapshot is wrong";
        }
        totals.items += built->size();
        totals.ints += built->data().size();
    }
    return nullptr;
}

void all(benchmark::State& state) {
    const Capture& captured = captured_snapshots(state.range(0));
    Arena arena;
    std::vector<History> histories = make_histories(captured.num_sessions, arena);
    SnapshotTotals totals;
    static_cast<void>(replay_snapshots(captured, histories, totals)); // lets the rings grow
    for (auto _ : state) {
        totals = {};
        for (auto& history : histories) {
            history.clear();
        }
        if (const char* error = replay_snapshots(captured, histories, totals)) {
            state.SkipWithError(error);
            break;
        }
    }
    for (const auto& history : histories) {
        totals.history_bytes += history.segment_bytes();
    }
    const auto count = static_cast<double>(captured.snapshots.size());
    set_per_snapshot_counter(state, captured.snapshots.size());
    state.counters["items"] = static_cast<double>(totals.items) / count;
    state.counters["ints"] = static_cast<double>(totals.ints) / count;
    state.counters["history_KiB"] =
        static_cast<double>(totals.history_bytes) / 1024.0 / static_cast<double>(histories.size());
}

const ServerDatagrams& captured_datagrams(std::int64_t players) {
    static const auto four = tw::bench::read_server_datagrams("bench-4.pcap.gz");
    static const auto many = tw::bench::read_server_datagrams("bench-64.pcap.gz");
    return players == 4 ? four : many;
}

/// Decodes from a server's datagrams to verified snapshots, and does nothing else.
class Ours {
  public:
    explicit Ours(std::size_t sessions)
        : parts_(sessions), histories_{make_histories(sessions, arena_)} {}

    void decode_datagram(const ServerDatagram& each, std::span<const std::byte> next) {
        scratch_.begin_datagram(each.bytes, next);
        const auto packet = tw::wire::decode_packet(each.bytes, tw::wire::Protocol::six, scratch_);
        if (!packet || packet->kind != tw::wire::PacketKind::chunks) {
            return;
        }
        History& history = histories_[each.session];
        tw::bench::for_each_delta(
            tw::wire::ChunkReader{packet->payload, packet->num_chunks, tw::wire::Dialect::six},
            parts_[each.session],
            [&](const AssembledDelta& body) { verified += decode(history, body) ? 1U : 0U; },
            [&](Tick tick, Tick base) { history.store_unchanged(base, tick); });
    }

    void reset_sessions() {
        std::fill(parts_.begin(), parts_.end(), PartAssembler{});
        for (History& history : histories_) {
            history.clear();
        }
    }

    std::size_t verified = 0;

  private:
    bool decode(History& history, const AssembledDelta& body) {
        if (!decode_delta(body.body, delta_, tw::snapshot::kAgreedSizes)) {
            return false;
        }
        const auto base = [&] { return history.find(body.delta_tick).value_or(SnapshotView{}); };
        const auto built = apply_delta(base(), delta_, history, warnings_);
        return built && built->checksum() == body.crc && history.commit(body.tick, *built);
    }

    Arena arena_;
    std::vector<PartAssembler> parts_;
    std::vector<History> histories_;
    tw::wire::PacketScratch scratch_{};
    Delta delta_;
    DeltaWarnings warnings_;
};

/// Decodes the same datagrams in the way of the reference client.
class Plain {
  public:
    explicit Plain(std::size_t sessions) : parts_(sessions), sessions_(sessions) {}

    void decode_datagram(const ServerDatagram& each, std::span<const std::byte> /*next*/) {
        const auto flags = std::to_integer<unsigned>(each.bytes[0]);
        if ((flags & 0x30U) != 0) { // connless and control packets
            return;
        }
        std::span<const std::byte> payload = std::span{each.bytes}.subspan(tw::wire::kHeaderSize);
        if ((flags & 0x80U) != 0) {
            const auto size = huffman_.decompress(payload, room_);
            if (!size) {
                return;
            }
            payload = std::span{room_}.first(*size);
        }
        auto& session = sessions_[each.session];
        tw::bench::for_each_delta(
            tw::wire::ChunkReader{payload, std::to_integer<std::uint8_t>(each.bytes[2]),
                                  tw::wire::Dialect::six},
            parts_[each.session],
            [&](const AssembledDelta& body) {
                verified +=
                    session.decode(body.tick, body.delta_tick, body.body) == body.crc ? 1U : 0U;
            },
            [&](Tick tick, Tick base) { session.repeat_snapshot(tick, base); });
    }

    void reset_sessions() { std::fill(parts_.begin(), parts_.end(), PartAssembler{}); }

    std::size_t verified = 0;

  private:
    std::vector<PartAssembler> parts_;
    std::vector<tw::bench::plain::Session> sessions_;
    tw::bench::plain::Huffman huffman_;
    std::array<std::byte, tw::wire::kMaxPayloadSize> room_{};
};

template <typename Decoder>
void datagrams(benchmark::State& state) {
    const ServerDatagrams& captured = captured_datagrams(state.range(0));
    const auto snapshots = static_cast<std::size_t>(
        std::count_if(captured_snapshots(state.range(0)).snapshots.begin(),
                      captured_snapshots(state.range(0)).snapshots.end(),
                      [](const CapturedSnapshot& each) { return each.crc.has_value(); }));
    Decoder decoder{captured.num_sessions};
    const auto play = [&] {
        decoder.reset_sessions();
        decoder.verified = 0;
        const auto& all = captured.datagrams;
        for (std::size_t i = 0; i < all.size(); ++i) {
            decoder.decode_datagram(all[i], i + 1 == all.size() ? std::span<const std::byte>{}
                                                                : std::span{all[i + 1].bytes});
        }
    };
    play(); // lets the memory grow
    for (auto _ : state) {
        play();
    }
    if (decoder.verified != snapshots) {
        state.SkipWithError("not every snapshot was verified");
    }
    set_per_snapshot_counter(state, snapshots);
}

BENCHMARK(datagrams<Ours>)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK(datagrams<Plain>)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK(varints)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK(decode)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK(all)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
