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

/// Checks merged snapshots of a single view.
struct MissingTeeScript {
    world::MissingTeeCheck vanishing{};
    record::ItemTypes types{};
    std::size_t found = 0;

    void look(snapshot::Tick tick, const Items& items, bool proves = true,
              std::uint32_t session = 1) {
        Views views;
        views.add(session, 0, items);
        const auto list = views.list();
        types.learn_types(list.front().items);
        const record::WorldRecord world{.tick = tick,
                                        .merged = {.items = list.front().items, .types = &types}};
        found += vanishing.find_disappeared_tees(world, list, proves).size();
    }
};

/// Returns the number of missing tees found after `change` has removed the second tee for a while.
std::size_t found_after(const std::function<void(Items&)>& change, Items items = two_tees(),
                        snapshot::Tick ticks = 80, std::uint16_t gone = 1) {
    MissingTeeScript watch;
    for (snapshot::Tick tick = 100; tick < 110; tick += 2) {
        watch.look(tick, items);
    }
    items.erase({kCharacter, gone});
    change(items);
    for (snapshot::Tick tick = 110; tick < 110 + ticks; tick += 2) {
        watch.look(tick, items);
        items.erase({snapshot::kDeathType, 0}); // an event is in one snapshot only
    }
    return watch.found;
}

const std::function<void(Items&)> kNothing = [](Items& /*items*/) {};
const std::function<void(Items&)> kDies = [](Items& items) {
    items[{snapshot::kDeathType, 0}] = {1100, 1000, 1};
};
const std::function<void(Items&)> kWatches = [](Items& items) { items[{kPlayerInfo, 1}][2] = -1; };

} // namespace

TEST_CASE("a tee that disappears inside a view is reported once") {
    CHECK(found_after(kNothing) == 1);
}

TEST_CASE("dead, spectating and away players are excused") {
    struct Row {
        std::string_view name;
        std::function<void(Items&)> change;
    };

    const Row rows[] = {
        {"it died", kDies},
        {"it watches", kWatches},
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
        CHECK(found_after(row.change) == 0);
    }
    CHECK(found_after(kNothing, two_tees(), 40) == 0); // the tee is back soon
}

TEST_CASE("an incomplete world excuses players, too") {
    struct Row {
        std::string_view name;
        std::function<void(Items&)> change;
        bool seen = true; ///< the tee is seen by the session that must see it
        std::size_t found = 0;
    };

    const Row rows[] = {
        {"nothing", kNothing, true, 1},
        {"it died", kDies},
        {"it watches", kWatches},
        {"the witness lost it", kNothing, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        MissingTeeScript watch;
        Items items = two_tees();
        watch.look(100, items);
        items.erase({kCharacter, 1});
        row.change(items);
        watch.look(102, items, false, row.seen ? 1 : 2);
        items = two_tees();
        items.erase({kCharacter, 1});
        for (snapshot::Tick tick = 104; tick < 180; tick += 2) {
            watch.look(tick, items);
        }
        CHECK(watch.found == row.found);
    }
}

TEST_CASE("on DDNet, only the player's own session is a witness") {
    Items items = two_tees();
    const auto [number, uuid] = descriptor(kDescribed, "ddnet_character");
    items[number] = uuid;
    CHECK(found_after(kNothing, items) == 0);
    CHECK(found_after(kNothing, items, 80, 0) == 1);
}

} // namespace tw::test
