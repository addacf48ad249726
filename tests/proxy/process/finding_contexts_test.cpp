// The records that the live page keeps around a finding, and that analyze::Explanation can read
// them.
// Covers: proxy/pipeline/live_feed.cpp

#include "proxy/pipeline/live_feed.h"
#include "tests/support/session_script.h"

#include <string>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;
using snapshot::kNoBase;

namespace {

Items world(std::int32_t x) {
    return {{{4, 1}, {x, 20, 0, 0}}, {{4, 2}, {7, 7, 0, 0}}};
}

/// A session with invalid snapshots.
struct Play {
    Play() {
        script.join_ddnet();
        script.enter_game();
    }

    void right(snapshot::Tick tick, snapshot::Tick base) { script.snap(tick, base, world(tick)); }

    void refused(snapshot::Tick tick, snapshot::Tick base) {
        script.send(kS2c,
                    {non_vital(snap_single(tick, base, 1, delta_body(world(base), world(tick))))});
    }

    [[nodiscard]] std::vector<web::FindingContext> contexts() const {
        web::StatusView view;
        keeper.copy_contexts_to(view);
        return view.finding_contexts;
    }

    pipeline::FindingContexts keeper{snapshot::ObjectSet::standard()};
    SessionScript script{{}, keeper};
};

std::size_t count_of(std::string_view text, std::string_view what) {
    std::size_t count = 0;
    for (std::size_t at = text.find(what); at != std::string_view::npos;
         at = text.find(what, at + 1)) {
        ++count;
    }
    return count;
}

} // namespace

TEST_CASE("valid snapshots leave no context") {
    Play play;
    play.right(10, kNoBase);
    play.right(12, 10);
    CHECK(play.contexts().empty());
}

TEST_CASE("a context has the records from the last valid snapshot to the next one") {
    Play play;
    play.right(10, kNoBase);
    play.right(12, 10);
    play.refused(14, 12);
    REQUIRE(play.contexts().size() == 1);
    CHECK(play.contexts().front().lines->find(R"("id":"snapshot.crc_mismatch")") !=
          std::string::npos);
    play.right(16, 12);
    play.right(18, 16);
    REQUIRE(play.contexts().size() == 1);
    const web::FindingContext account = play.contexts().front();
    CHECK(account.session == 1);
    CHECK(account.tick == 14);
    const std::string& lines = *account.lines;
    CAPTURE(lines);
    CHECK(lines.find(R"("type":"session")") < lines.find(R"("type":"map")"));
    const std::size_t before = lines.find(R"("type":"snapshot","session":1,"dir":"s2c","tick":12)");
    const std::size_t finding = lines.find(R"("id":"snapshot.crc_mismatch")");
    const std::size_t after = lines.find(R"("type":"snapshot","session":1,"dir":"s2c","tick":16)");
    CHECK(lines.find(R"("type":"map")") < before);
    CHECK(before < finding);
    CHECK(finding < after);
    CHECK(after != std::string::npos);
    CHECK(lines.find(R"("tick":18)") == std::string::npos);
    CHECK(count_of(lines, R"("type":"snapshot")") == 3);
}

TEST_CASE("continuous findings keep a limited number of contexts, the latest ones") {
    Play play;
    play.right(10, kNoBase);
    constexpr snapshot::Tick kTicks = 100;
    for (snapshot::Tick tick = 12; tick < 12 + 2 * kTicks; tick += 2) {
        play.refused(tick, 10);
    }
    CHECK(play.contexts().size() == 2); // at most one context every half second
    for (snapshot::Tick tick = 12 + 2 * kTicks; tick < 12 + 4 * kTicks; tick += 2) {
        play.script.pause(pipeline::FindingContexts::kMinInterval);
        play.refused(tick, 10);
    }
    const auto contexts = play.contexts();
    REQUIRE(contexts.size() == pipeline::FindingContexts::kMaxContexts + 1);
    CHECK(contexts.back().tick == 10 + 4 * kTicks);
    for (const web::FindingContext& each : contexts) {
        CHECK(each.lines->size() < pipeline::FindingContexts::kMaxBytes + 4096);
    }
}

TEST_CASE("a context remains after its session has ended") {
    Play play;
    play.right(10, kNoBase);
    play.refused(12, 10);
    play.script.close("idle");
    REQUIRE(play.contexts().size() == 1);
    CHECK(play.contexts().front().tick == 12);
}
