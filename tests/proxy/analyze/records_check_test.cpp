#include "proxy/analyze/records_check.h"
#include "tests/proxy/store/recording_bytes.h"
#include "tests/support/program.h"
#include "tests/support/text.h"

#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using namespace tw::test;

namespace {

/// Converts "1 open 5" (session, kind, second) to a line.
std::string timed_record(int session, std::string_view what, int second,
                         std::string_view more = "") {
    const std::string_view type = what == "open" || what == "close" ? "session" : what;
    return fmt::format(
        R"({{"v":1,"t":"2026-11-21T16:15:{:02}.000000Z","type":"{}","session":{}{}{}}})"
        "\n",
        second, type, session,
        type == "session" && what != type ? fmt::format(R"(,"event":"{}")", what) : std::string{},
        more);
}

/// Returns the lines of a game whose summary counts two snapshots and three messages.
std::string game_with_counts(int snapshots, int messages, std::string_view begin = "open",
                             std::string_view end = "close") {
    std::string text = begin == "open" ? timed_record(1, "open", 1)
                                       : timed_record(1, "session", 4, R"(,"event":"established")");
    for (int i = 0; i < snapshots; ++i) {
        text += timed_record(1, "snapshot", 4, fmt::format(R"(,"tick":{})", i));
    }
    for (int i = 0; i < messages; ++i) {
        text += timed_record(1, "message", 4);
    }
    text += end == "close"
                ? timed_record(1, "session", 4, R"(,"event":"close","reason":"reconnected")")
                : timed_record(1, end, 4);
    text += timed_record(
        1, "summary", 4,
        R"(,"c2s":{"control":1,"connless":0,"messages":1},"s2c":{"messages":1},"snapshots":{"total":2})");
    return text + (end == "close"
                       ? ""
                       : timed_record(1, "close", 5) +
                             timed_record(1, "summary", 5,
                                          R"(,"snapshots":{"total":2},"c2s":{"messages":3})"));
}

void read_lines(analyze::RecordsCheck& check, const std::string& text) {
    std::istringstream lines{text};
    for (std::string each; std::getline(lines, each);) {
        check.on_line(each, filter::read_line_head(each));
    }
}

std::string check_recordings(const std::vector<std::pair<std::string, std::string>>& files) {
    const TemporaryFolder folder;
    analyze::RecordsCheck check;
    for (const auto& [name, text] : files) {
        folder.write(name, text);
        store::LineReader reader{folder.file(name)};
        check.begin_file(folder.file(name));
        for (std::string_view each; reader.next_line(each);) {
            check.on_line(each, filter::read_line_head(each));
        }
        check.end_file(reader);
    }
    const std::string text = check.report_text();
    CHECK(text.ends_with(check.is_complete() ? "\ncomplete\n" : "\nincomplete\n"));
    const auto begin = text.find('\n') + 1;
    return text.substr(begin, text.rfind('\n', text.size() - 2) + 1 - begin);
}

std::string with_carriage_returns(std::string text) {
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
        text.insert(at, 1, '\r');
    }
    return text;
}

} // namespace

