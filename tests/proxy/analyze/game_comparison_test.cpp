// Covers: proxy/analyze/comparison_report.cpp
#include "proxy/analyze/comparison_report.h"
#include "snapshot/item.h"

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using analyze::GameComparison;
using analyze::RecordedItem;
using analyze::RecordedItems;
using analyze::View;

namespace {

using Ints = std::optional<std::vector<std::int64_t>>;

std::shared_ptr<const RecordedItems>
tees(std::initializer_list<std::pair<std::uint16_t, int>> all) {
    auto items = std::make_shared<RecordedItems>();
    for (const auto& [id, x] : all) {
        items->emplace_back(snapshot::ItemKey{9, id}.packed(),
                            std::make_shared<RecordedItem>(RecordedItem{
                                .type = "character", .fields = fmt::format(R"({{"x":{}}})", x)}));
    }
    return items;
}

/// "x 1 2; ", or "not compared"
std::string compare(const RecordedItem& a, const RecordedItem& b, std::uint16_t type = 0) {
    const auto found = analyze::compare_items(type, a, b);
    std::string text = found ? "" : "not compared";
    for (std::size_t i = 0; found && i < found->size(); ++i) {
        text += fmt::format("{} {} {}; ", (*found)[i].field, (*found)[i].a, (*found)[i].b);
    }
    return text;
}

} // namespace

