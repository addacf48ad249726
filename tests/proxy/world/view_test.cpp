// Covers: proxy/world/view.cpp
#include "proxy/world/view_collector.h"
#include "tests/proxy/world/views.h"

#include <cstddef>
#include <iterator>

#include <doctest/doctest.h>

namespace tw::test {

TEST_CASE("a tick has the time of its earliest view, and the view that says most first") {
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
    int closed = 0;
    world::ViewCollector collector{[&](const world::ClosedWorld& world) {
        REQUIRE(world.views.size() == std::size(rows));
        std::size_t at = 0;
        for (const Row* const row : {&rows[2], &rows[3], &rows[1], &rows[0]}) {
            CAPTURE(row->session);
            const world::View& view = world.views[at++];
            CHECK(view.session == row->session);
            CHECK(view.items == items_of(*row).view());
            CHECK(view.own == row->client);
            CHECK(view.scoreboard);
            CHECK(view.translated == row->translated);
        }
        CHECK(world.time == 1000);
        ++closed;
    }};
    for (const bool earliest_first : {true, false}) {
        const snapshot::Tick tick = earliest_first ? 100 : 101;
        record::Timestamp time = earliest_first ? 1000 : 1003;
        for (const Row& row : rows) {
            const snapshot::Snapshot items = items_of(row);
            const world::WorldInput input{.kind = world::WorldInput::Kind::snapshot,
                                          .time = time,
                                          .session = row.session,
                                          .tick = tick,
                                          .items = items.view(),
                                          .client_version = row.version};
            collector.add_view(input);
            collector.add_view(input); // a repeated snapshot is ignored
            time += earliest_first ? 1 : -1;
        }
    }
    collector.finish();
    CHECK(closed == 2);
}

} // namespace tw::test
