// Covers: proxy/game/merger.cpp, proxy/game/feed.cpp, proxy/game/difference_log.cpp
#include "proxy/game/feed.h"
#include "proxy/game/merger.h"
#include "tests/proxy/game/views.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tw::test {

namespace {

constexpr record::Timestamp kTick = 20'000'000;

/// Writes down worlds and findings.
class WorldLog final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        if (const auto* const* world = std::get_if<const record::WorldRecord*>(&record)) {
            lines.push_back(fmt::format("{} run {} tick {} views {} items {}{}", (*world)->server,
                                        (*world)->run, (*world)->tick, (*world)->views,
                                        (*world)->shown.items.size(),
                                        (*world)->shown.previous ? "" : " first"));
        } else if (const auto* const* found = std::get_if<const record::FindingRecord*>(&record)) {
            lines.push_back(fmt::format(
                "{} {} session {} other {} is {} not {}", record::finding_info((*found)->id).name,
                (*found)->field, (*found)->head.session, (*found)->other_session.value_or(0),
                (*found)->value.value_or(0), (*found)->expected.value_or(0)));
        }
    }

    std::vector<std::string> lines;
};

struct Game {
    WorldLog log;
    game::Merger merger{snapshot::ObjectSet::standard(), log};
    game::Feed feed{merger};

    void open(std::uint32_t session, std::string_view server) {
        const record::SessionRecord record{.head = {.session = session}, .server = server};
        feed.on_record(&record);
    }

    void show(std::uint32_t session, snapshot::Tick tick, const Items& items) {
        const auto snapshot = to_snapshot(items);
        const record::SnapshotRecord record{.head = {.time = tick * kTick, .session = session},
                                            .tick = tick,
                                            .rebuilt = true,
                                            .items = snapshot.view(),
                                            .client_version = 16040};
        feed.on_record(&record);
    }
};

} // namespace

TEST_CASE("sessions of one server make one world, those of another make another") {
    Game game;
    game.open(1, "a:1");
    game.open(2, "a:1");
    game.open(3, "b:1");
    for (std::uint32_t session = 1; session <= 3; ++session) {
        game.show(session, 100, {{{9, static_cast<std::uint16_t>(session)}, character(1, 1)}});
    }
    game.merger.finish();
    CHECK(game.log.lines == std::vector<std::string>{"a:1 run 1 tick 100 views 2 items 2 first",
                                                     "b:1 run 1 tick 100 views 1 items 1 first"});
    CHECK(game.merger.totals().worlds.total == 2);
    CHECK(game.merger.totals().worlds.complete == 2);
    CHECK(game.merger.totals().worlds.views == 3);
}

TEST_CASE("views that differ are told of when it begins, with the field and both sessions") {
    Game game;
    game.open(1, "a:1");
    game.open(2, "a:1");
    for (snapshot::Tick tick = 100; tick < 120; tick += 2) {
        game.show(1, tick, {{{9, 4}, character(100, 7)}});
        game.show(2, tick, {{{9, 4}, character(tick < 110 ? 100 : 132, 7)}});
    }
    game.merger.finish();
    std::vector<std::string> findings;
    for (const auto& line : game.log.lines) {
        if (line.starts_with("world.")) {
            findings.push_back(line);
        }
    }
    CHECK(findings ==
          std::vector<std::string>{"world.views_differ x session 2 other 1 is 132 not 100"});
    const auto id = static_cast<std::size_t>(record::FindingId::world_views_differ);
    CHECK(game.merger.totals().findings[id] == 1);
}

TEST_CASE("snapshots of sessions that never began are nobody's") {
    Game game;
    game.show(7, 100, {{{9, 4}, character(100, 7)}});
    game.merger.finish();
    CHECK(game.log.lines.empty());
}

} // namespace tw::test
