// Covers: proxy/world/server_worlds.cpp
#include "proxy/world/server_worlds.h"
#include "tests/proxy/world/views.h"
#include "tests/support/message_builder.h"
#include "tests/support/record_sink.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tw::test {

namespace {

constexpr record::Timestamp kTick = 20'000'000;

/// Stores worlds and findings as text.
struct WorldLog final : TypedRecordSink<WorldLog> {
    void on(const record::WorldRecord& world) {
        const std::string_view name = world.head.server_name;
        lines.push_back(fmt::format("{}{}{} run {} tick {} views {} items {}{}", name,
                                    name.empty() ? "" : " ", world.server, world.run, world.tick,
                                    world.views, world.merged.items.size(),
                                    world.merged.previous ? "" : " first"));
        maps.push_back(
            fmt::format("{} {}", world.run, world.map == nullptr ? "none" : world.map->name));
    }

    void on(const record::FindingRecord& found) {
        lines.push_back(fmt::format("{} {} session {} other {} is {} not {}",
                                    record::finding_info(found.id).name, found.field,
                                    found.head.session, found.other_session.value_or(0),
                                    found.value.value_or(0), found.expected.value_or(0)));
    }

    Lines lines;
    Lines maps; ///< run number and map of each world
};

struct MergerScript {
    WorldLog log;
    world::WorldMerger merger{snapshot::ObjectSet::standard(), log};
    world::WorldInputConverter feed{merger, true};

    void open_session(std::uint32_t session, std::string_view server, std::string_view name = {},
                      bool resumed = false) {
        const record::SessionRecord record{.head = {.session = session, .server_name = name},
                                           .server = server,
                                           .resumed = resumed};
        feed.on_record(&record);
    }

    void change_map(std::uint32_t session, std::string_view name) {
        const record::MapRecord record{.head = {.session = session}, .name = name, .crc = 7};
        feed.on_record(&record);
    }

    void send_snapshot(std::uint32_t session, snapshot::Tick tick, const Items& items,
                       record::Timestamp start = 0) {
        const auto snapshot = to_snapshot(items);
        const record::SnapshotRecord record{
            .head = {.time = start + tick * kTick, .session = session},
            .tick = tick,
            .rebuilt = true,
            .items = snapshot.view(),
            .client_version = 16040};
        feed.on_record(&record);
    }
};

} // namespace

TEST_CASE("servers with different names have separate, named worlds") {
    MergerScript game;
    game.open_session(1, "a:1", "ctf");
    game.open_session(2, "a:1", "race"); // two configured names with the same address
    game.open_session(3, "a:1", "ctf");
    for (std::uint32_t session = 1; session <= 3; ++session) {
        game.send_snapshot(session, 100,
                           {{{9, static_cast<std::uint16_t>(session)}, character(1, 1)}});
    }
    game.merger.merge_waiting_ticks();
    CHECK(game.log.lines == Lines{"ctf a:1 run 1 tick 100 views 2 items 2 first",
                                  "race a:1 run 1 tick 100 views 1 items 1 first"});
}

TEST_CASE("each server has its own world") {
    MergerScript game;
    game.open_session(1, "a:1");
    game.open_session(2, "a:1");
    game.open_session(3, "b:1");
    for (std::uint32_t session = 1; session <= 3; ++session) {
        game.send_snapshot(session, 100,
                           {{{9, static_cast<std::uint16_t>(session)}, character(1, 1)}});
    }
    game.merger.merge_waiting_ticks();
    CHECK(game.log.lines == Lines{"a:1 run 1 tick 100 views 2 items 2 first",
                                  "b:1 run 1 tick 100 views 1 items 1 first"});
    CHECK(game.merger.totals().worlds.total == 2);
    CHECK(game.merger.totals().worlds.complete == 2);
    CHECK(game.merger.totals().worlds.views == 3);
}

TEST_CASE("after a takeover, worlds begin after the previous process's last tick") {
    for (const bool resumed : {false, true}) {
        CAPTURE(resumed);
        MergerScript game;
        game.open_session(1, "a:1", {}, resumed);
        game.open_session(2, "a:1", {}, resumed);
        for (snapshot::Tick tick = 100; tick < 120; tick += 2) {
            if (tick != 100) {
                game.send_snapshot(1, tick, {{{9, 1}, character(1, 1)}});
            }
            game.send_snapshot(2, tick, {{{9, 1}, character(1, 1)}});
        }
        game.merger.merge_waiting_ticks();
        const auto first = fmt::format("a:1 run 1 tick {} views {} items 1 first",
                                       resumed ? 102 : 100, resumed ? 2 : 1);
        CHECK(game.log.lines.front() == first);
        CHECK(game.merger.totals().worlds.complete == game.merger.totals().worlds.total);
        CHECK(game.merger.totals().worlds.late == (resumed ? 1 : 0));
    }
}

