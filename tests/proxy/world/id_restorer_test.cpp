#include "proxy/world/id_restorer.h"
#include "tests/proxy/world/views.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

/// Returns a translated view of 16 players: bob has number 0, the viewer has number 1.
Items translated_items() {
    return {{{kCharacter, 0}, make_ints(22, {{1, 5}, {8, 1}})},
            {{kCharacter, 1}, make_ints(22, {{1, 6}, {8, -1}})},
            {{kPlayerInfo, 0}, {0, 0, 0, 0, 0}},
            {{kPlayerInfo, 1}, {1, 1, 0, 0, 0}},
            {{kPlayerInfo, 15}, {0, 15, 0, 0, 0}},
            {{kClientInfo, 0}, client_info("bob")},
            {{kClientInfo, 1}, client_info("vera")},
            {{kClientInfo, 15}, client_info(" ")},
            {{snapshot::kSpectatorInfoType, 33}, {0, 0, 0}}};
}

/// The result for the view with the least information.
struct LastView {
    Items items;
    std::optional<std::uint16_t> own;
    std::optional<std::uint16_t> watched;
};

LastView restore_view(const Views& views, world::IdRestorer& restorer) {
    auto list = views.sorted_views();
    record::ItemTypes types;
    for (const world::View& view : list) {
        types.learn_types(view.items);
    }
    restorer.restore_ids(list, types);
    return {to_items(list.back().items), list.back().own_client_id,
            list.back().spectated_client_id};
}

LastView restore_view(const Views& views) {
    world::IdRestorer restorer;
    return restore_view(views, restorer);
}

} // namespace

TEST_CASE("names in an untranslated view restore the server's ids") {
    const Items knowing{{{kClientInfo, 20}, client_info("bob")},
                        {{kClientInfo, 33}, client_info("vera")}};
    const LastView view =
        restore_view(Views{}.add_view(1, 0, translated_items()).add_view(2, 20011, knowing));
    const Items& items = view.items;
    CHECK(items.contains({kCharacter, 20}));
    CHECK(items.at({kCharacter, 20})[8] == 33);
    CHECK(items.at({kCharacter, 33})[8] == -1);
    CHECK(items.at({kPlayerInfo, 33})[1] == 33);
    CHECK_FALSE(items.contains({kClientInfo, 15})); // the nameless speaker
    CHECK_FALSE(items.contains({kPlayerInfo, 15}));
    CHECK(view.own == 33);
    CHECK(view.watched == 20);
}

TEST_CASE("an old projectile's owner is translated, a flag's carrier is not") {
    struct Row {
        std::string_view name;
        std::int32_t view; ///< the int whose bits contain the owner
        std::int32_t server;
    };

    const Row rows[] = {
        {"bob", 0x1200, 0x1200 | 20},
        {"vera", 0x201, 0x200 | 33},
        {"the nameless one", 0x20f, 0x300},
        {"nobody", 0x301, 0x301},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Items items = translated_items();
        items.insert(descriptor(kUuidType, "ddrace_projectile"));
        items[{kUuidType, 7}] = {100, 200, 5, row.view, 1, 7};
        items[{snapshot::kProjectileType, 8}] = {100, 200, 5, row.view, 1, 7};
        items[{7, 0}] = {1, 2, 1, -2};
        const Items knowing{{{kClientInfo, 20}, client_info("bob")},
                            {{kClientInfo, 33}, client_info("vera")}};
        const Items undone =
            restore_view(Views{}.add_view(1, 0, items).add_view(2, 20011, knowing)).items;
        CHECK(undone.at({kUuidType, 7})[3] == row.server);
        CHECK(undone.at({snapshot::kProjectileType, 8})[3] == row.server);
        CHECK(undone.at({7, 0}) == Ints{1, 2, 1, -2});
    }
}