TEST_CASE("items are compared by raw ints where both have them, else by named fields") {
    struct Row {
        std::string_view name;
        RecordedItem a;
        RecordedItem b;
        std::string_view said;
    };

    const Ints none;
    const Row rows[] = {
        {"equal fields", {"flag", R"({"x":1})", none}, {"flag", R"({"x":1})", none}, ""},
        {"in another order", {"", R"({"x":1,"y":2})", none}, {"", R"({"y":2,"x":1})", none}, ""},
        {"a field",
         {"", R"({"x":1,"n":"a"})", none},
         {"", R"({"x":1,"n":"b"})", none},
         R"(n "a" "b"; )"},
        {"fewer fields",
         {"", R"({"x":1,"y":2})", none},
         {"", R"({"x":1,"z":3})", none},
         R"(y 2 "not there"; z "not there" 3; )"},
        {"fields of one with ints, too",
         {"", R"({"x":1})", Ints{{1}}},
         {"", R"({"x":2})", none},
         "x 1 2; "},
        {"equal ints", {"", R"({"x":1})", Ints{{1}}}, {"", R"({"x":2})", Ints{{1}}}, ""},
        {"an int of a known type",
         {"flag", "", Ints{{1, 2, 3}}},
         {"flag", "", Ints{{1, 5, 3}}},
         "y 2 5; "},
        {"an int without a name", {"", "", Ints{{1, 2}}}, {"", "", Ints{{1, 3}}}, "int_1 2 3; "},
        {"beyond the known",
         {"flag", R"({"x":1})", Ints{{1, 2, 3, 4}}},
         {"flag", R"({"x":1})", Ints{{1, 2, 3}}},
         R"(int_3 4 "not there"; )"},
        {"a text once",
         {"client_info", R"({"name":"ann"})", Ints{{1, 2, 3, 4}}},
         {"client_info", R"({"name":"bob"})", Ints{{5, 6, 3, 4}}},
         R"(name "ann" "bob"; )"},
        {"one has ints, the other fields",
         {"", "", Ints{{1}}},
         {"", R"({"x":2})", none},
         "not compared"},
        {"fields that are none", {"", "{", none}, {"", "[]", none}, ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(compare(row.a, row.b) == row.said);
    }
}

TEST_CASE("ints of a mod's objects have the names that it gives them") {
    snapshot::ObjectSet objects;
    REQUIRE(objects.add({.type = 40,
                         .name = "soul",
                         .size = 2,
                         .fields = {{.name = "x"}, {.name = "mood", .offset = 1}}}));
    // Takes the place of one of 0.6, with other fields.
    REQUIRE(objects.add({.type = 9, .name = "character", .size = 1, .fields = {{.name = "own"}}}));
    const RecordedItem soul{"soul", "", Ints{{1, 2}}};
    const RecordedItem other{"soul", "", Ints{{1, 3}}};
    const auto named = analyze::compare_items(40, soul, other, objects);
    REQUIRE(named.has_value());
    REQUIRE(named->size() == 1);
    CHECK(named->front().field == "mood");
    const auto replaced = analyze::compare_items(9, {"character", "", Ints{{1}}},
                                                 {"character", "", Ints{{2}}}, objects);
    REQUIRE(replaced.has_value());
    REQUIRE(replaced->size() == 1);
    CHECK(replaced->front().field == "own");
    CHECK(compare(soul, other) == "int_1 2 3; ");
}

TEST_CASE("ints of 0.7 have the names that they have there") {
    const auto one = [](std::string_view type, std::size_t size, std::size_t changed) {
        Ints data{std::vector<std::int64_t>(size)};
        if (changed < size) {
            (*data)[changed] = 7;
        }
        return RecordedItem{std::string{type}, "", data};
    };

    struct Row {
        std::string_view type;
        std::uint16_t number;
        std::size_t size;
        std::size_t changed;
        std::string_view said;
    };

    const Row rows[] = {
        {"character", 9, 22, 15, "player_flags 7 0; "},
        {"character", 10, 22, 15, "health 7 0; "},
        {"player_info", 10, 5, 1, "client_id 7 0; "},
        {"player_info", 11, 3, 1, "score 7 0; "},
        {"spectator_info", 12, 3, 1, "x 7 0; "},
        {"spectator_info", 12, 4, 1, "spectator_id 7 0; "},
        {"game_data", 6, 3, 0, "game_start_tick 7 0; "},
        {"game_data", 7, 4, 0, "teamscore_red 7 0; "},
        {"ddnet_character", 0x7fff, 10, 1, "freeze_end 7 0; "},
    };
    for (const Row& row : rows) {
        CAPTURE(row.type);
        CAPTURE(row.number);
        CHECK(compare(one(row.type, row.size, row.changed), one(row.type, row.size, row.size),
                      row.number) == row.said);
    }
}

TEST_CASE("views are aligned by tick, whichever comes first") {
    struct Step {
        View view;
        int tick;
        int x;
    };

    struct Row {
        std::string_view name;
        std::vector<Step> steps;
        std::string_view said; ///< both, different, only in A, only in B
    };

    const Row rows[] = {
        {"in turn",
         {{View::a, 1, 5}, {View::b, 1, 5}, {View::a, 3, 6}, {View::b, 3, 6}},
         "2 0 0 0"},
        {"one ahead",
         {{View::b, 1, 5}, {View::b, 3, 6}, {View::a, 1, 5}, {View::a, 3, 6}},
         "2 0 0 0"},
        {"a part", {{View::a, 1, 5}, {View::a, 2, 5}, {View::a, 3, 6}, {View::b, 2, 5}}, "1 0 2 0"},
        {"none in both",
         {{View::a, 1, 5}, {View::b, 2, 5}, {View::a, 3, 5}, {View::b, 4, 5}},
         "0 0 2 2"},
        {"other values",
         {{View::a, 1, 5}, {View::b, 1, 6}, {View::b, 2, 6}, {View::a, 2, 6}},
         "2 1 0 0"},
        {"gaps", {{View::a, 5, 5}, {View::b, 1, 5}, {View::b, 5, 5}, {View::b, 7, 5}}, "1 0 0 2"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        GameComparison comparison{1};
        for (const Step& step : row.steps) {
            comparison.on_snapshot(0, step.view, step.tick, tees({{3, step.x}}));
        }
        comparison.finish();
        const auto totals = comparison.totals();
        CHECK(fmt::format("{} {} {} {}", totals.both, totals.different, totals.only[0],
                          totals.only[1]) == row.said);
        CHECK(comparison.equal() == (totals.both != 0 && totals.different == 0));
    }
}

TEST_CASE("what only demos of 0.7 have is compared where both are such demos") {
    const auto of_demo = [](int x) {
        auto items = std::make_shared<RecordedItems>(*tees({{3, 5}}));
        items->emplace_back(
            snapshot::ItemKey{14, 0}.packed(),
            std::make_shared<RecordedItem>(
                RecordedItem{.type = "de_game_info", .fields = fmt::format(R"({{"x":{}}})", x)}));
        return items;
    };
    GameComparison comparison{1};
    comparison.on_snapshot(0, View::a, 1, tees({{3, 5}}));
    comparison.on_snapshot(0, View::b, 1, of_demo(1));
    comparison.on_snapshot(0, View::a, 3, of_demo(1));
    comparison.on_snapshot(0, View::b, 3, tees({{3, 5}}));
    CHECK(comparison.equal());
    CHECK(comparison.of_demos() == 2);
    comparison.on_snapshot(0, View::a, 5, of_demo(1));
    comparison.on_snapshot(0, View::b, 5, of_demo(2));
    comparison.on_snapshot(0, View::a, 7, tees({{3, 5}}));
    comparison.on_snapshot(0, View::b, 7, of_demo(1));
    CHECK(comparison.totals().different == 1);
    CHECK(comparison.of_demos() == 3);
}

TEST_CASE("who is waited for is behind, and too many that wait are left out and counted") {
    GameComparison comparison{2};
    CHECK_FALSE(comparison.behind());
    comparison.on_snapshot(1, View::a, 1, tees({}));
    CHECK(comparison.behind() == View::b);
    comparison.on_snapshot(0, View::b, 1, tees({}));
    CHECK_FALSE(comparison.behind());
    comparison.on_snapshot(0, View::a, 1, tees({}));
    comparison.on_snapshot(1, View::b, 1, tees({}));
    CHECK(comparison.totals().both == 2);

    constexpr int kMore = 10;
    for (int tick = 2; tick < 2 + static_cast<int>(GameComparison::kMaxWaiting) + kMore; ++tick) {
        comparison.on_snapshot(0, View::b, tick, tees({}));
    }
    CHECK(comparison.totals().left_out[1] == kMore);
    comparison.finish();
    CHECK(comparison.totals().only[1] == GameComparison::kMaxWaiting);
}

TEST_CASE("objects and fields beyond the limit are counted together") {
    GameComparison comparison{1};
    const auto many = [](int value) {
        auto items = std::make_shared<RecordedItems>();
        for (std::uint32_t key = 0; key < GameComparison::kMaxCounted + 7; ++key) {
            items->emplace_back(key, std::make_shared<RecordedItem>(RecordedItem{
                                         .type = fmt::format("t{}", key),
                                         .fields = fmt::format(R"({{"x":{}}})", value)}));
        }
        return items;
    };
    comparison.on_snapshot(0, View::a, 1, many(1));
    comparison.on_snapshot(0, View::b, 1, many(2));
    CHECK(comparison.counts().size() == GameComparison::kMaxCounted);
    CHECK(comparison.uncounted() == 7);
}

TEST_CASE("the first difference is reported with both values, then how often what differs") {
    analyze::MapVisitReader a;
    analyze::MapVisitReader b;
    for (auto* stays : {&a, &b}) {
        for (const int session : {1, 2}) {
            const std::string head = fmt::format(
                R"({{"v":1,"t":"2026-11-21T02:04:47.000000Z","type":"snapshot","session":{})",
                session);
            if (session == 1 || stays == &a) {
                CHECK(stays->on_line(head + R"(,"tick":1,"full":true,"items":[]})"));
            }
        }
    }
    const auto pairs = analyze::pair_map_visits(a.stays(), b.stays(), {}, {});
    GameComparison comparison{pairs.pairs.size()};
    comparison.on_snapshot(0, View::a, 1, tees({{3, 5}, {4, 7}}));
    comparison.on_snapshot(0, View::b, 1, tees({{3, 5}, {4, 7}}));
    comparison.on_snapshot(0, View::a, 3, tees({{3, 5}, {4, 7}}));
    comparison.on_snapshot(0, View::b, 3, tees({{3, 6}}));
    comparison.on_snapshot(0, View::a, 5, tees({{3, 5}}));
    comparison.on_snapshot(0, View::b, 5, tees({{3, 6}}));
    comparison.finish();
    const analyze::ComparisonReport report{.files = {"one.pcap", "t\x1bwo\xff"},
                                           .stays = {&a.stays(), &b.stays()},
                                           .pairs = &pairs,
                                           .comparison = &comparison,
                                           .unusable = {7, 0},
                                           .behind = {0, 1}};
    const std::string text = analyze::comparison_text(report);
    CAPTURE(text);
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find("\n7 snapshots of A not compared: ") != std::string::npos);
    CHECK(text.find("\n1 snapshot of B not compared: ") != std::string::npos);
    CHECK(
        text.find("First difference: tick 3, character 3, x: 5 in A, 6 in B (session 1 and 1)\n") !=
        std::string::npos);
    CHECK(text.find("object     field   differences  first tick\n"
                    "character  (item)            1           3\n"
                    "character  x                 2           3\n") != std::string::npos);
    CHECK(text.find("A session 2 ()\n  without a counterpart") != std::string::npos);
    CHECK(text.ends_with("different: 3 ticks in both, 2 different, 0 only in A, 0 only in B\n"));

    const auto json = boost::json::parse(analyze::comparison_json(report));
    CHECK(json.at("equal") == false);
    CHECK(json.at("b") == "t\x1bwo\xef\xbf\xbd");
    CHECK(
        boost::json::serialize(json.at("first")) ==
        R"({"tick":3,"session_a":1,"session_b":1,"type":"character","type_id":9,"id":3,"field":"x","a":5,"b":6})");
    CHECK(json.at("differences").as_array().size() == 2);
    CHECK(boost::json::serialize(json.at("unusable_snapshots")) == R"({"a":7,"b":0})");
    CHECK(boost::json::serialize(json.at("snapshots_behind")) == R"({"a":0,"b":1})");
    CHECK(json.at("ticks").at("different") == 2);
    CHECK(json.at("without_partner").at("a").as_array().size() == 1);
    CHECK(json.at("without_partner").at("b").as_array().empty());
}

TEST_CASE("types that have a UUID are the same by name, whatever each server numbers them") {
    struct Item {
        std::uint16_t type;
        std::uint16_t id;
        const char* name;
        std::int64_t value;
    };

    const auto items_of = [](std::initializer_list<Item> all) {
        auto items = std::make_shared<RecordedItems>();
        for (const Item& each : all) {
            items->emplace_back(
                snapshot::ItemKey{each.type, each.id}.packed(),
                std::make_shared<RecordedItem>(RecordedItem{
                    .type = each.name, .fields = "", .data = std::vector{each.value}}));
        }
        return items;
    };

    struct Row {
        const char* name;
        std::shared_ptr<RecordedItems> a;
        std::shared_ptr<RecordedItems> b;
        std::string differ; ///< "type field; ..."
    };

    constexpr std::uint16_t kDescriptor = snapshot::kDescriptorType;
    const Row rows[] = {
        {"the other way round",
         items_of({{kDescriptor, 0x4001, "", 11},
                   {kDescriptor, 0x4002, "", 12},
                   {0x4001, 5, "ddnet_character", 1},
                   {0x4002, 5, "ddnet_player", 2}}),
         items_of({{kDescriptor, 0x4001, "", 12},
                   {kDescriptor, 0x4002, "", 11},
                   {0x4001, 5, "ddnet_player", 2},
                   {0x4002, 5, "ddnet_character", 1}}),
         ""},
        {"a difference is found all the same", items_of({{0x4001, 5, "ddnet_character", 1}}),
         items_of({{0x7fff, 5, "ddnet_character", 3}}), "ddnet_character flags; "},
        {"one that only the other has, under a number of ours",
         items_of({{0x4001, 5, "ddnet_character", 1}}), items_of({{0x4001, 5, "ddnet_laser", 1}}),
         "ddnet_character (item); ddnet_laser (item); "},
        {"one number, two names", items_of({{6, 0, "game_info", 1}}),
         items_of({{6, 0, "game_data", 1}}), "game_info (type); "},
        {"a name that only one side knows is no difference",
         items_of({{0x4001, 5, "66de1544-6e32-3531-a0a9-4ad4a6d2e9a2", 1}, {6, 0, "", 1}}),
         items_of({{0x4001, 5, "mods_thing", 1}, {6, 0, "game_info", 1}}), ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        GameComparison comparison{1};
        comparison.on_snapshot(0, View::a, 1, row.a);
        comparison.on_snapshot(0, View::b, 1, row.b);
        comparison.finish();
        CHECK(comparison.equal() == row.differ.empty());
        std::string differ;
        for (const auto& [key, unused] : comparison.counts()) {
            differ += key.first + ' ' + key.second + "; ";
        }
        CHECK(differ == row.differ);
    }
}