TEST_CASE("differing views are reported once, with the field and both sessions") {
    MergerScript game;
    game.open_session(1, "a:1");
    game.open_session(2, "a:1");
    for (snapshot::Tick tick = 100; tick < 120; tick += 2) {
        game.send_snapshot(1, tick, {{{9, 4}, character(100, 7)}});
        game.send_snapshot(2, tick, {{{9, 4}, character(tick < 110 ? 100 : 132, 7)}});
    }
    game.merger.merge_waiting_ticks();
    Lines findings;
    for (const auto& line : game.log.lines) {
        if (line.starts_with("world.")) {
            findings.push_back(line);
        }
    }
    CHECK(findings == Lines{"world.views_differ x session 2 other 1 is 132 not 100"});
    const auto id = static_cast<std::size_t>(record::FindingId::world_views_differ);
    CHECK(game.merger.totals().findings[id] == 1);
}

TEST_CASE("a session with many stray views is reported") {
    for (const snapshot::Tick strays : {20, 40}) {
        CAPTURE(strays);
        MergerScript game;
        for (const std::uint32_t session : {1U, 2U, 3U}) {
            game.open_session(session, "a:1");
        }
        for (snapshot::Tick tick = 100; tick < 300; tick += 2) {
            game.send_snapshot(1, tick, {{{9, 4}, character(100, 7)}});
            game.send_snapshot(2, tick, {{{9, 4}, character(100, 7)}});
            if (tick < 100 + 2 * strays) {
                game.send_snapshot(3, tick + 5000, {{{9, 4}, character(100, 7)}}, -5000 * kTick);
            }
        }
        game.merger.merge_waiting_ticks();
        const record::WorldStats& worlds = game.merger.totals().worlds;
        CHECK(worlds.stray == static_cast<std::uint64_t>(strays));
        CHECK(worlds.complete == 100);
        const auto told = std::ranges::count_if(game.log.lines, [](const std::string& line) {
            return line.starts_with("world.stray ");
        });
        CHECK(told == (strays > 25 ? 1 : 0));
        const auto id = static_cast<std::size_t>(record::FindingId::world_stray);
        CHECK(game.merger.totals().findings[id] == (strays > 25 ? 1 : 0));
    }
}

namespace {

/// Stores each message after the world to which it belongs.
struct MessageLog final : record::WorldMessageSink {
    explicit MessageLog(WorldLog& to) : log{&to} {}

    void on_world_message(const record::WorldMessage& message) override {
        log->lines.push_back(
            fmt::format("{} run {} {}", message.server, message.run, message.spec->name));
        for (const wire::FieldValue& value : message.values) {
            if (value.kind == wire::FieldValue::Kind::integer) {
                log->lines.back() += fmt::format(" {}", value.integer);
            }
        }
    }

    WorldLog* log;
};

} // namespace

