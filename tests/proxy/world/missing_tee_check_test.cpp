#include "proxy/world/missing_tee_check.h"
#include "tests/proxy/world/views.h"

#include <functional>
#include <string_view>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

/// Returns two tees near each other, as the first tee's player sees them.
Items two_tees() {
    return {{{kCharacter, 0}, character(1000, 1000)},
            {{kCharacter, 1}, character(1100, 1000)},
            {{kPlayerInfo, 0}, {1, 0, 0, 0, 0}},
            {{kPlayerInfo, 1}, {0, 1, 0, 0, 0}}};
}

/// Checks ticks with a single view for missing tees.
struct MissingTeeScript {
    world::MissingTeeCheck tee_check{};
    record::ItemTypes types{};
    std::size_t missing_count = 0;

    void check_view(snapshot::Tick tick, const Items& items, bool proves = true,
                    std::uint32_t session = 1) {
        Views views;
        views.add_view(session, 0, items);
        const auto list = views.sorted_views();
        types.learn_types(list.front().items);
        const record::WorldRecord world{.tick = tick,
                                        .merged = {.items = list.front().items, .types = &types}};
        missing_count += tee_check.find_disappeared_tees(world, list, proves).size();
    }
};

/// Returns the number of missing tees found after `change` has removed the second tee for a while.
std::size_t count_missing_after(const std::function<void(Items&)>& change, Items items = two_tees(),
                                snapshot::Tick ticks = 80, std::uint16_t gone = 1) {
    MissingTeeScript watch;
    for (snapshot::Tick tick = 100; tick < 110; tick += 2) {
        watch.check_view(tick, items);
    }
    items.erase({kCharacter, gone});
    change(items);
    for (snapshot::Tick tick = 110; tick < 110 + ticks; tick += 2) {
        watch.check_view(tick, items);
        items.erase({snapshot::kDeathType, 0}); // an event is in one snapshot only
    }
    return watch.missing_count;
}

const std::function<void(Items&)> kChangeNothing = [](Items& /*items*/) {};
const std::function<void(Items&)> kKillTee = [](Items& items) {
    items[{snapshot::kDeathType, 0}] = {1100, 1000, 1};
};
const std::function<void(Items&)> kMakeSpectator = [](Items& items) {
    items[{kPlayerInfo, 1}][2] = -1;
};

} // namespace

TEST_CASE("a tee that disappears inside a view is reported once") {
    CHECK(count_missing_after(kChangeNothing) == 1);
}

TEST_CASE("dead, spectating, absent and unwatched players are excused") {
    struct Row {
        std::string_view name;
        std::function<void(Items&)> change;
    };

    const Row rows[] = {
        {"it died", kKillTee},
        {"it watches", kMakeSpectator},
        {"its player left",
         [](Items& items) {
             items.erase({kPlayerInfo, 1});
         }},
        {"nobody looks there",
         [](Items& items) {
             items[{kCharacter, 0}] = character(5000, 5000);
         }},
        {"the viewer looks elsewhere",
         [](Items& items) {
             items[{snapshot::kSpectatorInfoType, 0}] = {-1, 0, 0};
         }},
        {"the viewer is gone, too",
         [](Items& items) {
             items.erase({kCharacter, 0});
             items[{kPlayerInfo, 0}][2] = -1;
         }},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(count_missing_after(row.change) == 0);
    }
    CHECK(count_missing_after(kChangeNothing, two_tees(), 40) == 0); // the tee is back soon
}

TEST_CASE("deaths, spectating and lost views in an incomplete world excuse players, too") {
    struct Row {
        std::string_view name;
        std::function<void(Items&)> change;
        bool seen = true; ///< the session that must see the tee has a view
        std::size_t found = 0;
    };

    const Row rows[] = {
        {"nothing", kChangeNothing, true, 1},
        {"it died", kKillTee},
        {"it watches", kMakeSpectator},
        {"the witness lost it", kChangeNothing, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        MissingTeeScript watch;
        Items items = two_tees();
        watch.check_view(100, items);
        items.erase({kCharacter, 1});
        row.change(items);
        watch.check_view(102, items, false, row.seen ? 1 : 2);
        items = two_tees();
        items.erase({kCharacter, 1});
        for (snapshot::Tick tick = 104; tick < 180; tick += 2) {
            watch.check_view(tick, items);
        }
        CHECK(watch.missing_count == row.found);
    }
}

TEST_CASE("on DDNet, only the player's own session is a witness") {
    Items items = two_tees();
    const auto [number, uuid] = descriptor(kUuidType, "ddnet_character");
    items[number] = uuid;
    CHECK(count_missing_after(kChangeNothing, items) == 0);
    CHECK(count_missing_after(kChangeNothing, items, 80, 0) == 1);
}

} // namespace tw::test
