#include "proxy/wire/huffman.h"
#include "proxy/wire/packet.h"
#include "tests/bench/plain_decoder.h"
#include "tests/support/capture.h"
#include "tests/support/test_data.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace tw::wire {

namespace {

std::string capture_path(std::int64_t players) {
    return test::test_data("captures/bench-" + std::to_string(players) + ".pcap.gz");
}

/// The compressed payloads of a capture, one after the other as they came.
std::vector<std::vector<std::byte>> compressed_payloads(std::int64_t players) {
    std::vector<std::vector<std::byte>> payloads;
    for (const auto& datagram : test::read_capture(capture_path(players))) {
        PacketScratch scratch;
        const auto packet = decode_packet(datagram.payload, Protocol::unknown, scratch);
        if (packet && packet->compressed) {
            payloads.emplace_back(datagram.payload.begin() + kHeaderSize, datagram.payload.end());
        }
    }
    return payloads;
}

struct Ours {
    [[nodiscard]] static std::optional<std::size_t> decompress(std::span<const std::byte> in,
                                                               std::span<std::byte> out) {
        const auto size = huffman_decompress(in, out);
        return size ? std::optional{*size} : std::nullopt;
    }
};

/// As the reference client does it.
using Plain = bench::plain::Huffman;

/// Argument: players in the capture. Bytes per second count what comes out.
template <typename Decoder>
void decompress(benchmark::State& state) {
    const auto payloads = compressed_payloads(state.range(0));
    const Decoder decoder;
    PacketScratch scratch;
    const std::span limit = std::span{scratch}.first(kMaxPayloadSize);
    std::size_t bytes = 0;
    std::size_t packets = 0;
    for (auto _ : state) {
        for (const auto& payload : payloads) {
            const auto size = decoder.decompress(payload, limit);
            benchmark::DoNotOptimize(scratch);
            if (!size) {
                state.SkipWithError("a payload does not decompress");
            }
            bytes += size.value_or(0);
        }
        packets += payloads.size();
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
    state.counters["per_packet"] = benchmark::Counter(
        static_cast<double>(packets), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK(decompress<Ours>)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK(decompress<Plain>)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);

void decode_packets_of_capture(benchmark::State& state) {
    const auto datagrams = test::read_capture(capture_path(state.range(0)));
    PacketScratch scratch;
    std::size_t packets = 0;
    for (auto _ : state) {
        for (const auto& datagram : datagrams) {
            benchmark::DoNotOptimize(decode_packet(datagram.payload, Protocol::six, scratch));
        }
        packets += datagrams.size();
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(packets));
}

BENCHMARK(decode_packets_of_capture)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);

} // namespace

} // namespace tw::wire
