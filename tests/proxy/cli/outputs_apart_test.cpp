// Outputs that would overwrite an input, another output or a file of another type: they are errors
// before any file is truncated.
// Covers: proxy/cli/output_file.cpp

#include "proxy/base/descriptors.h"
#include "proxy/base/files.h"
#include "tests/proxy/cli/program_runs.h"

#include <doctest/doctest.h>
#include <fcntl.h>

using namespace tw::test;

namespace {

/// A folder with a capture, its records and a map, and names for a hard and a symbolic link.
struct TestFiles {
    TemporaryFolder folder{};
    std::string capture = folder.file("p.pcap");
    std::string records = folder.file("g.jsonl");
    std::string map = folder.file("m.map");
    std::string hard = folder.file("hard.jsonl");
    std::string soft = folder.file("soft.jsonl");
    std::string kept = folder.file("kept");

    TestFiles() {
        save_game(capture, tee_at(50, 80));
        REQUIRE(twscope({"decode", capture, "-o", records}).status == 0);
        save_map(map);
        std::filesystem::create_hard_link(records, hard);
        std::filesystem::create_symlink(records, soft);
        write_text(kept, "kept");
    }
};

} // namespace

TEST_CASE("a file that another process records to is never overwritten") {
    const TestFiles files;
    const std::string other = files.folder.file("other.jsonl");
    write_text(other, read_text(files.records));
    const tw::base::UniqueFd writer{::open(other.c_str(), O_RDWR | O_CLOEXEC)};
    REQUIRE(tw::base::lock_file(writer.get()));
    const Arguments rows[] = {
        {"decode", files.capture, "-o", other},
        {"records", files.records, "-o", other},
    };
    for (const Arguments& row : rows) {
        CAPTURE(row.front());
        check_usage_error(row,
                          ": another process is recording to it; stop that one, or name another");
    }
    CHECK(read_text(other) == read_text(files.records));
}

TEST_CASE("commands replace only existing files of the type that they write") {
    const TestFiles files;
    const std::string writing = ": contains something other than ";
    check_usage_error({"map", files.map, "--png", files.records},
                      "--png " + files.records + writing + "a picture; name another file");
    for (const std::string& other : {files.capture, files.kept, files.map}) {
        check_usage_error({"records", files.records, "--columns", "t", "-o", other},
                          "--output " + other + writing + "a table of records; name another file");
    }
    for (const Arguments& row : {Arguments{"decode", files.capture},
                                 {"proxy", "-s", "127.0.0.1:1"},
                                 {"replay", files.capture, "-s", "127.0.0.1:1"},
                                 {"collect", "--bus", "nats://127.0.0.1:1"}}) {
        Arguments with_summary{row};
        with_summary.insert(with_summary.end(), {"--expect", "ok", "--summary", files.kept});
        check_usage_error(with_summary, "--summary " + files.kept + writing + "a summary; name");
    }
    const std::string table = files.folder.file("table.csv");
    const std::string picture = files.folder.file("map.png");
    const std::string summary = files.folder.file("summary");
    for (int time = 0; time < 2; ++time) {
        for (const std::string ending : {"", ".zst"}) {
            const ProgramResult done = twscope(
                {"records", files.records, "--columns", "t,items.id", "-o", table + ending});
            CHECK(done.status == 0);
        }
        CHECK(twscope({"map", files.map, "--png", picture}).status == 0);
        for (const std::string ending : {"", ".xml"}) {
            CHECK(twscope({"decode", files.capture, "--summary", summary + ending}).status == 0);
            const ProgramResult failed = twscope({"decode", files.capture, "--expect",
                                                  "never snapshot", "--summary", summary + ending});
            CHECK(failed.status == 1);
        }
    }
    const std::string not_ours = files.folder.file("tcpdump.pcap");
    write_text(not_ours, read_text(files.capture));
    for (const std::string& other : {files.kept, files.records, not_ours}) {
        check_usage_error({"decode", files.capture, "--show-secrets", "-w", other},
                          "--write " + other + writing + "a capture by twscope; name another");
    }
    check_usage_error({"decode", "--sizes", files.capture, "--write-objects", files.kept},
                      "--write-objects " + files.kept + writing +
                          "what --write-objects writes; name another file");
    check_usage_error({"decode", files.capture, "-o", files.kept},
                      "--output " + files.kept + writing + "records; name another file");
    CHECK(read_text(files.kept) == "kept");
    const std::string again = files.folder.file("again.pcapng");
    const std::string sizes = files.folder.file("sizes.json");
    for (int time = 0; time < 2; ++time) {
        CHECK(twscope({"decode", files.capture, "--show-secrets", "-w", again}).status == 0);
        CHECK(twscope({"decode", "--sizes", files.capture, "--write-objects", sizes}).status == 0);
    }
    write_text(sizes, R"({"objects": []})"); // written by hand
    check_usage_error({"decode", "--sizes", files.capture, "--write-objects", sizes},
                      "move this one away");
}

