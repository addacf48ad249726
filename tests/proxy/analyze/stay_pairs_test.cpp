// Covers: proxy/analyze/map_visits.cpp
#include "proxy/analyze/map_visits.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using analyze::MapVisit;

namespace {

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

MapVisit stay(std::int64_t session, std::string client, std::string map, int begin = 0,
              std::uint64_t snapshots = 0, int ticks = 100) {
    return {.session = session,
            .client = std::move(client),
            .map = std::move(map),
            .crc = {},
            .begin = begin,
            .end = begin + ticks,
            .snapshots = snapshots};
}

/// What a player sees of a game of so many, tick by tick; `altered`: one of so many ticks has another
/// item. All have the same ticks, map and number of snapshots.
MapVisit view(int player, int players, std::string client, int altered = 0) {
    constexpr int kTicks = 2000;
    constexpr int kFlags = 4;
    MapVisit seen = stay(player, std::move(client), "ctf5", 0, kTicks / 2, kTicks - 2);
    for (int tick = 0; tick < kTicks; tick += 2) {
        analyze::RecordedItems items;
        const auto add = [&items](int type, int id, std::string fields) {
            items.emplace_back(static_cast<std::uint32_t>(type << 16 | id),
                               std::make_shared<const analyze::RecordedItem>(analyze::RecordedItem{
                                   .type = "x", .fields = std::move(fields)}));
        };
        for (int flag = 0; flag < kFlags; ++flag) {
            add(1, flag, R"({"x":5})");
        }
        for (int other = 0; other < players; ++other) {
            add(9, other, fmt::format(R"({{"x":{}}})", tick * other));
            add(10, other, fmt::format(R"({{"local":{}}})", other == player ? 1 : 0));
        }
        if (altered != 0 && tick % altered == 0) {
            items.front().second = std::make_shared<const analyze::RecordedItem>(
                analyze::RecordedItem{.type = "x", .fields = R"({"x":77})"});
        }
        seen.samples.add(tick, items);
    }
    return seen;
}

} // namespace

TEST_CASE("stays of one game are paired by what they show, whatever their order and addresses") {
    constexpr int kPlayers = 4;

    struct Row {
        std::string_view name;
        std::vector<MapVisit> b;
        Pairs pairs;
    };

    const auto seen = [](int player, std::string client, int altered = 0) {
        return view(player, kPlayers, std::move(client), altered);
    };
    const std::vector<MapVisit> a{seen(0, "ann"), seen(1, "bob"), seen(2, "cy"), seen(3, "dan")};
    MapVisit other_map = seen(2, "x");
    other_map.map.clear(); // nobody said
    const Row rows[] = {
        {"the same", a, {{0, 0}, {1, 1}, {2, 2}, {3, 3}}},
        {"another order", {a[2], a[0], a[3], a[1]}, {{0, 1}, {1, 3}, {2, 0}, {3, 2}}},
        {"other addresses",
         {seen(3, "w"), seen(2, "x"), seen(1, "y"), seen(0, "z")},
         {{0, 3}, {1, 2}, {2, 1}, {3, 0}}},
        {"addresses of others",
         {seen(1, "ann"), seen(0, "bob"), seen(3, "cy"), seen(2, "dan")},
         {{0, 1}, {1, 0}, {2, 3}, {3, 2}}},
        {"a demo of the third", {seen(2, "x.demo")}, {{2, 0}}},
        {"an unknown map", {other_map}, {{2, 0}}},
        {"some ticks altered",
         {seen(3, "w", 100), seen(2, "x", 100), seen(1, "y", 100), seen(0, "z", 100)},
         {{0, 3}, {1, 2}, {2, 1}, {3, 0}}},
        {"all ticks altered",
         {seen(3, "w", 2), seen(2, "x", 2), seen(1, "y", 2), seen(0, "z", 2)},
         {{0, 3}, {1, 2}, {2, 1}, {3, 0}}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(analyze::pair_map_visits(a, row.b, {}, {}).pairs == row.pairs);
    }
}

TEST_CASE(
    "stays of which nothing was sampled are paired by client, by map, by ticks, and in order") {
    using Indexes = std::vector<std::size_t>;

    struct Row {
        std::string_view name;
        std::vector<MapVisit> a;
        std::vector<MapVisit> b;
        std::optional<std::int64_t> session_a;
        std::optional<std::int64_t> session_b;
        Pairs pairs;
        Indexes only_a;
        Indexes only_b;
    };

    const std::vector<MapVisit> two{stay(1, "ann", "dm1", 10), stay(2, "bob", "dm1", 20)};
    const Row rows[] = {
        {"same clients", two, {two[1], two[0]}, {}, {}, {{0, 1}, {1, 0}}, {}, {}},
        {"a demo", two, {stay(1, "x.demo", "dm1", 20)}, {}, {}, {{1, 0}}, {0}, {}},
        {"a demo of the second",
         {stay(1, "ann", "dm1", 10, 8), stay(2, "bob", "dm1", 10, 6)},
         {stay(1, "x.demo", "dm1", 10, 6)},
         {},
         {},
         {{1, 0}},
         {0},
         {}},
        {"a demo of the second, which is as long as it",
         {stay(1, "ann", "dm1", 10, 676, 1364), stay(2, "bob", "dm1", 10, 488, 982),
          stay(3, "cy", "dm1", 10, 492, 982)},
         {stay(1, "x.demo", "dm1", 10, 489, 984)},
         {},
         {},
         {{1, 0}},
         {0, 2},
         {}},
        {"the second stay of one client",
         {stay(1, "ann", "dm1", 10, 50), stay(1, "ann", "dm1", 200, 50)},
         {stay(1, "ann", "dm1", 200, 50)},
         {},
         {},
         {{1, 0}},
         {0},
         {}},
        {"demos that begin alike, the longer one first",
         {stay(1, "ann", "dm1", 10, 8, 900), stay(2, "bob", "dm1", 10, 8, 500)},
         {stay(1, "x.demo", "dm1", 10, 8, 500), stay(1, "y.demo", "dm1", 10, 8, 900)},
         {},
         {},
         {{0, 1}, {1, 0}},
         {},
         {}},
        {"same map",
         two,
         {stay(1, "x", "dm2"), stay(2, "y", "dm1")},
         {},
         {},
         {{0, 1}, {1, 0}},
         {},
         {}},
        {"other maps",
         two,
         {stay(1, "x", "a"), stay(2, "y", "b")},
         {},
         {},
         {{0, 0}, {1, 1}},
         {},
         {}},
        {"more in B", {two[0]}, {two[1], two[0]}, {}, {}, {{0, 1}}, {}, {0}},
        {"one session of A", two, {stay(1, "x", "dm1", 10)}, 2, {}, {{1, 0}}, {}, {}},
        {"one session of each", two, two, 1, 2, {{0, 1}}, {}, {}},
        {"nothing", {}, {}, {}, {}, {}, {}, {}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto found = analyze::pair_map_visits(row.a, row.b, row.session_a, row.session_b);
        CHECK(found.pairs == row.pairs);
        CHECK(found.only_a == row.only_a);
        CHECK(found.only_b == row.only_b);
    }
}
