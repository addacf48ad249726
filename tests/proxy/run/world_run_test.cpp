// Covers: proxy/run/world_queue.cpp
#include "proxy/run/world_run.h"
#include "tests/support/snapshot_messages.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;

namespace {

constexpr record::Timestamp kTick = 20'000'000;

/// Keeps what it is handed.
class Lines final : public sink::Output {
  public:
    void write(std::string_view block) override { text.append(block); }

    std::string text;
};

/// What a worker would say of some seconds of a game, up to `last`.
void play(game::InputSink& to, std::uint32_t session, snapshot::Tick first, snapshot::Tick last) {
    const auto input = [&](game::Input::Kind kind, record::Timestamp time) {
        game::Input it{.kind = kind, .time = time, .session = session};
        it.server = "127.0.0.1:8303";
        return it;
    };
    to.on_input(input(game::Input::Kind::open, first * kTick));
    for (snapshot::Tick tick = first; tick < last; tick += 2) {
        const auto x = static_cast<std::int32_t>(session) * 100 + tick;
        std::vector<std::int32_t> tee(22);
        tee[1] = x;
        const auto items = test::to_snapshot(
            {{{9, static_cast<std::uint16_t>(session)}, tee}, {{4, 1}, {1, 2, 0, 0}}});
        auto it = input(game::Input::Kind::snapshot, tick * kTick + session);
        it.tick = tick;
        it.items = items.view();
        to.on_input(it);
    }
    to.on_input(input(game::Input::Kind::close, last * kTick));
}

std::string worlds_of(unsigned workers) {
    Lines lines;
    run::WorldRun worlds{{.json = {.items = sink::ItemChoice::all}, .records = &lines}, workers};
    std::vector<std::thread> threads;
    for (unsigned worker = 0; worker < workers; ++worker) {
        threads.emplace_back([&worlds, worker, workers] {
            // The sessions of a worker, one tick of all of them after the other.
            std::vector<std::uint32_t> sessions;
            for (std::uint32_t session = 1; session <= 4; ++session) {
                if (session % workers == worker) {
                    sessions.push_back(session);
                }
            }
            for (const std::uint32_t session : sessions) {
                play(worlds.queue(worker), session, 100, 160);
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    worlds.finish();
    return lines.text;
}

} // namespace

TEST_CASE("worlds are the same, however many threads decode") {
    const std::string all = worlds_of(4);
    CHECK(std::ranges::count(all, '\n') == 30);
    CHECK(all.find(R"("tick":158)") != std::string::npos);
    CHECK(all.find(R"("views":4)") != std::string::npos);
    for (int i = 0; i < 5; ++i) {
        CHECK(worlds_of(4) == all);
    }
}

TEST_CASE("a queue that nobody empties drops snapshots, counts them, and keeps its bounds") {
    run::WorldQueue queue;
    test::Items large;
    for (std::uint16_t i = 0; i < 1000; ++i) {
        large[{9, i}] = std::vector<std::int32_t>(14);
    }
    const auto items = test::to_snapshot(large);
    const std::size_t fit = run::WorldQueue::kMaxBytes / (items.view().block_ints() * 4);
    for (std::size_t i = 0; i < fit + 10; ++i) {
        game::Input input{.kind = game::Input::Kind::snapshot, .time = 5, .session = 1};
        input.items = items.view();
        queue.on_input(input);
    }
    CHECK(queue.dropped() == 10);
    run::WorldQueue::Batch batch;
    CHECK(queue.take(batch) == 5);
    CHECK_FALSE(batch.empty());
    game::Input input{.kind = game::Input::Kind::snapshot, .time = 7, .session = 1};
    input.items = items.view();
    queue.on_input(input);
    CHECK(queue.dropped() == 10); // there is room again
}