TEST_CASE("complete recordings pass the check, and the faults of others are named") {
    const std::string game = timed_record(1, "open", 1) + timed_record(1, "map", 2) +
                             timed_record(1, "close", 3) + timed_record(1, "summary", 3) +
                             timed_record(0, "summary", 4);

    const std::string end = timed_record(1, "close", 5) + timed_record(1, "summary", 5);

    struct Row {
        const char* name;
        std::vector<std::pair<std::string, std::string>> files;
        std::string found;
    };

    const Row rows[] = {
        {"a whole game", {{"a", game}}, ""},
        {"compressed",
         {{"a.zst", frame_with_checksum(game) + test::frame_with_checksum(game)}},
         ""},
        {"nothing", {{"a", ""}}, ""},
        {"two runs in a file", {{"a", game + game}}, ""},
        {"broken lines",
         {{"a", game + "\nnoise\n{\"v\":1}\n" + timed_record(2, "map", 5).insert(1, "x")}},
         "4 lines that are not records (first: a)\n"},
        {"lines that are no JSON, but look like records",
         {{"a", timed_record(1, "map", 1, R"(,"name":{"a":1]})") +
                    timed_record(1, "map", 1, ",\"name\":\"\xC3\x28\"") +
                    timed_record(1, "map", 1, ",\"name\":\"\x01\"") +
                    timed_record(1, "map", 1, ",\t\"size\":1") +
                    timed_record(1, "map", 1, R"(,"size":01)") +
                    timed_record(1, "map", 1, R"(,"size":1,)")}},
         "6 lines that are not records (first: a)\n"},
        {"a page of zeros, as power loss leaves it",
         {{"a", game + game.substr(0, 100) + std::string(4096, '\0') + game.substr(100)}},
         "1 line that is not a record (first: a)\n"},
        {"lines that end as Windows ends them", {{"a", with_carriage_returns(game)}}, ""},
        {"half a line",
         {{"a", game + "{\"v\":1"}},
         "1 file that ends in the middle of a record, or is still being written (first: a)\n"},
        {"half a frame",
         {{"a.zst", frame_with_checksum(game) + test::frame_with_checksum(game).substr(0, 30)}},
         "1 file that ends in the middle of a record, or is still being written (first: a.zst)\n"},
        {"a damaged frame",
         {{"a.zst", frame_with_checksum(game) + "noise and more noise"}},
         "1 file that cannot be read completely (first: a.zst)\n"},
        {"time goes back",
         {{"a",
           timed_record(1, "open", 5) + timed_record(1, "map", 4) + timed_record(1, "close", 6)}},
         "1 record that is older than the one before it in its session "
         "(first: a, 2026-11-21T16:15:04.000000Z)\n"},
        {"time goes back in a session that began elsewhere",
         {{"a", timed_record(3, "snapshot", 5) + timed_record(3, "snapshot", 6) +
                    timed_record(3, "snapshot", 5)}},
         "1 record that is older than the one before it in its session "
         "(first: a, 2026-11-21T16:15:05.000000Z)\n"},
        {"sessions that began elsewhere",
         {{"a", timed_record(3, "map", 5) + timed_record(4, "snapshot", 4)}},
         ""},
        {"a segment is missing",
         {{"a-20261121T161530Z-0001.jsonl", game},
          {"a-20261121T161630Z-0004.jsonl", game},
          {"b-20261121T161630Z-0009.jsonl", game}},
         "2 segments missing in between (first: a-20261121T161630Z-0004.jsonl)\n"},
        {"more records than a session had",
         {{"a", game_with_counts(3, 4) + end}},
         "2 records that are there twice (first: a, 2026-11-21T16:15:04.000000Z)\n"},
        {"as many as it had, and again after it reconnected",
         {{"a", game_with_counts(2, 3) + game_with_counts(2, 3, "established") + end}},
         ""},
        {"fewer, as by a filter",
         {{"a", game_with_counts(1, 0) + end}},
         "not in these records: 1 session snapshot and 3 messages (filtered out, or not "
         "recorded)\n"},
        {"a rejected control packet, which has no record",
         {{"a", timed_record(1, "open", 1) + timed_record(1, "message", 2) +
                    timed_record(1, "close", 3) +
                    timed_record(1, "summary", 3,
                                 R"(,"snapshots":{"total":0},"c2s":{"control":1,"messages":1,)"
                                 R"("not_accepted":1})")}},
         ""},
        {"recorded as worlds",
         {{"a", timed_record(0, "world", 1) + game_with_counts(0, 1) + end}},
         "not in these records: 2 session snapshots (worlds stand for them) and 2 messages "
         "(filtered out, or not recorded)\n"},
        {"as many, when asked in between", {{"a", game_with_counts(2, 3, "open", "map")}}, ""},
        {"what stands again is not new",
         {{"a", game + timed_record(1, "open", 1, R"(,"again":true)")}},
         ""},
        {"records say so",
         {{"a", timed_record(0, "records_lost", 1, R"(,"lost":12)") +
                    timed_record(0, "records_lost", 2, R"(,"lost":3)") +
                    timed_record(0, "finding", 3, R"(,"id":"inspect.gap","lost":7)")}},
         "15 records that could not be written (records_lost) "
         "(first: a, 2026-11-21T16:15:01.000000Z)\n"
         "7 datagrams that were never inspected (inspect.gap) "
         "(first: a, 2026-11-21T16:15:03.000000Z)\n"},
        {"another observer",
         {{"a",
           timed_record(0, "finding", 3, R"(,"id":"inspect.gap","name":"new_observer","lost":7)")}},
         "7 datagrams that were never inspected (inspect.gap) "
         "(first: a, 2026-11-21T16:15:03.000000Z); up to a second of records before a new observer "
         "is missing, too\n"},
        {"two runs that were cut off",
         {{"a", timed_record(1, "open", 1) + timed_record(1, "open", 2)},
          {"b", timed_record(2, "open", 3)}},
         "3 sessions without an end: cut off, or still being recorded "
         "(first: a, 2026-11-21T16:15:01.000000Z)\n"},
        {"findings after a session's close, and another run",
         {{"a", game + timed_record(1, "finding", 5)}, {"b", game}},
         ""},
        {"a session that is closed, and begins again",
         {{"a", game + timed_record(1, "finding", 5) +
                    timed_record(1, "session", 5, R"(,"event":"established")")}},
         "1 session without an end: cut off, or still being recorded "
         "(first: a, 2026-11-21T16:15:05.000000Z)\n"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(check_recordings(row.files) == row.found);
    }
}

TEST_CASE("open sessions of a file that is being written are no fault, and are counted once") {
    analyze::RecordsCheck check;
    check.begin_file("a", true);
    read_lines(check, timed_record(1, "open", 1) + timed_record(2, "open", 1) +
                          timed_record(1, "close", 2) + timed_record(1, "summary", 2) +
                          timed_record(1, "finding", 3));
    CHECK(check.report_text() == "1 file, 5 records, 2 sessions, 2026-11-21T16:15:01.000000Z to "
                                 "2026-11-21T16:15:03.000000Z\n"
                                 "complete so far; still being recorded\n");
}

TEST_CASE("sessions that a crash cut off are reported, although a later run still records") {
    analyze::RecordsCheck check;
    check.begin_file("a", false);
    read_lines(check, timed_record(1, "open", 1) + timed_record(2, "open", 2));
    check.begin_file("b", true);
    read_lines(check, timed_record(2, "open", 2, R"(,"again":true)"));
    CHECK(contains(check.report_text(), "\n1 session without an end: cut off"));
    read_lines(check, timed_record(1, "open", 3));
    CHECK(contains(check.report_text(), "\n1 session without an end: cut off"));
}

TEST_CASE("a session that reconnects after its end counts once, and so does its summary") {
    analyze::RecordsCheck check;
    check.begin_file("a", false);
    read_lines(check, game_with_counts(2, 3, "open", "map") +
                          timed_record(1, "session", 6, R"(,"event":"established")") +
                          timed_record(1, "snapshot", 6) + timed_record(1, "close", 7) +
                          timed_record(1, "summary", 7, R"(,"snapshots":{"total":2})"));
    CHECK(contains(check.report_text(), " records, 1 session, "));
    CHECK(contains(check.report_text(), ": 1 session snapshot and 0 messages"));
}

using tw::analyze::RecordsCsvWriter;

TEST_CASE("a table has a row for each record, or item, that has one of the columns") {
    const std::string lines[] = {
        R"({"v":1,"t":"T1","type":"snapshot","session":1,"tick":5,"items":[)"
        R"({"type":"character","player":"a, \"b\"","at":{"x":7,"tile":[1,2]}},)"
        R"({"type":"flag","at":{"x":8}},{"type":"client_info","names":{"f":["g","h"]}}]})",
        R"({"v":1,"t":"T2","type":"message","session":1,"name":"sv_chat","fields":{"message":"hi"}})",
        R"({"v":1,"t":"T3","type":"summary","session":0,"snapshots":{"items":{"mean":2.5}}})",
        R"(broken)"};

    struct Row {
        std::vector<std::string> columns;
        std::string table;
    };

    const Row rows[] = {
        {{"t", "tick"}, "t,tick\r\nT1,5\r\n"},
        {{"t", "type"}, "t,type\r\nT1,snapshot\r\nT2,message\r\nT3,summary\r\n,\r\n"},
        {{"t", "fields.message", "name"}, "t,fields.message,name\r\nT2,hi,sv_chat\r\n"},
        {{"tick", "items.player", "items.at.x"},
         "tick,items.player,items.at.x\r\n5,\"a, \"\"b\"\"\",7\r\n5,,8\r\n"},
        {{"items.at.tile.y", "items.names.f"}, "items.at.tile.y,items.names.f\r\n2,\r\n,g h\r\n"},
        {{"snapshots.items.mean"}, "snapshots.items.mean\r\n2.5\r\n"},
    };
    for (const Row& row : rows) {
        RecordsCsvWriter csv{row.columns};
        std::string table = csv.header_row();
        for (const std::string& line : lines) {
            csv.append_rows(line, table);
        }
        CHECK(table == row.table);
        CHECK(tw::analyze::begins_with_table_header(table));
    }
    CHECK(tw::analyze::begins_with_table_header("t,items.fields.of_a_mod,items.removed\r\nT"));
    for (const char* const other :
         {"", "\r\n", "t,tick", "t,tick\n", "t,first name\r\n", "SELECT 1;\r\n", "t,,tick\r\n"}) {
        CHECK_FALSE(tw::analyze::begins_with_table_header(other));
    }
}

