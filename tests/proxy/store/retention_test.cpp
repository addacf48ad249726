#include "proxy/store/retention.h"
#include "tests/proxy/store/faulty_disk.h"
#include "tests/support/program.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

using namespace tw::store;
using namespace tw::test;

namespace {

using Seconds = std::vector<std::int64_t>;
using std::chrono::seconds;

constexpr std::int64_t kHourSeconds = 3600;
constexpr std::int64_t kDaySeconds = 24 * kHourSeconds;
constexpr SegmentAges::Clock::time_point kRetentionStart{std::chrono::hours{1000}};

/// A segment of this size that was written to last at this time.
std::string make_segment(const SegmentNames& names, std::int64_t utc, std::uint64_t number,
                         std::size_t size) {
    const std::string path = names.path(utc, number);
    write_text(path, std::string(size, 'x'));
    const timespec times[2] = {{.tv_sec = utc, .tv_nsec = 0}, {.tv_sec = utc, .tv_nsec = 0}};
    ::utimensat(AT_FDCWD, path.c_str(), times, 0);
    return std::filesystem::path{path}.filename().string();
}

/// A segment of a row: its number, and when it was begun and written to last.
struct DatedSegment {
    std::uint64_t number;
    std::int64_t begun;
    std::int64_t written;
};

Seconds ages_of(const SegmentAges& ages, const std::vector<DatedSegment>& dated,
                SegmentAges::Clock::time_point now) {
    std::vector<Segment> segments;
    for (const auto& [number, begun, written] : dated) {
        segments.push_back({.file = {},
                            .name = {},
                            .suffix = {},
                            .number = number,
                            .begun = begun,
                            .written = written});
    }
    return ages.ages_of(segments, now);
}

std::vector<std::string> segment_files(const std::string& folder) {
    std::vector<std::string> files;
    for (const Segment& segment : segments_in(folder)) {
        files.push_back(segment.file);
    }
    return files;
}

} // namespace

