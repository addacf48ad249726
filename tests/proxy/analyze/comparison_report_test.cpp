#include "proxy/analyze/comparison_report.h"
#include "snapshot/item.h"
#include "tests/support/text.h"

#include <algorithm>
#include <initializer_list>
#include <sstream>

#include <boost/json.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using analyze::GameComparison;
using analyze::RecordedItem;
using analyze::RecordedItems;
using test::contains;

namespace {

using ItemData = std::optional<std::vector<std::int64_t>>;

RecordedItem make_item(std::uint16_t type, std::uint16_t id, std::string name, std::string fields,
                       ItemData data = std::nullopt) {
    return {.key = {type, id},
            .type = std::move(name),
            .fields = std::move(fields),
            .data = std::move(data)};
}

std::shared_ptr<const RecordedItems> shared_items(const std::vector<RecordedItem>& all) {
    std::map<std::uint32_t, std::shared_ptr<const RecordedItem>> items;
    for (const RecordedItem& each : all) {
        items[each.key.packed()] = std::make_shared<const RecordedItem>(each);
    }
    return analyze::identify_items(items);
}

std::shared_ptr<const RecordedItems>
items_of_tees(std::initializer_list<std::pair<std::uint16_t, int>> all) {
    std::vector<RecordedItem> items;
    for (const auto& [id, x] : all) {
        items.push_back(make_item(9, id, "character", fmt::format(R"({{"x":{}}})", x)));
    }
    return shared_items(items);
}

/// Returns the differences as "x 1 2; ", or "not compared".
std::string differences_text(const RecordedItem& a, const RecordedItem& b) {
    const auto found = analyze::compare_items(a, b);
    std::string text = found ? "" : "not compared";
    for (std::size_t i = 0; found && i < found->size(); ++i) {
        text += fmt::format("{} {} {}; ", (*found)[i].field, (*found)[i].a, (*found)[i].b);
    }
    return text;
}

} // namespace

