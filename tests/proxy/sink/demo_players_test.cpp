// Covers: proxy/sink/world_demo.cpp
#include "proxy/record/roster.h"
#include "proxy/sink/world_demo.h"
#include "tests/support/snapshot_messages.h"

#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

using Ids = std::vector<std::uint16_t>;

/// A world with a tee of each of these clients; each hooks the one before it.
struct Crowd {
    Items all;
    snapshot::Snapshot items;
    record::TypeNames types;
    record::SnapshotRecord world;

    explicit Crowd(const Ids& clients) {
        std::int32_t before = -1;
        for (const std::uint16_t client : clients) {
            std::vector<std::int32_t> tee(22);
            tee[1] = client; // where it stands tells who it is
            tee[8] = before;
            all[{snapshot::kCharacterType, client}] = tee;
            all[{snapshot::kPlayerInfoType, client}] = {0, client, 0, 0, 0};
            all[{snapshot::kClientInfoType, client}] = std::vector<std::int32_t>(17);
            before = client;
        }
        all[{4, 200}] = {1, 2, 0, 0}; // a pickup: its id is no client's
        show();
    }

    void add(snapshot::ItemKey key, const std::vector<std::int32_t>& data) {
        all[key] = data;
        show();
    }

    void show() {
        items = to_snapshot(all);
        world = {.tick = 100, .rebuilt = true, .items = items.view(), .types = &types};
    }
};

/// "who:id hooks id" of each tee.
std::vector<std::string> tees(const snapshot::SnapshotView& items) {
    std::vector<std::string> found;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i].key.type == snapshot::kCharacterType) {
            found.push_back(std::to_string(items[i].data[1]) + ":" +
                            std::to_string(items[i].key.id) + " hooks " +
                            std::to_string(items[i].data[8]));
        }
    }
    return found;
}

Ids from_to(std::uint16_t first, std::uint16_t last) {
    Ids ids;
    for (std::uint16_t id = first; id <= last; ++id) {
        ids.push_back(id);
    }
    return ids;
}

} // namespace

TEST_CASE("players of made-up ids have some in a demo that clients draw, and keep them") {
    sink::DemoPlayers players{false};
    const auto shown = [&](const Ids& clients) {
        const Crowd crowd{clients};
        const auto placed = players.place(crowd.world);
        CHECK(placed.left_out == 0);
        CHECK(placed.items.size() == 3 * clients.size() + 1);
        CHECK(placed.items.find({4, 200}));
        for (std::size_t i = 0; i < placed.items.size(); ++i) {
            if (placed.items[i].key.type == snapshot::kPlayerInfoType) {
                CHECK(placed.items[i].data[1] == placed.items[i].key.id);
            }
        }
        return tees(placed.items);
    };
    using Tees = std::vector<std::string>;
    CHECK(shown({3, 100}) == Tees{"3:3 hooks -1", "100:100 hooks 3"});
    CHECK(shown({3, 128, 200}) == Tees{"3:3 hooks -1", "200:62 hooks 63", "128:63 hooks 3"});
    CHECK(shown({3, 200}) == Tees{"3:3 hooks -1", "200:62 hooks 3"});
    CHECK(shown({3, 129, 200}) == Tees{"3:3 hooks -1", "129:61 hooks 3", "200:62 hooks 61"});
    // The server gives that id to somebody.
    CHECK(shown({62, 200}) == Tees{"200:60 hooks 62", "62:62 hooks -1"});
    CHECK(shown({3, 128, 129, 200}) ==
          Tees{"3:3 hooks -1", "200:60 hooks 61", "129:61 hooks 63", "128:63 hooks 3"});
}

TEST_CASE("who left gives an id away when there is no other, and who has none is left out") {
    sink::DemoPlayers players{false};
    for (const std::uint16_t first : Ids{128, 192, 256}) {
        const Crowd crowd{from_to(first, static_cast<std::uint16_t>(first + 63))};
        CHECK(players.place(crowd.world).left_out == 0);
    }
    const Crowd crowd{from_to(128, 192)};
    const auto placed = players.place(crowd.world);
    CHECK(placed.left_out == 3);
    CHECK(placed.items.size() == 3 * 64 + 1);
}

TEST_CASE("in demos that vanilla plays, players beyond the sixteenth have the ids that are free") {
    sink::DemoPlayers players{true};
    const Crowd crowd{{2, 20, 128}};
    CHECK(tees(players.place(crowd.world).items) ==
          std::vector<std::string>{"2:2 hooks -1", "128:14 hooks 15", "20:15 hooks 2"});
    const Crowd full{from_to(0, 16)};
    CHECK(players.place(full.world).left_out == 3);
}

TEST_CASE("who carries a flag and who shot has the id of the player in the demo") {
    struct Row {
        std::string_view name;
        snapshot::ItemKey key;
        std::vector<std::int32_t> world;
        std::vector<std::int32_t> demo;
    };

    // 128 is 15 in the demo, 3 stays, 40 is nobody's.
    const Row rows[] = {
        {"carriers", {7, 0}, {1, 2, 128, 3}, {1, 2, 15, 3}},
        {"a carrier who is not there is somebody", {7, 0}, {1, 2, 40, -1}, {1, 2, -1, -1}},
        {"flags at their stand, and missing", {7, 0}, {1, 2, -2, -3}, {1, 2, -2, -3}},
        {"an old projectile",
         {2, 9},
         {100, 200, 5, 0x1200 | 128, 1, 7},
         {100, 200, 5, 0x1200 | 15, 1, 7}},
        {"an old projectile of somebody who is not there",
         {2, 9},
         {100, 200, 5, 0x200 | 40, 1, 7},
         {100, 200, 5, 0x300, 1, 7}},
        {"an old projectile of nobody",
         {2, 9},
         {100, 200, 5, 0x300 | 128, 1, 7},
         {100, 200, 5, 0x300 | 128, 1, 7}},
        {"a projectile of vanilla", {2, 9}, {100, 200, 5, 128, 1, 7}, {100, 200, 5, 128, 1, 7}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        sink::DemoPlayers players{true};
        Crowd crowd{{3, 128}};
        crowd.add(row.key, row.world);
        const auto placed = players.place(crowd.world);
        const auto at = placed.items.find(row.key);
        REQUIRE(at);
        const auto data = placed.items[*at].data;
        CHECK(std::vector<std::int32_t>{data.begin(), data.end()} == row.demo);
    }
}

TEST_CASE("of a world of 0.7, names have the ids of their players") {
    sink::DemoPlayers players{false};
    snapshot::Snapshot items;
    items.append({snapshot::kSevenCharacterType, 70}, std::vector<std::int32_t>(22));
    record::TypeNames types;
    types.begin(snapshot::Dialect::seven);
    record::Roster roster;
    roster.set_player(5, {.team = 1});
    roster.set_player(70, {.team = 2});
    const record::SnapshotRecord world{
        .rebuilt = true, .items = items.view(), .types = &types, .roster = &roster};
    const auto placed = players.place(world);
    CHECK(placed.items.find({snapshot::kSevenCharacterType, 63}));
    REQUIRE(placed.roster->find(63) != nullptr);
    CHECK(placed.roster->find(63)->team == 2);
    CHECK(placed.roster->find(5)->team == 1);
    CHECK(placed.roster->find(70) == nullptr);
}

} // namespace tw::test
