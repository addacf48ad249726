// Tests worlds of 0.6 and 0.7 views.
#include "proxy/world/server_worlds.h"
#include "proxy/world/seven_to_six.h"
#include "proxy/world/view_merger.h"
#include "tests/proxy/world/views.h"
#include "tests/support/record_sink.h"

#include <array>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

using snapshot::Dialect;
using snapshot::ItemKey;

constexpr std::uint16_t kSix = snapshot::kCharacterType;
constexpr std::uint16_t kSeven = snapshot::kSevenCharacterType;
constexpr std::size_t kPlayerFlags = 15; ///< index in a character of 0.6
constexpr std::size_t kHealth = 16;
constexpr std::size_t kAmmo = 18;
constexpr std::size_t kWeapon = 19;

/// Returns the ints of a 0.7 character.
Ints seven_character(std::int32_t x, std::int32_t y, IndexedInts more = {}) {
    auto data = make_ints(22, {{1, x}, {2, y}, {8, -1}});
    for (const auto& [index, value] : more) {
        data[index] = value;
    }
    return data;
}

record::Roster roster_of(std::initializer_list<std::string_view> names,
                         std::optional<std::int32_t> own = {}) {
    record::Roster roster;
    std::int32_t client = 0;
    for (const std::string_view name : names) {
        roster.add_player({.client_id = client, .is_own = own == client, .name = name});
        ++client;
    }
    return roster;
}

/// A 0.7 view, translated into objects of 0.6.
struct TranslatedView {
    snapshot::Snapshot items;
    world::SevenToSixTranslator seven{snapshot::ObjectSet::standard()};
    std::vector<world::View> views;

    explicit TranslatedView(const Items& from, const record::Roster* roster = nullptr)
        : items{to_snapshot(from)}, views{world::make_view(1, 0, items.view(),
                                                           snapshot::Dialect::seven, roster)} {
        seven.translate_views(views);
    }

    [[nodiscard]] Ints ints_of_item(ItemKey key) const {
        const auto found = views[0].items.find(key).value();
        const auto data = views[0].items[found].data;
        return {data.begin(), data.end()};
    }

    /// Returns the indices of the ints whose value 0.7 does not contain.
    [[nodiscard]] std::set<std::size_t> missing_ints(ItemKey key) const {
        const auto found = views[0].items.find(key).value();
        std::set<std::size_t> places;
        for (std::size_t i = 0; i < 32; ++i) {
            if ((views[0].missing_ints[found] >> i & 1U) != 0) {
                places.insert(i);
            }
        }
        return places;
    }
};

/// Stores the worlds and findings of a server.
struct WorldItems final : TypedRecordSink<WorldItems> {
    struct World {
        Dialect dialect{};
        bool first = false;
        Items items;
        std::map<ItemKey, std::uint32_t> missing_ints;
        std::map<std::uint16_t, std::string> names;
        std::map<ItemKey, std::string_view> types;
    };

    void on(const record::FindingRecord& finding) {
        findings.push_back(std::string{record::finding_info(finding.id).name} + " " +
                           std::string{finding.field});
    }

    void on(const record::WorldRecord& record) {
        const record::SnapshotRecord& shown = record.merged;
        World& world = worlds.emplace_back();
        world.dialect = shown.types->dialect();
        world.first = !shown.previous;
        for (std::size_t i = 0; i < shown.items.size(); ++i) {
            const auto item = shown.items[i];
            world.items[item.key] = {item.data.begin(), item.data.end()};
            world.missing_ints[item.key] = shown.sightings->missing_ints[i];
            const auto* const object = shown.types->object(item.key.type);
            world.types[item.key] = object == nullptr ? "" : object->name;
        }
        if (shown.roster != nullptr) {
            shown.roster->for_each_player([&](std::uint16_t client,
                                              const record::Roster::KnownPlayer& entry) {
                std::array<char, 16> text{};
                world.names[client] = {text.data(), snapshot::decode_int_string(entry.name, text)};
            });
        }
    }

    std::vector<World> worlds;
    Lines findings;
};

struct MixedServer {
    WorldItems log;
    world::WorldMerger merger{snapshot::ObjectSet::standard(), log};

    explicit MixedServer(std::uint32_t sessions) {
        for (std::uint32_t session = 1; session <= sessions; ++session) {
            merger.on_input(
                {.kind = world::MergerInput::Kind::open, .session = session, .server = "a:1"});
        }
    }