TEST_CASE("a condition selects rows of items and removed items") {
    const std::string lines[] = {
        R"({"v":1,"t":"T1","type":"snapshot","session":1,"tick":5,"items":[)"
        R"({"type":"character","type_id":9,"id":0,"player":"ann","fields":{"health":3}},)"
        R"({"type":"character","type_id":9,"id":1,"player":"bob"},)"
        R"({"type":"projectile","type_id":2,"id":0},{"type":"","type_id":77,"id":4}],"removed":[]})",
        R"({"v":1,"t":"T2","type":"snapshot","session":1,"tick":6,"items":[)"
        R"({"type":"character","type_id":9,"id":0,"player":"ann"}],"removed":[[2,0],[77,4],[3,8]]})",
        // In another session, the number has another type.
        R"({"v":1,"t":"T3","type":"snapshot","session":2,"tick":7,"items":[],"removed":[[2,1]]})",
        R"({"v":1,"t":"T4","type":"message","session":1,"name":"sv_chat"})",
        // Malformed on purpose: twscope never writes records like these.
        R"({"v":1,"t":"T5","type":"snapshot","session":1,"removed":[7,[],[2],{"a":1},[[1],"x"]]})",
        R"({"v":1,"t":"T6","type":"snapshot","session":1,"removed":{},"items":5})", R"(broken)"};

    struct Row {
        std::string_view where; ///< empty if there is no condition
        std::vector<std::string> columns;
        std::string rows;
    };

    const Row rows[] = {
        {"character", {"tick", "items.player"}, "5,ann\r\n5,bob\r\n6,ann\r\n"},
        {"type == character and player == ann", {"tick", "items.id"}, "5,0\r\n6,0\r\n"},
        {"items.type == character and items.player == ann", {"tick"}, "5\r\n6\r\n"},
        {"player == ann and tick > 5", {"t"}, "T2\r\n"},
        {"player == ann and session == 2", {"t"}, ""},
        {"not character", {"items.type"}, "projectile\r\n\r\n"},
        {"type == null or type == \"\"", {"items.type_id"}, "77\r\n"},
        {"fields.health >= 3", {"items.fields.health", "items.player"}, "3,ann\r\n"},
        // A row that is selected is written even if its columns are empty.
        {"character and id == 1", {"items.fields.health"}, "\r\n"},
        {"removed",
         {"tick", "items.type", "items.type_id", "items.id", "items.removed"},
         "6,projectile,2,0,true\r\n6,,77,4,true\r\n6,,3,8,true\r\n7,,2,1,true\r\n"},
        {"removed and type == projectile", {"tick", "items.id"}, "6,0\r\n"},
        {"not removed and tick == 6", {"items.player"}, "ann\r\n"},
        {"removed == false and tick == 6", {"items.player"}, "ann\r\n"},
        {"id == 0",
         {"tick", "items.type", "items.removed"},
         "5,character,false\r\n5,projectile,false\r\n6,projectile,true\r\n"
         "6,character,false\r\n"},
        {"", {"tick", "items.type_id"}, "5,9\r\n5,9\r\n5,2\r\n5,77\r\n6,9\r\n"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.where);
        RecordsCsvWriter::Options options;
        if (!row.where.empty()) {
            auto where =
                tw::filter::LineFilter::parse(row.where, {}, tw::filter::KeyScope::item_row);
            REQUIRE(where);
            options.where = *std::move(where);
        }
        RecordsCsvWriter csv{row.columns, std::move(options)};
        std::string table;
        for (const std::string& line : lines) {
            csv.append_rows(line, table);
        }
        CHECK(table == row.rows);
    }
}

