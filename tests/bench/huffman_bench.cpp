#include "proxy/wire/huffman.h"
#include "proxy/wire/packet.h"
#include "tests/bench/plain_decoder.h"
#include "tests/support/capture.h"
#include "tests/support/test_data.h"

#include <array>
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

/// Returns the compressed payloads of a capture in order.
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

using Room = std::array<std::byte, kMaxPayloadSize>;

struct Ours {
    [[nodiscard]] static std::optional<std::size_t> decompress(std::span<const std::byte> in,
                                                               std::span<std::byte> out) {
        const auto size = huffman_decompress(in, out);
        return size ? std::optional{*size} : std::nullopt;
    }
};

/// Decodes like the reference client.
using Plain = bench::plain::Huffman;

/// Argument: number of players in the capture. The bytes per second count the output.
template <typename Decoder>
void decompress(benchmark::State& state) {
    const auto payloads = compressed_payloads(state.range(0));
    const Decoder decoder;
    Room room;
    std::size_t bytes = 0;
    std::size_t packets = 0;
    for (auto _ : state) {
        for (const auto& payload : payloads) {
            const auto size = decoder.decompress(payload, room);
            benchmark::DoNotOptimize(room);
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

/// Decodes two packets together, as the proxy does.
void decompress_pairs(benchmark::State& state) {
    const auto payloads = compressed_payloads(state.range(0));
    std::array<Room, 2> rooms;
    std::size_t bytes = 0;
    std::size_t packets = 0;
    for (auto _ : state) {
        for (std::size_t i = 0; i + 1 < payloads.size(); i += 2) {
            const auto sizes =
                huffman_decompress({payloads[i], rooms[0]}, {payloads[i + 1], rooms[1]});
            benchmark::DoNotOptimize(rooms);
            if (!sizes[0] || !sizes[1]) {
                state.SkipWithError("a payload does not decompress");
            }
            bytes += sizes[0].value_or(0) + sizes[1].value_or(0);
        }
        packets += payloads.size() / 2 * 2;
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
    state.counters["per_packet"] = benchmark::Counter(
        static_cast<double>(packets), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK(decompress_pairs)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);

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
