#include "proxy/demo/demo_encoder.h"
#include "proxy/demo/demo_reader.h"
#include "proxy/inspect/inspector.h"
#include "tests/fuzz/demand.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/record_sink.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Plays the input as a demo. Snapshots must stay within their limits, and those that our own demos can
/// contain must be unchanged after writing and rereading.
namespace {

using namespace tw;
using tw::fuzz::demand;

struct PlayedSnapshot {
    snapshot::Tick tick = 0;
    snapshot::Snapshot items;
};

snapshot::Snapshot copy_of(const snapshot::SnapshotView& view) {
    snapshot::Snapshot copy;
    for (std::size_t i = 0; i < view.size(); ++i) {
        copy.append(view[i].key, view[i].data);
    }
    return copy;
}

class SnapshotChecker final : public test::TypedRecordSink<SnapshotChecker> {
  public:
    void on(const record::MessageRecord& record) {
        demand(record.payload.size() <= demo::kMaxPayloadBytes);
    }

    void on(const record::SnapshotRecord& record) {
        demand(record.rebuilt == record.crc_got.has_value());
        if (!record.rebuilt) {
            return;
        }
        demand(record.items.size() <= snapshot::kMaxItems);
        demand(record.items.size_bytes() <= snapshot::kMaxSnapshotBytes);
        demand(record.items.checksum() == *record.crc_got);
        const auto keys = record.items.keys();
        demand(std::adjacent_find(keys.begin(), keys.end(), std::greater_equal{}) == keys.end());
        demand(record.tick >= 0 && record.tick <= demo::kMaxTick);
        shown.push_back({record.tick, copy_of(record.items)});
    }

    std::vector<PlayedSnapshot> shown;
};

std::vector<PlayedSnapshot> play_demo(const demo::DemoParts& head) {
    test::NoMaps maps;
    SnapshotChecker watcher;
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{}, maps, watcher, numbers};
    const demo::DemoReadResult played = demo::inspect_demo(head, "demo", inspector);
    demand(played.last >= 0 || played.first <= played.last ||
           played.error.code >= demo::DemoErrc::none);
    demand(inspector.totals().verified == watcher.shown.size());
    return std::move(watcher.shown);
}

/// Writes the snapshots that were shown to a demo, and reads them again.
void check_round_trip(const std::vector<PlayedSnapshot>& shown, int version, bool seven) {
    const std::string_view net = seven ? demo::kSevenNetVersion : demo::kNetVersion;
    std::vector<std::byte> demo =
        demo::DemoEncoder::encode_start({.version = version, .net_version = std::string{net}}, {});
    demo::DemoEncoder encoder{version, seven ? snapshot::Dialect::seven : snapshot::Dialect::six};
    std::vector<const PlayedSnapshot*> held;
    for (const PlayedSnapshot& one : shown) {
        if (encoder.append_snapshot(one.tick, one.items.view(), demo)) {
            held.push_back(&one);
        }
    }
    encoder.append_final_chunk(demo);
    const auto head = demo::decode_demo_parts(demo);
    demand(head.has_value());
    const std::vector<PlayedSnapshot> again = play_demo(*head);
    demand(std::equal(held.begin(), held.end(), again.begin(), again.end(),
                      [](const PlayedSnapshot* left, const PlayedSnapshot& right) {
                          return left->tick == right.tick && left->items == right.items;
                      }));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto head = demo::decode_demo_parts(std::as_bytes(std::span{data, size}));
    if (!head) {
        demand(head.error().code != demo::DemoErrc::none && head.error().offset <= size);
        return 0;
    }
    const std::vector<PlayedSnapshot> shown = play_demo(*head);
    for (const int version : {4, 5}) {
        check_round_trip(shown, version, head->header.net_version.starts_with("0.7"));
    }
    return 0;
}