TEST_CASE("the cells of a column have the same type in all records") {
    struct Row {
        std::string_view column;
        std::string_view value; ///< JSON
        std::string cell;
    };

    const Row rows[] = {
        {"items.data", "[1,2]", "\"[1,2]\""},
        {"items.data", "[1]", "[1]"},
        {"items.seen_by", "[3]", "[3]"},
        {"items.names.flags", R"(["a"])", "a"},
        {"items.names.flags", R"(["a","b"])", "a b"},
        {"fields.team", "true", "1"},
        {"fields.team", "-1", "-1"},
        {"fields.sizes", "[7]", "[7]"},
        {"items.fields.local", "true", "true"},
        {"ok", "false", "false"},
        {"snapshots.items.mean", "2.0", "2.0"},
        {"snapshots.items.mean", "-0.0", "-0.0"},
        {"snapshots.items.mean", "2.25", "2.25"},
        {"snapshots.items.mean", "1e300", "1e+300"},
        {"snapshots.items.count", "2", "2"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.column);
        CAPTURE(row.value);
        std::string json{row.value};
        std::string_view path = row.column;
        while (!path.empty()) {
            const std::size_t dot = path.rfind('.');
            const std::size_t begin = dot == std::string_view::npos ? 0 : dot + 1;
            json = "{\"" + std::string{path.substr(begin)} + "\":" + json + '}';
            path = path.substr(0, begin == 0 ? 0 : dot);
            json = path == "items" ? '[' + json + ']' : json;
        }
        RecordsCsvWriter csv{{std::string{row.column}}};
        std::string table;
        csv.append_rows(json, table);
        CHECK(table == row.cell + "\r\n");
    }
}