    void send_snapshot(std::uint32_t session, snapshot::Tick tick, const Items& items,
                       Dialect dialect, const record::Roster* roster = nullptr) {
        merger.on_input({.kind = world::MergerInput::Kind::snapshot,
                         .time = tick * record::Timestamp{20'000'000},
                         .session = session,
                         .tick = tick,
                         .items = to_shared(items),
                         .dialect = dialect,
                         .roster = roster == nullptr
                                       ? nullptr
                                       : std::make_shared<const record::Roster>(*roster)});
    }
};

} // namespace

TEST_CASE("common fields are translated by name, and ints that 0.7 lacks are missing") {
    const Items items{
        {{4, 7}, {500, 600, 3}},
        {{6, 0}, {10, 0, 0}},
        {{7, 0}, {3, 4}},
        {{8, 0}, {-2, 1, 0, 0}},
        {{kSeven, 2}, seven_character(100, 200, {{15, 7}, {17, 9}, {18, 1}, {21, 3}})},
        {{11, 2}, {0, 77, 30}},
        {{21, 5}, {1, 2, 6}},
        {{22, 6}, {3, 4, 2, 9, 1, 0, 0}},
        {{23, 2}, {44}}};
    const auto roster = roster_of({"anna", "bob", "cleo"});
    const TranslatedView told{items, &roster};
    CHECK(told.ints_of_item({kSix, 2}) ==
          make_ints(22, {{1, 100}, {2, 200}, {8, -1}, {kHealth, 7}, {kAmmo, 9}, {kWeapon, 1}}));
    CHECK(told.missing_ints({kSix, 2}) == std::set<std::size_t>{kPlayerFlags});
    CHECK(told.ints_of_item({4, 7}) == Ints{500, 600, 2, 2});
    CHECK(told.missing_ints({4, 7}).empty());
    CHECK(told.ints_of_item({7, 0}) == Ints{3, 4, -2, 1});
    CHECK(told.missing_ints({7, 0}).empty());
    CHECK(told.ints_of_item({6, 0}) == make_ints(8, {{0, 3}, {2, 10}})); // no view has a game_info
    CHECK(told.ints_of_item({snapshot::kPlayerInfoType, 2}) == Ints{0, 2, 0, 0, 30});
    CHECK(told.missing_ints({snapshot::kPlayerInfoType, 2}) == std::set<std::size_t>{3});
    CHECK(told.ints_of_item({19, 5}) == Ints{1, 2, 6});
    CHECK(told.ints_of_item({20, 6}) == Ints{3, 4, 0});
    CHECK(told.missing_ints({20, 6}) == std::set<std::size_t>{2});
    CHECK(told.ints_of_item({23, 2}) == Ints{44}); // an item without a 0.6 object is kept
    // A player who was announced but is not in the snapshot is left out.
    CHECK(told.ints_of_item({snapshot::kClientInfoType, 2})[0] == client_info("cleo")[0]);
    CHECK(told.missing_ints({snapshot::kClientInfoType, 2}).size() == 13);
    const auto info = told.ints_of_item({snapshot::kClientInfoType, 2});
    std::array<char, 24> text{};
    CHECK(snapshot::decode_int_string(std::span{info}.subspan(4, 3), text) == 0); // clan
    CHECK(snapshot::decode_int_string(std::span{info}.subspan(8, 6), text) == 0); // skin
    CHECK(info[7] == -1);                                                         // country
    CHECK_FALSE(told.views[0].items.find({snapshot::kClientInfoType, 0}));
}

TEST_CASE("each 0.7 pickup becomes the corresponding 0.6 pickup") {
    const std::vector<Ints> six{{0, 0}, {1, 0}, {2, 3}, {2, 2}, {2, 4}, {3, 5}, {2, 1}, {2, 0}};
    for (std::int32_t kind = 0; kind < 8; ++kind) {
        CAPTURE(kind);
        const TranslatedView told{{{{4, 1}, {1, 2, kind}}}};
        CHECK(told.ints_of_item({4, 1})[2] == six[static_cast<std::size_t>(kind)][0]);
        CHECK(told.ints_of_item({4, 1})[3] == six[static_cast<std::size_t>(kind)][1]);
    }
    for (const std::int32_t kind : {-1, 8, INT32_MIN, INT32_MAX}) {
        CAPTURE(kind);
        CHECK(TranslatedView{{{{4, 1}, {1, 2, kind}}}}.missing_ints({4, 1}) ==
              std::set<std::size_t>{2, 3});
    }
}

