// Calculates the least memory of a session: the bytes of the snapshots of its last 250 ticks, on average over
// the sessions of a capture. Prints this number.

#include "snapshot/delta.h"
#include "snapshot/history.h"
#include "tests/bench/captured_snapshots.h"

#include <cstdio>
#include <exception>
#include <map>
#include <vector>

namespace {

using namespace tw;

/// The sizes of each session's snapshots by tick, as the reference builder counts them.
std::vector<std::map<snapshot::Tick, std::size_t>>
snapshot_sizes_by_tick(const bench::Capture& capture) {
    std::vector<std::map<snapshot::Tick, std::size_t>> sizes(capture.num_sessions);
    std::vector<snapshot::History> histories(capture.num_sessions);
    snapshot::Delta delta;
    snapshot::DeltaWarnings warnings;
    for (const bench::CapturedSnapshot& each : capture.snapshots) {
        snapshot::History& history = histories[each.session];
        if (!each.crc) {
            history.store_unchanged(each.delta_tick, each.tick);
        } else if (snapshot::decode_delta(each.body, delta, snapshot::kAgreedSizes)) {
            const auto base = [&] {
                return history.find(each.delta_tick).value_or(snapshot::SnapshotView{});
            };
            if (const auto built = snapshot::apply_delta(base(), delta, history, warnings)) {
                history.commit(each.tick, *built);
            }
        }
        if (const auto stored = history.find(each.tick)) {
            sizes[each.session][each.tick] = stored->size_bytes();
        }
    }
    return sizes;
}

} // namespace

int main(int argc, char** argv) {
    try {
        double sum = 0;
        const auto sizes =
            snapshot_sizes_by_tick(bench::read_snapshots(argc > 1 ? argv[1] : "bench-4.pcap.gz"));
        for (const auto& session : sizes) {
            for (const auto& [tick, size] : session) {
                if (tick > session.rbegin()->first - snapshot::kHistoryTicks) {
                    sum += static_cast<double>(size);
                }
            }
        }
        std::printf("%.0f\n", sum / static_cast<double>(sizes.size()));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "history_floor: %s\n", error.what());
        return 1;
    }
}
