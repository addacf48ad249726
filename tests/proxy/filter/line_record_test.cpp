#include "proxy/filter/line_record.h"
#include "tests/proxy/sink/sample_records.h"

#include <fstream>
#include <iterator>
#include <random>
#include <regex>
#include <sstream>

#include <boost/json.hpp>
#include <doctest/doctest.h>

using namespace std::string_view_literals;
using namespace tw::filter;
using tw::test::SampleRecords;

namespace {

std::string record_line(const tw::record::Record& record) {
    std::string line =
        tw::sink::json_line(record, {.items = tw::sink::ItemChoice::all, .raw = true});
    line.pop_back();
    return line;
}

/// Returns every filter in FILTERS.md.
std::vector<std::string> filters_of_page() {
    std::ifstream file{TW_FILTERS_PAGE};
    std::stringstream page;
    page << file.rdbuf();
    const std::string text = page.str();
    const std::regex row{"\n\\| `([^`]+)` \\|"};
    std::vector<std::string> filters;
    for (std::sregex_iterator found{text.begin(), text.end(), row}, end; found != end; ++found) {
        filters.push_back((*found)[1]);
    }
    return filters;
}

} // namespace

TEST_CASE("a line matches a filter if and only if its record does") {
    const SampleRecords sample;
    std::vector<std::string> filters = filters_of_page();
    CHECK(filters.size() > 20);
    // Every key, with values that records contain.
    for (const KeyScope scope : {KeyScope::record, KeyScope::item}) {
        for (const std::string& key : all_keys(scope)) {
            const std::string name = (scope == KeyScope::item ? "items." : "") + key;
            for (const char* const condition :
                 {" == null", " != null", " == 0", " != 3", " >= 2", " == true", " ~ e",
                  " == \"[redacted]\"", " < 50"}) {
                filters.push_back(name + condition);
            }
        }
    }
    const std::vector<tw::record::Record> records = sample.all();
    std::vector<std::string> written;
    std::ranges::transform(records, std::back_inserter(written), record_line);
    std::size_t asked = 0;
    std::size_t fulfilled = 0;
    for (const std::string& text : filters) {
        const auto filter = Filter::parse(text);
        auto lines = LineFilter::parse(text);
        if (!lines) {
            continue; // a comparison that is invalid for this key, or an expectation
        }
        for (std::size_t i = 0; i < written.size(); ++i) {
            const std::string& line = written[i];
            const bool expected = filter->matches(records[i]);
            CAPTURE(text);
            CAPTURE(line);
            ++asked;
            fulfilled += expected ? 1U : 0U;
            CHECK(matches_line(*filter, line) == expected);
            CHECK(lines->matches(line) == expected);
        }
    }
    CHECK(asked > 20'000);
    CHECK(fulfilled > 2'000);
    MESSAGE(asked << " questions, " << fulfilled << " fulfilled");
}

TEST_CASE("LineFilter and matches_line() agree on all lines") {
    const SampleRecords sample;
    std::vector<LineFilter> fast;
    std::vector<Filter> slow;
    std::vector<std::string> texts;
    for (const std::string& text : filters_of_page()) {
        if (auto filter = LineFilter::parse(text)) {
            slow.push_back(*Filter::parse(text));
            fast.push_back(*std::move(filter));
            texts.push_back(text);
        }
    }
    std::mt19937 random{15}; // NOLINT(cert-msc32-c,cert-msc51-cpp): the same every time
    constexpr std::string_view kOdd = R"({}[]",:\ 01ax)";
    std::size_t fulfilled = 0;
    for (const auto& record : sample.all()) {
        const std::string whole = record_line(record);
        for (int round = 0; round < 200; ++round) {
            std::string line =
                whole.substr(0, round % 4 == 0 ? random() % whole.size() : whole.size());
            for (auto changes = line.empty() ? 0U : random() % 4; changes != 0; --changes) {
                line[random() % line.size()] = kOdd[random() % kOdd.size()];
            }
            for (std::size_t i = 0; i < slow.size(); ++i) {
                const bool fulfils = matches_line(slow[i], line);
                fulfilled += fulfils ? 1U : 0U;
                CAPTURE(texts[i]);
                CAPTURE(line);
                CHECK(fast[i].matches(line) == fulfils);
            }
        }
    }
    CHECK(fulfilled > 1'000);
}

TEST_CASE("a filter with a key that lines never contain is an error") {
    const auto filter = LineFilter::parse("snapshot and size_bytes > 5");
    REQUIRE_FALSE(filter);
    CHECK(filter.error().message == "recorded lines have no size_bytes");
    CHECK_FALSE(LineFilter::parse("character and size_bytes > 5", {}, KeyScope::item_row));
    CHECK(LineFilter::parse("snapshots.size_bytes.max > 5"));
}

TEST_CASE("a misspelt message name is noticed") {
    struct Row {
        std::string_view filter;
        std::string_view similar;
    };

    constexpr std::array<tw::wire::MessageSpec, 1> kMod{{{.name = "portal_used"}}};
    const Row rows[] = {{"session == 1 and name == sv_kilmsg", "sv_kill_msg"},
                        {"name == sv_kill_msg", ""},
                        {"name == potal_used", "portal_used"},
                        {"name == portal_used", ""},
                        {"name ~ sv_kilmsg", ""},
                        {"name == ctf1", ""},
                        {"items.player == sv_kilmsg", ""}};
    for (const Row& row : rows) {
        CAPTURE(row.filter);
        const auto filter = LineFilter::parse(row.filter, {.described = {.messages = kMod}});
        REQUIRE(filter);
        CHECK(filter->similar_message() == row.similar);
    }
}

TEST_CASE("the head of a line is read in any order of keys") {
    struct Row {
        std::string line;
        std::string head; ///< "time type session"; empty if the line is not a record
    };

    const Row rows[] = {
        {R"({"v":1,"t":"2026","type":"map","session":12,"crc":1})", "2026 map 12"},
        {R"({"v":1,"t":"2026","type":"map","session":12})", "2026 map 12"},
        {R"({ "type" : "map", "session": 3 , "t":"2026" })", "2026 map 3"},
        {R"({"v":1,"t":"2026","type":"map","session":12x})", ""},
        {R"({"v":1,"t":"2026","type":"map","session":})", ""},
        {R"({"v":1,"t":"2026","type":"map","session":12)", ""},
        {R"({"v":1,"t":"2026","type":"map)", ""},
        {R"({"v":1,"t":5,"type":"map","session":1})", ""},
        {R"({"v":1,"t":"2026","type":"map","session":99999999999999999999})", ""},
        {R"([1,2])", ""},
        {"{", ""},
        {"", ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.line);
        const auto head = read_line_head(row.line);
        CHECK((head ? std::string{head->time} + ' ' + std::string{head->type} + ' ' +
                          std::to_string(head->session)
                    : std::string{}) == row.head);
    }
}

TEST_CASE("is_record_line() and is_valid_record() recognise damaged lines") {
    const std::string line = R"({"v":1,"t":"2026","type":"map","session":1,"name":"a"})";

    struct Row {
        const char* name;
        std::string line;
        bool record;
        bool sound;
    };

    const Row rows[] = {
        {"a record", line, true, true},
        {"one with a blank behind it", line + " ", true, true},
        {"one with control bytes behind it", line + "\t\r", true, false},
        {"one with its keys in another order", R"({"session":1,"type":"map","t":"2026"})", true,
         true},
        {"nothing", "", false, false},
        {"half of one", line.substr(0, line.size() - 1), false, false},
        {"two that lost what was between them", line.substr(0, 50) + line, false, false},
        {"one without a time", R"({"v":1,"type":"map","session":1})", false, false},
        {"one without a session", R"({"v":1,"t":"2026","type":"map"})", false, false},
        {"a time that is a number", R"({"v":1,"t":12345678,"type":"map","session":1})", false,
         false},
        {"a type that is a list", R"({"v":1,"t":"2026","type":["map"],"session":1})", false, false},
        {"a zero in it", std::string{line}.replace(50, 1, 1, '\0'), false, false},
        {"a control byte far in it",
         R"({"v":1,"t":"2026","type":"map","session":1,"name":")" + std::string(5'000, 'x') +
             "\x1f\"}",
         false, false},
        {"no JSON behind its head", R"({"v":1,"t":"2026","type":"map","session":1,no JSON})", true,
         false},
        {"no UTF-8",
         R"({"v":1,"t":"2026","type":"map","session":1,"name":")"
         "\xff\"}",
         true, false},
        {"two lines", line + '\n' + line, false, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(is_record_line(row.line) == row.record);
        CHECK(is_valid_record(row.line) == row.sound);
    }
    CHECK_FALSE(is_valid_record(line + '\n'));
}

TEST_CASE("may_match() rejects lines without a required key or text") {
    struct Row {
        std::string_view filter;
        std::string_view line;
        bool may;
    };

    const std::string_view snapshot =
        R"({"type":"snapshot","tick":5,"items":[{"type":"character","at":{"tile":[1,2]},"player":"ann"}]})";
    const Row rows[] = {
        {"items.player == ann", snapshot, true},
        {"items.player == bob", snapshot, false},
        {"items.player == bob", R"({"items":[{"player":"b\u006fb"}]})",
         true}, // another valid spelling of the same JSON
        {"items.player != bob", snapshot, true},
        {"items.player ~ BO", snapshot, true},
        {"items.fields.x > 3", snapshot, false},
        {"items.at.tile.x > 3", snapshot, true}, // .x is the first element of a list
        {"items.at.tile.x > 3", R"({"items":[{"at":{"x":1}}]})", false},
        {"items.fields.x == null", snapshot, true},
        {"items.fields.x != null", snapshot, false},
        {"not items.fields.x > 3", snapshot, true},
        {"any(items: fields.x > 3 and player == ann)", snapshot, false},
        {"count(items: fields.x > 3) == 0", snapshot, true},
        {"items.player == bob or tick == 5", snapshot, true},
        {"items.fields.x == 1 or items.fields.y == 2", snapshot, true},
        {"tick == 5", snapshot, true},
        {"tick == 5", R"({"type":"message"})", false},
        {"findings.snapshot.crc_mismatch == 0", R"({"type":"summary","findings":{}})", true},
        {"severity >= warning", R"({"severity":"error"})", true},
    };
    for (const Row& row : rows) {
        CAPTURE(row.filter);
        CAPTURE(row.line);
        const auto filter = LineFilter::parse(row.filter);
        REQUIRE(filter.has_value());
        CHECK(filter->may_match(row.line) == row.may);
    }
}

TEST_CASE("a condition on rows names keys of the item, of its record, and removed") {
    struct Row {
        const char* text;
        const char* error; ///< part of the error message; empty if the text is a condition
    };

    const Row rows[] = {
        {"type == character and player == ann", ""},
        {"items.player == ann or tick > 5", ""},
        {"character and not removed", ""},
        {"items.removed == true", ""},
        {"fields.message ~ gg", ""},
        {"plaier == ann",
         "column 1: no item or record has a key \"plaier\"; did you mean \"player\"?"},
        {"items.plaier == ann",
         "column 1: no item has a key \"items.plaier\"; did you mean \"items.player\"?"},
        {"health < 3", "did you mean \"fields.health\"?"},
        {"items.tick == 5", "column 1: no item has a key \"items.tick\"; did you mean \"tick\"?"},
        {"charakter", "column 1: unknown name \"charakter\"; did you mean \"character\"?"},
        {"type == snapshot", "type is never \"snapshot\""},
        {"any(items: character)",
         "column 1: a condition on one item cannot use \"any\" or \"count\""},
        {"count(items) > 1", "column 1: a condition on one item cannot use \"any\" or \"count\""},
        {"removed == yes", "removed is true or false"},
        {"player", "player must be compared with something"},
        {"", "expected a condition"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        const auto parsed = LineFilter::parse(row.text, {}, KeyScope::item_row);
        CHECK(parsed.has_value() == std::string_view{row.error}.empty());
        if (!parsed) {
            CHECK_MESSAGE(parsed.error().message.find(row.error) != std::string::npos,
                          parsed.error().message);
        }
    }
    CHECK(LineFilter::parse("not removed", {}, KeyScope::item_row)->uses_key(kRemovedRowKey));
    CHECK(!LineFilter::parse("character", {}, KeyScope::item_row)->uses_key(kRemovedRowKey));
    CHECK(!Filter::parse("removed"));
    CHECK(!Filter::parse("any(items: removed)"));
}

TEST_CASE("rows of an item match exactly when any(items: ...) does") {
    const SampleRecords sample;
    std::size_t matched = 0;
    for (const tw::record::Record& record : sample.all()) {
        const std::string line = record_line(record);
        for (const std::string& key : all_keys(KeyScope::item)) {
            for (const char* const condition : {" == null", " != null", " == 0", " >= 2", " ~ e"}) {
                const std::string text = key + condition;
                auto row = LineFilter::parse(text, {}, KeyScope::item_row);
                const auto filter = Filter::parse("any(items: " + text + ")");
                REQUIRE(row.has_value() == filter.has_value());
                if (!row) {
                    continue;
                }
                bool any = false;
                JsonLine json{line};
                json.for_each_item([&](JsonObject& item) {
                    any = row->matches_row(json, item) || any;
                    return false;
                });
                CAPTURE(text);
                CAPTURE(line);
                CHECK(any == matches_line(*filter, line));
                CHECK((!any || row->may_match(line)));
                matched += any ? 1U : 0U;
            }
        }
    }
    CHECK(matched > 100);
}

TEST_CASE("a record's time is read to the millisecond, and other texts are no time") {
    CHECK(parse_unix_ms("1970-01-01T00:00:01.002999Z") == 1002);
    CHECK(parse_unix_ms("2026-11-21T02:04:47.124Z") == 1795226687124);
    for (const char* text : {"", "now", "2026-11-21T02:04:47Z", "2026-11-21T02:04:47.12",
                             "2026-13-21T02:04:47.124Z", "2026-11-21T02:04:47.xyzZ"}) {
        CAPTURE(text);
        CHECK(parse_unix_ms(text) == 0);
    }
}
