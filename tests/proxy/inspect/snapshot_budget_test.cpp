// Covers: proxy/inspect/snapshots/snapshot_checks.cpp
#include "proxy/inspect/snapshots/snapshot_checks.h"
#include "tests/support/record_sink.h"
#include "tests/support/snapshot_messages.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;

namespace {

struct ReportedLimit {
    std::string name;
    std::string item;
    std::string detail;
    std::int64_t value = 0;
    std::uint64_t lost = 0;
};

/// Passes snapshots to a SnapshotLimitCheck, one every two ticks.
class LimitCheckScript final : public TypedRecordSink<LimitCheckScript> {
  public:
    void on(const record::FindingRecord& each) {
        findings.push_back(
            {.name = std::string{each.name},
             .item = each.item ? std::string{each.item->type} + ' ' + std::to_string(each.item->id)
                               : "",
             .detail = std::string{each.detail},
             .value = *each.value,
             .lost = each.lost.value_or(0)});
    }

    void check_items(const Items& items) {
        tick_ += 2;
        const auto snapshot = to_snapshot(items);
        budget_.check_snapshot(
            {.tick = tick_, .rebuilt = true, .items = snapshot.view(), .types = &types_},
            reporter_);
    }

    std::vector<ReportedLimit> findings;

  private:
    snapshot::Tick tick_ = 100;
    record::ItemTypes types_;
    inspect::SnapshotLimitCheck budget_;
    inspect::Reporter reporter_{1, *this};
};

/// Returns the items of a snapshot with some pickups and this many lasers.
Items pickups_and_lasers(std::size_t count) {
    Items items;
    for (std::size_t i = 0; i < count; ++i) {
        items[{3, static_cast<std::uint16_t>(i)}] = {1, 2, 3, 4, 5};
    }
    for (std::uint16_t i = 0; i < 100; ++i) {
        items[{4, i}] = {1, 2, 3, 4};
    }
    return items;
}

} // namespace

TEST_CASE("large snapshots that do not grow cause no warning") {
    LimitCheckScript watched;
    for (int i = 0; i < 3000; ++i) {
        watched.check_items(pickups_and_lasers(800));
    }
    CHECK(watched.findings.empty());
}

TEST_CASE("the growth of small snapshots causes no warning") {
    LimitCheckScript watched;
    for (std::size_t i = 0; i < 400; ++i) {
        watched.check_items(pickups_and_lasers(i));
    }
    CHECK(watched.findings.empty());
}

TEST_CASE("a growing item type is reported once, before the limit is reached") {
    LimitCheckScript watched;
    for (std::size_t i = 0; i < 600; ++i) {
        watched.check_items(pickups_and_lasers(500 + i / 2));
    }
    REQUIRE(watched.findings.size() == 1);
    CHECK(watched.findings[0].name == "items");
    CHECK(watched.findings[0].item == "laser 561");
    CHECK(watched.findings[0].detail == "62 more in 5 s: full in 29 s");
    CHECK(watched.findings[0].value == 662);
}

TEST_CASE("the limit of bytes is checked like the limit of items") {
    LimitCheckScript watched;
    for (std::size_t i = 0; i < 600; ++i) {
        Items items;
        for (std::size_t id = 0; id < 40 + i / 50; ++id) {
            items[{33, static_cast<std::uint16_t>(id)}] = Ints(280, 1);
        }
        watched.check_items(items);
    }
    REQUIRE(watched.findings.size() == 1);
    CHECK(watched.findings[0].name == "bytes");
}

TEST_CASE("items that disappeared from full snapshots are listed") {
    LimitCheckScript watched;
    watched.check_items(pickups_and_lasers(900));
    Items full = pickups_and_lasers(940);
    for (std::uint16_t id = 84; id < 100; ++id) {
        full.erase({4, id}); // 1024 are left
    }
    full[{13, 5}] = {1, 2};
    full.erase({3, 939});
    watched.check_items(full);
    watched.check_items(full);
    REQUIRE(watched.findings.size() == 1);
    CHECK(watched.findings[0].lost == 16);
    CHECK(watched.findings[0].detail ==
          "gone: pickup 84, pickup 85, pickup 86, pickup 87, pickup 88, "
          "pickup 89, pickup 90, pickup 91, and 8 more");
    CHECK(watched.findings[0].value == 1024);
}
