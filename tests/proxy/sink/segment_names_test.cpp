// Covers: proxy/sink/retention.cpp
#include "proxy/sink/retention.h"
#include "tests/support/program.h"

#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

using namespace tw::sink;
using namespace tw::test;

namespace {

constexpr std::int64_t kHour = 3600;
constexpr std::int64_t kDay = 24 * kHour;

/// A segment of this size that was written to last at this time.
std::string make(const SegmentNames& names, std::int64_t utc, std::uint64_t number,
                 std::size_t size) {
    const std::string path = names.path(utc, number);
    write_text(path, std::string(size, 'x'));
    const timespec times[2] = {{.tv_sec = utc, .tv_nsec = 0}, {.tv_sec = utc, .tv_nsec = 0}};
    ::utimensat(AT_FDCWD, path.c_str(), times, 0);
    return std::filesystem::path{path}.filename().string();
}

} // namespace

TEST_CASE("a segment's name says of what it is, when it began, and which one it is") {
    const SegmentNames names{.folder = "/tmp/x", .name = "game", .suffix = ".jsonl.zst"};
    CHECK(names.path(1'795'277'730, 1) == "/tmp/x/game-20261121T161530Z-0001.jsonl.zst");
    CHECK(names.path(0, 12345) == "/tmp/x/game-19700101T000000Z-12345.jsonl.zst");

    struct Row {
        std::string file;
        std::string name; ///< empty: it is no segment
        std::uint64_t number = 0;
    };

    const Row rows[] = {
        {"game-20261121T161530Z-0001.jsonl.zst", "game", 1},
        {"my-game.2-20261121T161530Z-12345.pcapng", "my-game.2", 12345},
        {"game-20261121T161530Z-0001", ""},
        {"game-20261121T161530Z-001.jsonl", ""},
        {"game-20261121T161530Z-0x01.jsonl", ""},
        {"game-20261121T161530-0001.jsonl", ""},
        {"game-2026112aT161530Z-0001.jsonl", ""},
        {"game20261121T161530Z-0001.jsonl", ""},
        {"-20261121T161530Z-0001.jsonl", ""},
        {"20261121T161530Z-0001.jsonl", ""},
        {"game-20261121T161530Z-99999999999999999999999.jsonl", ""},
        {"game.jsonl", ""},
        {"-", ""},
        {"", ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.file);
        const auto segment = parse_segment(row.file);
        CHECK(segment.has_value() == !row.name.empty());
        if (segment) {
            CHECK(segment->name == row.name);
            CHECK(segment->number == row.number);
            CHECK(segment->file == row.file);
            CHECK(segment->begun == 1'795'277'730);
        }
    }
}

TEST_CASE("segments are listed as they were begun, and only those of their recording") {
    const TemporaryFolder folder;
    const SegmentNames game{.folder = folder.path(), .name = "game", .suffix = ".jsonl"};
    const SegmentNames other{.folder = folder.path(), .name = "game-2", .suffix = ".jsonl"};
    const std::string c = make(game, kDay, 10000, 1);
    const std::string b = make(game, kDay, 9999, 1);
    const std::string a = make(game, kHour, 20000, 1);
    make(other, kHour, 1, 1);
    write_text(folder.file("game.jsonl"), "");
    std::vector<std::string> files;
    for (const Segment& segment : segments_in(folder.path(), &game)) {
        files.push_back(segment.file);
    }
    CHECK(files == std::vector{b, c, a}); // by number: a clock was set back
    CHECK(segments_in(folder.path()).size() == 4);
    CHECK(segments_in(folder.file("no-folder")).empty());
}
