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
        std::string table = csv.header();
        for (const std::string& line : lines) {
            csv.append(line, table);
        }
        CHECK(table == row.table);
    }
}

TEST_CASE("what a player wrote is no formula and no command where that is asked for") {
    struct Row {
        std::string_view message; ///< as JSON has it
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
            RecordsCsv csv{{"fields.m"}, options};
            std::string table;
            csv.append(line, table);
            REQUIRE(table.ends_with("\r\n"));
            return table.substr(0, table.size() - 2);
        };
        CHECK(cell({}) == row.plain);
        CHECK(cell({.for_terminal = true}) == row.for_terminal);
        CHECK(cell({.no_formulas = true}) == row.no_formulas);
    }
}
