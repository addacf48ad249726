// What snapshots have in common is found exactly, wherever they differ.
// Covers: proxy/world/view.cpp
#include "proxy/world/view.h"
#include "tests/support/snapshot_messages.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

/// Whether the runs and the rest are all of `items`, each once, and as they should be.
void check_all(const Items& left, const Items& right) {
    const snapshot::Snapshot base = to_snapshot(left);
    const snapshot::Snapshot items = to_snapshot(right);
    constexpr std::size_t kNumber = 5; // of the base
    const world::SharedRun before{.base = 1, .item = 2, .count = 3};
    world::SharedItems shared{.runs = {before}, .others = {7}};
    shared.find(base.view(), kNumber, items.view());
    REQUIRE(shared.runs.front() == before);
    shared.runs.erase(shared.runs.begin());
    std::vector<int> told(items.view().size());
    for (const world::SharedRun& run : shared.runs) {
        REQUIRE(run.count > 0);
        REQUIRE(world::BasePlace::base_of(run.base) == kNumber);
        for (std::uint32_t i = 0; i < run.count; ++i) {
            const auto mine = items.view()[run.item + i];
            const auto theirs = base.view()[world::BasePlace::index_of(run.base) + i];
            CHECK(mine.key == theirs.key);
            CHECK(std::ranges::equal(mine.data, theirs.data));
            ++told[run.item + i];
        }
    }
    for (const std::uint32_t other : shared.others) {
        const auto mine = items.view()[other];
        const auto theirs = left.find(mine.key);
        CHECK((theirs == left.end() || !std::ranges::equal(mine.data, theirs->second)));
        ++told[other];
    }
    CHECK(std::ranges::all_of(told, [](int times) { return times == 1; }));
    CHECK(std::ranges::is_sorted(shared.others));
}

} // namespace

TEST_CASE("what two snapshots share is found at their ends, in the middle, and of any size") {
    struct Row {
        std::string_view name;
        Items left;
        Items right;
    };

    const Row rows[] = {
        {"both empty", {}, {}},
        {"nothing there", {}, {{{1, 1}, {1}}}},
        {"nothing here", {{{1, 1}, {1}}}, {}},
        {"the same", {{{1, 1}, {1, 2}}, {{2, 1}, {3}}}, {{{1, 1}, {1, 2}}, {{2, 1}, {3}}}},
        {"the first", {{{1, 1}, {0, 2}}, {{2, 1}, {3}}}, {{{1, 1}, {1, 2}}, {{2, 1}, {3}}}},
        {"the last", {{{1, 1}, {1, 2}}, {{2, 1}, {4}}}, {{{1, 1}, {1, 2}}, {{2, 1}, {3}}}},
        {"another size", {{{1, 1}, {1}}, {{2, 1}, {3}}}, {{{1, 1}, {1, 2}}, {{2, 1}, {3}}}},
        {"no ints", {{{1, 1}, {}}, {{2, 1}, {3}}}, {{{1, 1}, {}}, {{2, 1}, {4}}}},
        {"no ints here", {{{1, 1}, {1}}, {{2, 1}, {3}}}, {{{1, 1}, {}}, {{2, 1}, {3}}}},
        {"one more", {{{2, 1}, {3}}}, {{{1, 1}, {1}}, {{2, 1}, {3}}, {{3, 1}, {5}}}},
        {"one less", {{{1, 1}, {1}}, {{2, 1}, {3}}, {{3, 1}, {5}}}, {{{2, 1}, {3}}}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        check_all(row.left, row.right);
    }
}

TEST_CASE("what random snapshots share is found") {
    std::mt19937 random{18};
    const auto up_to = [&](std::size_t most) { return random() % (most + 1); };
    for (int round = 0; round < 300; ++round) {
        Items left;
        for (std::size_t i = up_to(200); i > 0; --i) {
            auto& ints =
                left[{static_cast<std::uint16_t>(up_to(5)), static_cast<std::uint16_t>(up_to(60))}];
            ints.assign(up_to(20), static_cast<std::int32_t>(i));
        }
        Items right = left;
        for (auto& [key, ints] : right) {
            if (up_to(9) == 0 && !ints.empty()) {
                ++ints[up_to(ints.size() - 1)];
            } else if (up_to(19) == 0) {
                ints.push_back(1);
            }
        }
        std::erase_if(right, [&](const auto&) { return up_to(14) == 0; });
        for (std::size_t i = up_to(10); i > 0; --i) {
            right[{static_cast<std::uint16_t>(up_to(6)), static_cast<std::uint16_t>(up_to(70))}] = {
                1};
        }
        CAPTURE(round);
        check_all(left, right);
    }
}

} // namespace tw::test
