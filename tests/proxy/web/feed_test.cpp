// What workers hand to the live page: limits, no waiting, and nothing while there are no viewers.

#include "proxy/web/feed.h"
#include "tests/support/snapshot_messages.h"

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using web::ViewerBatch;

namespace {

const test::Items kWorld{{{4, 1}, {1, 2, 3, 4}}, {{9, 0}, {5, 6}}};

void add(ViewerBatch& batch, std::uint32_t session = 1) {
    const snapshot::Snapshot items = test::to_snapshot(kWorld);
    batch.add_snapshot({.session = session, .tick = 7, .rebuilt = true}, items.view());
}

} // namespace

TEST_CASE("only the sessions that viewers watch are wanted") {
    web::ViewerInterest interest;
    CHECK_FALSE(interest.wants_anything());
    CHECK_FALSE(interest.wants_session(1));
    const std::array<std::uint32_t, 2> sessions{3, 5};
    interest.set_watched(sessions, false, false);
    CHECK(interest.wants_anything());
    CHECK(interest.wants_session(3));
    CHECK(interest.wants_session(5));
    CHECK_FALSE(interest.wants_session(4));
    CHECK_FALSE(interest.wants_log());
    interest.set_watched({}, true, true);
    CHECK(interest.wants_anything());
    CHECK(interest.wants_log());
    CHECK(interest.wants_traffic_totals());
    CHECK_FALSE(interest.wants_session(3));
    interest.set_watched({}, false, false);
    CHECK_FALSE(interest.wants_anything());
}

TEST_CASE(
    "merged snapshots can be watched alone, and a viewer's interest wakes the waiting thread") {
    web::ViewerInterest interest;
    const std::array<std::uint32_t, 2> sessions{0, 5};
    interest.set_watched(sessions, false, false, true);
    CHECK(interest.wants_anything());
    CHECK(interest.wants_world());
    CHECK(interest.wants_world_line());
    CHECK(interest.wants_session(5));
    interest.wait_for_world_viewer(std::chrono::hours{1}); // returns at once
    const std::array<std::uint32_t, 1> another{6};
    interest.set_watched(another, false, false);
    CHECK_FALSE(interest.wants_world());
    CHECK_FALSE(interest.wants_world_line());
    CHECK_FALSE(interest.wants_session(5));
    std::thread looker{[&] { interest.set_watched(sessions, false, false); }};
    interest.wait_for_world_viewer(std::chrono::hours{1});
    looker.join();
    CHECK(interest.wants_world());
    interest.set_watched({}, false, false);
    interest.stop_waiting();
    interest.wait_for_world_viewer(std::chrono::hours{1}); // returns at once after stop_waiting()
}

TEST_CASE("sessions beyond the limit are ignored") {
    web::ViewerInterest interest;
    std::vector<std::uint32_t> sessions;
    for (std::uint32_t number = 1; number <= 2 * web::ViewerInterest::kMaxSessions; ++number) {
        sessions.push_back(number);
    }
    interest.set_watched(sessions, false, false);
    CHECK(interest.wants_session(web::ViewerInterest::kMaxSessions));
    CHECK_FALSE(interest.wants_session(web::ViewerInterest::kMaxSessions + 1));
}

TEST_CASE("a batch returns the snapshots that were added") {
    ViewerBatch batch;
    add(batch, 1);
    add(batch, 2);
    REQUIRE(batch.snapshots.size() == 2);
    const auto items = batch.items_of(batch.snapshots[1]);
    REQUIRE(items.size() == 2);
    CHECK(items[0].key == snapshot::ItemKey{4, 1});
    CHECK(items[1].data[1] == 6);
    CHECK(items.checksum() == test::checksum_of(kWorld));
}

TEST_CASE("a batch that nobody fetches becomes full, then counts what is lost") {
    ViewerBatch batch;
    for (std::size_t i = 0; i < ViewerBatch::kMaxInts; ++i) {
        add(batch);
    }
    CHECK(batch.ints.size() <= ViewerBatch::kMaxInts);
    CHECK(batch.lost_snapshots > 0);
    CHECK(batch.snapshots.size() + batch.lost_snapshots == ViewerBatch::kMaxInts);
    batch.clear();
    CHECK(batch.empty());
}

TEST_CASE("batches put into a mailbox are fetched in order") {
    web::Mailbox box;
    ViewerBatch mine;
    ViewerBatch theirs;
    CHECK_FALSE(box.take_batch(theirs));
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
    REQUIRE(box.take_batch(theirs));
    REQUIRE(theirs.snapshots.size() == 2);
    CHECK(theirs.snapshots[0].session == 1);
    CHECK(theirs.snapshots[1].session == 2);
    for (const web::InspectedSnapshot& seen : theirs.snapshots) {
        CHECK(theirs.items_of(seen)[0].data[2] == 3);
    }
    CHECK(theirs.lines == "1\n2\n");
    CHECK(theirs.world_line == "new");
    CHECK(theirs.ledger.size() == 1);
    CHECK(theirs.lost_snapshots == 2);
    CHECK(theirs.lost_lines == 1);
    theirs.clear();
    CHECK_FALSE(box.take_batch(theirs));
}

TEST_CASE("a full mailbox takes no batch, and the batch stays complete") {
    web::Mailbox box;
    ViewerBatch full;
    while (full.lost_snapshots == 0) {
        add(full);
    }
    full.lost_snapshots = 0;
    const std::size_t snapshots = full.snapshots.size();
    CHECK(box.try_put(full));
    ViewerBatch more;
    add(more, 2);
    CHECK_FALSE(box.try_put(more));
    CHECK(more.snapshots.size() == 1);
    ViewerBatch theirs;
    REQUIRE(box.take_batch(theirs));
    CHECK(theirs.snapshots.size() == snapshots);
    CHECK(box.try_put(more));
}

TEST_CASE("snapshots wake the page once until it acknowledges, lines do not") {
    web::PageFeed feed{1};
    int rings = 0;
    feed.notifier.set_listener([&] { ++rings; });
    ViewerBatch batch;
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
    CHECK(feed.try_put(feed.world_mailbox_index(), batch));
    CHECK(rings == 2);
    feed.notifier.set_listener(nullptr);
    feed.notifier.acknowledge();
    feed.notifier.notify();
    CHECK(rings == 2);
}
