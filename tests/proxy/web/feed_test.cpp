// What workers hand to the live page: bounded, never waiting, and nothing while nobody looks.

#include "proxy/web/feed.h"
#include "tests/support/snapshot_messages.h"

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using web::Batch;

namespace {

const test::Items kWorld{{{4, 1}, {1, 2, 3, 4}}, {{9, 0}, {5, 6}}};

void add(Batch& batch, std::uint32_t session = 1) {
    const snapshot::Snapshot items = test::to_snapshot(kWorld);
    batch.add({.session = session, .tick = 7, .rebuilt = true}, items.view());
}

} // namespace

TEST_CASE("only what somebody looks at is watched") {
    web::Watch watch;
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
    web::Watch watch;
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
    watch.stop_waiting();
    watch.await_world(std::chrono::hours{1}); // the run is over
}

TEST_CASE("more sessions than there is room for are not watched, and nothing else breaks") {
    web::Watch watch;
    std::vector<std::uint32_t> sessions;
    for (std::uint32_t number = 1; number <= 2 * web::Watch::kMaxSessions; ++number) {
        sessions.push_back(number);
    }
    watch.set(sessions, false, false);
    CHECK(watch.session(web::Watch::kMaxSessions));
    CHECK_FALSE(watch.session(web::Watch::kMaxSessions + 1));
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

TEST_CASE("what a box takes before it is fetched comes in order") {
    web::Mailbox box;
    Batch mine;
    Batch theirs;
    CHECK_FALSE(box.take(theirs));
    add(mine);
    mine.lines = "1\n";
    mine.world_line = "old";
    mine.lost_lines = 1;
    CHECK(box.try_put(mine));
    CHECK(mine.empty());
    add(mine, 2);
    mine.lines = "2\n";
    mine.world_line = "new";
    mine.ledger.emplace_back();
    mine.lost_snapshots = 2;
    CHECK(box.try_put(mine));
    REQUIRE(box.take(theirs));
    REQUIRE(theirs.snapshots.size() == 2);
    CHECK(theirs.snapshots[0].session == 1);
    CHECK(theirs.snapshots[1].session == 2);
    for (const web::SeenSnapshot& seen : theirs.snapshots) {
        CHECK(theirs.items(seen)[0].data[2] == 3);
    }
    CHECK(theirs.lines == "1\n2\n");
    CHECK(theirs.world_line == "new");
    CHECK(theirs.ledger.size() == 1);
    CHECK(theirs.lost_snapshots == 2);
    CHECK(theirs.lost_lines == 1);
    theirs.clear();
    CHECK_FALSE(box.take(theirs));
}

TEST_CASE("a full box takes nothing, and loses nothing") {
    web::Mailbox box;
    Batch full;
    while (full.lost_snapshots == 0) {
        add(full);
    }
    full.lost_snapshots = 0;
    const std::size_t snapshots = full.snapshots.size();
    CHECK(box.try_put(full));
    Batch more;
    add(more, 2);
    CHECK_FALSE(box.try_put(more));
    CHECK(more.snapshots.size() == 1);
    Batch theirs;
    REQUIRE(box.take(theirs));
    CHECK(theirs.snapshots.size() == snapshots);
    CHECK(box.try_put(more));
}

TEST_CASE("snapshots wake the page, once until it answers; lines do not") {
    web::Feed feed{1};
    int rings = 0;
    feed.notifier.set_listener([&] { ++rings; });
    Batch batch;
    batch.lines = "1\n";
    CHECK(feed.try_put(0, batch));
    CHECK(rings == 0);
    for (int i = 0; i < 3; ++i) {
        batch.clear();
        add(batch);
        CHECK(feed.try_put(0, batch));
        CHECK(rings == 1);
    }
    feed.notifier.acknowledge();
    batch.clear();
    add(batch);
    CHECK(feed.try_put(feed.world_box(), batch));
    CHECK(rings == 2);
    feed.notifier.set_listener(nullptr);
    feed.notifier.acknowledge();
    feed.notifier.notify();
    CHECK(rings == 2);
}
