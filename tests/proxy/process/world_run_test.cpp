// Covers: proxy/pipeline/live_feed.cpp
#include "proxy/pipeline/world_run.h"
#include "proxy/wire/text.h"
#include "tests/support/snapshot_messages.h"

#include <algorithm>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;

namespace {

constexpr record::Timestamp kTick = 20'000'000;

using Kind = world::MergerInput::Kind;

world::MergerInput make_merger_input(Kind kind, record::Timestamp time, std::uint32_t session = 1,
                                     std::shared_ptr<const snapshot::Snapshot> items = {}) {
    return {.kind = kind,
            .time = time,
            .session = session,
            .server = "127.0.0.1:8303",
            .tick = static_cast<snapshot::Tick>(time / kTick),
            .items = std::move(items)};
}

/// Sends the inputs of a session from the tick `first` to the tick `last`.
void send_game_inputs(world::WorldInputSink& to, std::uint32_t session, snapshot::Tick first,
                      snapshot::Tick last) {
    to.on_input(make_merger_input(Kind::open, first * kTick, session));
    for (snapshot::Tick tick = first; tick < last; tick += 2) {
        const auto x = static_cast<std::int32_t>(session) * 100 + tick;
        std::vector<std::int32_t> tee(22);
        tee[1] = x;
        if (to.wants_snapshots()) {
            to.on_input(
                make_merger_input(Kind::snapshot, tick * kTick + session, session,
                                  test::to_shared({{{9, static_cast<std::uint16_t>(session)}, tee},
                                                   {{4, 1}, {1, 2, 0, 0}}})));
        }
    }
    to.on_input(make_merger_input(Kind::close, last * kTick, session));
}

std::string merge_with_workers(unsigned workers) {
    sink::TextOutput lines;
    const pipeline::Config config{.json = {.items = sink::ItemChoice::all},
                                  .views = pipeline::ViewChoice::world};
    pipeline::WorldThread worlds{config, {.num_workers = workers, .records = &lines}};
    std::vector<std::thread> threads;
    for (unsigned worker = 0; worker < workers; ++worker) {
        threads.emplace_back([&worlds, worker, workers] {
            // A worker's sessions send each tick in turn.
            std::vector<std::uint32_t> sessions;
            for (std::uint32_t session = 1; session <= 4; ++session) {
                if (session % workers == worker) {
                    sessions.push_back(session);
                }
            }
            for (const std::uint32_t session : sessions) {
                send_game_inputs(worlds.queue(worker), session, 100, 160);
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    worlds.finish_and_join();
    return lines.text;
}

} // namespace

TEST_CASE("merged snapshots do not depend on the number of workers") {
    const std::string all = merge_with_workers(4);
    CHECK(std::ranges::count(all, '\n') == 30);
    CHECK(all.find(R"("tick":158)") != std::string::npos);
    CHECK(all.find(R"("views":4)") != std::string::npos);
    for (int i = 0; i < 5; ++i) {
        CHECK(merge_with_workers(4) == all);
    }
}

TEST_CASE("all repeated findings of merged snapshots are counted, also the last ones") {
    sink::TextOutput lines;
    const pipeline::Config config{.limits_findings = true, .views = pipeline::ViewChoice::world};
    pipeline::WorldThread worlds{config, {.records = &lines}};
    for (const std::uint32_t session : {1U, 2U}) {
        worlds.queue(0).on_input(make_merger_input(Kind::open, 100 * kTick, session));
    }
    for (snapshot::Tick tick = 100; tick < 160; tick += 2) {
        for (const std::uint32_t session : {1U, 2U}) {
            // One pickup whose views agree, and a new one each tick whose views differ.
            worlds.queue(0).on_input(make_merger_input(
                Kind::snapshot, tick * kTick, session,
                test::to_shared({{{4, 1}, {1, 2, 0, 0}},
                                 {{4, static_cast<std::uint16_t>(tick)},
                                  {static_cast<std::int32_t>(session), 2, 0, 0}}})));
        }
    }
    for (const std::uint32_t session : {1U, 2U}) {
        worlds.queue(0).on_input(make_merger_input(Kind::close, 160 * kTick, session));
    }
    worlds.finish_and_join();
    std::uint64_t told = 0;
    std::uint64_t written = 0;
    for (std::size_t at = 0; (at = lines.text.find("world.views_differ", at)) != std::string::npos;
         ++at) {
        const std::string line = lines.text.substr(at, lines.text.find('\n', at) - at);
        const std::size_t left_out = line.find(R"("left_out":)");
        // The final line with the number of left-out findings is not a finding itself.
        told += line.find(R"("tick":)") != std::string::npos ? 1U : 0U;
        told += left_out == std::string::npos ? 0 : std::stoull(line.substr(left_out + 11));
        ++written;
    }
    const auto all = worlds.take_result().totals.findings;
    const auto found = all[static_cast<std::size_t>(record::FindingId::world_views_differ)];
    CHECK(found > 2);
    CHECK(told == found);
    CHECK(written < found);
}

TEST_CASE("if only the page shows merged snapshots, they are made only while it has viewers") {
    web::PageFeed feed{1};
    pipeline::WorldThread worlds{{}, {.feed = &feed}};
    send_game_inputs(worlds.queue(0), 1, 100, 160);
    const std::vector<std::uint32_t> all{0};
    feed.interest.set_interest(all, tw::web::ViewerTopic::world_line);
    send_game_inputs(worlds.queue(0), 2, 200, 260);
    worlds.finish_and_join();
    CHECK(worlds.take_result().totals.findings == record::SessionStats{}.findings);
    web::ViewerBatch batch;
    REQUIRE(feed.mailboxes.back().take_batch(batch));
    REQUIRE_FALSE(batch.snapshots.empty());
    CHECK(batch.snapshots.front().session == 0);
    CHECK(batch.snapshots.front().tick == 200);
    CHECK(batch.snapshots.front().parts == 1);
    CHECK(batch.items_of(batch.snapshots.front()).size() == 2);
    CHECK(batch.world_line.find(R"("seen_by":[2])") != std::string::npos);
}

TEST_CASE("the page shows the server with the most sessions, or another if that is silent") {
    web::PageFeed feed{1};
    const std::vector<std::uint32_t> all{0};
    feed.interest.set_interest(all, tw::web::ViewerTopic::none);
    pipeline::PageWorldFeed page{feed, snapshot::ObjectSet::standard()};
    const auto items = test::to_snapshot({{{4, 1}, {1, 2, 0, 0}}});
    const auto add_merged_snapshot = [&](std::string_view server, std::uint32_t views,
                                         snapshot::Tick tick) {
        record::WorldRecord world{.head = {.time = tick * kTick, .server_name = server},
                                  .tick = tick,
                                  .server = server,
                                  .views = views};
        world.merged.items = items.view();
        page.on_record(&world);
    };
    add_merged_snapshot("a", 2, 10);
    add_merged_snapshot("b", 1, 11);
    add_merged_snapshot("a", 2, 12);
    add_merged_snapshot("b", 3, 13); // one view more is not enough to change the server
    add_merged_snapshot("b", 4, 14);
    add_merged_snapshot("a", 2, 15);
    add_merged_snapshot("a", 5, 16); // one view more than b
    page.flush_to_page();
    web::ViewerBatch before;
    REQUIRE(feed.mailboxes.back().take_batch(before));
    CHECK(before.world_server == "b");
    add_merged_snapshot("a", 2, 100); // b is silent
    page.flush_to_page();
    web::ViewerBatch batch;
    REQUIRE(feed.mailboxes.back().take_batch(batch));
    std::vector<snapshot::Tick> ticks;
    for (const web::InspectedSnapshot& seen : before.snapshots) {
        ticks.push_back(seen.tick);
    }
    CHECK(ticks == std::vector<snapshot::Tick>{10, 12, 14});
    CHECK(before.snapshots[1].delta_tick == 10);
    CHECK(before.snapshots[2].delta_tick == snapshot::kNoBase);
    REQUIRE(batch.snapshots.size() == 1);
    CHECK(batch.snapshots[0].tick == 100);
    CHECK(batch.world_server == "a");
    batch.clear();
    add_merged_snapshot("b", 2, 20); // the clock was set back
    page.flush_to_page();
    REQUIRE(feed.mailboxes.back().take_batch(batch));
    CHECK(batch.world_server == "b");
}

TEST_CASE("merged snapshots that the page does not fetch take bounded memory") {
    web::PageFeed feed{1};
    const std::vector<std::uint32_t> all{0};
    feed.interest.set_interest(all, tw::web::ViewerTopic::none);
    pipeline::PageWorldFeed page{feed, snapshot::ObjectSet::standard()};
    test::Items large;
    for (std::uint16_t i = 0; i < 500; ++i) {
        large[{4, i}] = {1, 2, 3, 4};
    }
    const auto items = test::to_snapshot(large);
    for (snapshot::Tick tick = 0; tick < 3000; ++tick) {
        record::WorldRecord world{.head = {.time = tick * kTick}, .tick = tick, .views = 1};
        world.merged.items = items.view();
        page.on_record(&world);
        page.flush_to_page();
    }
    web::ViewerBatch batch;
    REQUIRE(feed.mailboxes.back().take_batch(batch));
    CHECK(batch.ints.size() <= web::ViewerBatch::kMaxInts);
    CHECK(batch.lost_snapshots == 0);
    batch.clear();
    page.flush_to_page();
    REQUIRE(feed.mailboxes.back().take_batch(batch));
    CHECK(batch.ints.size() <= web::ViewerBatch::kMaxInts);
    CHECK(batch.lost_snapshots > 0);
}

TEST_CASE("a queue that is not emptied drops and counts snapshots within its bounds") {
    pipeline::WorldQueue queue;
    test::Items large;
    for (std::uint16_t i = 0; i < 1000; ++i) {
        large[{9, i}] = std::vector<std::int32_t>(14);
    }
    const auto items = test::to_shared(large);
    const std::size_t fit = pipeline::WorldQueue::kMaxBytes / (items->view().block_ints() * 4);
    for (std::size_t i = 0; i < fit + 10; ++i) {
        queue.on_input(make_merger_input(Kind::snapshot, 5, 1, items));
    }
    CHECK(queue.num_dropped_inputs() == 10);
    pipeline::WorldQueue::Batch batch;
    CHECK(queue.take_inputs(batch) == 5);
    CHECK_FALSE(batch.empty());
    queue.on_input(make_merger_input(Kind::snapshot, 7, 1, items));
    CHECK(queue.num_dropped_inputs() == 10); // the emptied queue has room again
}

TEST_CASE("the queue keeps messages unchanged and in order") {
    pipeline::WorldQueue queue;
    const auto items = test::to_shared({{{4, 1}, {1, 2, 0, 0}}});
    const std::vector<std::string> texts{"a", "four", "fives", ""};
    record::Timestamp time = 0;
    for (const std::string& text : texts) {
        queue.on_input(make_merger_input(Kind::snapshot, ++time, 1, items));
        world::MergerInput message = make_merger_input(Kind::message, ++time);
        const auto bytes = std::as_bytes(std::span{text});
        message.payload.assign(bytes.begin(), bytes.end());
        queue.on_input(message);
    }
    pipeline::WorldQueue::Batch batch;
    CHECK(queue.take_inputs(batch) == time);
    std::vector<std::string> lines;
    for (const world::MergerInput& input : batch) {
        if (input.kind == Kind::snapshot) {
            lines.push_back("snapshot " + std::to_string(input.items->view().size()));
        } else {
            lines.push_back("message " + std::string{wire::as_text(input.payload)});
        }
    }
    CHECK(lines == std::vector<std::string>{"snapshot 1", "message a", "snapshot 1", "message four",
                                            "snapshot 1", "message fives", "snapshot 1",
                                            "message "});
    CHECK(queue.num_dropped_inputs() == 0);
}
