// Covers: proxy/analyze/records_check.cpp
#include "proxy/analyze/records_check.h"

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using tw::analyze::RecordsCsv;

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
        RecordsCsv csv{row.columns};
        std::string table = csv.header_row();
        for (const std::string& line : lines) {
            csv.append_rows(line, table);
        }
        CHECK(table == row.table);
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
        RecordsCsv::Options options;
        if (!row.where.empty()) {
            auto where = tw::filter::RowFilter::parse(row.where);
            REQUIRE(where);
            options.where = *std::move(where);
        }
        RecordsCsv csv{row.columns, std::move(options)};
        std::string table;
        for (const std::string& line : lines) {
            csv.append_rows(line, table);
        }
        CHECK(table == row.rows);
    }
}

TEST_CASE("the cells of a column have one type, whatever the record") {
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
        RecordsCsv csv{{std::string{row.column}}};
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

TEST_CASE("a player's text becomes neither a formula nor a command if that is requested") {
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
        const auto cell = [&](RecordsCsv::Options options) {
            RecordsCsv csv{{"fields.m"}, std::move(options)};
            std::string table;
            csv.append_rows(line, table);
            REQUIRE(table.ends_with("\r\n"));
            return table.substr(0, table.size() - 2);
        };
        CHECK(cell({}) == row.plain);
        CHECK(cell({.for_terminal = true, .where = {}}) == row.for_terminal);
        CHECK(cell({.no_formulas = true, .where = {}}) == row.no_formulas);
    }
}
