// `compare` with two recordings of one game, with different games, and with invalid input.
// Covers: proxy/cli/records_files.cpp, proxy/cli/explain_command.cpp
#include "tests/proxy/cli/program_runs.h"
#include "tests/support/test_data.h"

#include <cctype>
#include <filesystem>
#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using namespace tw::test;

namespace {

const std::string kGolden = TW_GOLDEN;
const std::string kMapChange = kGolden + "/token-map-change.pcap";

constexpr std::string_view kEqual =
    "equal: 263 ticks in both, 0 different, 0 only in A, 0 only in B\n";

/// Records the capture in a file of the folder. Returns its path.
std::string record_capture(const TemporaryFolder& folder, const std::string& name,
                           const Arguments& flags = {}) {
    std::string path = folder.file(name);
    REQUIRE(twscope({"decode", kMapChange, "-o", path}, flags).status == 0);
    return path;
}

std::string last_output_line(const std::string& text) {
    const std::size_t end = text.empty() ? 0 : text.rfind('\n', text.size() - 2);
    return text.substr(end == std::string::npos ? 0 : end + 1);
}

/// Cuts a recording into two segments of a folder.
void split_into_segments(const std::string& recording, const std::string& folder) {
    const std::string text = read_text(recording);
    const std::size_t cut = text.find('\n', text.size() / 2) + 1;
    std::filesystem::create_directory(folder);
    write_text(folder + "/game-20261121T161530Z-0001.jsonl", text.substr(0, cut));
    write_text(folder + "/game-20261121T171530Z-0002.jsonl", text.substr(cut));
}

/// Changes the number after the last `what`, and returns the tick of the snapshot that contains it.
std::string replace_last_number(std::string& text, const std::string& what, const std::string& by) {
    const std::size_t at = text.rfind(what);
    REQUIRE(at != std::string::npos);
    std::size_t end = at + what.size();
    while (std::isdigit(static_cast<unsigned char>(text[end])) != 0) {
        ++end;
    }
    text.replace(at + what.size(), end - at - what.size(), by);
    const std::string key = R"("tick":)";
    const std::size_t tick = text.find(key, text.rfind('\n', at)) + key.size();
    return text.substr(tick, text.find(',', tick) - tick);
}

} // namespace

TEST_CASE("a capture and its recordings are equal") {
    const TemporaryFolder folder;

    struct Row {
        std::string file;
        Arguments flags;
    };

    const Row rows[] = {
        {"changed.jsonl", {}},
        {"changed.jsonl.zst", {}},
        {"all.jsonl", {"--items", "all"}},
        {"all.jsonl.zst", {"--items", "all,raw"}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.file);
        const std::string recording = record_capture(folder, row.file, row.flags);
        const ProgramResult done = twscope({"compare", kMapChange, recording});
        CHECK(done.err.empty());
        CHECK(done.status == 0);
        CHECK(last_output_line(done.out) == kEqual);
        CHECK(twscope({"compare", recording, kMapChange, "--json"})
                  .out.starts_with(R"({"equal":true,)"));
    }
    split_into_segments(folder.file("changed.jsonl"), folder.file("segments"));
    CHECK(last_output_line(output_of({"compare", kMapChange, folder.file("segments")})) == kEqual);
}

TEST_CASE("a capture equals each of its demos for the time of the demo") {
    for (const std::string name : {"token-map-change", "token-map-download", "tokenless-map-change",
                                   "seven-map-change", "seven-on-ddnet"}) {
        CAPTURE(name);
        const std::string capture = fmt::format("{}/{}.pcap", kGolden, name);
        const TemporaryFolder demos;
        REQUIRE(twscope({"decode", capture, "--demo", demos.path()}).status == 0);
        int count = 0;
        for (const auto& entry : std::filesystem::directory_iterator{demos.path()}) {
            const std::string done = output_of({"compare", capture, entry.path().string()});
            CHECK(last_output_line(done).starts_with("equal: "));
            CHECK(contains(last_output_line(done), ", 0 only in B\n"));
            ++count;
        }
        CHECK(count >= 1);
    }
}

TEST_CASE("each demo of a server's players is compared with its own session") {
    const std::string capture = test_data("captures/bench-4.pcap.gz");
    const TemporaryFolder demos;
    REQUIRE(twscope({"decode", capture, "--demo", demos.path()}).status == 0);
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator{demos.path()}) {
        const std::string demo = entry.path().string();
        const std::string session = demo.substr(demo.rfind("-s") + 2, 1);
        CHECK(contains(output_of({"compare", capture, demo}),
                       "\n\nA session " + session + " (")); // first
        ++count;
    }
    CHECK(count == 4);
}

TEST_CASE("sessions with other numbers and addresses are matched by player names") {
    const TemporaryFolder folder;
    const std::string capture = test_data("captures/bench-4.pcap.gz");
    const std::string recording = folder.file("game.jsonl");
    REQUIRE(twscope({"decode", capture, "-o", recording}).status == 0);
    std::istringstream lines{read_text(recording)};
    std::string text;
    for (std::string line; std::getline(lines, line);) {
        const std::string key = R"("session":)";
        const std::size_t number = line.find(key) + key.size();
        if (line[number] != '0' && !contains(line, R"("type":"summary")")) {
            line[number] = static_cast<char>('1' + ('4' - line[number]));
        }
        const std::size_t client = line.find(R"("client":")");
        if (client != std::string::npos && contains(line, R"("type":"session")")) {
            line.insert(client + 10, "other:");
        }
        text += line + '\n';
    }
    write_text(recording, text);
    CHECK(last_output_line(output_of({"compare", capture, recording}))
              .starts_with("equal: 5955 ticks in both, 0 different"));
}

