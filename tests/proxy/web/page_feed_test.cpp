// The batches that workers pass to the live page, and the frames that viewers get.
#include "proxy/web/page_feed.h"
#include "tests/support/snapshot_messages.h"

#include <chrono>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <doctest/doctest.h>

using namespace tw;
using web::ViewerBatch;
using web::ViewerTopic;

namespace {

const test::Items kWorld{{{4, 1}, {1, 2, 3, 4}}, {{9, 0}, {5, 6}}};

void set_viewer_interest(web::ViewerInterest& interest, const std::vector<std::uint32_t>& sessions,
                         ViewerTopic topics = ViewerTopic::none) {
    interest.set_interest(sessions, topics);
}

void add_session_snapshot(ViewerBatch& batch, std::uint32_t session = 1) {
    const snapshot::Snapshot items = test::to_snapshot(kWorld);
    batch.add_snapshot({.session = session, .tick = 7, .rebuilt = true}, items.view());
}

} // namespace

TEST_CASE("a viewer's interest contains only the sessions that viewers watch") {
    web::ViewerInterest interest;
    CHECK_FALSE(interest.wants_anything());
    CHECK_FALSE(interest.wants_session(1));
    set_viewer_interest(interest, {3, 5});
    CHECK(interest.wants_anything());
    CHECK(interest.wants_session(3));
    CHECK(interest.wants_session(5));
    CHECK_FALSE(interest.wants_session(4));
    CHECK_FALSE(interest.wants_topic(ViewerTopic::log));
    set_viewer_interest(interest, {}, ViewerTopic::log | ViewerTopic::traffic_totals);
    CHECK(interest.wants_anything());
    CHECK(interest.wants_topic(ViewerTopic::log));
    CHECK(interest.wants_topic(ViewerTopic::traffic_totals));
    CHECK_FALSE(interest.wants_session(3));
    set_viewer_interest(interest, {});
    CHECK_FALSE(interest.wants_anything());
}

TEST_CASE(
    "merged snapshots can be watched alone, and a viewer's interest wakes the waiting thread") {
    web::ViewerInterest interest;
    set_viewer_interest(interest, {0, 5}, ViewerTopic::world_line);
    CHECK(interest.wants_anything());
    CHECK(interest.wants_topic(ViewerTopic::world));
    CHECK(interest.wants_topic(ViewerTopic::world_line));
    CHECK(interest.wants_session(5));
    interest.wait_for_world_viewer(std::chrono::hours{1}); // returns at once
    set_viewer_interest(interest, {6});
    CHECK_FALSE(interest.wants_topic(ViewerTopic::world));
    CHECK_FALSE(interest.wants_topic(ViewerTopic::world_line));
    CHECK_FALSE(interest.wants_session(5));
    std::thread looker{[&] { set_viewer_interest(interest, {0, 5}); }};
    interest.wait_for_world_viewer(std::chrono::hours{1});
    looker.join();
    CHECK(interest.wants_topic(ViewerTopic::world));
    set_viewer_interest(interest, {});
    interest.stop_waiting();
    interest.wait_for_world_viewer(std::chrono::hours{1}); // returns at once after stop_waiting()
}

TEST_CASE("sessions beyond the limit are ignored") {
    web::ViewerInterest interest;
    std::vector<std::uint32_t> sessions;
    for (std::uint32_t number = 1; number <= 2 * web::ViewerInterest::kMaxSessions; ++number) {
        sessions.push_back(number);
    }
    set_viewer_interest(interest, sessions);
    CHECK(interest.wants_session(web::ViewerInterest::kMaxSessions));
    CHECK_FALSE(interest.wants_session(web::ViewerInterest::kMaxSessions + 1));
}

TEST_CASE("a batch returns the snapshots that were added") {
    ViewerBatch batch;
    add_session_snapshot(batch, 1);
    add_session_snapshot(batch, 2);
    REQUIRE(batch.snapshots.size() == 2);
    const auto items = batch.items_of(batch.snapshots[1]);
    REQUIRE(items.size() == 2);
    CHECK(items[0].key == snapshot::ItemKey{4, 1});
    CHECK(items[1].data[1] == 6);
    CHECK(items.checksum() == test::checksum_of(kWorld));
}

TEST_CASE("a batch that is not fetched becomes full, and further data counts as lost") {
    ViewerBatch batch;
    for (std::size_t i = 0; i < ViewerBatch::kMaxInts; ++i) {
        add_session_snapshot(batch);
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
    add_session_snapshot(mine);
    mine.lines = "1\n";
    mine.world_line = "old";
    mine.lost_lines = 1;
    CHECK(box.try_put_batch(mine));
    CHECK(mine.empty());
    add_session_snapshot(mine, 2);
    mine.lines = "2\n";
    mine.world_line = "new";
    mine.ledger.emplace_back();
    mine.lost_snapshots = 2;
    CHECK(box.try_put_batch(mine));
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
        add_session_snapshot(full);
    }
    full.lost_snapshots = 0;
    const std::size_t snapshots = full.snapshots.size();
    CHECK(box.try_put_batch(full));
    ViewerBatch more;
    add_session_snapshot(more, 2);
    CHECK_FALSE(box.try_put_batch(more));
    CHECK(more.snapshots.size() == 1);
    ViewerBatch theirs;
    REQUIRE(box.take_batch(theirs));
    CHECK(theirs.snapshots.size() == snapshots);
    CHECK(box.try_put_batch(more));
}