TEST_CASE("a message to all follows its world once, with the server's ids") {
    MergerScript game;
    MessageLog spoken{game.log};
    game.merger.send_messages_to(spoken);
    const auto told = [&](std::uint32_t session, std::int32_t killer, std::int32_t victim) {
        const auto payload = MessageBuilder{*wire::find_message(false, 4, snapshot::Dialect::six)}
                                 .number(killer)
                                 .number(victim)
                                 .number(4)
                                 .number(0)
                                 .bytes();
        const record::MessageRecord record{
            .head = {.session = session, .direction = wire::Direction::s2c},
            .name = "sv_kill_msg",
            .vital = true,
            .payload = payload};
        game.feed.on_record(&record);
    };
    for (const std::uint32_t session : {1U, 2U, 3U}) {
        game.open_session(session, session == 3 ? "b:1" : "a:1");
        told(session, 9, 9); // has not entered a game yet
    }
    const Items knowing{{{9, 20}, character(1, 1)},
                        {{11, 20}, client_info("bob")},
                        {{11, 33}, client_info("vera")}};
    const Items translated{{{9, 0}, character(1, 1)},
                           {{11, 0}, client_info("bob")},
                           {{11, 1}, client_info("vera")},
                           {{11, 15}, client_info(" ")}};
    for (snapshot::Tick tick = 100; tick < 106; tick += 2) {
        game.send_snapshot(1, tick, knowing);
        game.send_snapshot(2, tick, translated);
        game.send_snapshot(3, tick, knowing);
        if (tick == 102) {
            told(1, 20, 33);
            told(2, 0, 1);
            told(2, 15, 1);
            told(3, 20, 33);
        }
    }
    game.merger.merge_waiting_ticks();
    Lines lines = game.log.lines;
    std::ranges::stable_sort(lines, {}, [](const std::string& line) { return line.front(); });
    CHECK(lines ==
          Lines{"a:1 run 1 tick 100 views 2 items 3 first", "a:1 run 1 tick 102 views 2 items 3",
                "a:1 run 1 sv_kill_msg 20 33 4 0", "a:1 run 1 tick 104 views 2 items 3",
                "b:1 run 1 tick 100 views 1 items 3 first", "b:1 run 1 tick 102 views 1 items 3",
                "b:1 run 1 sv_kill_msg 20 33 4 0", "b:1 run 1 tick 104 views 1 items 3"});
    CHECK(game.merger.lost_message_count() == 0);
    CHECK(game.merger.memory_bytes() == 0);
}

TEST_CASE("worlds have the map of their map run") {
    for (const snapshot::Tick last : {10, 30}) {
        CAPTURE(last);
        MergerScript game;
        game.open_session(1, "a:1");
        game.change_map(1, "dm1");
        for (snapshot::Tick tick = 10; tick <= last; tick += 2) {
            game.send_snapshot(1, tick, {{{9, 1}, character(1, 1)}});
        }
        game.change_map(1, "ctf1");
        for (snapshot::Tick tick = 10; tick <= 30; tick += 2) {
            game.send_snapshot(1, tick, {{{9, 1}, character(1, 1)}}, 40 * kTick);
        }
        game.merger.merge_waiting_ticks();
        const auto& maps = game.log.maps;
        CHECK(maps.size() == static_cast<std::size_t>((last - 10) / 2 + 1 + 11));
        CHECK(std::ranges::count(maps, "2 ctf1") == 11);
        CHECK(std::ranges::count(maps, "1 ctf1") == 0);
        CHECK(maps.front() == (last == 10 ? "1 none" : "1 dm1"));
    }
}

TEST_CASE("worlds have the map that any of their sessions knows") {
    MergerScript game;
    game.open_session(1, "a:1"); // joins in the middle of a game, so the map is unknown
    game.open_session(2, "a:1");
    game.change_map(2, "dm1");
    for (snapshot::Tick tick = 10; tick < 20; tick += 2) {
        game.send_snapshot(1, tick, {{{9, 1}, character(1, 1)}});
        if (tick > 12) {
            game.send_snapshot(2, tick, {{{9, 1}, character(1, 1)}});
        }
    }
    game.merger.merge_waiting_ticks();
    CHECK(game.log.maps == Lines{"1 ", "1 ", "1 dm1", "1 dm1", "1 dm1"});
}

TEST_CASE("snapshots of unknown sessions are ignored") {
    MergerScript game;
    game.send_snapshot(7, 100, {{{9, 4}, character(100, 7)}});
    game.merger.merge_waiting_ticks();
    CHECK(game.log.lines.empty());
}

namespace {

/// Stores numbers only, so that an attack cannot fill the test's memory.
struct WorldCounts final : TypedRecordSink<WorldCounts> {
    void on(const record::WorldRecord& world) {
        ++worlds;
        honest_worlds += world.server == "honest:1" ? 1U : 0U;
        honest_views += world.server == "honest:1" ? world.views : 0;
    }

    std::uint64_t worlds = 0;
    std::uint64_t honest_worlds = 0;
    std::uint64_t honest_views = 0;
};

struct FloodedMerger {
    std::size_t max_bytes = world::WorldMerger::kMaxBytes;
    WorldCounts counts{};
    world::WorldMerger merger{snapshot::ObjectSet::standard(), counts, {}, max_bytes};
    std::size_t peak_bytes = 0; ///< the greatest memory use

    void pass_input(const world::MergerInput& input) {
        merger.on_input(input);
        peak_bytes = std::max(peak_bytes, merger.memory_bytes());
    }