TEST_CASE("without an untranslated view, only the viewer's id is known") {
    const LastView view = restore_view(Views{}.add_view(1, 0, translated_items()));
    CHECK(view.own == 33);
    CHECK(view.items.contains({kCharacter, 33}));
    CHECK(view.items.contains({kCharacter, 128}));
}

TEST_CASE("a placeholder is recognised by its id, not only by its name") {
    struct Row {
        std::string_view name;
        std::uint16_t client;
        std::uint16_t own;
        std::uint16_t speaker;
        bool player;
    };

    const Row rows[] = {
        {"the last but one of 16", 14, 1, 15, false},
        {"the last but one of 64", 62, 1, 63, false},
        {"another id", 3, 1, 15, true},
        {"the last but one of 16, of 64", 14, 1, 63, true},
        {"the viewer itself", 14, 14, 15, true},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Items shown{{{kCharacter, row.client}, character(1, 1)},
                          {{kPlayerInfo, row.own}, {1, row.own, 0, 0, 0}},
                          {{kClientInfo, row.client}, client_info("\u22c5 ghost")},
                          {{kClientInfo, row.speaker}, client_info(" ")},
                          {{snapshot::kSpectatorInfoType, 33}, {0, 0, 0}}};
        const Items items = restore_view(Views{}.add_view(1, 0, shown)).items;
        const auto of = [&](std::uint16_t type) {
            return std::ranges::count_if(items,
                                         [&](const auto& item) { return item.first.type == type; });
        };
        CHECK(of(kCharacter) == (row.player ? 1 : 0));
        CHECK(of(kClientInfo) == (row.player ? 1 : 0));
    }
}

TEST_CASE("a new player with an abandoned name is another player") {
    const auto seen = [](std::string_view first, std::string_view newcomer) {
        Items items = translated_items();
        items[{kClientInfo, 0}] = client_info(first);
        if (!newcomer.empty()) {
            items[{kCharacter, 2}] = character(7, 7);
            items[{kPlayerInfo, 2}] = {0, 2, 0, 0, 0};
            items[{kClientInfo, 2}] = client_info(newcomer);
        }
        return items;
    };
    world::IdRestorer restorer;
    for (const std::string_view first : {"bob", "rob"}) {
        const Items knowing{{{kClientInfo, 20}, client_info(first)}};
        restore_view(Views{}.add_view(1, 0, seen(first, "")).add_view(2, 20011, knowing), restorer);
    }
    // Now all views are translated.
    const Items items = restore_view(Views{}.add_view(1, 0, seen("rob", "bob")), restorer).items;
    CHECK(items.at({kCharacter, 20})[1] == 5);
    CHECK(items.at({kCharacter, 128})[1] == 7);
}

TEST_CASE("several players may have the same name") {
    Items same = translated_items();
    same[{kCharacter, 2}] = character(7, 7);
    same[{kPlayerInfo, 2}] = {0, 2, 0, 0, 0};
    same[{kClientInfo, 2}] = client_info("bob");
    const Items items = restore_view(Views{}.add_view(1, 0, same)).items;
    CHECK(items.at({kCharacter, 128})[1] == 5);
    CHECK(items.at({kCharacter, 129})[1] == 7);
}

