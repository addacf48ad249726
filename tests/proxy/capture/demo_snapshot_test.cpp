// Covers: proxy/capture/demo_reader.cpp
#include "proxy/capture/demo_reader.h"
#include "tests/support/snapshot_messages.h"

#include <limits>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using Kind = capture::DemoSnapshotError::Kind;

namespace {

constexpr std::int32_t kGameInfo = 6 << 16;
constexpr std::int32_t kPickup7 = 4 << 16 | 7;
constexpr std::int32_t kHuge = std::numeric_limits<std::int32_t>::max();

} // namespace

TEST_CASE("full snapshots are read, their items sorted by key") {
    snapshot::Snapshot read;
    const std::vector<std::int32_t> ints{28, 2, 0, 20, kPickup7, 528, 400, 0, 0, kGameInfo, 5};
    CHECK(capture::decode_demo_snapshot(ints, read).ok);
    CHECK(read == test::to_snapshot({{{4, 7}, {528, 400, 0, 0}}, {{6, 0}, {5}}}));
    const std::vector<std::int32_t> other{28, 2, 0, 8, kGameInfo, 5, kPickup7, 528, 400, 0, 0};
    snapshot::Snapshot sorted;
    CHECK(capture::decode_demo_snapshot(other, sorted).ok);
    CHECK(sorted == read);
    CHECK(capture::decode_demo_snapshot(std::vector<std::int32_t>{0, 0}, read).ok);
    CHECK(read.view().empty());
}

TEST_CASE("of several items with the same key, the first one counts") {
    snapshot::Snapshot read;
    const std::vector<std::int32_t> ints{16, 2, 0, 8, kGameInfo, 5, kGameInfo, 6};
    const auto result = capture::decode_demo_snapshot(ints, read);
    CHECK(result.ok);
    CHECK(result.duplicates == 1);
    CHECK(read == test::to_snapshot({{{6, 0}, {5}}}));
}

TEST_CASE("a snapshot that demo players skip is rejected with the index of the wrong int") {
    struct Row {
        std::string_view name;
        std::vector<std::int32_t> ints;
        Kind kind;
        std::size_t index;
    };

    const Row rows[] = {
        {"nothing", {}, Kind::counts, 0},
        {"half a head", {0}, Kind::counts, 0},
        {"negative size", {-4, 0}, Kind::counts, 0},
        {"negative count", {0, -1}, Kind::counts, 0},
        {"too many items", {0, 1025}, Kind::counts, 0},
        {"huge count", {0, kHuge}, Kind::counts, 0},
        {"huge size", {kHuge, 0}, Kind::counts, 0},
        {"odd size", {5, 1, 0, kGameInfo}, Kind::counts, 0},
        {"more than it says", {4, 1, 0, kGameInfo, 1}, Kind::counts, 0},
        {"less than it says", {12, 1, 0, kGameInfo, 1}, Kind::counts, 0},
        {"negative offset", {8, 1, -4, kGameInfo, 1}, Kind::offsets, 2},
        {"odd offset", {8, 1, 2, kGameInfo, 1}, Kind::offsets, 2},
        {"offset at the end", {8, 1, 8, kGameInfo, 1}, Kind::offsets, 2},
        {"offset past the end", {8, 1, 12, kGameInfo, 1}, Kind::offsets, 2},
        {"huge offset", {8, 1, kHuge - 3, kGameInfo, 1}, Kind::offsets, 2},
        {"offsets back", {16, 2, 8, 0, kGameInfo, 1, kPickup7, 1}, Kind::offsets, 2},
        {"smallest offset", {16, 2, 0, -kHuge - 1, kGameInfo, 1, kPickup7, 1}, Kind::offsets, 2},
        {"negative type", {8, 1, 0, -1, 1}, Kind::type, 3},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        snapshot::Snapshot read;
        const auto result = capture::decode_demo_snapshot(row.ints, read);
        CHECK_FALSE(result.ok);
        CHECK(result.error.kind == row.kind);
        CHECK(result.error.index == row.index);
    }
}
