// Covers: proxy/filter/schema_keys.cpp, proxy/filter/keys.cpp
#include "proxy/filter/filter.h"
#include "proxy/filter/line_record.h"
#include "proxy/sink/json_lines.h"
#include "tests/proxy/sink/sample_records.h"
#include "tests/support/allocation_count.h"
#include "tests/support/test_data.h"

#include <fstream>
#include <regex>
#include <sstream>

#include <boost/json.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

using tw::filter::Filter;
using tw::filter::KeyScope;
using tw::record::Record;
using tw::test::SampleRecords;

namespace json = boost::json;

namespace {

Filter parse_filter(std::string_view text) {
    auto filter = Filter::parse(text);
    INFO("filter: ", text);
    REQUIRE_MESSAGE(filter.has_value(), (filter ? std::string{} : filter.error().message));
    return *filter;
}

json::object record_json(const Record& record) {
    return json::parse(tw::sink::json_line(record, {.items = tw::sink::ItemChoice::all}))
        .as_object();
}

/// Appends a condition "key == literal" for every scalar in a JSON value.
void append_conditions(const std::string& path, const json::value& value,
                       std::vector<std::string>& out) {
    if (const auto* object = value.if_object()) {
        for (const auto& member : *object) {
            std::string key = path.empty() ? path : path + '.';
            key += std::string{member.key()};
            append_conditions(key, member.value(), out);
        }
    } else if (const auto* array = value.if_array()) {
        const bool tile = path.ends_with("at.tile");
        for (std::size_t i = 0; i < array->size(); ++i) {
            append_conditions(tile ? path + (i == 0 ? ".x" : ".y") : path, (*array)[i], out);
        }
    } else if (const auto* text = value.if_string()) {
        std::string quoted;
        for (const char c : *text) {
            quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
        }
        out.push_back(fmt::format("{} == \"{}\"", path, quoted));
    } else {
        out.push_back(path + " == " + json::serialize(value));
    }
}

} // namespace

TEST_CASE("a record matches a condition for each key and value of its JSON") {
    const SampleRecords samples;
    std::size_t count = 0;
    for (const Record& record : samples.all()) {
        json::object line = record_json(record);
        line.erase("full");       // describes the list in the file, not the snapshot
        line.erase("renumbered"); // cannot be used in conditions
        std::vector<std::string> all;
        append_conditions({}, line, all);
        for (std::string& condition : all) {
            CAPTURE(condition);
            const auto filter = Filter::parse(condition);
            REQUIRE_MESSAGE(filter.has_value(), (filter ? std::string{} : filter.error().message));
            CHECK(filter->matches(record));
            ++count;
        }
    }
    CHECK(count > 300);
}

TEST_CASE("every key of filters is read from some record") {
    const SampleRecords samples;
    tw::record::FindingRecord ambiguous = samples.finding;
    ambiguous.candidates = tw::record::CauseCandidateSummary{.count = 2, .likeliest = {}};
    for (const std::string& key : tw::filter::all_keys(KeyScope::record)) {
        if (key.starts_with("fields.") || key.starts_with("names.")) {
            continue; // one key per message field; those of the samples are tested above
        }
        CAPTURE(key);
        const Filter filter = parse_filter(key + " != null");
        auto records = samples.all();
        records.emplace_back(&ambiguous);
        CHECK(std::ranges::any_of(records,
                                  [&](const Record& record) { return filter.matches(record); }));
    }
    for (const std::string& key : tw::filter::all_keys(KeyScope::item)) {
        if (key.starts_with("fields.") || key.starts_with("names.") || key == "uuid") {
            continue;
        }
        CAPTURE(key);
        CHECK(parse_filter("items." + key + " != null").matches(&samples.world));
    }
}

namespace {

struct FilterExample {
    std::string_view filter;
    Record record;
    bool matches;
};

void check_selections(std::span<const FilterExample> rows) {
    for (const FilterExample& row : rows) {
        CAPTURE(row.filter);
        CHECK(parse_filter(row.filter).matches(row.record) == row.matches);
    }
}

} // namespace

