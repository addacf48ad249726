// Tests stand-ins: items for players for whom a view has no client id.
// Covers: proxy/world/id_restorer.cpp
#include "proxy/world/id_restorer.h"
#include "tests/proxy/world/views.h"

#include <doctest/doctest.h>

namespace tw::test {

namespace {

constexpr std::uint16_t kCharacter = snapshot::kCharacterType;
constexpr std::uint16_t kClientInfo = snapshot::kClientInfoType;
constexpr std::uint16_t kLaser = snapshot::kLaserType;
constexpr std::uint16_t kPickup = 4;

/// Returns a view of 16 players, with these other items.
Items narrow(std::string_view last_but_one, const Items& shown) {
    Items items{{{kCharacter, 1}, character(500, 600)},
                {{kClientInfo, 1}, client_info("vera")},
                {{kClientInfo, 14}, client_info(last_but_one)},
                {{kClientInfo, 15}, client_info(" ")}};
    items.insert(shown.begin(), shown.end());
    return items;
}

/// Returns the items that remain of the translated view beside a view that knows all players.
Items left_of(const Items& translated, const Items& knowing) {
    Views views;
    views.add(1, 0, translated).add(2, 20011, knowing);
    auto list = views.list();
    record::TypeNames types;
    for (const auto& view : list) {
        types.learn_types(view.items);
    }
    world::IdRestorer restorer;
    restorer.restore_ids(list, types);
    Items items;
    for (std::size_t i = 0; i < list.back().items.size(); ++i) {
        const auto item = list.back().items[i];
        items[item.key] = {item.data.begin(), item.data.end()};
    }
    return items;
}

} // namespace

TEST_CASE("a weapon and a hook that stand for a player are not in the world") {
    const auto [number, uuid] = descriptor(kDescribed, "ddnet_laser");
    const Items knowing{{number, uuid},
                        {{kCharacter, 33}, character(500, 600)},
                        {{kCharacter, 40}, character(100, 200)},
                        {{kClientInfo, 33}, client_info("vera")},
                        {{kClientInfo, 40}, client_info("bob")},
                        {{kPickup, 71}, {100, 200, 0, 0}},
                        {{kDescribed, 72}, ints(10, {{0, 9}, {2, 100}, {3, 200}})}};
    const Items shown{
        {{kPickup, 70}, {100, 200, 2, 4}},   // at bob's position
        {{kPickup, 71}, {100, 200, 0, 0}},   // all know it
        {{kPickup, 73}, {101, 200, 2, 4}},   // at no player's position
        {{kLaser, 70}, {7, 8, 100, 200, 5}}, // starts at bob's position
        {{kLaser, 72}, {9, 0, 100, 200, 5}}, // the same laser in the newer form
        {{kLaser, 74}, {100, 200, 7, 8, 5}}, // to there
        {{kLaser, 75}, {7, 8, 100}},         // cut short
        {{kDescribed, 1}, {1, 2, 3}},        // an unknown type
    };
    const Items items = left_of(narrow("\u22c5 3 others", shown), knowing);
    CHECK_FALSE(items.contains({kPickup, 70}));
    CHECK(items.contains({kPickup, 71}));
    CHECK(items.contains({kPickup, 73}));
    CHECK_FALSE(items.contains({kLaser, 70}));
    CHECK(items.contains({kLaser, 72}));
    CHECK(items.contains({kLaser, 74}));
    CHECK(items.contains({kLaser, 75}));
    CHECK(items.contains({kDescribed, 1}));
}

TEST_CASE("of a view that has an id for everybody nothing is taken for a player") {
    const Items knowing{{{kCharacter, 33}, character(500, 600)},
                        {{kClientInfo, 33}, client_info("vera")}};
    const Items shot{{{kLaser, 70}, {7, 8, 500, 600, 5}}}; // vera's own
    CHECK(left_of(narrow("bob", shot), knowing).contains({kLaser, 70}));
    CHECK_FALSE(left_of(narrow("\u22c5 1 others", shot), knowing).contains({kLaser, 70}));
}

} // namespace tw::test