TEST_CASE("a changed field is reported with its tick and its item") {
    const TemporaryFolder folder;

    struct Row {
        Arguments flags;
        std::string key;
        std::string field;
        std::string value;
    };

    const Row rows[] = {
        {{"--items", "all"},
         R"("type":"game_info","type_id":6,"id":0,"fields":{"game_flags":)",
         "game_flags",
         "77"},
        {{"--items", "all,raw"}, R"("data":[)", "", "4242"},
    };
    for (const Row& row : rows) {
        std::filesystem::remove(folder.file("honest.jsonl"));
        const std::string honest = record_capture(folder, "honest.jsonl", row.flags);
        std::string text = read_text(honest);
        const std::string tick = replace_last_number(text, row.key, row.value);
        const std::string recording = folder.write("changed.jsonl", text);
        for (const std::string& view : {kMapChange, honest}) {
            const ProgramResult done = twscope({"compare", view, recording});
            CAPTURE(done.out);
            CHECK(done.status == 1);
            CHECK(contains(done.out, ", tick " + tick + ", "));
            CHECK(contains(done.out, row.field + ": "));
            CHECK(contains(done.out, " in A, " + row.value + " in B"));
            CHECK(last_output_line(done.out) ==
                  "different: 263 ticks in both, 1 different, 0 only in A, 0 only in B\n");
        }
    }
}

TEST_CASE("sessions of other games are not compared, unless they are selected") {
    const ProgramResult other =
        twscope({"compare", kMapChange, kGolden + "/token-high-bandwidth.pcap"});
    CAPTURE(other.out);
    CHECK(other.status == 1);
    CHECK(contains(other.out, "  not compared: no counterpart "));
    CHECK(last_output_line(other.out) ==
          "not compared: no session of A could be aligned with one of B\n");

    const ProgramResult sessions =
        twscope({"compare", kMapChange, kMapChange, "--session", "1", "--other-session", "2"});
    CHECK(sessions.status == 1);
    CHECK(contains(sessions.out, "First difference: map "));
    CHECK(twscope({"compare", kMapChange, kMapChange, "--session", "2"}).status == 0);
}

TEST_CASE("worlds and sessions are not compared, and the report says what to do") {
    const TemporaryFolder folder;
    const std::string worlds = record_capture(folder, "w.jsonl", {"--view", "world"});
    const ProgramResult done = twscope({"compare", kMapChange, worlds});
    CHECK(done.status == 1);
    CHECK(contains(done.out, "\n\nnot compared: B holds only worlds and A only sessions: make A "
                             "from its capture with 'twscope decode CAPTURE --view world --items "
                             "all -o FILE.jsonl.zst'\n"));
}

TEST_CASE("session 0 selects the merged worlds only") {
    const TemporaryFolder folder;
    const std::string both = record_capture(folder, "both.jsonl", {"--view", "both"});
    CHECK(contains(output_of({"compare", both, both}), "A session 1 ("));
    const std::string worlds = output_of({"compare", both, both, "--session", "0"});
    CHECK(contains(worlds, "A session 0 ("));
    CHECK_FALSE(contains(worlds, "A session 1 ("));
    check_usage_error({"compare", kMapChange, both, "--session", "0"}, "--session 0");
}

TEST_CASE("the readable part of a damaged recording is compared, and the damage is reported") {
    const TemporaryFolder folder;
    const std::string recording = record_capture(folder, "damaged.jsonl.zst");
    write_text(recording, read_text(recording) + "this is no frame");
    const ProgramResult done = twscope({"compare", kMapChange, recording});
    CAPTURE(done.out);
    CHECK(done.status == 3);
    CHECK(contains(done.err, recording + ": damaged: skipped 16 bytes of compressed data; "));
    CHECK(contains(done.err, " lines were read\n"));
    CHECK(last_output_line(done.out) == kEqual);
}

TEST_CASE("a recording that begins with an incomplete line is compared, and the line is reported") {
    const TemporaryFolder folder;
    const std::string recording = record_capture(folder, "tail.jsonl");
    write_text(recording, "orn\"}\n" + read_text(recording));
    const ProgramResult done = twscope({"compare", kMapChange, recording});
    CHECK(done.status == 3);
    CHECK(contains(done.err, recording + ": skipped 1 line that is not a record"));
    CHECK(last_output_line(done.out) == kEqual);
}

TEST_CASE("input without snapshots is an error of one line") {
    const TemporaryFolder folder;
    const auto file = [&](const std::string& name, const std::string& text) {
        folder.write(name, text);
        return folder.file(name);
    };
    const std::string empty = file("empty", "");
    const std::string text = file("text", "hello\n");
    const std::string braces = file("braces", "{{{{\n{}\n{\"type\":\"snapshot\"}\n");
    std::filesystem::create_directory(folder.file("folder"));
    for (const std::string& nonsense :
         {empty, text, braces, folder.file("folder"), folder.file("nothing")}) {
        CAPTURE(nonsense);
        check_usage_error({"compare", kMapChange, nonsense}, nonsense);
        check_usage_error({"compare", nonsense, kMapChange}, nonsense);
    }
    const std::string bare = record_capture(folder, "bare.jsonl", {"--items", "none"});
    check_usage_errors({"compare", kMapChange},
                       {{{bare}, "recorded without items?"},
                        {{}, ""},
                        {{"-"}, "name a file"},
                        {{kMapChange, "--session", "9"}, "--session 9"},
                        {{kMapChange, "--other-session", "9"}, "--other-session 9"}});
}
