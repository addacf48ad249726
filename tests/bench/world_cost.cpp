// Measures the cost of merging the snapshots of 64 players, and of writing the merged snapshots with all
// their items, compared with decoding alone, on one core. Prints a JSON object:
//
//     world_cost [ROUNDS [decode|worlds|lines]]      (default: 5 of each, in turns; the fastest counts)
//
// Each round starts without state, like a program that reads the capture.

#include "proxy/sink/json_lines.h"
#include "proxy/world/server_worlds.h"
#include "tests/support/captured_traffic.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <limits>
#include <set>
#include <string_view>

namespace {

using namespace tw;

constexpr const char* kCapture = "bench-64.pcap.gz";
constexpr std::array<std::string_view, 3> kWays{"decode", "worlds", "lines"};

double cpu_ms() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

class ByteCounter final : public sink::Output {
  public:
    void write(std::string_view block) override { bytes += block.size(); }

    std::size_t bytes = 0;
};

/// Counts the snapshots and their ticks, and the merged snapshots and their ticks.
class SnapshotCounter final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        if (const auto* const* world = std::get_if<const record::WorldRecord*>(&record)) {
            ++worlds;
            items += (*world)->merged.items.size();
            last_world = (*world)->tick;
        } else if (const auto* const* snapshot =
                       std::get_if<const record::SnapshotRecord*>(&record);
                   snapshot != nullptr && (*snapshot)->rebuilt && !(*snapshot)->items.empty()) {
            ++snapshots;
            if ((*snapshot)->tick != tick_) {
                tick_ = (*snapshot)->tick;
                ticks.insert(tick_);
            }
        }
        if (next != nullptr) {
            next->on_record(record);
        }
    }

    record::RecordSink* next = nullptr;
    std::size_t worlds = 0;
    std::size_t items = 0;
    std::size_t snapshots = 0;
    snapshot::Tick last_world = 0;
    std::set<snapshot::Tick> ticks;

  private:
    snapshot::Tick tick_ = snapshot::kNoBase;
};

struct RoundCosts {
    double ms = 0;
    std::size_t worlds = 0;
    std::size_t items = 0;
    std::size_t bytes = 0;
    std::size_t snapshots = 0;
    std::size_t ticks = 0;
};

RoundCosts play_round(const std::vector<test::TrafficDatagram>& traffic, std::string_view way) {
    const double begin = cpu_ms();
    ByteCounter output;
    sink::JsonLines lines{{.items = sink::ItemChoice::all}, output};
    SnapshotCounter worlds;
    worlds.next = way == "lines" ? &lines : nullptr;
    world::WorldMerger merger{snapshot::ObjectSet::standard(), worlds};
    world::WorldInputConverter feed{merger};
    SnapshotCounter sessions;
    sessions.next = way == "decode" ? nullptr : &feed;
    test::TrafficInspector inspector{{}, sessions};
    inspector.play(traffic);
    merger.merge_waiting_ticks();
    lines.flush();
    return {cpu_ms() - begin, worlds.worlds,      worlds.items,
            output.bytes,     sessions.snapshots, sessions.ticks.size()};
}

int run_rounds(int rounds, std::string_view only) {
    const auto traffic = test::read_traffic(kCapture);
    std::array<RoundCosts, kWays.size()> best;
    best.fill({.ms = std::numeric_limits<double>::max()});
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < kWays.size(); ++i) {
            if (only.empty() || only == kWays[i]) {
                const RoundCosts played = play_round(traffic, kWays[i]);
                best[i] = played.ms < best[i].ms ? played : best[i];
            }
        }
    }
    if (!only.empty()) {
        return 0;
    }
    const auto& [decode, worlds, lines] = best;
    std::printf("{\"snapshots\":%zu,\"ticks\":%zu,\"worlds\":%zu,\"items_a_world\":%.1f,"
                "\"bytes_a_world\":%zu,\"decode_ms\":%.1f,\"worlds_ms\":%.1f,\"lines_ms\":%.1f,"
                "\"worlds_more\":%.3f,\"lines_more\":%.3f}\n",
                decode.snapshots, decode.ticks, lines.worlds,
                static_cast<double>(lines.items) / static_cast<double>(lines.worlds),
                lines.bytes / lines.worlds, decode.ms, worlds.ms, lines.ms,
                worlds.ms / decode.ms - 1, lines.ms / decode.ms - 1);
    return lines.worlds == decode.ticks ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    try {
        return run_rounds(argc > 1 ? std::atoi(argv[1]) : 5, argc > 2 ? argv[2] : "");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "world_cost: %s\n", error.what());
        return 1;
    }
}