namespace {

/// The numbers of players in one session's view.
struct ClientNumbers {
    std::uint32_t session = 1;
    std::vector<std::string_view> names; ///< names by number; empty: no player
    std::uint16_t own = 0;
    int viewer_id = -1; ///< the client id in items about the viewer; -1: there are none
    bool translated = true;
};

Items items_of_view(const ClientNumbers& numbers) {
    constexpr std::uint16_t kSpeaker = 63;
    Items items;
    for (std::size_t i = 0; i < numbers.names.size(); ++i) {
        if (const auto id = static_cast<std::uint16_t>(i); !numbers.names[i].empty()) {
            const std::int32_t local = id == numbers.own ? 1 : 0;
            items[{kCharacter, id}] = character(1, 1);
            items[{kPlayerInfo, id}] = {local, id, 0, 0, 0};
            items[{kClientInfo, id}] = client_info(numbers.names[i]);
        }
    }
    if (numbers.translated) {
        items[{kClientInfo, kSpeaker}] = client_info(" ");
    }
    if (numbers.viewer_id >= 0) {
        items.insert(descriptor(kUuidType, "ddnet_spectator_info"));
        items[{kUuidType, static_cast<std::uint16_t>(numbers.viewer_id)}] = {0, 0, 0, 0, 0};
    }
    return items;
}

/// Returns the players' ids in a tick and their origin: "bob 3" (the server's id), "bob 3 views",
/// "bob 128 twscope".
Lines restore_player_ids(world::IdRestorer& restorer, const std::vector<ClientNumbers>& tick) {
    Views views;
    record::ItemTypes types;
    for (const ClientNumbers& numbers : tick) {
        views.add_view(numbers.session, numbers.translated ? 16050 : 20011, items_of_view(numbers));
    }
    auto list = views.sorted_views();
    for (const world::View& view : list) {
        types.learn_types(view.items);
    }
    restorer.restore_ids(list, types);
    std::set<std::string> players;
    for (const world::View& view : list) {
        for (const auto& [key, data] : to_items(view.items)) {
            if (key.type == kClientInfo) {
                std::array<char, 16> text{};
                const auto size = snapshot::decode_int_string(std::span{data}.first(4), text);
                const auto kind = key.id < restorer.id_kinds().size() ? restorer.id_kinds()[key.id]
                                                                      : record::IdKind::server;
                players.insert(std::string{text.data(), size} + " " + std::to_string(key.id) +
                               (kind == record::IdKind::server
                                    ? ""
                                    : " " + std::string{record::id_kind_name(kind)}));
            }
        }
    }
    return {players.begin(), players.end()};
}

} // namespace