TEST_CASE("segments of earlier runs are as old as their order and their times say") {
    struct Row {
        const char* name;
        std::vector<DatedSegment> segments; ///< the last one begins now
        Seconds ages;
    };

    const Row rows[] = {
        {"none but this run's", {{1, 100, 100}}, {0}},
        {"one after the other", {{1, 0, 90}, {2, 100, 190}, {3, 200, 200}}, {110, 10, 0}},
        {"written to until the next", {{1, 0, 100}, {2, 100, 100}}, {0, 0}},
        {"a pause",
         {{1, 0, 10}, {2, 20 * kDaySeconds, 20 * kDaySeconds}},
         {20 * kDaySeconds - 10, 0}},
        {"copied since",
         {{1, 0, 20 * kDaySeconds},
          {2, 10 * kDaySeconds, 20 * kDaySeconds},
          {3, 11 * kDaySeconds, 0}},
         {kDaySeconds, 0, 0}},
        {"a clock set forward by 40 days",
         {{1, 0, 10}, {2, 40 * kDaySeconds, 40 * kDaySeconds}},
         {0, 0}},
        {"and back again",
         {{1, 0, 10}, {2, 40 * kDaySeconds, 40 * kDaySeconds + 10}, {3, 20, 30}, {4, 40, 40}},
         {20, 10 + 10, 10, 0}},
        {"from 1970", {{1, 1'795'000'000, 1'795'000'010}, {2, 5, 5}}, {0, 0}},
        {"times at the ends of the world", {{1, INT64_MIN, INT64_MAX}, {2, INT64_MAX, 0}}, {0, 0}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SegmentAges ages;
        ages.on_segment_start(row.segments.back().number, kRetentionStart);
        CHECK(ages_of(ages, row.segments, kRetentionStart) == row.ages);
        // And all of them get older together, whatever the clock on the wall does.
        Seconds later = row.ages;
        for (std::size_t i = 0; i + 1 < later.size(); ++i) {
            later[i] += kDaySeconds;
        }
        CHECK(ages_of(ages, row.segments, kRetentionStart + seconds{kDaySeconds}) == later);
    }
    SegmentAges patient{std::chrono::hours{100 * 24}}; // so long a pause may be one
    patient.on_segment_start(2, kRetentionStart);
    CHECK(ages_of(patient, {{1, 0, 10}, {2, 40 * kDaySeconds, 40 * kDaySeconds}},
                  kRetentionStart) == Seconds{40 * kDaySeconds - 10, 0});
}

TEST_CASE("segments of this run are as old as the time that passed, not as the clock says") {
    SegmentAges ages;
    std::vector<DatedSegment> segments;
    std::int64_t utc = 1'795'277'730;
    for (std::uint64_t number = 7; number < 11; ++number) {
        segments.push_back({number, utc, utc + 60});
        ages.on_segment_start(number, kRetentionStart + seconds{60 * (number - 7)});
        utc += number == 8 ? 20 * kDaySeconds : number == 9 ? -40 * kDaySeconds : 60;
    }
    CHECK(ages_of(ages, segments, kRetentionStart + seconds{240}) == Seconds{180, 120, 60, 0});
}

TEST_CASE("the oldest segments are deleted, never one of the last hour nor the one being written") {
    struct Row {
        const char* name;
        RetentionLimits limits;
        std::vector<std::size_t> left; ///< of the segments below
    };

    using std::chrono::hours;
    // 0: 3 days old, 1: 2 days, 2: 2 hours, 3: half an hour, 4: the current one; 100 bytes each.
    const Row rows[] = {
        {"no limits", {}, {0, 1, 2, 3, 4}},
        {"an age", {.age = hours{49}}, {1, 2, 3, 4}},
        {"a short age", {.age = hours{1}}, {3, 4}},
        {"hardly any age", {.age = std::chrono::seconds{1}}, {3, 4}},
        {"a size that holds all", {.bytes = 500}, {0, 1, 2, 3, 4}},
        {"a size", {.bytes = 499}, {1, 2, 3, 4}},
        {"a small size", {.bytes = 250}, {3, 4}},
        {"hardly any size", {.bytes = 1}, {3, 4}},
        {"both", {.age = hours{24}, .bytes = 450}, {2, 3, 4}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TemporaryFolder folder;
        FaultyDisk disk;
        const SegmentNames names{.folder = folder.path(), .name = "game", .suffix = ".jsonl"};
        std::vector<std::string> files;
        std::uint64_t number = 0;
        for (const std::int64_t age : {3 * kDaySeconds, 2 * kDaySeconds, 2 * kHourSeconds,
                                       kHourSeconds / 2, std::int64_t{0}}) {
            SegmentNames each = names;
            each.suffix = number == 0 ? ".jsonl.zst" : ".jsonl"; // it was compressed before
            files.push_back(make_segment(each, disk.time - age, ++number, 100));
        }
        write_text(folder.file("other-20000101T000000Z-0001.jsonl"), "");
        write_text(folder.file("game-20000101T000000Z-0099.pcapng"), "");
        SegmentAges ages;
        ages.on_segment_start(number, kRetentionStart);
        const std::size_t deleted = delete_old_segments(disk, names, row.limits, 0, ages,
                                                        kRetentionStart, folder.file(files.back()));
        CHECK(deleted == files.size() - row.left.size());
        std::vector<std::string> left;
        for (const std::size_t index : row.left) {
            left.push_back(files[index]);
        }
        left.emplace_back("game-20000101T000000Z-0099.pcapng");
        left.emplace_back("other-20000101T000000Z-0001.jsonl");
        CHECK(segment_files(folder.path()) == left);
    }
}

TEST_CASE("a clock that jumps deletes nothing of the last hour") {
    const TemporaryFolder folder;
    FaultyDisk disk;
    const SegmentNames names{.folder = folder.path(), .name = "game", .suffix = ".jsonl"};
    const RetentionLimits month{.age = std::chrono::hours{30 * 24}};
    SegmentAges ages{month.age};
    std::string current;
    for (std::uint64_t number = 1; number <= 4; ++number) {
        current = make_segment(names, disk.time, number, 100);
        ages.on_segment_start(number, kRetentionStart + seconds{number});
        disk.time += 40 * kDaySeconds;
    }
    CHECK(delete_old_segments(disk, names, month, 0, ages, kRetentionStart + seconds{5},
                              folder.file(current)) == 0);
    // Until the time has passed.
    CHECK(delete_old_segments(disk, names, month, 0, ages,
                              kRetentionStart + seconds{31 * kDaySeconds},
                              folder.file(current)) == 3);
}

TEST_CASE("old segments make room on the disk, where any may be deleted") {
    struct Row {
        const char* name;
        RetentionLimits limits;
        std::uint64_t least_free;
        std::size_t deleted;
    };

    // Each of the five is a day older than the next, and has 100 bytes; 1,000 are free.
    const Row rows[] = {
        {"room enough", {.age = std::chrono::hours{2400}}, 1000, 0},
        {"for one", {.age = std::chrono::hours{2400}}, 1001, 1},
        {"for two", {.bytes = 1U << 30U}, 1101, 2},
        {"more than there is", {.bytes = 1U << 30U}, 1U << 30U, 4},
        {"nothing may be deleted", {}, 1U << 30U, 0},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TemporaryFolder folder;
        FaultyDisk disk;
        disk.free = 1000;
        const SegmentNames names{.folder = folder.path(), .name = "game", .suffix = ".jsonl"};
        std::string current;
        for (std::uint64_t number = 1; number <= 5; ++number) {
            current = make_segment(
                names, disk.time + static_cast<std::int64_t>(number) * kDaySeconds, number, 100);
        }
        SegmentAges ages;
        ages.on_segment_start(5, kRetentionStart);
        CHECK(delete_old_segments(disk, names, row.limits, row.least_free, ages, kRetentionStart,
                                  folder.file(current)) == row.deleted);
    }
}

namespace {} // namespace

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
        const auto segment = parse_segment_name(row.file);
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
    const std::string c = make_segment(game, kDaySeconds, 10000, 1);
    const std::string b = make_segment(game, kDaySeconds, 9999, 1);
    const std::string a = make_segment(game, kHourSeconds, 20000, 1);
    make_segment(other, kHourSeconds, 1, 1);
    write_text(folder.file("game.jsonl"), "");
    std::vector<std::string> files;
    for (const Segment& segment : segments_in(folder.path(), &game)) {
        files.push_back(segment.file);
    }
    CHECK(files == std::vector{b, c, a}); // by number: a clock was set back
    CHECK(segments_in(folder.path()).size() == 4);
    CHECK(segments_in(folder.file("no-folder")).empty());
}