TEST_CASE("snapshots wake the page once until it acknowledges, lines do not") {
    web::PageFeed feed{1};
    int rings = 0;
    feed.set_listener([&] { ++rings; });
    ViewerBatch batch;
    batch.lines = "1\n";
    CHECK(feed.try_put_batch(0, batch));
    CHECK(rings == 0);
    for (int i = 0; i < 3; ++i) {
        batch.clear();
        add_session_snapshot(batch);
        CHECK(feed.try_put_batch(0, batch));
        CHECK(rings == 1);
    }
    feed.rearm_listener();
    batch.clear();
    add_session_snapshot(batch);
    CHECK(feed.try_put_batch(feed.world_mailbox_index(), batch));
    CHECK(rings == 2);
    feed.set_listener(nullptr);
    feed.rearm_listener();
    batch.clear();
    add_session_snapshot(batch);
    CHECK(feed.try_put_batch(0, batch));
    CHECK(rings == 2);
}

namespace json = boost::json;

namespace {

constexpr std::int64_t kTick = 20'000'000;

/// A page that applies frames to its items.
struct FrameApplier {
    using Key = std::pair<std::int64_t, std::int64_t>;

    void apply_frame(const std::string& text) {
        const json::object frame = json::parse(text).as_object();
        if (frame.at("k") == "bars") {
            bars += frame.at("bars").as_array().size();
            return;
        }
        if (frame.at("full").as_bool()) {
            items.clear();
        }
        for (const json::value& gone : frame.at("gone").as_array()) {
            items.erase(item_key(gone.as_array()));
        }
        for (const json::value& item : frame.at("items").as_array()) {
            items[item_key(item.as_array())] = json::serialize(item);
        }
        tick = frame.at("tick").as_int64();
        bars += frame.at("bars").as_array().size();
    }

    static Key item_key(const json::array& item) {
        return {item.at(0).as_int64(), item.at(1).as_int64()};
    }

    std::map<Key, std::string> items;
    std::int64_t tick = -1;
    std::size_t bars = 0;
};

struct PageFrameBench {
    explicit PageFrameBench(const std::vector<int>& frame_rates) {
        frame_maker.set_frame_rates(frame_rates);
    }

    void add_snapshot(snapshot::Tick tick, const test::Items& items, bool rebuilt = true) {
        const snapshot::Snapshot snapshot = test::to_snapshot(items);
        frame_maker.add_snapshot({.session = 3,
                                  .time = std::int64_t{tick} * kTick,
                                  .tick = tick,
                                  .crc_wanted = 1,
                                  .crc_got = rebuilt ? 1 : 2,
                                  .bytes = 10,
                                  .parts = 1,
                                  .rebuilt = rebuilt},
                                 rebuilt ? snapshot.view() : snapshot::SnapshotView{},
                                 [&](const web::PageFrame& frame) {
                                     frames[frame.frame_rate].push_back(*frame.delta);
                                     full_frames[frame.frame_rate].push_back(*frame.full());
                                 });
    }

    web::PageFrameMaker frame_maker{3, snapshot::ObjectSet::standard()};
    std::map<int, std::vector<std::string>> frames;
    std::map<int, std::vector<std::string>> full_frames;
};

} // namespace

TEST_CASE("applying all changes gives the same items as a full frame") {
    std::mt19937 random{1}; // NOLINT(cert-msc51-cpp): every run uses the same numbers
    test::Items world;
    PageFrameBench session{{web::kEveryTickFrameRate}};
    FrameApplier page;
    for (snapshot::Tick tick = 1; tick <= 200; ++tick) {
        for (int change = 0; change < 6; ++change) {
            const snapshot::ItemKey key{static_cast<std::uint16_t>(1 + random() % 12),
                                        static_cast<std::uint16_t>(random() % 8)};
            if (random() % 3 == 0) {
                world.erase(key);
            } else {
                world[key] = {static_cast<std::int32_t>(random() % 3), -1, INT32_MIN};
            }
        }
        session.add_snapshot(tick, world);
        FrameApplier whole;
        page.apply_frame(session.frames[web::kEveryTickFrameRate].back());
        whole.apply_frame(session.full_frames[web::kEveryTickFrameRate].back());
        REQUIRE(page.items == whole.items);
        REQUIRE(page.items.size() == world.size());
        REQUIRE(page.tick == tick);
    }
    CHECK(page.bars == 200);
}