TEST_CASE("ids of players in translated views, and where they come from") {
    struct Row {
        std::string_view name;
        std::vector<std::vector<ClientNumbers>> ticks;
        Lines told; ///< players of the last tick
    };

    const std::vector<std::string_view> abc{"anna", "bob", "cleo"};
    const Row rows[] = {
        {"views agree, and the server says nothing",
         {{{1, abc, 0}, {2, abc, 1}, {3, abc, 2}}},
         {"anna 0 views", "bob 1 views", "cleo 2 views"}},
        {"views agree, and each is told the same number (DDNet, all from one address)",
         {{{1, abc, 0, 0}, {2, abc, 1, 1}, {3, abc, 2, 2}}},
         {"anna 0 views", "bob 1 views", "cleo 2 views"}},
        {"one view alone", {{{1, abc, 1}}}, {"anna 0 views", "bob 1 views", "cleo 2 views"}},
        {"each begins with itself, and is told the server's number (DDNet up to 20.1)",
         {{{1, abc, 0, 5}, {2, {"bob", "anna", "cleo"}, 0, 6}}},
         {"anna 5", "bob 6", "cleo 128 twscope"}},
        {"each begins with itself, and is told its own number as if it were the server's (later)",
         {{{1, abc, 0, 0}, {2, {"bob", "anna", "cleo"}, 0, 0}}},
         {"anna 128 twscope", "bob 129 twscope", "cleo 2 views"}},
        {"views differ, and each player's own view has a number of its own",
         {{{1, abc, 0, 0}, {2, {"", "bob", "anna"}, 1, 1}}},
         {"anna 0 views", "bob 1 views", "cleo 128 twscope"}},
        {"a view that knows all comes first",
         {{{1, abc, 0, 0}, {2, {"", "", "anna", "", "bob"}, 2, -1, false}}},
         {"anna 2", "bob 4", "cleo 128 twscope"}},
        {"what it said is known when it left",
         {{{1, abc, 0, 0}, {2, {"", "", "anna", "", "bob"}, 2, -1, false}}, {{1, abc, 0, 0}}},
         {"anna 2", "bob 4", "cleo 128 twscope"}},
        {"a number that views have for two is nobody's",
         {{{1, {"anna", "bob"}, 0}, {2, {"anna", "", "dora"}, 0}, {3, {"anna", "dora"}, 1}}},
         {"anna 0 views", "bob 128 twscope", "dora 129 twscope"}},
        {"a view that is missing in a tick still counts",
         {{{1, abc, 0, 0}, {2, {"bob", "anna", "cleo"}, 0, 0}},
          {{2, {"bob", "anna", "cleo"}, 0, 0}}},
         {"anna 128 twscope", "bob 129 twscope", "cleo 2 views"}},
        {"who had a number that views agreed on keeps it when they do not",
         {{{1, abc, 0, 0}}, {{1, abc, 0, 0}, {2, {"bob", "anna", "cleo"}, 0, 0}}},
         {"anna 0 views", "bob 1 views", "cleo 2 views"}},
        {"another has the number that somebody gave up",
         {{{1, abc, 0}}, {{1, {"anna", "dora", "cleo"}, 0}}},
         {"anna 0 views", "cleo 2 views", "dora 1 views"}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        world::IdRestorer restorer;
        Lines last;
        for (const auto& tick : row.ticks) {
            last = restore_player_ids(restorer, tick);
        }
        CHECK(last == row.told);
    }
}

TEST_CASE("the numbering of an absent session is forgotten") {
    world::IdRestorer restorer;
    const std::vector<std::string_view> abc{"anna", "bob", "cleo"};
    static_cast<void>(
        restore_player_ids(restorer, {{1, abc, 0, 0}, {2, {"bob", "anna", "cleo"}, 0, 0}}));
    CHECK(restorer.memory_bytes() > 0);
    Lines last;
    for (int tick = 0; tick < 60; ++tick) {
        last = restore_player_ids(restorer, {{1, abc, 0, 0}});
    }
    CHECK(last == Lines{"anna 0 views", "bob 1 views", "cleo 2 views"});
    restorer.forget_client_numberings();
    CHECK(restorer.memory_bytes() == 0);
    CHECK(restore_player_ids(restorer, {{1, abc, 0, 0}}) == last);
}

TEST_CASE("renumbered clients are listed") {
    world::IdRestorer restorer;
    static_cast<void>(
        restore_player_ids(restorer, {{1, {"anna", "bob"}, 0, 5}, {2, {"bob", "anna"}, 0, 6}}));
    using record::RenumberedClient;
    const auto told = restorer.renumbered_clients();
    CHECK(std::vector<RenumberedClient>{told.begin(), told.end()} ==
          std::vector<RenumberedClient>{{1, 0, 5}, {1, 1, 6}, {2, 0, 6}, {2, 1, 5}});
    for (int tick = 0; tick < 60; ++tick) {
        static_cast<void>(restore_player_ids(restorer, {{3, {"cleo"}, 0, -1, false}}));
        CHECK(restorer.renumbered_clients().size() ==
              (tick < 50 ? 4 : 0)); // sessions without a view are still remembered
        CHECK(restorer.id_kinds().empty());
    }
}

TEST_CASE("untranslated views are not changed") {
    Views views;
    views.add_view(1, 0, {{{kCharacter, 0}, character(1, 1)}});
    auto list = views.sorted_views();
    const auto* const before = list.front().items.data().data();
    world::IdRestorer restorer;
    restorer.restore_ids(list, record::ItemTypes{});
    CHECK(list.front().items.data().data() == before);
}

namespace {

using record::IdKind;

std::string player_name(int number) {
    return "n" + std::to_string(number);
}

/// Returns the id that a name gets; 0 if no id is free.
int assign_id_or_zero(world::PlayerNameIds& ids, const std::string& of) {
    const auto id = ids.assign_id(of);
    return id ? id->id : 0;
}

} // namespace

TEST_CASE("a learned id is taken from the name that had it") {
    world::PlayerNameIds ids;
    ids.begin_tick();
    ids.learn_id("foo", 0);
    ids.begin_tick();
    ids.learn_id("baz", 0); // the player foo was renamed
    CHECK(ids.was_id_learned_for("baz"));
    CHECK(ids.was_id_learned(0));
    CHECK_FALSE(ids.was_id_learned_for("foo"));
    ids.begin_tick();
    CHECK_FALSE(ids.was_id_learned_for("baz"));
    CHECK(assign_id_or_zero(ids, "baz") == 0);
    CHECK(assign_id_or_zero(ids, "foo") == 128); // another player with this name
    CHECK(assign_id_or_zero(ids, "foo") == 128);
    ids.begin_tick();
    ids.learn_id("foo", 3);
    CHECK(assign_id_or_zero(ids, "foo") == 3);
    CHECK(assign_id_or_zero(ids, "bar") == 128);
}

TEST_CASE("an unlearned id is taken when it is learned for another name") {
    world::PlayerNameIds ids;
    ids.begin_tick();
    CHECK(assign_id_or_zero(ids, "foo") == 128);
    ids.learn_id("bar", 128); // an id of a server with more players than servers support today
    CHECK(assign_id_or_zero(ids, "foo") == 129);
    CHECK(assign_id_or_zero(ids, "bar") == 128);
}

TEST_CASE("ids offered by views yield only to the server's ids") {
    world::PlayerNameIds ids;
    ids.begin_tick();
    ids.learn_id("foo", 3);
    ids.assign_id_if_free("bar", 3); // the server uses the id for another name
    ids.assign_id_if_free("foo", 5); // the server uses another id for the name
    ids.assign_id_if_free("baz", 4);
    ids.assign_id_if_free("qux", 4); // assigned in this tick already
    CHECK(assign_id_or_zero(ids, "foo") == 3);
    CHECK(ids.assign_id("foo")->kind == IdKind::server);
    CHECK(assign_id_or_zero(ids, "baz") == 4);
    CHECK(ids.assign_id("baz")->kind == IdKind::views);
    CHECK(assign_id_or_zero(ids, "bar") == 128);
    CHECK(ids.assign_id("bar")->kind == IdKind::twscope);
    CHECK(assign_id_or_zero(ids, "qux") == 129);
    ids.begin_tick();
    ids.reuse_last_learned_id("foo");
    ids.assign_id_if_free("qux", 4); // baz left
    ids.assign_id_if_free("bar", 3);
    CHECK(assign_id_or_zero(ids, "qux") == 4);
    CHECK(assign_id_or_zero(ids, "foo") == 3);
    CHECK(assign_id_or_zero(ids, "bar") == 128);
    CHECK(assign_id_or_zero(ids, "baz") == 129);
    ids.begin_tick();
    ids.assign_id_if_free("foo", 9); // a learned id is kept only after reuse_last_learned_id()
    CHECK(assign_id_or_zero(ids, "foo") == 9);
    CHECK(ids.last_learned_id("foo") == std::nullopt);
    ids.learn_id("baz", 9);
    CHECK(ids.last_learned_id("baz") == 9);
    CHECK(assign_id_or_zero(ids, "foo") == 129);
}

TEST_CASE("new names beyond the limit get ids, and present names keep theirs") {
    world::PlayerNameIds ids;
    for (int tick = 0; tick < 500; ++tick) {
        ids.begin_tick();
        CHECK(assign_id_or_zero(ids, "who stays") == 128);
        std::set<std::uint16_t> given{128};
        for (int player = 0; player < 15; ++player) {
            given.insert(static_cast<std::uint16_t>(
                assign_id_or_zero(ids, player_name(10 * tick + player))));
        }
        CHECK(given.size() == 16);
        CHECK(*given.begin() == 128);
        CHECK(*given.rbegin() < record::Roster::kMaxPlayers);
    }
}

TEST_CASE("in a tick with too many names, the surplus names have no id") {
    world::PlayerNameIds ids;
    ids.begin_tick();
    std::set<std::uint16_t> given;
    for (int player = 0; player < static_cast<int>(world::PlayerNameIds::kMaxNames); ++player) {
        given.insert(static_cast<std::uint16_t>(assign_id_or_zero(ids, player_name(player))));
    }
    CHECK(given.size() == world::PlayerNameIds::kMaxNames);
    CHECK(assign_id_or_zero(ids, "one more") == 0);
    ids.learn_id("another", 5);
    CHECK(assign_id_or_zero(ids, "another") == 0);
    ids.begin_tick();
    CHECK(assign_id_or_zero(ids, "one more") != 0);
}

namespace {

constexpr std::uint16_t kLaser = snapshot::kLaserType;

/// Returns a view of 16 players with these items; `last_but_one` is the name of client 14.
Items view_of_16_players(std::string_view last_but_one, const Items& shown) {
    Items items{{{kCharacter, 1}, character(500, 600)},
                {{kClientInfo, 1}, client_info("vera")},
                {{kClientInfo, 14}, client_info(last_but_one)},
                {{kClientInfo, 15}, client_info(" ")}};
    items.insert(shown.begin(), shown.end());
    return items;
}

} // namespace

TEST_CASE("stand-in items for a player are left out of the world") {
    const auto [number, uuid] = descriptor(kUuidType, "ddnet_laser");
    const Items knowing{{number, uuid},
                        {{kCharacter, 33}, character(500, 600)},
                        {{kCharacter, 40}, character(100, 200)},
                        {{kClientInfo, 33}, client_info("vera")},
                        {{kClientInfo, 40}, client_info("bob")},
                        {{kPickup, 71}, {100, 200, 0, 0}},
                        {{kUuidType, 72}, make_ints(10, {{0, 9}, {2, 100}, {3, 200}})}};
    const Items shown{
        {{kPickup, 70}, {100, 200, 2, 4}},   // at bob's position
        {{kPickup, 71}, {100, 200, 0, 0}},   // in every view
        {{kPickup, 73}, {101, 200, 2, 4}},   // at no player's position
        {{kLaser, 70}, {7, 8, 100, 200, 5}}, // starts at bob's position
        {{kLaser, 72}, {9, 0, 100, 200, 5}}, // the same laser in the newer form
        {{kLaser, 74}, {100, 200, 7, 8, 5}}, // ends at bob's position
        {{kLaser, 75}, {7, 8, 100}},         // too few ints
        {{kUuidType, 1}, {1, 2, 3}},         // an unknown type
    };
    const Items items =
        restore_view(Views{}
                         .add_view(1, 0, view_of_16_players("\u22c5 3 others", shown))
                         .add_view(2, 20011, knowing))
            .items;
    CHECK_FALSE(items.contains({kPickup, 70}));
    CHECK(items.contains({kPickup, 71}));
    CHECK(items.contains({kPickup, 73}));
    CHECK_FALSE(items.contains({kLaser, 70}));
    CHECK(items.contains({kLaser, 72}));
    CHECK(items.contains({kLaser, 74}));
    CHECK(items.contains({kLaser, 75}));
    CHECK(items.contains({kUuidType, 1}));
}

TEST_CASE("in a view without a placeholder no item is a stand-in") {
    const Items knowing{{{kCharacter, 33}, character(500, 600)},
                        {{kClientInfo, 33}, client_info("vera")}};
    const Items shot{{{kLaser, 70}, {7, 8, 500, 600, 5}}}; // at vera's position
    for (const bool others : {false, true}) {
        const Items few = view_of_16_players(others ? "\u22c5 1 others" : "bob", shot);
        const Items left =
            restore_view(Views{}.add_view(1, 0, few).add_view(2, 20011, knowing)).items;
        CHECK(left.contains({kLaser, 70}) != others);
    }
}

} // namespace tw::test