TEST_CASE("conditions match the right records") {
    const SampleRecords s;
    const FilterExample rows[] = {
        {"snapshot", &s.snapshot, true},
        {"snapshot", &s.finding, false},
        {"session", &s.session, true},
        {"session == 3", &s.finding, true},
        {"type == snapshot and tick > 500", &s.snapshot, false},
        {"type == snapshot and tick >= 500", &s.snapshot, true},
        {"name == \"sv_chat\"", &s.message, true},
        {"name == 'sv_chat'", &s.message, true},
        {"ok", &s.snapshot, true},
        {"not ok", &s.snapshot, false},
        {"not ok", &s.message, true},
        {"ok == true and ok != false", &s.snapshot, true},
        {"tick == null", &s.message, true},
        {"tick != null", &s.message, false},
        {"tick != 7", &s.message, false},
        {"not tick == 7", &s.message, true},
        {"fields.message ~ \"hello w\"", &s.message, true},
        {"fields.message ~ HELLO", &s.message, true},
        {"fields.message ~ bye", &s.message, false},
        {R"(fields.message != "it\'s")", &s.message, true},
        {R"(fields.message != 'q\"uo\'te\\')", &s.message, true},
        {"names.team == all", &s.message, true},
        {"fields.data.target_x < 0", &s.input, true},
        {"fields.data.more == 12", &s.input, true},
        {"fields.data.more == 13", &s.input, false},
        {"fields.target_x == -4", &s.input, false},
        {"names.player_flags == chatting", &s.input, true},
        {"fields.sha256 == 01ab", &s.input, true},
        {"fields.password == hunter2", &s.input, false},
        {"fields.password ~ hunter", &s.input, false},
        {"fields.password == \"[redacted]\"", &s.input, true},
        {"fields.clients.name == bob", &s.connless, true},
        {"fields.clients.score >= 9", &s.connless, false},
        {"fields.name == bob", &s.connless, false},
        {"fields.name == \"a server\"", &s.connless, true},
        {"protocol == 0.6 and client ~ 127.0.0.1:", &s.session, true},
        {"crc == 00ff12ab", &s.map, true},
        {"map", &s.map, true},
        {"map", &s.world, false}, // "map" alone is the record type
        {"map == dm1", &s.world, true},
        {"map == ctf5", &s.world, false},
        {"map == null", &s.map, true},
        {"t >= 2026-01-01 and t < 2026-01-01T00:00:01Z", &s.map, true},
        {"severity >= warning", &s.finding, true},
        {"severity < error", &s.finding, false},
        {"id == snapshot.crc_mismatch", &s.finding, true},
        {"id == 99", &s.unknown, true},
        {"at.game == finish", &s.finding, true},
        {"item.type == character and ddnet_code == -205", &s.finding, true},
        {"snapshots.verified < 10 and c2s.bytes == 1e3", &s.summary, true},
        {"snapshots.items.mean == 3.5", &s.summary, true},
        {"findings.snapshot.crc_mismatch > 0", &s.summary, true},
        {"findings.inspect.gap == 0", &s.summary, true},
        {"message or finding", &s.finding, true},
        {"message or finding and tick == 1", &s.message, true},
        {"(message or finding) and tick == 1", &s.message, false},
    };
    check_selections(rows);
}

TEST_CASE("conditions on items match the right records") {
    const SampleRecords s;
    const FilterExample rows[] = {
        {"items.at.game == finish", &s.snapshot, true},
        {"any(items: character and at.game == finish)", &s.snapshot, true},
        {"any(items: character and at.game == finish and player ~ nameless)", &s.snapshot, true},
        {"any(items: character and at.game == finish and player == bob)", &s.snapshot, false},
        {"items.at.game == finish and items.player == bob", &s.snapshot, true},
        {"any(items: at.tele.number == 7 and at.front.type == freeze)", &s.snapshot, true},
        {"count(items: character) >= 2", &s.snapshot, true},
        {"count(items: character) >= 3", &s.snapshot, false},
        {"count(items: (player_info or client_info) and not id == 1) == 2", &s.snapshot, true},
        {"count(items) == 6", &s.snapshot, true},
        {"count(items) >= 0", &s.message, false},
        {"items.names.weapon == laser", &s.snapshot, true},
        {"items.fields.local", &s.snapshot, true},
        {"items.data == 123", &s.snapshot, true},
        {"size_bytes == 308", &s.snapshot, false},
    };
    check_selections(rows);
}

TEST_CASE("secrets are compared only with show_secrets") {
    const SampleRecords samples;
    const auto open = Filter::parse("fields.password == hunter2", {.show_secrets = true});
    REQUIRE(open.has_value());
    CHECK(open->matches(&samples.input));
    auto finding = samples.finding;
    finding.secrecy = tw::wire::Secrecy::secret;
    for (const bool show : {false, true}) {
        CAPTURE(show);
        const auto guess = Filter::parse("hex == dead", {.show_secrets = show});
        const auto redacted = Filter::parse("hex == \"[redacted]\"", {.show_secrets = show});
        REQUIRE(guess.has_value());
        REQUIRE(redacted.has_value());
        CHECK(guess->matches(&finding) == show);
        CHECK(redacted->matches(&finding) == !show);
        CHECK(guess->matches(&samples.finding));
    }
}

TEST_CASE("only the shown part of a chat command can be compared") {
    constexpr std::string_view kLine = "/pin 4711";
    const tw::wire::FieldValue line{.kind = tw::wire::FieldValue::Kind::string,
                                    .secrecy = tw::wire::Secrecy::secret,
                                    .name = "message",
                                    .integer = 5, // the number of bytes that may be shown
                                    .bytes = std::as_bytes(std::span{kLine})};
    const tw::record::MessageRecord message{.name = "cl_say", .values = {&line, 1}};
    for (const bool show : {false, true}) {
        CAPTURE(show);
        const auto matches = [&](std::string_view text) {
            const auto parsed = Filter::parse(text, {.show_secrets = show});
            REQUIRE(parsed.has_value());
            return parsed->matches(&message);
        };
        CHECK(matches("fields.message ~ /pin"));
        CHECK(matches("fields.message ~ 4711") == show);
        CHECK(matches("fields.message == \"/pin [redacted]\"") == !show);
        CHECK(matches("fields.message == \"/pin 4711\"") == show);
    }
}

TEST_CASE("a snapshot that could not be rebuilt has no items and no size") {
    SampleRecords samples;
    samples.snapshot.rebuilt = false;
    for (const std::string_view text : {"items.type == character", "count(items) >= 0",
                                        "size_bytes >= 0", "any(items: id >= 0)"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_filter(text).matches(&samples.snapshot));
    }
}

TEST_CASE("errors in filters have a position and a suggestion") {
    struct Row {
        std::string_view filter;
        std::string_view message;
        std::size_t offset;
    };

    const Row rows[] = {
        {"", "column 1: expected a condition, not the end", 0},
        {"tikc == 5", "column 1: no record has a key \"tikc\"; did you mean \"tick\"?", 0},
        {"ok and items.at.gmae == finish",
         "column 8: no item has a key \"items.at.gmae\"; did you mean \"items.at.game\"?", 7},
        {"nmae == x", "column 1: no record has a key \"nmae\"; did you mean \"name\"?", 0},
        {"dri == c2s", "column 1: no record has a key \"dri\"; did you mean \"dir\"?", 0},
        {"player == ann",
         "column 1: no record has a key \"player\"; did you mean \"items.player\"?", 0},
        {"playr == ann", "column 1: no record has a key \"playr\"; did you mean \"items.player\"?",
         0},
        {"health < 3",
         "column 1: no record has a key \"health\"; did you mean \"items.fields.health\"?", 0},
        {"message ~ gg",
         "column 1: no record has a key \"message\"; did you mean \"fields.message\"?", 0},
        {"items.tick > 5", "column 1: no item has a key \"items.tick\"; did you mean \"tick\"?", 0},
        {"any(items: items.player == ann)",
         "column 12: no item has a key \"items.player\"; did you mean \"player\"?", 11},
        {"any(items: health < 3)",
         "column 12: no item has a key \"health\"; did you mean \"fields.health\"?", 11},
        {"character",
         "column 1: unknown name \"character\"; did you mean \"any(items: character)\"?", 0},
        {"items. == 5", "column 1: no item has a key \"items.\"", 0},
        {". == 5", "column 1: no record has a key \".\"", 0},
        {"type == snapshto", "column 9: type is never \"snapshto\"; did you mean \"snapshot\"?", 8},
        {"type == character and tick > 5",
         "column 9: type is never \"character\"; did you mean \"any(items: character)\"?", 8},
        {"items.player == [D] bert and ok",
         "column 21: expected \"and\", \"or\" or the end, not \"bert\"; text with spaces needs "
         "quotes, as in \"[D] bert\"",
         20},
        {"tick == 5 ok", "column 11: expected \"and\", \"or\" or the end, not \"ok\"", 10},
        {"snapshto", "column 1: unknown name \"snapshto\"; did you mean \"snapshot\"?", 0},
        {"id == snapshot.crc_missmatch",
         "column 7: id is never \"snapshot.crc_missmatch\"; did you mean "
         "\"snapshot.crc_mismatch\"?",
         6},
        {"items.at.game == finnish",
         "column 18: items.at.game is never \"finnish\"; did you mean \"finish\"?", 17},
        {"any(items: charakter)",
         "column 12: unknown name \"charakter\"; did you mean \"character\"?", 11},
        {"tick", "column 1: tick must be compared with something", 0},
        {"tick = 5", "column 6: equality is written ==, not =", 5},
        {"tick == ", "column 9: a value is missing", 8},
        {"tick == five", "column 9: tick is a number, but \"five\" is not", 8},
        {"tick == true", "column 9: tick is a number, but \"true\" is not", 8},
        {"tick == nan", "column 9: tick is a number, but \"nan\" is not", 8},
        {"tick ~ 5", "column 8: ~ searches text, but tick is a number", 7},
        {"tick < null", "column 8: null can only be compared with == and !=", 7},
        {"ok == maybe", "column 7: ok is true or false", 6},
        {"severity >= bad", "column 13: severity is never \"bad\"", 12},
        {"severity >= warn", "column 13: severity is never \"warn\"; did you mean \"warning\"?",
         12},
        {"name == \"x", "column 9: the string that starts here is not closed", 8},
        {"name == \"a\\n\"", "column 9: only a quote or a backslash can follow a backslash", 8},
        {"ok && ok", "column 4: conditions are joined by the words \"and\" and \"or\"", 3},
        {"!ok", "column 1: negation is written \"not\"", 0},
        {"ok and", "column 7: expected a condition, not the end", 6},
        {"(ok", "column 4: expected \")\", not the end", 3},
        {"ok)", "column 3: expected \"and\", \"or\" or the end, not \")\"", 2},
        {"count(items: ok)", "column 14: no item has a key \"ok\"", 13},
        {"count(items)", "column 13: a count must be compared, for example with >= 2", 12},
        {"any(sessions: ok)", "column 5: expected \"items\": only items are lists", 4},
        {"any(items: any(items: id == 1))",
         "column 12: a condition on one item cannot use \"any\" or \"count\"", 11},
        {"\x01", "column 1: expected a condition, not \"?\"", 0},
    };
    for (const Row& row : rows) {
        CAPTURE(row.filter);
        const auto filter = Filter::parse(row.filter);
        REQUIRE_FALSE(filter.has_value());
        CHECK(filter.error().message == row.message);
        CHECK(filter.error().offset == row.offset);
    }
}

TEST_CASE("nesting and length are bounded") {
    const auto nested = [](std::string_view open, std::string_view close, std::size_t depth) {
        std::string text;
        for (std::size_t i = 0; i < depth; ++i) {
            text += open;
        }
        text += "ok";
        for (std::size_t i = 0; i < depth; ++i) {
            text += close;
        }
        return Filter::parse(text).has_value();
    };
    CHECK(nested("(", ")", Filter::kMaxDepth));
    CHECK_FALSE(nested("(", ")", Filter::kMaxDepth + 1));
    CHECK(nested("not ", "", Filter::kMaxDepth));
    CHECK_FALSE(nested("not ", "", Filter::kMaxDepth + 1));
    CHECK_FALSE(nested("not (", ")", 500));

    std::string wide = "ok";
    while (wide.size() + 7 <= Filter::kMaxLength) {
        wide += " and ok";
    }
    const SampleRecords samples;
    CHECK(parse_filter(wide).matches(&samples.snapshot));
    CHECK_FALSE(Filter::parse(wide + " and ok").has_value());
    CHECK_FALSE(Filter::parse(std::string(Filter::kMaxLength, 'a')).has_value());
    CHECK_FALSE(Filter::parse(std::string(Filter::kMaxLength, '(')).has_value());
}

TEST_CASE("a truncated filter is a filter or an error with an offset inside it") {
    constexpr std::string_view kWhole =
        "type == \"snapshot\" and (count(items: type == character and at.tele.number != null) >= 2 "
        "or not fields.message ~ 'a \\' b' and t > 2026-01-01T00:00:00Z)";
    const SampleRecords samples;
    REQUIRE(Filter::parse(kWhole).has_value());
    for (std::size_t length = 0; length < kWhole.size(); ++length) {
        CAPTURE(length);
        const auto filter = Filter::parse(kWhole.substr(0, length));
        if (filter) {
            for (const Record& record : samples.all()) {
                CHECK(filter->matches(record) == filter->matches(record));
            }
        } else {
            CHECK(filter.error().offset <= length);
            CHECK(filter.error().message.find('\n') == std::string::npos);
        }
    }
}

TEST_CASE("every example in FILTERS.md is a filter or an expectation") {
    std::ifstream file{tw::test::test_data("../../proxy/filter/FILTERS.md")};
    std::stringstream text;
    text << file.rdbuf();
    const std::regex example{R"(\n\| `([^`]*)` \|)"};
    const std::string notes = text.str();
    const std::size_t rows_begin = notes.find("\n## Rows of a table of items\n");
    const std::size_t rows_end = notes.find("\n## ", rows_begin + 1);
    REQUIRE(rows_end != std::string::npos);
    std::size_t count = 0;
    std::size_t count_of_rows = 0;
    for (std::sregex_iterator at{notes.begin(), notes.end(), example}, end; at != end; ++at) {
        std::string condition = (*at)[1].str();
        CAPTURE(condition);
        if (const auto place = static_cast<std::size_t>(at->position());
            place >= rows_begin && place < rows_end) {
            CHECK(tw::filter::LineFilter::parse(condition, {}, tw::filter::KeyScope::item_row));
            ++count_of_rows;
            continue;
        }
        condition = std::regex_replace(condition, std::regex{"^(never|always) "}, "");
        const auto filter = Filter::parse(condition);
        CHECK_MESSAGE(filter.has_value(), (filter ? std::string{} : filter.error().message));
        ++count;
    }
    CHECK(count >= 20);
    CHECK(count_of_rows >= 3);
}

TEST_CASE("matching a record allocates nothing") {
    const SampleRecords samples;
    const auto records = samples.all();
    const std::array filters{
        parse_filter("t > 2026 and session == 3 and dir == s2c"),
        parse_filter(
            "fields.message ~ x or fields.data.more == 5 or fields.sha256 == 0 or raw == 1"),
        parse_filter("any(items: at.game == start or player == x or names.player_flags ~ yyy or "
                     "fields.name == z or uuid == 0)"),
        parse_filter("count(items: character and fields.x > 5) >= 4"),
        parse_filter(
            "findings.inspect.gap == 0 and snapshots.items.mean > 4 or hex == 5 or crc == 5")};
    std::size_t matches = 0;
    const std::size_t before = tw::test::allocation_count();
    for (const Filter& filter : filters) {
        for (const Record& record : records) {
            matches += filter.matches(record) ? 1U : 0U;
        }
    }
    CHECK(tw::test::allocation_count() == before);
    CHECK(matches == 10);
}

TEST_CASE("a filtered sink passes on only the records that match") {
    class Counter final : public tw::record::RecordSink {
      public:
        void on_record(const Record& record) override { seen.push_back(record.index()); }

        std::vector<std::size_t> seen;
    };

    Counter counter;
    tw::filter::FilteredSink sink{parse_filter("finding or map"), counter};
    const SampleRecords samples;
    for (const Record& record : samples.all()) {
        sink.on_record(record);
    }
    CHECK(counter.seen == std::vector<std::size_t>{2, 4});
}

namespace {

struct Row {
    std::string_view text;
    bool about_messages;
};

constexpr Row kRows[] = {
    {"message", true},
    {"type == message", true},
    {"type ~ mess", true},
    {"message and session == 3", true},
    {"message and (dir == c2s or size > 100)", true},
    {"name == sv_chat and fields.message ~ gg", true},
    {"fields.client_id == -1", true},
    {"message or fields.client_id == -1", true},
    {"vital", true},
    {"message and not finding", true},
    {"name == sv_chat", false}, // findings have the key `name`, too
    {"not message", false},
    {"not fields.client_id == -1", false},
    {"fields.client_id == null", false},
    {"message or finding", false},
    {"type == finding", false},
    {"session == 3", false},
    {"tick > 500", false},
    {"at.game == finish", false},
    {"any(items: character)", false},
    {"count(items: character) >= 2", false},
    {"count(items: character) == 0 or message", false},
    {"message and snapshot", true}, // no record can match
    {"not type != message", false}, // negated conditions are not examined
};

} // namespace

TEST_CASE("matches_only_messages() recognises filters that only messages can match") {
    for (const Row& row : kRows) {
        CAPTURE(row.text);
        const auto filter = Filter::parse(row.text);
        REQUIRE(filter.has_value());
        CHECK(tw::filter::matches_only_messages(filter->parsed_filter()) == row.about_messages);
    }
}
