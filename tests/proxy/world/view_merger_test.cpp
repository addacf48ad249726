// Covers: proxy/world/dragger_beams.cpp
#include "proxy/world/view_merger.h"
#include "tests/proxy/world/views.h"

#include <algorithm>
#include <array>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

using snapshot::ItemKey;

/// Returns the ints of a player_info.
Ints player_info(std::int32_t client, bool local, std::int32_t score = 0,
                 std::int32_t latency = 0) {
    return {local ? 1 : 0, client, 0, score, latency};
}

/// A copy of the results of one merge.
struct MergeResult {
    Items items;
    std::map<ItemKey, std::vector<std::uint32_t>> seen_by;
    std::map<ItemKey, bool> has_all_ints;
    std::vector<world::ViewDifference> differences;
};

struct MergeSetup {
    record::ItemTypes types;
    world::DraggerBeams beams;
    world::ViewMerger merge;

    MergeResult operator()(const Views& views) {
        const auto list = views.sorted_views();
        for (const auto& view : list) {
            types.learn_types(view.items);
        }
        MergeResult outcome;
        merge.merge_views(list, types, beams, &outcome.differences);
        for (std::size_t i = 0; i < merge.items().size(); ++i) {
            const auto item = merge.items()[i];
            outcome.items[item.key] = {item.data.begin(), item.data.end()};
            outcome.has_all_ints[item.key] = merge.sightings().missing_ints[i] == 0;
            auto& seen = outcome.seen_by[item.key];
            merge.sightings().for_each_session(i, [&](std::uint32_t session) {
                seen.push_back(session);
                return false;
            });
        }
        return outcome;
    }
};

/// Merges the views of one tick.
MergeResult merge_tick(const Views& views) {
    MergeSetup merge;
    return merge(views);
}

} // namespace

TEST_CASE("the world contains the items of all views and the sessions that saw them") {
    const Items left{{{kCharacter, 0}, character(100, 200)}, {{kCharacter, 2}, character(7, 7)}};
    const Items right{{{kCharacter, 1}, character(300, 400)}, {{kCharacter, 2}, character(7, 7)}};
    const Items all{{{kCharacter, 0}, character(100, 200)},
                    {{kCharacter, 1}, character(300, 400)},
                    {{kCharacter, 2}, character(7, 7)}};
    const auto world = merge_tick(Views{}.add_view(5, 16040, left).add_view(3, 16040, right));
    CHECK(world.items == all);
    CHECK(world.seen_by.at({kCharacter, 0}) == std::vector<std::uint32_t>{5});
    CHECK(world.seen_by.at({kCharacter, 1}) == std::vector<std::uint32_t>{3});
    CHECK(world.seen_by.at({kCharacter, 2}) == std::vector<std::uint32_t>{3, 5});
    CHECK(world.differences.empty());
}

TEST_CASE("more than 64 views may see an item") {
    Views views;
    std::vector<std::uint32_t> everybody;
    for (std::uint32_t session = 1; session <= 130; ++session) {
        views.add_view(session, 16040,
                       {{{kCharacter, 0}, character(1, 1)},
                        {{kCharacter, static_cast<std::uint16_t>(session)}, character(2, 2)}});
        everybody.push_back(session);
    }
    const auto world = merge_tick(views);
    CHECK(world.items.size() == 131);
    CHECK(world.seen_by.at({kCharacter, 0}) == everybody);
    CHECK(world.seen_by.at({kCharacter, 130}) == std::vector<std::uint32_t>{130});
}

