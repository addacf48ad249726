#include "proxy/analyze/records_check.h"
#include "proxy/sink/zstd_frames.h"
#include "tests/support/program.h"

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using namespace tw::test;

namespace {

/// Converts "1 open 5" (session, kind, second) to a line.
std::string line(int session, std::string_view what, int second, std::string_view more = "") {
    const std::string_view type = what == "open" || what == "close" ? "session" : what;
    return fmt::format(
        R"({{"v":1,"t":"2026-11-21T16:15:{:02}.000000Z","type":"{}","session":{}{}{}}})"
        "\n",
        second, type, session,
        type == "session" && what != type ? fmt::format(R"(,"event":"{}")", what) : std::string{},
        more);
}

/// Returns the lines of a game whose summary counts two snapshots and three messages.
std::string counted_game(int snapshots, int messages, std::string_view begin = "open",
                         std::string_view end = "close") {
    std::string text =
        begin == "open" ? line(1, "open", 1) : line(1, "session", 4, R"(,"event":"established")");
    for (int i = 0; i < snapshots; ++i) {
        text += line(1, "snapshot", 4, fmt::format(R"(,"tick":{})", i));
    }
    for (int i = 0; i < messages; ++i) {
        text += line(1, "message", 4);
    }
    text += end == "close" ? line(1, "session", 4, R"(,"event":"close","reason":"reconnected")")
                           : line(1, end, 4);
    text += line(
        1, "summary", 4,
        R"(,"c2s":{"control":1,"connless":0,"messages":1},"s2c":{"messages":1},"snapshots":{"total":2})");
    return text + (end == "close" ? ""
                                  : line(1, "close", 5) +
                                        line(1, "summary", 5,
                                             R"(,"snapshots":{"total":2},"c2s":{"messages":3})"));
}

std::string check(const std::vector<std::pair<std::string, std::string>>& files) {
    const TemporaryFolder folder;
    analyze::RecordsCheck check;
    for (const auto& [name, text] : files) {
        write_text(folder.file(name), text);
        sink::LineReader reader{folder.file(name)};
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

std::string packed(std::string_view text) {
    sink::ZstdFrameWriter writer;
    std::string out;
    writer.append_frame(text, out);
    return out;
}

} // namespace

TEST_CASE("complete recordings pass the check, and the faults of others are named") {
    const std::string game = line(1, "open", 1) + line(1, "map", 2) + line(1, "close", 3) +
                             line(1, "summary", 3) + line(0, "summary", 4);

    const std::string end = line(1, "close", 5) + line(1, "summary", 5);

    struct Row {
        const char* name;
        std::vector<std::pair<std::string, std::string>> files;
        std::string found;
    };

    const Row rows[] = {
        {"a whole game", {{"a", game}}, ""},
        {"compressed", {{"a.zst", packed(game) + packed(game)}}, ""},
        {"nothing", {{"a", ""}}, ""},
        {"two runs in a file", {{"a", game + game}}, ""},
        {"broken lines",
         {{"a", game + "\nnoise\n{\"v\":1}\n" + line(2, "map", 5).insert(1, "x")}},
         "4 lines that are not records\n"},
        {"lines that are no JSON, but look like records",
         {{"a", line(1, "map", 1, R"(,"name":{"a":1]})") +
                    line(1, "map", 1, ",\"name\":\"\xC3\x28\"") +
                    line(1, "map", 1, ",\"name\":\"\x01\"") + line(1, "map", 1, ",\t\"size\":1") +
                    line(1, "map", 1, R"(,"size":01)") + line(1, "map", 1, R"(,"size":1,)")}},
         "6 lines that are not records\n"},
        {"a page of zeros, as power loss leaves it",
         {{"a", game + game.substr(0, 100) + std::string(4096, '\0') + game.substr(100)}},
         "1 line that is not a record\n"},
        {"lines that end as Windows ends them", {{"a", with_carriage_returns(game)}}, ""},
        {"half a line",
         {{"a", game + "{\"v\":1"}},
         "1 file that ends in the middle of a record, or is still being written\n"},
        {"half a frame",
         {{"a.zst", packed(game) + packed(game).substr(0, 30)}},
         "1 file that ends in the middle of a record, or is still being written\n"},
        {"a damaged frame",
         {{"a.zst", packed(game) + "noise and more noise"}},
         "1 file that cannot be read completely\n"},
        {"time goes back",
         {{"a", line(1, "open", 5) + line(1, "map", 4) + line(1, "close", 6)}},
         "1 record that is older than the one before it in its session\n"},
        {"time goes back in a session that began elsewhere",
         {{"a", line(3, "snapshot", 5) + line(3, "snapshot", 6) + line(3, "snapshot", 5)}},
         "1 record that is older than the one before it in its session\n"},
        {"sessions that began elsewhere", {{"a", line(3, "map", 5) + line(4, "snapshot", 4)}}, ""},
        {"a segment is missing",
         {{"a-20261121T161530Z-0001.jsonl", game},
          {"a-20261121T161630Z-0004.jsonl", game},
          {"b-20261121T161630Z-0009.jsonl", game}},
         "2 segments missing in between\n"},
        {"more records than a session had",
         {{"a", counted_game(3, 4) + end}},
         "2 records that are there twice\n"},
        {"as many as it had, and again after it reconnected",
         {{"a", counted_game(2, 3) + counted_game(2, 3, "established") + end}},
         ""},
        {"fewer, as by a filter",
         {{"a", counted_game(1, 0) + end}},
         "1 snapshot and 3 messages that summaries count are missing: not recorded, or filtered "
         "out\n"},
        {"as many, when asked in between", {{"a", counted_game(2, 3, "open", "map")}}, ""},
        {"what stands again is not new",
         {{"a", game + line(1, "open", 1, R"(,"again":true)")}},
         ""},
        {"records say so",
         {{"a", line(0, "records_lost", 1, R"(,"lost":12)") +
                    line(0, "records_lost", 2, R"(,"lost":3)") +
                    line(0, "finding", 3, R"(,"id":"inspect.gap","lost":7)")}},
         "15 records that could not be written (records_lost)\n"
         "7 datagrams that were never inspected (inspect.gap)\n"},
        {"a run that was cut off, and one that goes on",
         {{"a", line(1, "open", 1) + line(1, "open", 2) + line(2, "open", 3)}},
         "3 sessions without an end: the run was cut off, or is still going\n"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(check(row.files) == row.found);
    }
}