TEST_CASE("items are compared by named fields, and by raw ints if no field differs") {
    struct Row {
        std::string_view name;
        std::string a; ///< fields; see with_ints()
        std::string b;
        std::string_view said;
    };

    // Raw ints are written after the fields: `{"x":1} 1 2`.
    const auto with_ints = [](const std::string& text) {
        const std::size_t end = std::min(text.find(' '), text.size());
        ItemData ints;
        std::istringstream words{text.substr(end)};
        for (std::int64_t value = 0; words >> value;) {
            ints = ints.value_or(std::vector<std::int64_t>{});
            ints->push_back(value);
        }
        return make_item(4, 1, "", text.substr(0, end), ints);
    };
    const Row rows[] = {
        {"equal fields", R"({"x":1})", R"({"x":1})", ""},
        {"in another order", R"({"x":1,"y":2})", R"({"y":2,"x":1})", ""},
        {"a field", R"({"x":1,"n":"a"})", R"({"x":1,"n":"b"})", R"(n "a" "b"; )"},
        {"fewer fields", R"({"x":1,"y":2})", R"({"x":1,"z":3})",
         R"(y 2 "not there"; z "not there" 3; )"},
        {"fields of one with ints, too", R"({"x":1} 1)", R"({"x":2})", "x 1 2; "},
        {"equal ints", R"({"x":1} 1)", R"({"own":1} 1)", ""},
        {"fields and ints", R"({"x":1} 1)", R"({"x":2} 2)", "x 1 2; "},
        {"ints without names", " 1 2", " 1 3", "int_1 2 3; "},
        {"ints that only one has names for", R"({"x":1} 1)", " 2", "int_0 1 2; "},
        {"beyond the known", R"({"x":1} 1 2 3 4)", R"({"x":1} 1 2 3)", R"(int_3 4 "not there"; )"},
        {"a text once", R"({"name":"ann"} 1 2 3 4)", R"({"name":"bob"} 5 6 3 4)",
         R"(name "ann" "bob"; )"},
        {"a text that looks the same", R"({"name":"ann"} 1 2)", R"({"name":"ann"} 1 7)",
         "int_1 2 7; "},
        {"one has ints, the other fields", " 1", R"({"x":2})", "not compared"},
        {"fields that are none", "{", "[]", ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(differences_text(with_ints(row.a), with_ints(row.b)) == row.said);
    }
}

TEST_CASE("snapshots of A and B are compared tick by tick, in any order of arrival") {
    struct Step {
        std::size_t view;
        int tick;
        int x;
    };

    struct Row {
        std::string_view name;
        std::vector<Step> steps;
        /// The numbers of common and different ticks, and of those only in A or only in B.
        std::string_view said;
    };

    const Row rows[] = {
        {"in turn", {{0, 1, 5}, {1, 1, 5}, {0, 3, 6}, {1, 3, 6}}, "2 0 0 0"},
        {"one ahead", {{1, 1, 5}, {1, 3, 6}, {0, 1, 5}, {0, 3, 6}}, "2 0 0 0"},
        {"a part", {{0, 1, 5}, {0, 2, 5}, {0, 3, 6}, {1, 2, 5}}, "1 0 2 0"},
        {"none in both", {{0, 1, 5}, {1, 2, 5}, {0, 3, 5}, {1, 4, 5}}, "0 0 2 2"},
        {"other values", {{0, 1, 5}, {1, 1, 6}, {1, 2, 6}, {0, 2, 6}}, "2 1 0 0"},
        {"gaps", {{0, 5, 5}, {1, 1, 5}, {1, 5, 5}, {1, 7, 5}}, "1 0 0 2"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        GameComparison comparison{1};
        for (const Step& step : row.steps) {
            comparison.on_snapshot(0, step.view, step.tick, items_of_tees({{3, step.x}}));
        }
        comparison.count_unpaired_ticks();
        const auto totals = comparison.result().sum_pairs();
        CHECK(fmt::format("{} {} {} {}", totals.common_ticks, totals.different_ticks,
                          totals.unpaired_ticks[0], totals.unpaired_ticks[1]) == row.said);
        CHECK(comparison.result().are_games_equal() ==
              (totals.common_ticks != 0 && totals.different_ticks == 0));
    }
}

TEST_CASE("items that only 0.7 demos contain are compared if A and B are such demos") {
    const auto of_demo = [](int x) {
        return shared_items({make_item(9, 3, "character", R"({"x":5})"),
                             make_item(14, 0, "de_game_info", fmt::format(R"({{"x":{}}})", x))});
    };
    GameComparison comparison{1};
    comparison.on_snapshot(0, 0, 1, items_of_tees({{3, 5}}));
    comparison.on_snapshot(0, 1, 1, of_demo(1));
    comparison.on_snapshot(0, 0, 3, of_demo(1));
    comparison.on_snapshot(0, 1, 3, items_of_tees({{3, 5}}));
    CHECK(comparison.result().are_games_equal());
    CHECK(comparison.result().demo_only_items == 2);
    comparison.on_snapshot(0, 0, 5, of_demo(1));
    comparison.on_snapshot(0, 1, 5, of_demo(2));
    comparison.on_snapshot(0, 0, 7, items_of_tees({{3, 5}}));
    comparison.on_snapshot(0, 1, 7, of_demo(1));
    CHECK(comparison.result().sum_pairs().different_ticks == 1);
    CHECK(comparison.result().demo_only_items == 3);
}

TEST_CASE("a recording is ahead if many more of its snapshots are stored") {
    GameComparison comparison{2};
    for (std::size_t tick = 0; tick <= GameComparison::kMaxLeadSnapshots; ++tick) {
        CHECK_FALSE(comparison.is_ahead(0));
        comparison.on_snapshot(1, 0, static_cast<snapshot::Tick>(tick), items_of_tees({}));
    }
    CHECK(comparison.is_ahead(0));
    CHECK_FALSE(comparison.is_ahead(1));
    comparison.on_snapshot(0, 1, 0, items_of_tees({}));
    CHECK_FALSE(comparison.is_ahead(0));
}

TEST_CASE("too many waiting snapshots are dropped and counted") {
    GameComparison comparison{2};
    comparison.on_snapshot(1, 0, 1, items_of_tees({}));
    comparison.on_snapshot(0, 1, 1, items_of_tees({}));
    comparison.on_snapshot(0, 0, 1, items_of_tees({}));
    comparison.on_snapshot(1, 1, 1, items_of_tees({}));
    CHECK(comparison.result().sum_pairs().common_ticks == 2);

    constexpr int kMore = 10;
    for (int tick = 2; tick < 2 + static_cast<int>(GameComparison::kMaxWaitingSnapshots) + kMore;
         ++tick) {
        comparison.on_snapshot(0, 1, tick, items_of_tees({}));
    }
    CHECK(comparison.result().sum_pairs().dropped_snapshots == kMore);
    comparison.count_unpaired_ticks();
    CHECK(comparison.result().sum_pairs().unpaired_ticks[1] ==
          GameComparison::kMaxWaitingSnapshots);
}

TEST_CASE("differences of fields beyond the limit are counted together") {
    GameComparison comparison{1};
    const auto many = [](int value) {
        std::vector<RecordedItem> items;
        for (std::uint16_t id = 0; id < GameComparison::kMaxCountedFields + 7; ++id) {
            items.push_back(
                make_item(4, id, fmt::format("t{}", id), fmt::format(R"({{"x":{}}})", value)));
        }
        return shared_items(items);
    };
    comparison.on_snapshot(0, 0, 1, many(1));
    comparison.on_snapshot(0, 1, 1, many(2));
    CHECK(comparison.result().counts.size() == GameComparison::kMaxCountedFields);
    CHECK(comparison.result().uncounted_differences == 7);
}

TEST_CASE("the report has the first difference with both values, then the number of differences by "
          "field") {
    analyze::MapVisitReader a;
    analyze::MapVisitReader b;
    const auto line = [](std::string_view type, int session, std::string_view rest) {
        return fmt::format(
            R"({{"v":1,"t":"2026-11-21T02:04:47.000000Z","type":"{}","session":{},{}}})", type,
            session, rest);
    };
    for (auto* reader : {&a, &b}) {
        for (int session = 1; session <= (reader == &a ? 2 : 1); ++session) {
            static_cast<void>(reader->on_line(line(
                "session", session, fmt::format(R"("event":"open","client":"c:{}")", session))));
            CHECK(reader->on_line(line("snapshot", session, R"("tick":1,"full":true,"items":[])")));
        }
    }
    for (int i = 0; i < 7; ++i) {
        CHECK_FALSE(a.on_line(line("snapshot", 3, R"("tick":1,"items":[])")));
    }
    CHECK_FALSE(b.on_line(line("snapshot", 1, R"("tick":1,"items":[])")));
    const auto pairs = *analyze::pair_map_visits(a.visits(), b.visits(), {}, {});
    GameComparison comparison{pairs.pairs.size()};
    comparison.on_snapshot(0, 0, 1, items_of_tees({{3, 5}, {4, 7}}));
    comparison.on_snapshot(0, 1, 1, items_of_tees({{3, 5}, {4, 7}}));
    comparison.on_snapshot(0, 0, 3, items_of_tees({{3, 5}, {4, 7}}));
    comparison.on_snapshot(0, 1, 3, items_of_tees({{3, 6}}));
    comparison.on_snapshot(0, 0, 5, items_of_tees({{3, 5}}));
    comparison.on_snapshot(0, 1, 5, items_of_tees({{3, 6}}));
    comparison.count_unpaired_ticks();
    const analyze::ComparisonReport report{.files = {"one.pcap", "t\x1bwo\xff"},
                                           .readers = {&a, &b},
                                           .pairs = &pairs,
                                           .differences = &comparison.result()};
    const std::string text = analyze::comparison_text(report);
    CAPTURE(text);
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(contains(text, "\n7 snapshots of A not compared: "));
    CHECK(contains(text, "\n1 snapshot of B not compared: "));
    CHECK(contains(text,
                   "First difference: tick 3, character 3, x: 5 in A, 6 in B (session 1 and 1)\n"));
    CHECK(contains(text, "object     field   differences  first tick\n"
                         "character  (item)            1           3\n"
                         "character  x                 2           3\n"));
    CHECK(contains(text, "A session 2 (c:2, ticks 1 to 1)\n  not compared: no counterpart by "));
    CHECK(text.ends_with("different: 3 ticks in both, 2 different, 0 only in A, 0 only in B\n"));

    const auto json = boost::json::parse(analyze::comparison_json(report));
    CHECK(json.at("equal") == false);
    CHECK(json.at("b") == "t\x1bwo\xef\xbf\xbd");
    CHECK(
        boost::json::serialize(json.at("first")) ==
        R"({"map":"","tick":3,"session_a":1,"session_b":1,"type":"character","type_id":9,"id":3,"field":"x","a":5,"b":6})");
    CHECK(json.at("differences").as_array().size() == 2);
    CHECK(boost::json::serialize(json.at("unusable_snapshots")) == R"({"a":7,"b":0})");
    CHECK(boost::json::serialize(json.at("snapshots_behind")) == R"({"a":0,"b":1})");
    CHECK(json.at("ticks").at("different") == 2);
    CHECK(json.at("without_partner").at("a").as_array().size() == 1);
    CHECK(json.at("without_partner").at("b").as_array().empty());
}

TEST_CASE("the first difference is that of the first game, whatever its ticks") {
    for (const bool one_game : {false, true}) {
        GameComparison comparison{2, one_game ? std::vector<std::size_t>{}
                                              : std::vector<std::size_t>{0, 1}};
        for (const auto& [pair, tick] : {std::pair{0U, 900}, std::pair{1U, 5}}) {
            comparison.on_snapshot(pair, 0, tick, items_of_tees({{3, 5}}));
            comparison.on_snapshot(pair, 1, tick, items_of_tees({{3, 6}}));
        }
        CHECK(comparison.result().first->tick == (one_game ? 5 : 900));
    }
    std::vector<analyze::MapVisit> visits(6);
    const std::string_view maps = "aabbba"; // the fifth: session 1 again
    const std::int64_t sessions[] = {1, 2, 1, 2, 1, 1};
    for (std::size_t i = 0; i < visits.size(); ++i) {
        visits[i].session = sessions[i];
        visits[i].map = maps[i];
    }
    CHECK(analyze::assign_game_numbers(visits) == std::vector<std::size_t>{0, 0, 1, 1, 2, 3});
}

TEST_CASE("types with a UUID are matched by the UUID, even if their numbers differ") {
    struct Row {
        const char* name;
        std::shared_ptr<const RecordedItems> a;
        std::shared_ptr<const RecordedItems> b;
        std::string differ; ///< "type field; ..."
    };

    const std::string uuid = "66de1544-6e32-3531-a0a9-4ad4a6d2e9a2";
    const auto descriptor = [](std::uint16_t number, std::int64_t value) {
        return make_item(snapshot::kDescriptorType, number, "descriptor", "", ItemData{{value}});
    };
    const auto of = [](std::uint16_t type, std::string name, std::int64_t value) {
        return make_item(type, 5, std::move(name), "", ItemData{{value}});
    };
    const Row rows[] = {
        {"the other way round",
         shared_items({descriptor(0x4001, 11), descriptor(0x4002, 12), of(0x4001, "soul", 1),
                       of(0x4002, "player", 2)}),
         shared_items({descriptor(0x4001, 12), descriptor(0x4002, 11), of(0x4001, "player", 2),
                       of(0x4002, "soul", 1)}),
         ""},
        {"a type that only one announces", shared_items({descriptor(0x4001, 11)}), shared_items({}),
         "descriptor (item); "},
        {"a difference is found all the same",
         shared_items({descriptor(0x4001, 11), of(0x4001, "soul", 1)}),
         shared_items({descriptor(0x7fff, 11), of(0x7fff, "soul", 3)}), "soul int_0; "},
        {"one that only the other has, under a number of ours",
         shared_items({descriptor(0x4001, 11), of(0x4001, "soul", 1)}),
         shared_items({descriptor(0x4001, 12), of(0x4001, "player", 1)}),
         "descriptor (item); player (item); soul (item); "},
        {"not announced", shared_items({of(0x4001, "soul", 1)}), shared_items({of(0x4001, "", 1)}),
         ""},
        {"one number, two names", shared_items({of(6, "game_info", 1)}),
         shared_items({of(6, "game_data", 1)}), "game_info (type); "},
        {"a name that only one side knows is no difference",
         shared_items({descriptor(0x4001, 11), of(0x4001, uuid, 1), of(6, "", 1)}),
         shared_items({descriptor(0x4001, 11), of(0x4001, "soul", 1), of(6, "game_info", 1)}), ""},
        {"a type without a name has its UUID or number",
         shared_items({of(0x4001, uuid, 1), of(40, "", 1)}), shared_items({}),
         uuid + " (item); type_40 (item); "},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        GameComparison comparison{1};
        comparison.on_snapshot(0, 0, 1, row.a);
        comparison.on_snapshot(0, 1, 1, row.b);
        comparison.count_unpaired_ticks();
        CHECK(comparison.result().are_games_equal() == row.differ.empty());
        std::string differ;
        for (const auto& [key, unused] : comparison.result().counts) {
            differ += key.first + ' ' + key.second + "; ";
        }
        CHECK(differ == row.differ);
    }
}
