#include "proxy/world/open_world.h"
#include "tests/proxy/world/views.h"

#include <vector>

#include <doctest/doctest.h>

namespace tw::test {

TEST_CASE("views are read as they were added, the one that says most first") {
    struct Row {
        std::uint32_t session;
        std::int32_t version;
        std::uint16_t client;
        bool translated;
    };

    const Row rows[] = {
        {3, 16040, 0, true}, {9, 16040, 1, false}, {2, 20011, 2, false}, {4, 16040, 3, false}};
    const auto items_of = [](const Row& row) {
        Items items{{{snapshot::kCharacterType, row.client}, ints(22, {{1, row.version}, {15, 8}})},
                    {{snapshot::kPlayerInfoType, row.client}, {1, row.client, 0, 0, 0}}};
        if (row.translated) {
            items[{snapshot::kClientInfoType, 15}] = client_info(" ");
        }
        return to_snapshot(items);
    };
    world::OpenWorld world;
    for (int tick = 100; tick < 102; ++tick) { // the second tick reuses the memory
        CAPTURE(tick);
        world.begin(tick, 0);
        CHECK(world.view_count() == 0);
        for (const Row& row : rows) {
            const snapshot::Snapshot items = items_of(row);
            const world::WorldInput input{.kind = world::WorldInput::Kind::snapshot,
                                          .session = row.session,
                                          .tick = tick,
                                          .items = items.view(),
                                          .client_version = row.version};
            CHECK_FALSE(world.has_view_of(row.session));
            CHECK(world.add_view(input, nullptr));
            CHECK_FALSE(world.add_view(input, nullptr)); // the session has a view
        }
        std::vector<world::View> views;
        world.list_views(views);
        std::size_t at = 0;
        for (const Row* const row : {&rows[2], &rows[3], &rows[1], &rows[0]}) {
            CAPTURE(row->session);
            REQUIRE(at < views.size());
            const world::View& view = views[at++];
            CHECK(view.session == row->session);
            CHECK(view.items == items_of(*row).view());
            CHECK(view.own == row->client);
            CHECK(view.scoreboard);
            CHECK(view.translated == row->translated);
        }
        CHECK(at == views.size());
    }
}

TEST_CASE("a tick's time is that of its earliest view, whichever was added first") {
    const auto items = to_snapshot({{{9, 0}, character(1, 1)}});
    for (const bool earliest_first : {true, false}) {
        world::OpenWorld world;
        const record::Timestamp first = earliest_first ? 1000 : 1003;
        world.begin(100, first);
        for (const std::uint32_t session : {1U, 2U, 3U}) {
            const record::Timestamp time = earliest_first ? 999 + session : 1004 - session;
            CHECK(world.add_view({.kind = world::WorldInput::Kind::snapshot,
                                  .time = time,
                                  .session = session,
                                  .tick = 100,
                                  .items = items.view()},
                                 nullptr));
        }
        CHECK(world.time() == (earliest_first ? 1000 : 1001));
    }
}

} // namespace tw::test
