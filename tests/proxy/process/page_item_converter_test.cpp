// Snapshots of a 0.7 server as the page gets them.
// Covers: proxy/pipeline/live_feed.cpp
#include "proxy/pipeline/live_feed.h"
#include "proxy/record/roster.h"
#include "tests/support/captured_traffic.h"

#include <string>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

using snapshot::Dialect;

std::size_t count_of(const snapshot::SnapshotView& items, std::uint16_t type) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        count += items[i].key.type == type ? 1U : 0U;
    }
    return count;
}

/// Compares each snapshot with its conversion for the page.
class Page final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        const auto* const* it = std::get_if<const record::SnapshotRecord*>(&record);
        if (it == nullptr || !(*it)->rebuilt) {
            return;
        }
        const record::SnapshotRecord& seen = **it;
        const snapshot::SnapshotView shown = items_.convert(seen);
        ++snapshots;
        if (record::dialect_of(seen) == Dialect::six) {
            ++same;
            CHECK(shown.keys().data() == seen.items.keys().data());
            return;
        }
        const std::uint16_t from = snapshot::character_type(Dialect::seven);
        CHECK(count_of(shown, snapshot::kCharacterType) == count_of(seen.items, from));
        for (std::size_t i = 0; i < seen.items.size(); ++i) {
            const auto tee = seen.items[i];
            if (tee.key.type == from) {
                const auto told = shown.find({snapshot::kCharacterType, tee.key.id});
                REQUIRE(told);
                CHECK(shown[*told].data[1] == tee.data[1]); // x and y follow the tick
                CHECK(shown[*told].data[2] == tee.data[2]);
                ++tees;
            }
        }
        for (std::size_t i = 0; i < shown.size(); ++i) {
            const auto item = shown[i];
            if (item.key.type == snapshot::kPlayerInfoType && item.data[0] != 0) {
                CHECK(seen.roster->own_id() == item.key.id);
                ++local;
            }
        }
        names += count_of(shown, snapshot::kClientInfoType);
    }

    std::size_t snapshots = 0;
    std::size_t same = 0;
    std::size_t tees = 0;
    std::size_t local = 0;
    std::size_t names = 0;

  private:
    pipeline::PageItemConverter items_{snapshot::ObjectSet::standard()};
};

void play(const std::string& capture, Page& page) {
    TrafficInspector inspector{{}, page};
    inspector.play(read_traffic(capture));
}

} // namespace

TEST_CASE("the page shows each tee of 0.7 with its position and name, and marks the viewer") {
    Page page;
    play("teeworlds-0.7.5.pcap.gz", page);
    CHECK(page.snapshots > 1000);
    CHECK(page.same == 0);
    CHECK(page.tees > page.snapshots / 2);
    CHECK(page.names >= page.tees);
    CHECK(page.local > page.snapshots / 2);
}

} // namespace tw::test
