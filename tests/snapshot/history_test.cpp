#include "snapshot/history.h"

#include <limits>
#include <map>
#include <random>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::snapshot;

namespace {

Snapshot make_random_snapshot(std::mt19937& random, std::size_t max_items) {
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

Snapshot largest_snapshot() {
    Snapshot snapshot;
    snapshot.append({1, 1}, std::vector<std::int32_t>((kMaxSnapshotBytes - 16) / 4));
    return snapshot;
}

} // namespace

TEST_CASE("a history contains the snapshots of the last 250 ticks") {
    std::mt19937 random{5};
    for (int run = 0; run < 12; ++run) {
        const unsigned repeats =
            run < 8 ? 10 : 2; // one of this many ticks has the snapshot of another tick
        History history;
        std::map<Tick, Snapshot> wanted;
        Tick newest = 1000;
        for (int step = 0; step < 600; ++step) {
            newest += static_cast<Tick>(random() % 3);
            // Usually a new tick, sometimes a late one or one that is stored already.
            const Tick tick =
                random() % 8 == 0 ? newest - static_cast<Tick>(random() % 300) : newest;
            const bool copies = random() % repeats == 0 && !wanted.empty();
            Snapshot snapshot = make_random_snapshot(random, run % 4 == 0 ? 3 : 40);
            if (copies) {
                const auto from = std::next(wanted.begin(),
                                            static_cast<std::ptrdiff_t>(random() % wanted.size()));
                REQUIRE(history.contains(from->first));
                snapshot = from->second;
                CHECK(history.store_unchanged(from->first, tick) ==
                      (tick >= wanted.rbegin()->first - kHistoryTicks));
            } else {
                history.store(tick, snapshot.view());
            }
            wanted[tick] = snapshot;
            wanted.erase(wanted.begin(),
                         wanted.lower_bound(wanted.rbegin()->first - kHistoryTicks));
            if (random() % 100 == 0) {
                const Tick oldest = wanted.rbegin()->first - static_cast<Tick>(random() % 20);
                wanted.erase(wanted.begin(), wanted.lower_bound(oldest));
                history.trim(oldest);
                // Late ticks are stored with newer ones and are removed with these.
                for (Tick each = oldest - 300; each < oldest; ++each) {
                    if (const auto late = history.find(each)) {
                        wanted[each] = copy_of(*late);
                    }
                }
            }
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

TEST_CASE("a history takes little more memory than its snapshots") {
    std::mt19937 random{6};
    History history;
    std::map<Tick, std::size_t> sizes;
    std::size_t most = 0;
    for (Tick tick = 0; tick < 3000; tick += 2) {
        const Snapshot snapshot = make_random_snapshot(random, 300);
        history.store(tick, snapshot.view());
        sizes[tick] = 8 * snapshot.view().size() + 4 * snapshot.view().data().size();
        sizes.erase(sizes.begin(), sizes.lower_bound(tick - kHistoryTicks));
        std::size_t kept = 0;
        for (const auto& each : sizes) {
            kept += each.second;
        }
        most = std::max(most, kept);
    }
    CHECK(history.segment_bytes() <= most * 115 / 100);
}

TEST_CASE("a history never exceeds its memory limit") {
    History history;
    const Snapshot snapshot = largest_snapshot();
    REQUIRE(snapshot.view().size_bytes() == kMaxSnapshotBytes);
    for (Tick tick = 0; tick < 1000; ++tick) {
        history.store(tick, snapshot.view());
        CHECK(history.contains(tick));
    }
    CHECK(history.segment_bytes() <= History::kMaxHistoryBytes);
    CHECK(history.size() > 200);
    Snapshot too_large = largest_snapshot();
    too_large.append({1, 2}, {});
    history.store(1001, too_large.view());
    CHECK_FALSE(history.contains(1001));

    // Repeated snapshots of one tick take memory only for a while.
    for (int i = 0; i < 10000; ++i) {
        history.store(1000 + i % 3, snapshot.view());
    }
    CHECK(history.size() < 600);
    CHECK(history.contains(1002));
}

TEST_CASE("ticks with the same snapshot share its memory") {
    struct Row {
        const char* name;
        std::size_t max_bytes;
        Tick (*base)(
            Tick
                tick); ///< the tick with the same snapshot; the tick itself: a new snapshot is stored
    };

    constexpr std::size_t kOne = kMaxSnapshotBytes;
    const Row rows[] = {
        {"all the first", 2 * kOne, [](Tick tick) { return tick < 1 ? tick : 0; }},
        {"each the one before", 2 * kOne, [](Tick tick) { return tick < 1 ? tick : tick - 1; }},
        {"two in turns", 4 * kOne, [](Tick tick) { return tick < 2 ? tick : tick - 2; }},
        {"seven in turns", 14 * kOne, [](Tick tick) { return tick < 7 ? tick : tick - 7; }},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        History history;
        for (Tick tick = 0; tick <= kHistoryTicks; ++tick) {
            const Tick base = row.base(tick);
            if (base != tick) {
                REQUIRE(history.store_unchanged(base, tick));
                continue;
            }
            Snapshot snapshot = largest_snapshot();
            history.store(tick, snapshot.view());
        }
        CHECK(history.size() == std::size_t{kHistoryTicks} + 1);
        CHECK(history.segment_bytes() <= row.max_bytes);
        CHECK(history.memory_bytes() <= row.max_bytes + 20000);
    }
}

TEST_CASE("a snapshot that is repeated for a long time keeps no other snapshot in memory") {
    History history;
    const Snapshot large = largest_snapshot();
    Snapshot small;
    small.append({7, 7}, std::vector<std::int32_t>{1, 2, 3});
    history.store(0, small.view());
    // The ticks in between are removed, even if their blocks are after blocks that stay.
    for (Tick tick = 1; tick < 4000; tick += 2) {
        REQUIRE(history.store_unchanged(tick - 1, tick + 1));
        history.store(tick, tick % 4 == 1 ? large.view() : SnapshotView{});
        REQUIRE(history.contains(tick));
        REQUIRE(copy_of(*history.find(tick + 1)) == small);
    }
    CHECK(history.segment_bytes() <= History::kMaxHistoryBytes);
    CHECK(history.memory_bytes() <= History::kMaxHistoryBytes + 20000);
}

TEST_CASE("empty snapshots overwrite no other snapshot in a full history") {
    std::mt19937 random{8};
    History history;
    std::map<Tick, Snapshot> wanted;
    Snapshot small; // all blocks have one size, so that each begins at the end of another
    small.append({7, 7}, std::vector<std::int32_t>{1, 2});
    for (Tick tick = 0; tick < 20000; ++tick) {
        const Snapshot snapshot = random() % 2 == 0 ? small : Snapshot{};
        history.store(tick, snapshot.view());
        wanted[tick] = snapshot;
        wanted.erase(wanted.begin(), wanted.lower_bound(tick - kHistoryTicks));
        if (tick % 20 == 0) {
            for (const auto& [each, expected] : wanted) {
                REQUIRE(copy_of(*history.find(each)) == expected);
            }
        }
        small = Snapshot{};
        small.append({7, 7}, std::vector<std::int32_t>{tick, 2});
    }
}

TEST_CASE("trim() frees memory") {
    const Snapshot snapshot = largest_snapshot();
    History history;
    for (Tick tick = 0; tick < 200; ++tick) {
        history.store(tick, snapshot.view());
    }
    const std::size_t full = history.memory_bytes();
    CHECK(full > 200 * kMaxSnapshotBytes);
    history.trim(190);
    CHECK_FALSE(history.contains(189));
    CHECK(history.contains(190));
    CHECK(history.newest() == 199);
    CHECK(history.memory_bytes() < 25 * kMaxSnapshotBytes); // three segments of eight snapshots
    history.trim(190);
    CHECK(history.size() == 10);
    for (Tick tick = 200; tick < 400; ++tick) {
        history.store(tick, snapshot.view());
    }
    CHECK(history.contains(190));
    CHECK(history.memory_bytes() <= full * 9 / 8);
    history.trim(std::numeric_limits<Tick>::max());
    CHECK(history.memory_bytes() == 0);
    CHECK_FALSE(history.newest());
    CHECK_FALSE(history.store_unchanged(399, 400));
    history.store(5, snapshot.view());
    CHECK(history.contains(5));
}

TEST_CASE("memory that one history frees is reused by the next one") {
    const Snapshot snapshot = largest_snapshot();
    Arena arena;
    const auto play = [&](History& history) {
        for (Tick tick = 0; tick < 600; ++tick) {
            history.store(tick, snapshot.view());
        }
    };
    {
        History history{arena};
        play(history);
        CHECK(arena.bytes() >= history.segment_bytes());
        CHECK(arena.bytes() <= History::kMaxHistoryBytes + Arena::kRegionBytes);
        history.clear();
        CHECK(arena.bytes() >= history.segment_bytes());
        const std::size_t before = arena.bytes();
        play(history);
        CHECK(arena.bytes() == before);
    }
    CHECK(arena.bytes() == Arena::kRegionBytes);
    for (int i = 0; i < 3; ++i) {
        History history{arena};
        play(history);
        CHECK(arena.bytes() <= History::kMaxHistoryBytes + Arena::kRegionBytes);
    }
}

TEST_CASE("a history that was cleared takes larger snapshots than before") {
    std::mt19937 random{9};
    History history;
    for (const unsigned items : {2U, 40U, 300U, 5U, 900U, 1U}) {
        for (Tick tick = 0; tick < 700; tick += 2) {
            const Snapshot snapshot = make_random_snapshot(random, items);
            history.store(tick, snapshot.view());
            REQUIRE(copy_of(*history.find(tick)) == snapshot);
        }
        history.clear();
    }
    CHECK(history.segment_bytes() <= History::kMaxHistoryBytes);
}

TEST_CASE("a snapshot is built in reserved memory and stored only by commit()") {
    std::mt19937 random{10};
    History history;
    std::map<Tick, Snapshot> wanted;
    for (Tick tick = 0; tick < 1000; tick += 2) {
        const Snapshot next = make_random_snapshot(random, 60);
        // One of four snapshots is not committed. The next one is built in the same memory.
        const auto room = history.reserve(next.view().block_ints());
        next.view().write_block(room.data());
        if (random() % 4 != 0) {
            CHECK(history.commit(tick, next.view()));
            wanted[tick] = next;
        }
        wanted.erase(wanted.begin(), wanted.lower_bound(tick - kHistoryTicks));
    }
    CHECK(history.size() >= wanted.size());
    for (const auto& [tick, snapshot] : wanted) {
        REQUIRE(copy_of(*history.find(tick)) == snapshot);
    }
}

TEST_CASE("extreme ticks cause no overflow") {
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