TEST_CASE("health comes from the player's own view, and is unknown without one") {
    const Items own{{{kCharacter, 0}, character(1, 2, 7)},
                    {{kCharacter, 1}, character(3, 4)},
                    {{kPlayerInfo, 0}, player_info(0, true)},
                    {{kPlayerInfo, 1}, player_info(1, false)}};
    Items other = own;
    other[{kCharacter, 0}] = character(1, 2);
    other[{kPlayerInfo, 0}] = player_info(0, false);
    SUBCASE("though another view says more") {
        const auto world = merge_tick(Views{}.add_view(1, 16040, own).add_view(2, 20011, other));
        CHECK(world.items.at({kCharacter, 0}) == character(1, 2, 7));
        CHECK(world.has_all_ints.at({kCharacter, 0}));
        CHECK_FALSE(world.has_all_ints.at({kCharacter, 1}));
        CHECK(world.items.at({kPlayerInfo, 0}) == player_info(0, false));
        CHECK(world.differences.empty());
    }
    SUBCASE("or of who watches the player") {
        Items watching = other;
        watching[{kCharacter, 1}] = character(3, 4, 9);
        watching[{snapshot::kSpectatorInfoType, 5}] = {1, 3, 4};
        const auto world = merge_tick(Views{}.add_view(1, 16040, own).add_view(2, 16040, watching));
        CHECK(world.items.at({kCharacter, 1}) == character(3, 4, 9));
        CHECK(world.has_all_ints.at({kCharacter, 1}));
        CHECK_FALSE(world.items.contains({snapshot::kSpectatorInfoType, 5}));
    }
}