TEST_CASE("each frame rate has its own frames, with the bars of all snapshots between them") {
    for (const bool rebuilt : {true, false}) {
        CAPTURE(rebuilt);
        PageFrameBench session{{5, 20, web::kEveryTickFrameRate}};
        for (snapshot::Tick tick = 1; tick <= 100; ++tick) {
            session.add_snapshot(tick, {{{4, 1}, {tick, 0, 0, 0}}}, rebuilt);
        }
        CHECK(session.frames[web::kEveryTickFrameRate].size() == 100);
        CHECK(session.frames[20].size() >= 39);
        CHECK(session.frames[20].size() <= 41);
        CHECK(session.frames[5].size() >= 9);
        CHECK(session.frames[5].size() <= 11);
        FrameApplier page;
        for (const std::string& frame : session.frames[20]) {
            page.apply_frame(frame);
        }
        CHECK(page.bars >= 97);
        CHECK(session.frame_maker.latest_snapshot().has_value() == rebuilt);
    }
}

TEST_CASE("a snapshot that was not rebuilt is a bar and changes nothing") {
    PageFrameBench session{{5, web::kEveryTickFrameRate}};
    session.add_snapshot(1, {{{4, 1}, {1, 2, 3, 4}}});
    session.add_snapshot(2, {}, false);
    const auto last_frame = [&](int frame_rate) {
        return json::parse(session.frames[frame_rate].back()).as_object();
    };
    CHECK(session.frames[5].size() == 1);
    REQUIRE(session.frames[web::kEveryTickFrameRate].size() == 2);
    const json::object red = last_frame(web::kEveryTickFrameRate);
    CHECK(red.at("k") == "bars");
    CHECK(red.at("session") == 3);
    CHECK(red.at("bars").as_array().size() == 1);
    CHECK(red.at("bars").at(0).at(7) == 2); // the checksum differs
    session.add_snapshot(3, {{{4, 1}, {1, 2, 3, 5}}});
    CHECK(last_frame(web::kEveryTickFrameRate).at("bars").as_array().size() == 1);
    CHECK(last_frame(web::kEveryTickFrameRate).at("bars").at(0).at(7) == 0);
    CHECK(last_frame(web::kEveryTickFrameRate).at("n") == 2); // no frame is missing
    CHECK(session.frame_maker.snapshot_count() == 2);
}

TEST_CASE("types with a UUID are sent as an index of the objects, unknown types as a number") {
    PageFrameBench session{{web::kEveryTickFrameRate}};
    const auto uuid = [](const snapshot::ObjectSpec& spec) {
        std::vector<std::int32_t> ints;
        for (std::size_t i = 0; i < spec.uuid.size(); i += 4) {
            std::uint32_t value = 0;
            for (std::size_t byte = 0; byte < 4; ++byte) {
                value = value << 8U | spec.uuid.at(i + byte);
            }
            ints.push_back(static_cast<std::int32_t>(value));
        }
        return ints;
    };
    const auto& objects = snapshot::ObjectSet::standard();
    const snapshot::ObjectSpec* named = nullptr;
    const snapshot::ObjectSpec* other = nullptr;
    for (const snapshot::ObjectSpec& spec : snapshot::object_table()) {
        if (spec.type == 0) {
            other = named;
            named = &spec;
        }
    }
    REQUIRE(other != nullptr);
    session.add_snapshot(1, {{{0, 0x7fff}, uuid(*named)}, {{0x7fff, 2}, {1}}, {{0x7ffe, 2}, {1}}});
    const json::object frame =
        json::parse(session.frames[web::kEveryTickFrameRate].back()).as_object();
    const json::array& items = frame.at("items").as_array();
    REQUIRE(items.size() == 2);
    CHECK(items[0].as_array().at(0) == -1 - 0x7ffe);
    CHECK(items[1].as_array().at(0) == static_cast<std::int64_t>(objects.index_of(*named)));

    // A restarted server uses the number for another type, so the frame is a full one.
    session.add_snapshot(2, {{{0, 0x7fff}, uuid(*other)}, {{0x7fff, 2}, {1}}, {{0x7ffe, 2}, {1}}});
    const json::object next =
        json::parse(session.frames[web::kEveryTickFrameRate].back()).as_object();
    CHECK(next.at("full") == true);
    REQUIRE(next.at("items").as_array().size() == 2);
    CHECK(next.at("items").at(1).at(0) == static_cast<std::int64_t>(objects.index_of(*other)));
    // The number now stands for an unknown type, not for the previous one.
    session.add_snapshot(3, {{{0, 0x7fff}, {1, 2, 3, 4}}, {{0x7fff, 2}, {1}}});
    const json::object last =
        json::parse(session.frames[web::kEveryTickFrameRate].back()).as_object();
    CHECK(last.at("full") == true);
    CHECK(last.at("items").at(0).at(0) == -1 - 0x7fff);
}