TEST_CASE("an input file is never overwritten") {
    const TestFiles files;
    const std::string records = read_text(files.records);
    const std::string capture = read_text(files.capture);
    const std::string map = read_text(files.map);
    const Arguments rows[] = {
        {"records", files.records, "--session", "1", "-o", files.records},
        {"records", files.records, "-o", files.hard},
        {"records", files.records, "-o", files.soft},
        {"decode", files.capture, "-o", files.capture},
        {"decode", files.capture, "--summary", files.capture},
        {"decode", files.capture, "--show-secrets", "-w", files.capture},
        {"decode", "--sizes", files.capture, "--write-objects", files.capture},
        {"replay", files.capture, "-s", "127.0.0.1:1", "-o", files.capture},
        {"map", files.map, "--png", files.map},
    };
    for (const Arguments& row : rows) {
        CAPTURE(row.front());
        check_usage_error(row, ": is also an input; name another file");
    }
    CHECK(read_text(files.records) == records);
    CHECK(read_text(files.capture) == capture);
    CHECK(read_text(files.map) == map);
}

TEST_CASE("two flags cannot write the same file, but can share a pipe or device") {
    const TestFiles files;
    const std::string same = files.folder.file("same");
    check_usage_error({"decode", files.capture, "--show-secrets", "-o", same, "-w", same},
                      "--output also writes to it");
    check_usage_error({"decode", files.capture, "-o", same, "--summary", same},
                      "--output also writes to it");
    check_usage_error({"proxy", "-s", "127.0.0.1:1", "-o", same, "--summary", same},
                      "--output also writes to it");
    CHECK_FALSE(std::filesystem::exists(same));
    CHECK(twscope({"decode", files.capture, "-o", "/dev/null", "--summary", "/dev/null"}).status ==
          0);
}

TEST_CASE("two names of the same new file are recognised") {
    const TestFiles files;
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(files.folder.path());
    check_usage_error({"proxy", "-s", "127.0.0.1:1", "-l", "127.0.0.1:0", "--duration", "100ms",
                       "-o", "new", "--summary", "./new"},
                      "--output also writes to it");
    check_usage_error({"decode", "p.pcap", "-o", "new", "--summary", files.folder.file("new")},
                      "--output also writes to it");
    std::filesystem::current_path(before);
}

TEST_CASE("no file is truncated before all flags are checked") {
    const TestFiles files;
    const std::string none = files.folder.file("none");
    const std::string nowhere = files.folder.file("no/where");
    const Arguments rows[] = {
        {"decode", "--sizes", none, "--write-objects", files.kept},
        {"decode", none, "--expect", "finding", "--summary", files.kept},
        {"decode", files.capture, "-o", files.kept, "--filter", "x =="},
        {"decode", files.capture, "-o", files.kept, "-w", nowhere, "--show-secrets"},
        {"decode", files.capture, "-o", files.kept, "-w", files.folder.file("k2"), "--show-secrets",
         "--write-filter", "x =="},
        {"records", none, "-o", files.kept},
        {"records", files.records, none, "-o", files.kept},
        {"records", files.capture, "-o", files.kept},
        {"records", files.records, "-o", files.kept, "--columns", "tikc"},
        {"replay", files.capture, "-s", "nonsense", "-o", files.kept},
        {"replay", files.capture, "-s", "127.0.0.1:1", "-o", files.kept, "--filter", "x =="},
    };
    for (const Arguments& row : rows) {
        CAPTURE(row.front());
        check_usage_error(row, "");
        CHECK(read_text(files.kept) == "kept");
    }
}

TEST_CASE("a flag that needs another one is an error without it") {
    const TestFiles files;
    check_usage_error({"proxy", "-s", "127.0.0.1:1", "--write-filter", "session == 1"}, "--write");
    check_usage_errors({"decode", files.capture}, {{{"--write-filter", "session == 1"}, "--write"},
                                                   {{"--demo-version", "4"}, "--demo"},
                                                   {{"--items", "none,all"}, "--items none,all"},
                                                   {{"--items", "none,raw"}, "--items none,raw"},
                                                   {{"--bus-name", "x"}, "--bus"}});
    check_usage_errors({"map", files.map},
                       {{{"--scale", "2"}, "--png"}, {{"--layer", "game"}, "--png"}});
    check_usage_errors({"records", files.records, "--verify"}, {{{"--session", "1"}, "--session"},
                                                                {{"--follow"}, "--follow"},
                                                                {{"-o", files.kept}, "--output"}});
}

TEST_CASE("a picture can be written to standard output") {
    const TestFiles files;
    CHECK(output_of({"map", files.map, "--png", "-"}).substr(1, 3) == "PNG");
}