TEST_CASE("per-viewer fields are merged as the table of objects says") {
    struct Row {
        std::string_view name;
        ItemKey key;
        std::array<Ints, 3> items; ///< in the first view, in the second view and in the world
    };

    const Row rows[] = {
        {"latency: the greatest",
         {kPlayerInfo, 4},
         {{{0, 4, 0, 3, 10}, {0, 4, 0, 3, 30}, {0, 4, 0, 3, 30}}}},
        {"hooked player: who knows",
         {kCharacter, 4},
         {{make_ints(22, {{8, -1}}), make_ints(22, {{8, 6}}), make_ints(22, {{8, 6}})}}},
        {"frozen weapon: the newer client's",
         {kCharacter, 4},
         {{make_ints(22, {{8, -1}, {19, 1}}), make_ints(22, {{8, -1}, {19, 5}}),
           make_ints(22, {{8, -1}, {19, 1}})}}},
        {"a race timer is nobody's in a world",
         {6, 0},
         {{make_ints(8, {{1, 8}, {3, -500}}), make_ints(8, {{1, 8}, {3, -700}}), make_ints(8)}}},
        {"and a warm-up everybody's",
         {6, 0},
         {{make_ints(8, {{1, 8}, {3, -500}}), make_ints(8, {{3, 50}}), make_ints(8, {{3, 50}})}}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto& [first, second, expected] = row.items;
        const auto world = merge_tick(
            Views{}.add_view(1, 20011, {{row.key, first}}).add_view(2, 16040, {{row.key, second}}));
        CHECK(world.items.at(row.key) == expected);
        CHECK(world.differences.empty());
    }
}

TEST_CASE("a mod's per-viewer field is no difference and comes from the owner's view") {
    snapshot::ObjectSet objects;
    const std::array fields{snapshot::FieldSpec{.name = "class"},
                            snapshot::FieldSpec{.name = "secret",
                                                .offset = 1,
                                                .merge = snapshot::FieldMerge::per_viewer}};
    snapshot::ObjectSpec object;
    object.type = 40;
    object.name = "mine";
    object.size = 2;
    object.fields = fields;
    object.client.emplace();
    REQUIRE(objects.add(object, false));
    object.type = 41;
    object.name = "timer";
    object.client.reset();
    REQUIRE(objects.add(object, false));
    object.type = 42;
    object.name = "menu";
    object.merge.per_session = true;
    REQUIRE(objects.add(object, false));
    MergeSetup merge;
    merge.types = record::ItemTypes{objects};
    // Session 2 belongs to client 0.
    const auto world = merge(Views{}
                                 .add_view(1, 20011,
                                           {{{40, 0}, {3, -1}},
                                            {{41, 0}, {5, 100}},
                                            {{42, 0}, {1, 1}},
                                            {{kPlayerInfo, 0}, player_info(0, false)},
                                            {{kPlayerInfo, 1}, player_info(1, true)}})
                                 .add_view(2, 20011,
                                           {{{40, 0}, {3, 77}},
                                            {{41, 0}, {5, 200}},
                                            {{42, 0}, {2, 2}},
                                            {{kPlayerInfo, 0}, player_info(0, true)},
                                            {{kPlayerInfo, 1}, player_info(1, false)}}));
    CHECK(world.differences.empty());
    CHECK(world.items.at({40, 0}) == Ints{3, 77});
    CHECK(world.has_all_ints.at({40, 0}));
    CHECK_FALSE(world.has_all_ints.at({41, 0})); // no view contains the value
    CHECK_FALSE(world.items.contains({42, 0}));
}

TEST_CASE("differing values of common fields are differences") {
    const Items left{{{kCharacter, 3}, character(100, 200)}};
    const Items right{{{kCharacter, 3}, character(101, 200)}};
    SUBCASE("between clients of one version") {
        const auto world = merge_tick(Views{}.add_view(1, 16040, left).add_view(2, 16040, right));
        REQUIRE(world.differences.size() == 1);
        const auto& difference = world.differences.front();
        CHECK(difference.field->name == "x");
        CHECK(difference.key == ItemKey{kCharacter, 3});
        CHECK(difference.value == 101);
        CHECK(difference.other_value == 100);
        CHECK(difference.session == 2);
        CHECK(difference.other_session == 1);
    }
    SUBCASE("but not between versions that servers treat differently") {
        CHECK(merge_tick(Views{}.add_view(1, 16040, left).add_view(2, 604, right))
                  .differences.empty());
    }
}

TEST_CASE("\"hooks nobody\" is a value only in views that know all players") {
    const Items nobody{{{kCharacter, 3}, make_ints(22, {{8, -1}})}};
    const Items first{{{kCharacter, 3}, make_ints(22, {{8, 0}})}};
    for (const bool nobody_first : {true, false}) {
        CAPTURE(nobody_first);
        const auto world = merge_tick(Views{}
                                          .add_view(1, 16040, nobody_first ? nobody : first)
                                          .add_view(2, 16040, nobody_first ? first : nobody));
        REQUIRE(world.differences.size() == 1);
        CHECK(world.differences.front().field->name == "hooked_player");
        CHECK(world.differences.front().value == (nobody_first ? 0 : -1));
        CHECK(world.differences.front().other_value == (nobody_first ? -1 : 0));
        CHECK(world.items.at({kCharacter, 3}) == make_ints(22, {{8, 0}}));
    }
    SUBCASE("but not for a client that is told of fewer, to which others are nobody") {
        Items few = nobody;
        few[{kClientInfo, 15}] = client_info(" ");
        const auto world = merge_tick(Views{}.add_view(1, 16040, first).add_view(2, 16040, few));
        CHECK(world.differences.empty());
    }
    SUBCASE("nor for owners, which servers keep to themselves") {
        const auto type = kUuidType;
        Items known{descriptor(type, "ddnet_projectile"), {{type, 3}, make_ints(10, {{6, 4}})}};
        Items unknown{descriptor(type, "ddnet_projectile"), {{type, 3}, make_ints(10, {{6, -1}})}};
        const auto world =
            merge_tick(Views{}.add_view(1, 20011, known).add_view(2, 20011, unknown));
        CHECK(world.differences.empty());
    }
}

TEST_CASE("of several forms of an entity the newest is in the world") {
    const auto [number, uuid] = descriptor(kUuidType, "ddnet_laser");
    const auto beam = make_ints(10, {{0, 10}, {2, 20}, {5, 3}});
    const Items newer{{number, uuid}, {{kUuidType, 40}, beam}};
    const Items older{{{snapshot::kLaserType, 40}, {10, 0, 20, 0, 5}},
                      {{snapshot::kLaserType, 41}, {1, 1, 2, 2, 5}}};
    const auto world = merge_tick(Views{}.add_view(1, 16040, newer).add_view(2, 0, older));
    CHECK(world.items.at({kUuidType, 40}) == beam);
    CHECK_FALSE(world.items.contains({snapshot::kLaserType, 40}));
    CHECK(world.items.contains({snapshot::kLaserType, 41}));
    CHECK(world.seen_by.at({kUuidType, 40}) == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("an item that is switched off for a team is no difference") {
    const auto [number, uuid] = descriptor(kUuidType, "ddnet_laser");
    const auto laser = [](std::int32_t kind, bool dark) {
        return make_ints(10, {{0, 10}, {1, 20}, {2, dark ? 10 : 90}, {3, 20}, {5, -1}, {6, kind}});
    };

    struct Row {
        std::string_view name;
        std::int32_t version;
        std::int32_t kind;
        bool first_stays; ///< the first view is used; if false, the view in which the switch is on
        std::size_t differences;
    };

    const Row rows[] = {
        {"doors of clients that know no switches", 16040, 2, true, 0},
        {"doors of clients that do", 16200, 2, true, 1},
        {"lights", 19000, 3, false, 0},
        {"lasers that players fire", 16040, 0, true, 1},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto world = merge_tick(
            Views{}
                .add_view(1, row.version, {{number, uuid}, {{kUuidType, 7}, laser(row.kind, true)}})
                .add_view(2, row.version,
                          {{number, uuid}, {{kUuidType, 7}, laser(row.kind, false)}}));
        CHECK(world.differences.size() == row.differences);
        CHECK(world.items.at({kUuidType, 7}) == laser(row.kind, row.first_stays));
    }
}

TEST_CASE("doors at different positions are a difference") {
    const auto [number, uuid] = descriptor(kUuidType, "ddnet_laser");
    const auto door = [](std::int32_t x) {
        return make_ints(10, {{0, x}, {2, 90}, {5, -1}, {6, 2}});
    };
    const auto world =
        merge_tick(Views{}
                       .add_view(1, 16040, {{number, uuid}, {{kUuidType, 7}, door(10)}})
                       .add_view(2, 16040, {{number, uuid}, {{kUuidType, 7}, door(11)}}));
    REQUIRE(world.differences.size() == 1);
    CHECK(world.differences.front().field->name == "to_x");
}

TEST_CASE("a switched laser in its old form is no difference") {
    const Ints dark{10, 20, 10, 20, 5};
    const Ints lit{10, 20, 90, 20, 5};
    const auto world = merge_tick(Views{}
                                      .add_view(1, 0, {{{snapshot::kLaserType, 7}, dark}})
                                      .add_view(2, 0, {{{snapshot::kLaserType, 7}, lit}}));
    CHECK(world.differences.empty());
    CHECK(world.items.at({snapshot::kLaserType, 7}) == lit);
}

TEST_CASE("a dragger with the id of another laser is left out") {
    const auto [number, uuid] = descriptor(kUuidType, "ddnet_laser");
    const auto laser = [](std::int32_t kind) { return Ints{1, 2, 3, 4, 100, -1, kind, 0, 0}; };
    Views views;
    views.add_view(1, 19000, {{number, uuid}, {{kUuidType, 7}, laser(0)}});
    views.add_view(2, 19000, {{number, uuid}, {{kUuidType, 7}, laser(4)}});
    MergeSetup merging;
    const MergeResult world = merging(views);
    CHECK(world.items.at({kUuidType, 7}) == laser(0));
    CHECK(world.seen_by.at({kUuidType, 7}) == std::vector<std::uint32_t>{1});
}

TEST_CASE("a dragger's beam with several ids is merged into one item") {
    const auto [number, uuid] = descriptor(kUuidType, "ddnet_laser");
    const auto laser = [](std::int32_t x, std::int32_t owner) {
        return make_ints(10, {{0, owner < 0 ? x : 999}, {2, x}, {5, owner}, {6, 4}});
    };
    // One view has its own team's beam with the dragger's id. The other has the dragger without a
    // beam.
    const Items own{{number, uuid}, {{kUuidType, 7}, laser(50, 2)}};
    const Items other{
        {number, uuid}, {{kUuidType, 7}, laser(50, -1)}, {{kUuidType, 9}, laser(50, 2)}};
    const auto world = merge_tick(Views{}.add_view(1, 20011, own).add_view(2, 20011, other));
    CHECK(world.items.size() == 3);
    CHECK(world.items.at({kUuidType, 7}) == laser(50, -1));
    CHECK(world.items.at({kUuidType, 9}) == laser(50, 2));
    CHECK(world.seen_by.at({kUuidType, 7}) == std::vector<std::uint32_t>{2});
    CHECK(world.seen_by.at({kUuidType, 9}) == std::vector<std::uint32_t>{1, 2});
    CHECK(world.differences.empty());
}

TEST_CASE("the order of views does not change the world") {
    Items base;
    for (std::uint16_t i = 0; i < 40; ++i) {
        base[{kCharacter, i}] = character(i, i);
        base[{kPlayerInfo, i}] = player_info(i, false);
    }
    std::vector<std::pair<std::uint32_t, Items>> views;
    for (std::uint32_t session = 1; session <= 20; ++session) {
        Items items = base;
        const auto id = static_cast<std::uint16_t>(session);
        items[{kCharacter, id}] = character(id, id, 10);
        items[{kPlayerInfo, id}] = player_info(id, true, 0, static_cast<std::int32_t>(session));
        items.erase({kCharacter, static_cast<std::uint16_t>(39 - session)});
        views.emplace_back(session, items);
    }
    const auto make = [&] {
        Views all;
        for (const auto& [session, items] : views) {
            all.add_view(session, 16040, items);
        }
        return merge_tick(all);
    };
    const auto forward = make();
    std::ranges::reverse(views);
    const auto backward = make();
    CHECK(forward.items == backward.items);
    CHECK(forward.seen_by == backward.seen_by);
    CHECK(forward.items.size() == 80);
    CHECK(forward.items.at({kCharacter, 1}) == character(1, 1, 10));
}

TEST_CASE("items of mods, with other sizes or without ints, are merged") {
    const Items left{{{60, 1}, {1, 2, 3}}, {{61, 1}, {}}, {{kCharacter, 0}, {}}};
    const Items right{{{60, 1}, {1, 2}}, {{61, 1}, {5}}, {{kCharacter, 0}, character(1, 1)}};
    const auto world = merge_tick(Views{}.add_view(1, 16040, left).add_view(2, 16040, right));
    CHECK(world.items.at({60, 1}) == Ints{1, 2, 3});
    CHECK(world.items.at({kCharacter, 0}) == character(1, 1));
    CHECK(world.differences.empty());
    CHECK(merge_tick(Views{}.add_view(1, 0, {})).items.empty());
}

TEST_CASE("a view has its viewer, the state of the scoreboard and whether ids are translated") {
    const Items items{{{kPlayerInfo, 3}, player_info(3, true)},
                      {{kClientInfo, 3}, client_info("ann")},
                      {{kCharacter, 3}, make_ints(22, {{15, 8}})}};
    const auto view = Views{}.add_view(9, 16040, items).sorted_views().front();
    CHECK(view.own_client_id == 3);
    CHECK(view.shows_scoreboard);
    CHECK_FALSE(view.has_translated_ids);
    Items full = items;
    full[{kClientInfo, 63}] = client_info(" ");
    CHECK(Views{}.add_view(9, 16040, full).sorted_views().front().has_translated_ids);
}

} // namespace tw::test
