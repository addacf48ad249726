// What is kept of a tick's views, and that the world of them is that of the whole views.
#include "proxy/world/merge.h"
#include "proxy/world/open_world.h"
#include "tests/proxy/world/views.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

using snapshot::ItemKey;

constexpr std::uint16_t kLaser = kDescribed - 2; // of draggers

Items described() {
    return {descriptor(kDescribed, "ddnet_character"), descriptor(kDescribed - 1, "ddnet_player"),
            descriptor(kLaser, "ddnet_laser")};
}

/// What comes of a merge.
struct Outcome {
    Items items;
    std::map<ItemKey, std::tuple<std::vector<std::uint32_t>, std::uint32_t>> seen;
    std::vector<std::tuple<ItemKey, std::string_view, std::int32_t, std::int32_t, std::uint32_t>>
        differences;
};

Outcome merge(const std::vector<world::View>& views) {
    record::TypeNames types;
    for (const world::View& view : views) {
        for (const snapshot::SnapshotView& base : view.bases) {
            types.learn(base);
        }
        types.learn(view.items);
    }
    world::Beams beams;
    world::ViewMerge merge;
    std::vector<world::Difference> differences;
    merge.merge(views, types, beams, &differences);
    Outcome outcome;
    const auto items = merge.items();
    for (std::size_t i = 0; i < items.size(); ++i) {
        outcome.items[items[i].key] = {items[i].data.begin(), items[i].data.end()};
        std::vector<std::uint32_t>& sessions = std::get<0>(outcome.seen[items[i].key]);
        std::get<1>(outcome.seen[items[i].key]) = merge.sightings().untold[i];
        merge.sightings().each(i, [&](std::uint32_t session) {
            sessions.push_back(session);
            return false;
        });
    }
    for (const world::Difference& each : differences) {
        outcome.differences.emplace_back(each.key, each.field->name, each.value, each.other,
                                         each.session);
    }
    return outcome;
}

class Game {
  public:
    explicit Game(std::uint32_t seed) : random_{seed} {}

    std::uint32_t up_to(std::uint32_t most) {
        return static_cast<std::uint32_t>(random_() % (most + 1));
    }

    std::int32_t some(std::uint32_t most) { return static_cast<std::int32_t>(up_to(most)); }

    Items world() {
        Items items = described();
        for (std::uint16_t client = 0; client < 20; ++client) {
            items[{snapshot::kCharacterType, client}] = character(some(9999), some(9999));
            items[{snapshot::kPlayerInfoType, client}] = {0, client, some(1), some(3), 0};
            items[{kDescribed, client}] = ints(9, {{0, some(3)}});
            items[{kLaser, client}] = ints(7, {{2, some(3)}, {5, some(2) - 1}, {6, 2 * some(2)}});
        }
        for (std::uint16_t pickup = 0; pickup < 30; ++pickup) {
            items[{4, pickup}] = {some(99), some(99), some(3), 0};
        }
        return items;
    }

    /// As a server shows it to one of them: some is out of sight, some is made for the viewer, and
    /// now and then something is not as for others.
    Items shown_to(const Items& world, std::uint16_t client) {
        Items items = world;
        std::erase_if(items, [&](const auto& item) {
            return item.first.type != 0 && item.first.id != client && up_to(5) == 0;
        });
        items[{snapshot::kPlayerInfoType, client}] = {1, client, 0, some(3), some(99)};
        items[{snapshot::kCharacterType, client}] =
            ints(22, {{1, some(2)}, {15, some(1) * 8}, {16, 10}, {17, 5}});
        for (auto& [key, data] : items) {
            if (key.type != 0 && up_to(60) == 0 && !data.empty()) {
                data[up_to(static_cast<std::uint32_t>(data.size()) - 1)] += some(3) - 1;
            }
        }
        items[{snapshot::kSpectatorInfoType, client}] = {some(20), some(9), some(9)};
        return items;
    }

