// Tests the worlds of captured games.
#include "proxy/world/server_worlds.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/record_sink.h"

#include <cstdint>
#include <set>
#include <string>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

/// Counts the worlds of a capture and computes a checksum of their items.
class WorldSum final : public TypedRecordSink<WorldSum> {
  public:
    void on(const record::WorldRecord& world) {
        ++worlds;
        ticks.insert({world.run, world.tick});
        add_to_sum(world.tick);
        add_to_sum(world.merged.items.checksum());
        for (std::size_t i = 0; i < world.merged.items.size(); ++i) {
            const auto item = world.merged.items[i];
            const auto* const object = world.merged.types->object(item.key.type);
            characters += object != nullptr && object->name == "character" ? 1U : 0U;
            add_to_sum(item.key.packed());
            world.merged.sightings->for_each_session(i, [&](std::uint32_t session) {
                add_to_sum(session);
                return false;
            });
        }
    }

    void on(const record::FindingRecord& found) {
        findings += record::finding_info(found.id).name.starts_with("world.v") ? 1U : 0U;
    }

    std::uint64_t worlds = 0;
    std::uint64_t characters = 0;
    std::uint64_t findings = 0;
    std::uint64_t sum = 0;
    std::set<std::pair<std::uint32_t, snapshot::Tick>> ticks;

  private:
    template <typename Integer>
    void add_to_sum(Integer value) {
        sum = (sum ^ static_cast<std::uint64_t>(value)) * 1099511628211U;
    }
};

/// Collects the ticks that any session received.
struct ReceivedTicks final : TypedRecordSink<ReceivedTicks> {
    void on(const record::SnapshotRecord& snapshot) {
        if (snapshot.rebuilt && !snapshot.items.empty()) {
            seen.insert(snapshot.tick);
            ++snapshots;
        }
    }

    std::set<snapshot::Tick> seen;
    std::uint64_t snapshots = 0;
};

struct CaptureWorlds {
    WorldSum sum;
    ReceivedTicks ticks;
    world::WorldTotals totals;
};

void merge_capture(const std::string& name, CaptureWorlds& into) {
    world::WorldMerger merger{snapshot::ObjectSet::standard(), into.sum};
    world::WorldInputConverter feed{merger};
    BothSinks both{into.ticks, feed};
    TrafficInspector inspector{{.emits_message_records = false}, both};
    inspector.play(read_traffic(name));
    merger.merge_waiting_ticks();
    into.totals = merger.totals();
}

} // namespace

TEST_CASE("in normal games, every tick gets a world without late or differing views") {
    for (const std::string name :
         {"bench-4.pcap.gz", "vanilla-0.6.5-ctf.pcap.gz", "ddnet-20.1.1-race.pcap.gz",
          "bench-64.pcap.gz", "teeworlds-0.7.5.pcap.gz"}) {
        CAPTURE(name);
        CaptureWorlds game;
        merge_capture(name, game);
        CHECK(game.sum.worlds > 100);
        CHECK(game.sum.findings == 0);
        CHECK(game.totals.worlds.late == 0);
        CHECK(game.totals.worlds.stray == 0);
        std::set<snapshot::Tick> ticks;
        for (const auto& [run, tick] : game.sum.ticks) {
            ticks.insert(tick);
        }
        CHECK(ticks == game.ticks.seen);
        CHECK(game.sum.worlds == game.sum.ticks.size());
    }
}

TEST_CASE("the same capture always gives the same worlds") {
    CaptureWorlds first;
    CaptureWorlds second;
    merge_capture("bench-4.pcap.gz", first);
    merge_capture("bench-4.pcap.gz", second);
    CHECK(first.sum.sum == second.sum.sum);
    CHECK(first.sum.characters > 1000);
}

} // namespace tw::test
