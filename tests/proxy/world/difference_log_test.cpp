// Tests the reported differences between the snapshots that a server sends two players.
#include "proxy/world/server_worlds.h"
#include "tests/proxy/world/views.h"
#include "tests/support/record_sink.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tw::test {

namespace {

using snapshot::Tick;

constexpr std::uint16_t kGameInfo = 6;
constexpr std::uint16_t kExplosion = 14;
constexpr std::size_t kRoundStart = 2;

struct DifferenceFindings final : TypedRecordSink<DifferenceFindings> {
    void on(const record::FindingRecord& it) {
        lines.push_back(fmt::format(
            "{} {} {}.{} @{}", record::severity_name(record::finding_info(it.id).severity),
            record::finding_info(it.id).name, it.item->type, it.field, it.tick.value_or(0)));
        CHECK(it.head.session != it.other_session);
        CHECK(it.value != it.expected);
    }

    Lines lines;
};

/// Returns the items that a session receives in a tick.
using ItemsOfSession = std::function<Items(std::uint32_t session, Tick tick)>;

struct TwoSessions {
    DifferenceFindings findings;
    world::WorldMerger merger{snapshot::ObjectSet::standard(), findings};

    TwoSessions() {
        for (const std::uint32_t session : {1U, 2U}) {
            merger.on_input(
                {.kind = world::MergerInput::Kind::open, .session = session, .server = "a:1"});
        }
    }

    void send_snapshots(Tick from, Tick to, const ItemsOfSession& show,
                        record::Timestamp start = 0) {
        constexpr record::Timestamp kTick = 20'000'000;
        for (Tick tick = from; tick < to; tick += 2) {
            for (const std::uint32_t session : {1U, 2U}) {
                merger.on_input({.kind = world::MergerInput::Kind::snapshot,
                                 .time = start + tick * kTick,
                                 .session = session,
                                 .tick = tick,
                                 .items = to_shared(show(session, tick)),
                                 .client_version = 16040});
            }
        }
    }

    Lines finish_merging() {
        merger.merge_waiting_ticks();
        return findings.lines;
    }
};

/// Returns a number that differs per session, tick and seed, in the range of a dot's position.
std::int32_t random_dot(std::uint32_t session, Tick tick, std::int32_t seed) {
    const auto mixed = (session * 2654435761U) ^ (static_cast<std::uint32_t>(tick) * 40503U) ^
                       (static_cast<std::uint32_t>(seed) * 2246822519U);
    return static_cast<std::int32_t>((mixed ^ (mixed >> 15U)) * 2654435761U >> 26U);
}

/// Returns pickups with fixed positions, and pickups that are random dots around a portal.
Items pickups_with_dots(std::uint32_t session, Tick tick, std::uint16_t first = 50) {
    Items items{{{kPickup, 1}, {10, 20, 0, 0}}, {{kPickup, 2}, {30, 40, 0, 0}}};
    for (std::uint16_t i = 0; i < 8; ++i) {
        items[{kPickup, static_cast<std::uint16_t>(first + i)}] = {
            500 + random_dot(session, tick, i), 500 + random_dot(session, tick, i + 100), 0, 0};
    }
    return items;
}

} // namespace

