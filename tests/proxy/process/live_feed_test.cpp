// Data that a worker collects for the page, and the page's filters.
// Covers: proxy/pipeline/page_recordings.cpp

#include "proxy/pipeline/live_feed.h"
#include "proxy/pipeline/page_recordings.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include <boost/json.hpp>
#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;
using snapshot::kNoBase;

namespace {

constexpr std::array<std::uint32_t, 1> kFirst{1};

Items world_at(std::int32_t x) {
    return {{{4, 1}, {x, 20, 0, 0}}, {{4, 2}, {7, 7, 0, 0}}};
}

/// A session that a viewer of the page can open.
struct Play {
    Play() {
        script.join_ddnet();
        script.enter_game();
    }

    void right(snapshot::Tick tick, snapshot::Tick base) {
        script.snap(tick, base, world_at(tick));
    }

    web::ViewerBatch fetch() {
        now += std::chrono::seconds{2};
        live.flush_to_page(now);
        web::ViewerBatch batch;
        std::ignore = feed.mailboxes[0].take_batch(batch);
        return batch;
    }

    pipeline::LiveFeed::Clock::time_point now = pipeline::LiveFeed::Clock::now();
    web::PageFeed feed{1};
    pipeline::LiveFeed live{feed, 0, snapshot::ObjectSet::standard()};
    inspect::Observers observers = [this] {
        inspect::Observers all;
        live.traffic_counter().add_to(all);
        return all;
    }();
    SessionScript script{{.observers = &observers}, live};
};

} // namespace

TEST_CASE("nothing is collected while the page has no viewers") {
    Play play;
    play.right(10, kNoBase);
    CHECK(play.fetch().empty());
}

TEST_CASE("all snapshots, valid or not, of a viewed session are passed to the page") {
    Play play;
    play.feed.interest.set_watched(kFirst, false, false);
    play.right(10, kNoBase);
    play.right(12, 10);
    play.script.send(kS2c,
                     {non_vital(snap_single(14, 12, 1, delta_body(world_at(12), world_at(14))))});
    const web::ViewerBatch batch = play.fetch();
    REQUIRE(batch.snapshots.size() == 3);
    CHECK(batch.snapshots[1].tick == 12);
    CHECK(batch.snapshots[1].delta_tick == 10);
    CHECK(batch.items_of(batch.snapshots[1]).checksum() == checksum_of(world_at(12)));
    CHECK_FALSE(batch.snapshots[2].rebuilt);
    CHECK(batch.lines.empty());
    const std::array<std::uint32_t, 1> another{2};
    play.feed.interest.set_watched(another, false, false);
    play.right(16, 12);
    CHECK(play.fetch().empty());
}

TEST_CASE("the log has a line for each record, and filters apply to lines") {
    Play play;
    play.feed.interest.set_watched({}, true, false);
    play.right(10, kNoBase);
    play.right(12, 10);
    const web::ViewerBatch batch = play.fetch();
    CHECK(batch.snapshots.empty());
    const auto filter =
        pipeline::make_line_filter("snapshot and tick == 12", wire::ModDescription::standard());
    REQUIRE(filter.has_value());
    std::size_t lines = 0;
    std::size_t fitting = 0;
    for (std::string_view rest = batch.lines; !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(line.size() + 1);
        CHECK(boost::json::parse({line.data(), line.size()}).is_object());
        ++lines;
        fitting += (*filter)(line) ? 1U : 0U;
    }
    CHECK(lines > 2);
    CHECK(fitting == 1);
}

TEST_CASE("data that the page does not fetch takes bounded memory, and lost data is counted") {
    Play play;
    play.feed.interest.set_watched(kFirst, true, false);
    play.right(10, kNoBase);
    play.live.flush_to_page(play.now);
    for (snapshot::Tick tick = 12; tick < 40'000; tick += 2) {
        play.script.snap(tick, kNoBase, world_at(tick));
        play.live.flush_to_page(play.now);
    }
    std::ignore = play.fetch();
    const web::ViewerBatch batch = play.fetch();
    CHECK(batch.lost_lines > 0);
    CHECK(batch.lines.size() <= web::ViewerBatch::kMaxLineBytes);
    CHECK(batch.ints.size() <= web::ViewerBatch::kMaxInts);
}

TEST_CASE("bytes are counted from when a viewer opens their view") {
    Play play;
    play.right(10, kNoBase);
    play.feed.interest.set_watched({}, false, true);
    play.right(12, 10);
    const web::ViewerBatch batch = play.fetch();
    const bool has_pickup = std::ranges::any_of(batch.ledger, [](const record::LedgerRow& row) {
        return row.name == "pickup" && row.group == record::ByteGroup::item;
    });
    CHECK(has_pickup);
}

TEST_CASE("a filter with a key that the log does not have is rejected with its position") {
    CHECK(pipeline::make_line_filter("finding", wire::ModDescription::standard()).has_value());
    const auto wrong =
        pipeline::make_line_filter("session == 1 and nmae == x", wire::ModDescription::standard());
    REQUIRE_FALSE(wrong.has_value());
    CHECK(wrong.error().offset == 17);
    CHECK(wrong.error().message.find("name") != std::string::npos);
    CHECK_FALSE(pipeline::make_line_filter("(((", wire::ModDescription::standard()).has_value());
    CHECK_FALSE(
        pipeline::make_line_filter(std::string(100'000, 'x'), wire::ModDescription::standard())
            .has_value());
}

TEST_CASE("completion has the keys and their enumerated values") {
    const auto keys =
        boost::json::parse(pipeline::filter_keys_json(wire::ModDescription::standard()))
            .as_object();
    CHECK(keys.at("keys").as_array().size() > 100);
    CHECK(keys.at("item_types").as_array().size() > 20);
    const auto& types = keys.at("words").at("type").as_array();
    CHECK(std::ranges::find(types, boost::json::value("finding")) != types.end());
}

TEST_CASE("a snapshot for scripts is a record line with all its items") {
    const snapshot::Snapshot items = to_snapshot(world_at(5));
    const std::string line = pipeline::snapshot_line(
        {.session = 3, .time = 1'000'000'000, .tick = 12, .bytes = 9, .parts = 1, .rebuilt = true},
        items.view(), nullptr, snapshot::ObjectSet::standard());
    const auto record = boost::json::parse(line).as_object();
    CHECK(record.at("type") == "snapshot");
    CHECK(record.at("session") == 3);
    REQUIRE(record.at("items").as_array().size() == 2);
    CHECK(record.at("items").at(0).at("fields").at("x") == 5);
}