  private:
    std::mt19937 random_;
};

} // namespace

TEST_CASE("the world of what is kept of views is that of the views") {
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        CAPTURE(seed);
        Game game{seed};
        const Items world = game.world();
        const std::int32_t versions[] = {16050, 16050, 0, 20011};
        Views whole;
        world::OpenWorld kept;
        kept.begin(100, 0);
        std::vector<std::uint16_t> order(20);
        std::iota(order.begin(), order.end(), std::uint16_t{0});
        std::shuffle(order.begin(), order.end(), std::mt19937{seed});
        std::vector<snapshot::Snapshot> snapshots;
        for (const std::uint16_t client : order) {
            const std::uint32_t session = 1U + client;
            const std::int32_t version = seed % 2 == 0 ? 16050 : versions[client % 4U];
            // Some play elsewhere.
            const Items items =
                game.shown_to(seed % 5 == 4 && client % 3 == 0 ? game.world() : world, client);
            whole.add(session, version, items);
            const snapshot::Snapshot snapshot = to_snapshot(items);
            CHECK(kept.add({.kind = world::Input::Kind::snapshot,
                            .session = session,
                            .tick = 100,
                            .items = snapshot.view(),
                            .client_version = version},
                           nullptr));
        }
        std::vector<world::View> views;
        kept.read(views);
        const auto all = whole.list();
        REQUIRE(views.size() == all.size());
        for (std::size_t i = 0; i < views.size(); ++i) {
            REQUIRE(views[i].session == all[i].session);
            CHECK(views[i].own == all[i].own);
            CHECK(views[i].watched == all[i].watched);
            CHECK(views[i].scoreboard == all[i].scoreboard);
            for (std::size_t k = 0; k < all[i].items.size(); ++k) {
                const auto item = all[i].items[k];
                const auto place = views[i].find(item.key);
                REQUIRE(place);
                CHECK(std::ranges::equal(views[i].at(*place).data, item.data));
            }
            CHECK(views[i].places_of(snapshot::kCharacterType).size() ==
                  all[i].places_of(snapshot::kCharacterType).size());
        }
        CHECK_FALSE(views[0].find({99, 99}));
        const Outcome wanted = merge(all);
        const Outcome got = merge(views);
        CHECK(got.items == wanted.items);
        CHECK(got.seen == wanted.seen);
        CHECK(got.differences == wanted.differences);
    }
}

TEST_CASE("views that are nearly the same are kept in little room") {
    Game game{1};
    const Items world = game.world();
    world::OpenWorld kept;
    kept.begin(100, 0);
    std::size_t whole = 0;
    for (std::uint32_t session = 1; session <= 64; ++session) {
        Items items = world;
        items[{snapshot::kPlayerInfoType, static_cast<std::uint16_t>(session)}] = {1, 2, 3, 4, 5};
        const snapshot::Snapshot snapshot = to_snapshot(items);
        whole += snapshot.view().block_ints() * sizeof(std::int32_t);
        CHECK(kept.add({.kind = world::Input::Kind::snapshot,
                        .session = session,
                        .tick = 100,
                        .items = snapshot.view()},
                       nullptr));
    }
    CHECK(kept.bytes() * 10 < whole);
    CHECK_FALSE(kept.add({.session = 64, .tick = 100}, nullptr));
}

TEST_CASE("a tick's time is that of its earliest view, whichever was added first") {
    const auto items = to_snapshot({{{9, 0}, character(1, 1)}});
    for (const bool earliest_first : {true, false}) {
        world::OpenWorld world;
        const record::Timestamp first = earliest_first ? 1000 : 1003;
        world.begin(100, first);
        for (const std::uint32_t session : {1U, 2U, 3U}) {
            const record::Timestamp time = earliest_first ? 999 + session : 1004 - session;
            CHECK(world.add({.kind = world::Input::Kind::snapshot,
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