TEST_CASE("differing views are reported") {
    struct Row {
        std::string_view name;
        ItemsOfSession show;
        Tick end;
        Lines findings;
    };

    const auto tee = [](std::uint32_t session, bool lies) {
        return character(session == 2 && lies ? 132 : 100, 7);
    };
    const Row rows[] = {
        {"views that agreed before: at once, and once",
         [&](std::uint32_t session, Tick tick) {
             return Items{{{kCharacter, 4}, tee(session, tick >= 130)}};
         },
         700,
         {"warning world.views_differ character.x @130"}},
        {"random dots: the server's way, each field once, later dots too",
         [&](std::uint32_t session, Tick tick) {
             return pickups_with_dots(session, tick, tick < 300 ? 50 : 70);
         },
         1000,
         {"info world.per_viewer pickup.x @126", "info world.per_viewer pickup.y @126"}},
        {"a timer of each player's own",
         [&](std::uint32_t session, Tick /*tick*/) {
             const auto start = static_cast<std::int32_t>(1000 * session);
             return Items{{{kGameInfo, 0}, make_ints(8, {{kRoundStart, start}})}};
         },
         1000,
         {"info world.per_viewer game_info.round_start_tick @126"}},
        {"a difference that was there from the start, and went away",
         [&](std::uint32_t session, Tick tick) {
             return Items{{{kCharacter, 4}, tee(session, tick < 106)}};
         },
         700,
         {"warning world.views_differ character.x @100"}},
        {"an event that differs once, with nothing to compare it with",
         [&](std::uint32_t session, Tick tick) {
             Items items{{{kCharacter, 4}, tee(session, false)}};
             if (tick == 110) {
                 items[{kExplosion, 3}] = {static_cast<std::int32_t>(session), 5};
             }
             return items;
         },
         700,
         {"warning world.views_differ explosion.x @110"}},
        {"the same, before it is clear what it is",
         [&](std::uint32_t session, Tick tick) {
             Items items{{{kCharacter, 4}, tee(session, false)}};
             if (tick == 198) {
                 items[{kExplosion, 3}] = {static_cast<std::int32_t>(session), 5};
             }
             return items;
         },
         200,
         {"warning world.views_differ explosion.x @198"}},
        {"events that never agree",
         [&](std::uint32_t session, Tick tick) {
             return Items{{{kExplosion, static_cast<std::uint16_t>(tick % 50)},
                           {static_cast<std::int32_t>(session), 5}}};
         },
         1000,
         {"info world.per_viewer explosion.x @148"}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        TwoSessions stage;
        stage.send_snapshots(100, row.end, row.show);
        CHECK(stage.finish_merging() == row.findings);
    }
}

TEST_CASE("per-viewer items do not hide other differences") {
    TwoSessions stage;
    stage.send_snapshots(100, 1200, [](std::uint32_t session, Tick tick) {
        Items items = pickups_with_dots(session, tick);
        if (tick >= 400) {
            items[{kPickup, 2}][0] +=
                session == 2 ? 1 : 0; // the views agreed on its position before
        }
        return items;
    });
    CHECK(stage.finish_merging() == Lines{"info world.per_viewer pickup.x @126",
                                          "info world.per_viewer pickup.y @126",
                                          "warning world.views_differ pickup.x @400"});
}

TEST_CASE("alternating differences are reported") {
    // The views differ from the start, so the field is per viewer. In between, they agree.
    for (const Tick pause : {30, 300}) {
        CAPTURE(pause);
        TwoSessions stage;
        stage.send_snapshots(100, 2500, [pause](std::uint32_t session, Tick tick) {
            const bool lies = (tick - 100) % (60 + pause) < 60;
            return Items{{{kCharacter, 4}, character(session == 2 && lies ? 132 : 100, 7)}};
        });
        Lines expected{"info world.per_viewer character.x @126"};
        for (Tick tick = 160 + pause; tick < 2500; tick += 60 + pause) {
            if (pause > 250 || expected.size() == 1) { // the same difference continues
                expected.push_back(fmt::format("warning world.views_differ character.x @{}", tick));
            }
        }
        CHECK(stage.finish_merging() == expected);
    }
}

TEST_CASE("differing events among equal ones are faults") {
    TwoSessions stage;
    stage.send_snapshots(100, 300, [](std::uint32_t session, Tick tick) {
        const auto id = static_cast<std::uint16_t>(tick);
        return Items{{{kExplosion, 0}, {tick, 5}},
                     {{kExplosion, id}, {static_cast<std::int32_t>(session), 5}}};
    });
    const auto lines = stage.finish_merging();
    CHECK(lines.size() == 100);
    CHECK(std::ranges::all_of(lines, [](const std::string& line) {
        return line.starts_with("warning world.views_differ explosion.x @");
    }));
}

TEST_CASE("a per-viewer field is not reported again on the next map") {
    TwoSessions stage;
    for (const record::Timestamp map : {0, 1, 2}) {
        const Tick to = 400;
        stage.send_snapshots(
            100, to,
            [](std::uint32_t session, Tick tick) { return pickups_with_dots(session, tick); },
            map * 60'000'000'000);
        for (const std::uint32_t session : {1U, 2U}) {
            stage.merger.on_input({.kind = world::MergerInput::Kind::close, .session = session});
            stage.merger.on_input(
                {.kind = world::MergerInput::Kind::open, .session = session, .server = "a:1"});
        }
    }
    CHECK(stage.finish_merging() ==
          Lines{"info world.per_viewer pickup.x @126", "info world.per_viewer pickup.y @126"});
}

} // namespace tw::test
