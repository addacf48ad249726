// What workers hand to the live page: bounded, never waiting, and nothing while nobody looks.

#include "proxy/admin/feed.h"
#include "tests/support/snapshot_messages.h"

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using admin::Batch;

namespace {

const test::Items kWorld{{{4, 1}, {1, 2, 3, 4}}, {{9, 0}, {5, 6}}};

void add(Batch& batch, std::uint32_t session = 1) {
    const snapshot::Snapshot items = test::to_snapshot(kWorld);
    batch.add({.session = session, .tick = 7, .rebuilt = true}, items.view());
}

} // namespace

TEST_CASE("only what somebody looks at is watched") {
    admin::Watch watch;
    CHECK_FALSE(watch.any());
    CHECK_FALSE(watch.session(1));
    const std::array<std::uint32_t, 2> sessions{3, 5};
    watch.set(sessions, false, false);
    CHECK(watch.any());
    CHECK(watch.session(3));
    CHECK(watch.session(5));
    CHECK_FALSE(watch.session(4));
    CHECK_FALSE(watch.log());
    watch.set({}, true, true);
    CHECK(watch.any());
    CHECK(watch.log());
    CHECK(watch.bytes());
    CHECK_FALSE(watch.session(3));
    watch.set({}, false, false);
    CHECK_FALSE(watch.any());
}

TEST_CASE("the world of all is watched by itself, and who waits for it is woken") {
    admin::Watch watch;
    const std::array<std::uint32_t, 2> sessions{0, 5};
    watch.set(sessions, false, false, true);
    CHECK(watch.any());
    CHECK(watch.world());
    CHECK(watch.world_line());
    CHECK(watch.session(5));
    watch.await_world(std::chrono::hours{1}); // at once
    const std::array<std::uint32_t, 1> another{6};
    watch.set(another, false, false);
    CHECK_FALSE(watch.world());
    CHECK_FALSE(watch.world_line());
    CHECK_FALSE(watch.session(5));
    std::thread looker{[&] { watch.set(sessions, false, false); }};
    watch.await_world(std::chrono::hours{1});
    looker.join();
    CHECK(watch.world());
    watch.set({}, false, false);
    watch.hurry();
    watch.await_world(std::chrono::hours{1}); // the run is over
}

TEST_CASE("more sessions than there is room for are not watched, and nothing else breaks") {
    admin::Watch watch;
    std::vector<std::uint32_t> sessions;
    for (std::uint32_t number = 1; number <= 2 * admin::Watch::kMaxSessions; ++number) {
        sessions.push_back(number);
    }
    watch.set(sessions, false, false);
    CHECK(watch.session(admin::Watch::kMaxSessions));
    CHECK_FALSE(watch.session(admin::Watch::kMaxSessions + 1));
}

TEST_CASE("a batch gives back the snapshots that were added") {
    Batch batch;
    add(batch, 1);
    add(batch, 2);
    REQUIRE(batch.snapshots.size() == 2);
    const auto items = batch.items(batch.snapshots[1]);
    REQUIRE(items.size() == 2);
    CHECK(items[0].key == snapshot::ItemKey{4, 1});
    CHECK(items[1].data[1] == 6);
    CHECK(items.checksum() == test::checksum_of(kWorld));
}

TEST_CASE("a batch that nobody fetches is full one day, and counts what is lost") {
    Batch batch;
    for (std::size_t i = 0; i < Batch::kMaxInts; ++i) {
        add(batch);
    }
    CHECK(batch.ints.size() <= Batch::kMaxInts);
    CHECK(batch.lost_snapshots > 0);
    CHECK(batch.snapshots.size() + batch.lost_snapshots == Batch::kMaxInts);
    batch.clear();
    CHECK(batch.empty());
}

TEST_CASE("a box takes a batch when the one before was fetched") {
    admin::FeedBox box;
    Batch mine;
    Batch theirs;
    CHECK_FALSE(box.take(theirs));
    add(mine);
    CHECK(box.try_put(mine));
    CHECK(mine.empty());
    add(mine, 2);
    CHECK_FALSE(box.try_put(mine));
    REQUIRE(box.take(theirs));
    CHECK(theirs.snapshots.front().session == 1);
    CHECK(box.try_put(mine));
    theirs.clear();
    REQUIRE(box.take(theirs));
    CHECK(theirs.snapshots.front().session == 2);
}