TEST_CASE("the ammo count of frozen players and ninjas is missing") {
    CHECK(TranslatedView{{{{kSeven, 0}, seven_character(1, 1, {{17, 4021}, {18, 1}})}}}
              .missing_ints({kSix, 0})
              .contains(kAmmo));
    CHECK(TranslatedView{{{{kSeven, 0}, seven_character(1, 1, {{17, 3}, {18, 5}})}}}
              .missing_ints({kSix, 0})
              .contains(kAmmo));
    CHECK_FALSE(TranslatedView{{{{kSeven, 0}, seven_character(1, 1, {{17, -1}, {18, 1}})}}}
                    .missing_ints({kSix, 0})
                    .contains(kAmmo));
}

TEST_CASE("0.7 types are never taken for 0.6 types with the same number") {
    for (std::uint16_t type = 1; type < 64; ++type) {
        CAPTURE(type);
        for (const std::size_t size : {0U, 1U, 5U, 60U}) {
            const TranslatedView told{{{{type, 3}, Ints(size, 9)}}};
            for (std::size_t i = 0; i < told.views[0].items.size(); ++i) {
                const auto item = told.views[0].items[i];
                const auto* const six =
                    snapshot::find_object(item.key.type, snapshot::Dialect::six);
                CHECK((six == nullptr || item.data.size() == six->size));
            }
        }
    }
}

TEST_CASE("0.6 and 0.7 views of a server are merged into one world") {
    MixedServer server{2};
    const auto roster = roster_of({"six", "seven", "far"}, 1);
    const Items six{
        {{6, 0}, make_ints(8)},
        {{kSix, 0}, make_ints(22, {{1, 10}, {5, 900}, {kPlayerFlags, 1}, {kHealth, 9}})},
        {{kSix, 1}, make_ints(22, {{1, 20}, {kPlayerFlags, 2}})},
        {{snapshot::kPlayerInfoType, 0}, {1, 0, 0, 0, 0}},
        {{snapshot::kPlayerInfoType, 1}, {0, 1, 0, -5, 0}},
        {{snapshot::kClientInfoType, 0}, client_info("six")},
        {{snapshot::kClientInfoType, 1}, client_info("seven")}};
    const Items seven{{{kSeven, 0}, make_ints(22, {{1, 10}, {5, 100}})},
                      {{kSeven, 1}, make_ints(22, {{1, 20}, {15, 6}, {16, 2}, {17, 3}})},
                      {{kSeven, 2}, make_ints(22, {{1, 30}})},
                      {{11, 0}, {0, -1, 0}},
                      {{11, 1}, {0, -1, 0}},
                      {{11, 2}, {0, -1, 0}},
                      {{24, 0}, {1, 2, 3}}};
    for (snapshot::Tick tick = 100; tick < 106; tick += 2) {
        server.send_snapshot(1, tick, six, Dialect::six);
        server.send_snapshot(2, tick, seven, Dialect::seven, &roster);
    }
    server.merger.merge_waiting_ticks();
    CHECK(server.log.findings.empty());
    REQUIRE(server.log.worlds.size() == 3);
    const auto& world = server.log.worlds[0];
    CHECK(world.dialect == Dialect::six);
    CHECK(world.names.empty()); // the items contain the names
    CHECK(world.items.at({kSix, 0})[5] ==
          900); // the 0.6 angle is used, because the 0.7 angle is computed differently
    CHECK(world.items.at({kSix, 1})[kPlayerFlags] == 2);
    CHECK(world.items.at({kSix, 1})[kHealth] == 6); // from the view of the tee's own player
    CHECK(world.missing_ints.at({kSix, 1}) == 0);
    CHECK(world.items.at({snapshot::kPlayerInfoType, 1})[3] == -5);
    CHECK(world.items.at({snapshot::kClientInfoType, 2})[0] == client_info("far")[0]);
    const std::uint32_t own = 1U << kHealth | 1U << 17U | 1U << kAmmo;
    CHECK(world.missing_ints.at({kSix, 2}) == (own | 1U << kPlayerFlags));
    CHECK(world.types.at({24, 0}) == "game_data_race");
}

