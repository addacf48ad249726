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

/// Creates a segment of this size with this modification time. Returns its file name.
std::string make_segment(const SegmentNames& names, std::int64_t utc, std::uint64_t number,
                         std::size_t size) {
    const std::string path = names.path(utc, number);
    write_text(path, std::string(size, 'x'));
    const timespec times[2] = {{.tv_sec = utc, .tv_nsec = 0}, {.tv_sec = utc, .tv_nsec = 0}};
    ::utimensat(AT_FDCWD, path.c_str(), times, 0);
    return std::filesystem::path{path}.filename().string();
}

/// A segment with its number, start time and modification time.
struct DatedSegment {
    std::uint64_t number;
    std::int64_t begun;
    std::int64_t written;
};

Seconds compute_segment_ages(const SegmentAges& ages, const std::vector<DatedSegment>& dated,
                             SegmentAges::Clock::time_point now) {
    std::vector<Segment> segments;
    for (const auto& [number, begun, written] : dated) {
        segments.push_back({.file = {},
                            .name = {},
                            .suffix = {},
                            .number = number,
                            .started_at = begun,
                            .modified_at = written});
    }
    return ages.compute_ages(segments, now);
}

std::vector<std::string> list_segment_files(const std::string& folder) {
    std::vector<std::string> files;
    for (const Segment& segment : list_segments(folder)) {
        files.push_back(segment.file);
    }
    return files;
}

} // namespace

TEST_CASE("the ages of earlier runs' segments follow from their order and times") {
    struct Row {
        const char* name;
        std::vector<DatedSegment> segments; ///< the last segment starts now
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
        CHECK(compute_segment_ages(ages, row.segments, kRetentionStart) == row.ages);
        // A day later on the monotonic clock, the segments are a day older.
        Seconds later = row.ages;
        for (std::size_t i = 0; i + 1 < later.size(); ++i) {
            later[i] += kDaySeconds;
        }
        CHECK(compute_segment_ages(ages, row.segments, kRetentionStart + seconds{kDaySeconds}) ==
              later);
    }
    // Pauses of up to 100 days between segments count as time that has passed.
    SegmentAges patient{std::chrono::hours{100 * 24}};
    patient.on_segment_start(2, kRetentionStart);
    CHECK(compute_segment_ages(patient, {{1, 0, 10}, {2, 40 * kDaySeconds, 40 * kDaySeconds}},
                               kRetentionStart) == Seconds{40 * kDaySeconds - 10, 0});
}

TEST_CASE("the ages of this run's segments come from a monotonic clock") {
    SegmentAges ages;
    std::vector<DatedSegment> segments;
    std::int64_t utc = 1'795'277'730;
    for (std::uint64_t number = 7; number < 11; ++number) {
        segments.push_back({number, utc, utc + 60});
        ages.on_segment_start(number, kRetentionStart + seconds{60 * (number - 7)});
        utc += number == 8 ? 20 * kDaySeconds : number == 9 ? -40 * kDaySeconds : 60;
    }
    CHECK(compute_segment_ages(ages, segments, kRetentionStart + seconds{240}) ==
          Seconds{180, 120, 60, 0});
}

TEST_CASE("the oldest segments are deleted, but none of the last hour and not the current one") {
    struct Row {
        const char* name;
        RetentionLimits limits;
        std::vector<std::size_t> left; ///< numbers of the segments below that are not deleted
    };

    using std::chrono::hours;
    // Segments 0 to 3 ended 3 days, 2 days, 2 hours and half an hour ago; 4 is the current segment.
    // Each has 100 bytes.
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
            each.suffix = number == 0 ? ".jsonl.zst" : ".jsonl"; // the setting was changed later
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
        CHECK(list_segment_files(folder.path()) == left);
    }
}

TEST_CASE("segments of the last hour are not deleted when the clock jumps") {
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
    // The segments are deleted after a month on the monotonic clock.
    CHECK(delete_old_segments(disk, names, month, 0, ages,
                              kRetentionStart + seconds{31 * kDaySeconds},
                              folder.file(current)) == 3);
}

TEST_CASE("old segments are deleted to free disk space only if there is a limit") {
    struct Row {
        const char* name;
        RetentionLimits limits;
        std::uint64_t min_free_bytes;
        std::size_t deleted;
    };

    // Each of the five segments is a day older than the next, and has 100 bytes. 1,000 bytes are
    // free.
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
        CHECK(delete_old_segments(disk, names, row.limits, row.min_free_bytes, ages,
                                  kRetentionStart, folder.file(current)) == row.deleted);
    }
}

TEST_CASE("a segment's file name contains the recording's name, the start time and a number") {
    const SegmentNames names{.folder = "/tmp/x", .name = "game", .suffix = ".jsonl.zst"};
    CHECK(names.path(1'795'277'730, 1) == "/tmp/x/game-20261121T161530Z-0001.jsonl.zst");
    CHECK(names.path(0, 12345) == "/tmp/x/game-19700101T000000Z-12345.jsonl.zst");

    struct Row {
        std::string file;
        std::string name; ///< empty if the file is not a segment
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
            CHECK(segment->started_at == 1'795'277'730);
        }
    }
}

TEST_CASE("segments are listed in order, and only those of the recording") {
    const TemporaryFolder folder;
    const SegmentNames game{.folder = folder.path(), .name = "game", .suffix = ".jsonl"};
    const SegmentNames other{.folder = folder.path(), .name = "game-2", .suffix = ".jsonl"};
    const std::string c = make_segment(game, kDaySeconds, 10000, 1);
    const std::string b = make_segment(game, kDaySeconds, 9999, 1);
    const std::string a = make_segment(game, kHourSeconds, 20000, 1);
    make_segment(other, kHourSeconds, 1, 1);
    write_text(folder.file("game.jsonl"), "");
    std::vector<std::string> files;
    for (const Segment& segment : list_segments(folder.path(), &game)) {
        files.push_back(segment.file);
    }
    CHECK(files == std::vector{b, c, a}); // sorted by number although the clock was set back
    CHECK(list_segments(folder.path()).size() == 4);
    CHECK(list_segments(folder.file("no-folder")).empty());
}