    void open_session(std::uint32_t session, std::string_view server, record::Timestamp time = 0) {
        pass_input({.kind = world::MergerInput::Kind::open,
                    .time = time,
                    .session = session,
                    .server = std::string{server}});
    }

    void send_snapshot(std::uint32_t session, snapshot::Tick tick,
                       std::shared_ptr<const snapshot::Snapshot> items) {
        pass_input({.kind = world::MergerInput::Kind::snapshot,
                    .time = tick * kTick,
                    .session = session,
                    .tick = tick,
                    .items = std::move(items)});
    }
};

/// A snapshot of the maximum size: 64 KiB in 1,024 items.
std::shared_ptr<const snapshot::Snapshot> large_snapshot(std::uint16_t first_id) {
    Items many;
    for (std::uint16_t i = 0; i < 1000; ++i) {
        many[{9, static_cast<std::uint16_t>(first_id + i)}] = Ints(14);
    }
    return to_shared(many);
}

} // namespace

TEST_CASE("255 forged servers stay within the budget and harm no other server") {
    FloodedMerger attack;
    const auto small = to_shared({{{9, 0}, character(1, 1)}});
    constexpr std::uint32_t kEach = 3; // sessions per server; one of them stops receiving snapshots
    attack.open_session(1, "honest:1");
    attack.open_session(2, "honest:1");
    for (std::uint32_t i = 0; i < 255 * kEach; ++i) {
        attack.open_session(10 + i, fmt::format("invented:{}", i / kEach));
    }
    CHECK(attack.merger.server_count() == 256);
    const std::vector<std::shared_ptr<const snapshot::Snapshot>> large{
        large_snapshot(0), large_snapshot(20000), large_snapshot(40000)};
    for (snapshot::Tick tick = 100; tick < 120; tick += 2) {
        attack.send_snapshot(1, tick, small);
        for (std::uint32_t i = 0; i < 255 * kEach; ++i) {
            if (i % kEach != 0 || tick == 100) {
                attack.send_snapshot(10 + i, tick, large.at(i % kEach));
            }
        }
        attack.send_snapshot(2, tick, small);
    }
    // Without a limit, there would be 255 servers with 10 ticks of two views each.
    CHECK(attack.peak_bytes > world::WorldMerger::kMaxBytes / 2);
    CHECK(attack.peak_bytes <= world::WorldMerger::kMaxBytes + large[0]->view().size_bytes() * 2);
    attack.merger.merge_waiting_ticks();
    CHECK(attack.merger.memory_bytes() == 0);
    CHECK(attack.counts.honest_worlds == 10);
    CHECK(attack.counts.honest_views == 20);
    CHECK(attack.merger.totals().worlds.dropped == 0);
}

TEST_CASE("one server with large ticks stays within the budget") {
    FloodedMerger attack;
    const auto large = large_snapshot(0);
    const auto sessions =
        static_cast<std::uint32_t>(world::WorldMerger::kMaxBytes / large->view().size_bytes() / 8);
    // No two views have common items, because these would be stored only once.
    Items different;
    std::vector<std::shared_ptr<const snapshot::Snapshot>> shown;
    for (std::uint32_t session = 0; session <= sessions; ++session) {
        for (std::uint16_t i = 0; i < 1000; ++i) {
            different[{9, i}] = Ints(14, static_cast<std::int32_t>(session));
        }
        shown.push_back(to_shared(different));
    }
    for (std::uint32_t session = 1; session <= sessions; ++session) {
        attack.open_session(session, "one:1");
    }
    attack.open_session(9999, "one:1");
    attack.send_snapshot(9999, 98, large); // this session stops receiving snapshots
    attack.send_snapshot(9999, 100, large);
    for (snapshot::Tick tick = 100; tick < 120; tick += 2) {
        for (std::uint32_t session = 1; session <= sessions; ++session) {
            attack.send_snapshot(session, tick, shown[session]);
        }
    }
    CHECK(attack.peak_bytes > world::WorldMerger::kMaxBytes / 2);
    CHECK(attack.peak_bytes <= world::WorldMerger::kMaxBytes + large->view().size_bytes() * 2);
}