TEST_CASE("a position that differs between 0.6 and 0.7 views is reported") {
    MixedServer server{2};
    const auto roster = roster_of({"six", "seven"}, 1);
    server.send_snapshot(1, 100, {{{kSix, 0}, character(10, 20)}}, Dialect::six);
    server.send_snapshot(2, 100, {{{kSeven, 0}, seven_character(11, 20, {{10, 5}})}},
                         Dialect::seven, &roster);
    server.merger.merge_waiting_ticks();
    CHECK(server.log.findings == Lines{"world.views_differ x"});
}

TEST_CASE("a 0.7 world becomes a 0.6 world with the first 0.6 view") {
    MixedServer server{2};
    const auto roster = roster_of({"anna", "bob"}, 0);
    const Items seven{{{kSeven, 0}, seven_character(10, 20, {{15, 5}})},
                      {{kSeven, 1}, seven_character(30, 40)},
                      {{11, 0}, {0x20, 3, 4}},
                      {{12, 0}, {0, -1, 1, 2}}};
    server.send_snapshot(1, 100, seven, Dialect::seven, &roster);
    server.send_snapshot(1, 102, seven, Dialect::seven, &roster);
    server.send_snapshot(2, 102, {{{kSix, 0}, character(10, 20)}}, Dialect::six);
    server.send_snapshot(1, 104, seven, Dialect::seven, &roster);
    server.merger.merge_waiting_ticks();
    REQUIRE(server.log.worlds.size() == 3);
    const auto& alone = server.log.worlds[0];
    CHECK(alone.dialect == Dialect::seven);
    CHECK(alone.names == std::map<std::uint16_t, std::string>{{0, "anna"}, {1, "bob"}});
    CHECK(alone.items.at({kSeven, 0})[15] == 5);
    CHECK(alone.missing_ints.at({kSeven, 0}) == 0);
    CHECK(alone.missing_ints.at({kSeven, 1}) == (1U << 15U | 1U << 16U | 1U << 17U));
    CHECK(alone.items.at({11, 0})[0] == 0); // a world does not say who spectates
    CHECK_FALSE(alone.items.contains({12, 0}));
    CHECK(server.log.worlds[1].dialect == Dialect::six);
    CHECK(server.log.worlds[1].first);
    // All later worlds are in 0.6, whichever views a tick has.
    CHECK(server.log.worlds[2].dialect == Dialect::six);
    CHECK_FALSE(server.log.worlds[2].first);
    CHECK(server.log.worlds[2].items.contains({kSix, 1}));
}

TEST_CASE("without a 0.6 view, game_info is made from 0.7's game_data") {
    struct Row {
        std::string_view name;
        Items seven;
        Ints six;
    };

    const ItemKey game{6, 0};
    const Row rows[] = {
        {"a game", {{game, {70, 0, 0}}}, make_ints(8, {{2, 70}})},
        {"with teams", {{game, {70, 0, 0}}, {{7, 0}, {1, 2}}}, make_ints(8, {{0, 1}, {2, 70}})},
        {"with flags",
         {{game, {70, 0, 0}}, {{7, 0}, {1, 2}}, {{8, 0}, {-2, -2, 0, 0}}},
         make_ints(8, {{0, 3}, {2, 70}})},
        {"warmup and countdown have no bit", {{game, {70, 1 | 32, 9}}}, make_ints(8, {{2, 70}})},
        {"sudden death", {{game, {70, 2, 0}}}, make_ints(8, {{1, 2}, {2, 70}})},
        {"round over", {{game, {70, 4, 0}}}, make_ints(8, {{1, 1}, {2, 70}})},
        {"game over, paused", {{game, {70, 8 | 16, 0}}}, make_ints(8, {{1, 1 | 4}, {2, 70}})},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TranslatedView told{row.seven};
        CHECK(told.ints_of_item(game) == row.six);
        CHECK(told.missing_ints(game) == std::set<std::size_t>{3, 4, 5, 6, 7});
    }
    for (const Ints& cut : {Ints{}, {70}}) {
        CHECK_FALSE(TranslatedView{{{game, cut}}}.views[0].items.find(game));
    }
}

