// Runs with a standard input, output or error that is closed, full, or a pipe without reader.
// Covers: proxy/cli/command_line.cpp

#include "tests/proxy/cli/program_runs.h"

#include <chrono>
#include <filesystem>

#include <doctest/doctest.h>
#include <sys/stat.h>

using namespace tw::test;

namespace {

std::string save_game_in(const TemporaryFolder& folder) {
    std::string capture = folder.file("game.pcap");
    save_game(capture, tee_at(100, 100));
    return capture;
}

/// Runs a shell script. $0 is the program, $1 a capture and $2 a folder.
ProgramResult run_script(const std::string& script, const TemporaryFolder& folder) {
    return run_program("/bin/sh", {"-c", script, TW_TWSCOPE, save_game_in(folder), folder.path()});
}

constexpr std::string_view kUnmet = "tick > 100000";

} // namespace

TEST_CASE("a closed or full standard error has no other effect") {
    struct Row {
        std::string script;
        int status;
        std::string_view summary;
    };

    const Row rows[] = {
        {R"("$0" decode "$1" --expect 'tick > 100000' --summary "$2/summary" 2>/dev/full)", 1,
         kUnmet},
        {R"("$0" decode "$1" --expect 'tick > 100000' --summary "$2/summary" 2>&-)", 1, kUnmet},
        {R"("$0" decode "$1" --expect snapshot --summary "$2/summary" 2>/dev/full)", 0, "snapshot"},
        {R"("$0" decode "$2/missing" 2>/dev/full)", 2, ""},
        {R"("$0" decode "$2/missing" 2>&-)", 2, ""},
        {R"("$0" decode --frobnicate 2>/dev/full)", 2, ""},
        {R"("$0" decode "$1" -o - >/dev/full 2>/dev/full)", 3, ""},
        // The checks are made even if records are missing.
        {R"("$0" decode "$1" -o - --expect 'tick > 100000' --summary "$2/summary" >/dev/full)", 1,
         kUnmet},
        {R"("$0" decode "$1" -o - --expect snapshot --summary "$2/summary" >/dev/full)", 3,
         "snapshot"},
    };
    if (!std::filesystem::exists("/dev/full")) {
        return; // without the device, the shell would create a file
    }
    for (const Row& row : rows) {
        CAPTURE(row.script);
        const TemporaryFolder folder;
        CHECK(run_script(row.script, folder).status == row.status);
        CHECK(contains(read_text(folder.file("summary")), row.summary));
    }
}

TEST_CASE("with a closed standard stream, messages do not end up in output files") {
    const TemporaryFolder folder;
    const std::string decode = R"("$0" decode "$1" --expect 'tick > 100000' -o "$2/)";
    CHECK(run_script(decode + "plain\"", folder).status == 1);
    CHECK(run_script(decode + "closed\" <&- >&- 2>&-", folder).status == 1);
    CHECK_FALSE(read_text(folder.file("plain")).empty());
    CHECK(read_text(folder.file("closed")) == read_text(folder.file("plain")));
    const ProgramResult unwritten = run_script(R"("$0" decode "$1" -o - >&-)", folder);
    CHECK(unwritten.status == 3);
    CHECK(contains(unwritten.err, "Bad file descriptor"));
    CHECK(run_script(R"("$0" decode - <&-)", folder).status == 2);
}

TEST_CASE("waiting for a pipe is reported on standard error") {
    constexpr std::chrono::seconds kTimeout{20};
    const TemporaryFolder folder;
    const std::string pipe = folder.file("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), S_IRUSR | S_IWUSR) == 0);
    Program decode{TW_TWSCOPE, {"decode", save_game_in(folder), "-o", pipe}, folder.path()};
    CHECK(becomes_true_within(
        kTimeout, [&] { return contains(decode.err(), "the pipe has no reader yet"); }));
    CHECK(read_text(pipe).starts_with("{"));
    const ProgramResult done = decode.finish();
    CHECK(done.status == 0);
    CHECK(done.out.empty());
}

TEST_CASE("when a reader of records leaves, the other outputs continue") {
    struct Row {
        std::string command;
        int status;
    };

    const Row rows[] = {
        {R"("$0" decode "$1" "$1" -o - >&4)", 0},
        {R"("$0" decode "$1" -o - --expect snapshot --summary "$2/summary" >&4)", 0},
        {R"("$0" decode "$1" -o - --expect 'tick > 100000' --summary "$2/summary" >&4)", 1},
        {R"("$0" decode "$1" -o - --show-secrets -w "$2/copy.pcapng" >&4)", 0},
        {R"("$0" records "$2/records.jsonl" >&4)", 0},
        {R"("$0" records -f "$2/records.jsonl" >&4)", 0}, // must also end
    };
    for (const Row& row : rows) {
        CAPTURE(row.command);
        const TemporaryFolder folder;
        const std::string capture = save_game_in(folder);
        REQUIRE(twscope({"decode", capture, "-o", folder.file("records.jsonl")}).status == 0);
        // A pipe whose reader ends before the first write.
        const ProgramResult done = run_script(
            R"(mkfifo "$2/pipe"; exec 3<>"$2/pipe" 4>"$2/pipe" 3<&-; )" + row.command, folder);
        CHECK(done.status == row.status);
        CHECK_FALSE(contains(done.err, "Broken pipe")); // a reader that leaves is no error
        CHECK_FALSE(
            contains(done.err, "no UDP datagrams")); // unread input is not reported as empty
        if (contains(row.command, "summary")) {
            CHECK_FALSE(read_text(folder.file("summary")).empty());
        }
        if (contains(row.command, "copy")) {
            CHECK(twscope({"decode", folder.file("copy.pcapng"), "--expect", "snapshot"}).status ==
                  0);
        }
    }
}
