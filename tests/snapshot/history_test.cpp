#include "snapshot/history.h"

#include <limits>
#include <map>
#include <random>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::snapshot;

namespace {

Snapshot make(std::mt19937& random, std::size_t max_items) {
    Snapshot snapshot;
    const std::size_t items = random() % (max_items + 1);
    for (std::size_t i = 0; i < items; ++i) {
        std::vector<std::int32_t> data(random() % 20);
        for (auto& value : data) {
            value = static_cast<std::int32_t>(random());
        }
        snapshot.append({static_cast<std::uint16_t>(i), 3}, data);
    }
    return snapshot;
}

Snapshot copy_of(const SnapshotView& view) {
    Snapshot copy;
    for (std::size_t i = 0; i < view.size(); ++i) {
        copy.append(view[i].key, view[i].data);
    }
    return copy;
}

Snapshot largest() {
    Snapshot snapshot;
    snapshot.append({1, 1}, std::vector<std::int32_t>((kMaxSnapshotBytes - 16) / 4));
    return snapshot;
}

} // namespace

TEST_CASE("a history finds what a map of the last 250 ticks would") {
    std::mt19937 random{5};
    for (int run = 0; run < 8; ++run) {
        History history;
        std::map<Tick, Snapshot> wanted;
        Tick newest = 1000;
        for (int step = 0; step < 600; ++step) {
            newest += static_cast<Tick>(random() % 3);
            // Mostly the newest tick; sometimes a late one, or one that is there already.
            const Tick tick =
                random() % 8 == 0 ? newest - static_cast<Tick>(random() % 300) : newest;
            const bool copies = random() % 10 == 0 && !wanted.empty();
            Snapshot snapshot = make(random, run % 4 == 0 ? 3 : 40);
            if (copies) {
                const auto from = std::next(wanted.begin(),
                                            static_cast<std::ptrdiff_t>(random() % wanted.size()));
                REQUIRE(history.contains(from->first));
                snapshot = from->second;
                CHECK(history.repeat(from->first, tick) ==
                      (tick >= wanted.rbegin()->first - kHistoryTicks));
            } else {
                history.store(tick, snapshot.view());
            }
            wanted[tick] = snapshot;
            wanted.erase(wanted.begin(),
                         wanted.lower_bound(wanted.rbegin()->first - kHistoryTicks));
            REQUIRE(history.newest() == wanted.rbegin()->first);
            if (step % 40 != 0) {
                continue;
            }
            for (Tick each = newest - 300; each <= newest; ++each) {
                const auto found = history.find(each);
                const auto expected = wanted.find(each);
                REQUIRE(found.has_value() == (expected != wanted.end()));
                if (found) {
                    REQUIRE(copy_of(*found) == expected->second);
                }
            }
        }
        history.clear();
        CHECK_FALSE(history.newest());
        CHECK_FALSE(history.contains(newest));
    }
}

TEST_CASE("a history takes little more memory than what it keeps") {
    std::mt19937 random{6};
    History history;
    std::map<Tick, std::size_t> sizes;
    std::size_t most = 0;
    for (Tick tick = 0; tick < 3000; tick += 2) {
        const Snapshot snapshot = make(random, 300);
        history.store(tick, snapshot.view());
        sizes[tick] = 8 * snapshot.view().size() + 4 * snapshot.view().data().size();
        sizes.erase(sizes.begin(), sizes.lower_bound(tick - kHistoryTicks));
        std::size_t kept = 0;
        for (const auto& each : sizes) {
            kept += each.second;
        }
        most = std::max(most, kept);
    }
    CHECK(history.capacity_bytes() <= most * 115 / 100);
}

TEST_CASE("a history never grows beyond its bound") {
    History history;
    const Snapshot snapshot = largest();
    REQUIRE(snapshot.view().size_bytes() == kMaxSnapshotBytes);
    for (Tick tick = 0; tick < 1000; ++tick) {
        history.store(tick, snapshot.view());
        CHECK(history.contains(tick));
    }
    CHECK(history.capacity_bytes() <= History::kMaxHistoryBytes);
    CHECK(history.size() > 200);
    Snapshot too_large = largest();
    too_large.append({1, 2}, {});
    history.store(1001, too_large.view());
    CHECK_FALSE(history.contains(1001));

    // Ticks stored over and over take up room only for a while.
    for (int i = 0; i < 10000; ++i) {
        history.store(1000 + i % 3, snapshot.view());
    }
    CHECK(history.size() < 600);
    CHECK(history.contains(1002));
}

TEST_CASE("extreme ticks overflow nothing") {
    constexpr Tick kLow = std::numeric_limits<Tick>::min();
    constexpr Tick kHigh = std::numeric_limits<Tick>::max();
    History history;
    CHECK_FALSE(history.contains(kLow));
    history.store(kLow, {});
    CHECK(history.contains(kLow));
    history.store(kHigh, {});
    CHECK(history.contains(kHigh));
    CHECK_FALSE(history.contains(kLow));
    history.store(kLow, {});
    CHECK_FALSE(history.contains(kLow));
    CHECK(history.newest() == kHigh);
}