TEST_CASE("worlds stay within their memory share, and early closed ticks are counted") {
    CHECK(world::WorldMerger::memory_share(std::size_t{16} << 20U) == std::size_t{4} << 20U);
    CHECK(world::WorldMerger::memory_share(std::size_t{512} << 20U) ==
          world::WorldMerger::kMaxBytes);

    constexpr std::size_t kBytes = std::size_t{1} << 20U;
    FloodedMerger attack{.max_bytes = kBytes};
    constexpr std::uint32_t kSessions = 4;
    std::vector<std::shared_ptr<const snapshot::Snapshot>> shown;
    for (std::uint32_t session = 0; session <= kSessions; ++session) {
        shown.push_back(large_snapshot(static_cast<std::uint16_t>(session * 5000)));
        attack.open_session(session, "one:1");
    }
    for (snapshot::Tick tick = 100; tick < 160; tick += 2) {
        for (std::uint32_t session = tick < 104 ? 0 : 1; session <= kSessions; ++session) {
            attack.send_snapshot(session, tick, shown[session]); // the first one never gets further
        }
    }
    CHECK(attack.peak_bytes > kBytes / 2);
    CHECK(attack.peak_bytes <= kBytes + shown[0]->view().size_bytes() * 2);
    attack.merger.merge_waiting_ticks();
    const record::WorldStats& worlds = attack.merger.totals().worlds;
    CHECK(worlds.total == 30);
    CHECK(worlds.shed > 10);
    CHECK(worlds.shed < 30);
}

TEST_CASE("views of servers beyond the limit are counted as dropped until one is idle") {
    FloodedMerger attack;
    const auto small = to_shared({{{9, 0}, character(1, 1)}});
    for (std::uint32_t i = 0; i < world::WorldMerger::kMaxServers; ++i) {
        attack.open_session(1 + i, fmt::format("invented:{}", i));
        attack.send_snapshot(1 + i, 100, small);
    }
    attack.open_session(1000, "honest:1", 100 * kTick);
    for (snapshot::Tick tick = 100; tick < 120; tick += 2) {
        attack.send_snapshot(1000, tick, small);
    }
    CHECK(attack.merger.server_count() == world::WorldMerger::kMaxServers);
    // The forged servers have no more events, so one of them is evicted although its session is
    // open.
    const auto idle = static_cast<snapshot::Tick>(world::WorldMerger::kIdleTimeout / kTick);
    for (snapshot::Tick tick = 100 + idle; tick < 120 + idle; tick += 2) {
        attack.send_snapshot(1000, tick, small);
    }
    CHECK(attack.merger.server_count() == world::WorldMerger::kMaxServers);
    // A session of the evicted server gets the next free place.
    attack.pass_input(
        {.kind = world::MergerInput::Kind::close, .time = (120 + idle) * kTick, .session = 7});
    for (std::uint32_t i = 0; i < world::WorldMerger::kMaxServers; ++i) {
        attack.send_snapshot(1 + i, 122 + 2 * idle, small);
    }
    attack.merger.merge_waiting_ticks();
    CHECK(attack.counts.honest_worlds == 10);
    CHECK(attack.merger.totals().worlds.dropped == 10);
    CHECK(attack.counts.worlds == 2 * 256 - 1 + 10);
}

TEST_CASE("a removed server that returns gets a new map run") {
    const auto small = to_shared({{{9, 0}, character(1, 1)}});

    struct WorldRunLog final : TypedRecordSink<WorldRunLog> {
        void on(const record::WorldRecord& world) { seen.push_back(world.run); }

        std::vector<std::uint32_t> seen;
    } log;

    world::WorldMerger merger{snapshot::ObjectSet::standard(), log};
    const auto show = [&](std::uint32_t session, snapshot::Tick tick) {
        merger.on_input({.kind = world::MergerInput::Kind::snapshot,
                         .time = tick * kTick,
                         .session = session,
                         .tick = tick,
                         .items = small});
    };
    for (std::uint32_t i = 0; i <= world::WorldMerger::kMaxServers; ++i) {
        const auto tick = static_cast<snapshot::Tick>(100 + i * 1000);
        merger.on_input({.kind = world::MergerInput::Kind::open,
                         .time = tick * kTick,
                         .session = 1 + i,
                         .server = fmt::format("server:{}", i)});
        show(1 + i, tick);
    }
    show(1, 1'000'000);
    merger.merge_waiting_ticks();
    CHECK(std::ranges::count(log.seen, 1U) == world::WorldMerger::kMaxServers);
    CHECK(std::ranges::count(log.seen, 2U) == 2);
}

} // namespace tw::test