TEST_CASE("a world has a game_info before and after its last 0.6 client leaves") {
    MixedServer server{2};
    const Items six{{{6, 0}, {3, 4, 70, 0, 10, 20, 1, 2}}, {{kSix, 0}, character(10, 20)}};
    const Items seven{{{6, 0}, {70, 16, 0}},
                      {{7, 0}, {1, 2}},
                      {{8, 0}, {-2, 0, 0, 0}},
                      {{kSeven, 0}, seven_character(10, 20)}};
    const auto roster = roster_of({"six", "seven"}, 1);
    for (snapshot::Tick tick = 100; tick < 110; tick += 2) {
        if (tick < 104) {
            server.send_snapshot(1, tick, six, Dialect::six);
        }
        server.send_snapshot(2, tick, seven, Dialect::seven, &roster);
    }
    server.merger.merge_waiting_ticks();
    CHECK(server.log.findings.empty());
    REQUIRE(server.log.worlds.size() == 5);
    for (std::size_t i = 0; i < server.log.worlds.size(); ++i) {
        CAPTURE(i);
        const auto& world = server.log.worlds[i];
        const bool with_six = i < 2;
        CHECK(world.dialect == Dialect::six);
        CHECK(world.types.at({6, 0}) == "game_info");
        CHECK(world.items.at({6, 0}) ==
              (with_six ? Ints{3, 4, 70, 0, 10, 20, 1, 2} : Ints{3, 4, 70, 0, 0, 0, 0, 0}));
        CHECK(world.missing_ints.at({6, 0}) == (with_six ? 0 : 0xf8));
    }
}

TEST_CASE("ids of translated 0.7 views are restored by the names in messages") {
    MixedServer server{2};
    record::Roster mapped;
    mapped.add_player({.client_id = 0, .name = "bob"});
    mapped.add_player({.client_id = 1, .is_own = true, .name = "vera"});
    mapped.add_player({.client_id = 63, .name = " "});
    SUBCASE("beside a view of 0.6") {
        server.send_snapshot(1, 100,
                             {{{kSix, 20}, character(5, 5)},
                              {{snapshot::kClientInfoType, 20}, client_info("bob")},
                              {{snapshot::kClientInfoType, 33}, client_info("vera")}},
                             Dialect::six);
        server.send_snapshot(2, 100,
                             {{{kSeven, 0}, seven_character(5, 5)},
                              {{kSeven, 1}, seven_character(6, 6, {{8, 0}})},
                              {{kSeven, 63}, seven_character(7, 7)},
                              {{11, 0}, {0, 0, 0}},
                              {{11, 1}, {0, 0, 0}},
                              {{11, 63}, {0, 0, 0}}},
                             Dialect::seven, &mapped);
        server.merger.merge_waiting_ticks();
        REQUIRE(server.log.worlds.size() == 1);
        const auto& items = server.log.worlds[0].items;
        CHECK(items.contains({kSix, 20}));
        CHECK(items.at({kSix, 33})[8] == 20);
        CHECK_FALSE(items.contains({kSix, 0}));
        CHECK_FALSE(items.contains({kSix, 63}));
    }
    SUBCASE("alone: each view knows its own") {
        record::Roster other;
        other.add_player({.client_id = 0, .is_own = true, .name = "bob"});
        other.add_player({.client_id = 5, .name = "vera"});
        other.add_player({.client_id = 63, .name = " "});
        const auto uuid = descriptor(kUuidType, "ddnet_spectator_info");
        const auto view = [&](std::uint16_t own, ItemKey tee) {
            return Items{uuid, {tee, seven_character(6, 6)}, {{kUuidType, own}, {0, 0, 0, 0, 0}}};
        };
        server.send_snapshot(1, 100, view(33, {kSeven, 1}), Dialect::seven, &mapped);
        server.send_snapshot(2, 100, view(20, {kSeven, 5}), Dialect::seven, &other);
        server.merger.merge_waiting_ticks();
        REQUIRE(server.log.worlds.size() == 1);
        const auto& world = server.log.worlds[0];
        CHECK(world.items.contains({kSeven, 33}));
        CHECK_FALSE(world.items.contains({kSeven, 5}));
        CHECK(world.names == std::map<std::uint16_t, std::string>{{20, "bob"}, {33, "vera"}});
    }
    CHECK(server.log.findings.empty());
}

} // namespace tw::test
