#include "proxy/game/translation.h"
#include "tests/proxy/game/views.h"

#include <algorithm>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

constexpr std::uint16_t kCharacter = snapshot::kCharacterType;
constexpr std::uint16_t kPlayerInfo = snapshot::kPlayerInfoType;
constexpr std::uint16_t kClientInfo = snapshot::kClientInfoType;

/// A view that knows bob as 0, with himself as 1, and cannot see past the 16th.
Items translated() {
    return {{{kCharacter, 0}, ints(22, {{1, 5}, {8, 1}})},
            {{kCharacter, 1}, ints(22, {{1, 6}, {8, -1}})},
            {{kPlayerInfo, 0}, {0, 0, 0, 0, 0}},
            {{kPlayerInfo, 1}, {1, 1, 0, 0, 0}},
            {{kPlayerInfo, 15}, {0, 15, 0, 0, 0}},
            {{kClientInfo, 0}, client_info("bob")},
            {{kClientInfo, 1}, client_info("vera")},
            {{kClientInfo, 15}, client_info(" ")},
            {{snapshot::kSpectatorInfoType, 33}, {0, 0, 0}}};
}

Items items_of(const snapshot::SnapshotView& view) {
    Items items;
    for (std::size_t i = 0; i < view.size(); ++i) {
        items[view[i].key] = {view[i].data.begin(), view[i].data.end()};
    }
    return items;
}

} // namespace

TEST_CASE("translated ids become the server's by the names of a view that knows all") {
    const Items knowing{{{kClientInfo, 20}, client_info("bob")},
                        {{kClientInfo, 33}, client_info("vera")}};
    Views views;
    views.add(1, 0, translated()).add(2, 20011, knowing);
    auto list = views.list();
    game::Translation translation;
    translation.undo(list, record::TypeNames{});
    const Items items = items_of(list.back().items);
    CHECK(items.contains({kCharacter, 20}));
    CHECK(items.at({kCharacter, 20})[8] == 33);
    CHECK(items.at({kCharacter, 33})[8] == -1);
    CHECK(items.at({kPlayerInfo, 33})[1] == 33);
    CHECK_FALSE(items.contains({kClientInfo, 15})); // the nameless one
    CHECK_FALSE(items.contains({kPlayerInfo, 15}));
    CHECK(list.back().own == 33);
    CHECK(list.back().watched == 20);
}

TEST_CASE(
    "who shot a projectile of an older form is told in it, and who carries a flag never was") {
    struct Row {
        std::string_view name;
        std::int32_t view; ///< the int that has the owner among other bits
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
        Items items = translated();
        items.insert(descriptor(kDescribed, "ddrace_projectile"));
        items[{kDescribed, 7}] = {100, 200, 5, row.view, 1, 7};
        items[{snapshot::kProjectileType, 8}] = {100, 200, 5, row.view, 1, 7};
        items[{7, 0}] = {1, 2, 1, -2};
        Views views;
        views.add(1, 0, items)
            .add(2, 20011,
                 {{{kClientInfo, 20}, client_info("bob")},
                  {{kClientInfo, 33}, client_info("vera")}});
        auto list = views.list();
        record::TypeNames types;
        types.learn(list.back().items);
        game::Translation translation;
        translation.undo(list, types);
        const Items undone = items_of(list.back().items);
        CHECK(undone.at({kDescribed, 7})[3] == row.server);
        CHECK(undone.at({snapshot::kProjectileType, 8})[3] == row.server);
        CHECK(undone.at({7, 0}) == std::vector<std::int32_t>{1, 2, 1, -2});
    }
}

TEST_CASE("without one, the viewer's own id is told and others get one that no server has") {
    Views views;
    views.add(1, 0, translated());
    auto list = views.list();
    game::Translation translation;
    translation.undo(list, record::TypeNames{});
    CHECK(list.front().own == 33);
    const Items items = items_of(list.front().items);
    CHECK(items.contains({kCharacter, 33}));
    CHECK(items.contains({kCharacter, 128}));
}

TEST_CASE("who stands for others is known by its id, not by its name alone") {
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
        Views views;
        views.add(1, 0,
                  {{{kCharacter, row.client}, character(1, 1)},
                   {{kPlayerInfo, row.own}, {1, row.own, 0, 0, 0}},
                   {{kClientInfo, row.client}, client_info("\u22c5 ghost")},
                   {{kClientInfo, row.speaker}, client_info(" ")},
                   {{snapshot::kSpectatorInfoType, 33}, {0, 0, 0}}});
        auto list = views.list();
        game::Translation translation;
        translation.undo(list, record::TypeNames{});
        const Items items = items_of(list.front().items);
        const auto of = [&](std::uint16_t type) {
            return std::ranges::count_if(items,
                                         [&](const auto& item) { return item.first.type == type; });
        };
        CHECK(of(kCharacter) == (row.player ? 1 : 0));
        CHECK(of(kClientInfo) == (row.player ? 1 : 0));
    }
}

TEST_CASE("a newcomer with a name that somebody gave up is another player") {
    const auto seen = [](std::string_view first, std::string_view newcomer) {
        Items items = translated();
        items[{kClientInfo, 0}] = client_info(first);
        if (!newcomer.empty()) {
            items[{kCharacter, 2}] = character(7, 7);
            items[{kPlayerInfo, 2}] = {0, 2, 0, 0, 0};
            items[{kClientInfo, 2}] = client_info(newcomer);
        }
        return items;
    };
    game::Translation translation;
    for (const std::string_view first : {"bob", "rob"}) {
        Views views;
        views.add(1, 0, seen(first, "")).add(2, 20011, {{{kClientInfo, 20}, client_info(first)}});
        auto list = views.list();
        translation.undo(list, record::TypeNames{});
    }
    Views views;
    views.add(1, 0, seen("rob", "bob")); // nobody is left who knows all
    auto list = views.list();
    translation.undo(list, record::TypeNames{});
    const Items items = items_of(list.front().items);
    CHECK(items.at({kCharacter, 20})[1] == 5);
    CHECK(items.at({kCharacter, 128})[1] == 7);
}

TEST_CASE("several players of one name are all there") {
    Items same = translated();
    same[{kCharacter, 2}] = character(7, 7);
    same[{kPlayerInfo, 2}] = {0, 2, 0, 0, 0};
    same[{kClientInfo, 2}] = client_info("bob");
    Views views;
    views.add(1, 0, same);
    auto list = views.list();
    game::Translation translation;
    translation.undo(list, record::TypeNames{});
    const Items items = items_of(list.front().items);
    CHECK(items.at({kCharacter, 128})[1] == 5);
    CHECK(items.at({kCharacter, 129})[1] == 7);
}

TEST_CASE("views that know all stay as they are") {
    Views views;
    views.add(1, 0, {{{kCharacter, 0}, character(1, 1)}});
    auto list = views.list();
    const auto* const before = list.front().items.data().data();
    game::Translation translation;
    translation.undo(list, record::TypeNames{});
    CHECK(list.front().items.data().data() == before);
}

} // namespace tw::test