TEST_CASE("every key of items has one kind of value in all types") {
    for (const std::string& key : tw::filter::all_keys(tw::filter::KeyScope::item)) {
        CAPTURE(key);
        CHECK(tw::filter::find_key(tw::filter::KeyScope::item, key)->kind !=
              tw::filter::KeyKind::any);
    }
}

TEST_CASE(
    "text from players is made safe for spreadsheets and terminals if the options request it") {
    struct Row {
        std::string_view message; ///< JSON
        std::string_view plain;
        std::string_view for_terminal;
        std::string_view no_formulas;
    };

    const Row rows[] = {
        {R"("hi")", "hi", "hi", "hi"},
        {R"("=1+1")", "=1+1", "=1+1", "'=1+1"},
        {R"("+1")", "+1", "+1", "'+1"},
        {R"("-1")", "-1", "-1", "'-1"},
        {R"("@x")", "@x", "@x", "'@x"},
        {R"("\t=1")", "\t=1", "\\u0009=1", "'\t=1"},
        {R"("\r\n")", "\"\r\n\"", "\\u000d\\u000a", "\"'\r\n\""},
        {R"("\u001b[2J\b")", "\x1b[2J\x08", "\\u001b[2J\\u0008", "\x1b[2J\x08"},
        {R"("\u009b\u061c")", "\xc2\x9b\xd8\x9c", "\\u009b\\u061c", "\xc2\x9b\xd8\x9c"},
        {"-1", "-1", "-1", "-1"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.message);
        const std::string line = R"({"v":1,"t":"T","type":"message","session":1,"fields":{"m":)" +
                                 std::string{row.message} + "}}";
        const auto cell = [&](RecordsCsvWriter::Options options) {
            RecordsCsvWriter csv{{"fields.m"}, std::move(options)};
            std::string table;
            csv.append_rows(line, table);
            REQUIRE(table.ends_with("\r\n"));
            return table.substr(0, table.size() - 2);
        };
        CHECK(cell({}) == row.plain);
        CHECK(cell({.is_for_terminal = true, .where = {}}) == row.for_terminal);
        CHECK(cell({.escapes_formulas = true, .where = {}}) == row.no_formulas);
    }
}
