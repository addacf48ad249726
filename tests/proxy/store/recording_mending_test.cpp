// Covers: proxy/store/recording.cpp
#include "proxy/store/recording.h"
#include "tests/proxy/store/capture_text.h"
#include "tests/proxy/store/faulty_disk.h"
#include "tests/proxy/store/zstd_text.h"
#include "tests/support/program.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using namespace tw::store;
using namespace tw::test;
using tw::capture::capture_format;

namespace {

/// Records that do not compress to nothing.
std::string records(std::size_t count) {
    std::string text;
    std::uint64_t state = 1;
    for (std::size_t i = 0; i < count; ++i) {
        text += fmt::format(R"({{"v":1,"session":{})", i);
        for (char name = 'a'; name < 'f'; ++name) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            text += fmt::format(R"(,"{}":{})", name, state);
        }
        text += "}\n";
    }
    return text;
}

/// Blocks of as many packets of 500 bytes.
std::string packets_of_500(std::size_t count) {
    return packets(std::vector<std::size_t>(count, 500));
}

struct Removed {
    std::uint64_t bytes;
    std::uint64_t units;
};

/// Goes on behind what is there, and writes nothing. Returns what was cut off.
Removed reopen(const std::string& path, const RecordingFormat& format, Disk& disk = system_disk()) {
    Recording recording{{.path = path, .compressed = path.ends_with(".zst"), .format = &format},
                        Recording::StartMode::append,
                        disk};
    return {recording.state.cut_bytes, recording.state.cut_units};
}

} // namespace

TEST_CASE("a frame that was cut at any byte is removed, and nothing before it") {
    struct Row {
        const char* name;
        const RecordingFormat* format;
        std::string before; ///< in a whole frame
        std::string text;   ///< in the last frame
    };

    const std::string head = capture_format().file_header();
    const Row rows[] = {
        {"only one frame", &record_line_format(), "", records(9)},
        {"records after others", &record_line_format(), records(10), records(9)},
        {"a capture", &capture_format(), head + packets_of_500(2), head + packets_of_500(2)},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const std::string before = row.before.empty() ? "" : checked_frame(row.before);
        const std::string frame = checked_frame(row.text);
        for (std::size_t size = 0; size <= frame.size(); ++size) {
            CAPTURE(size);
            const TemporaryFolder folder;
            const std::string path = folder.file("a.zst");
            write_text(path, before + frame.substr(0, size));
            const bool whole = size == frame.size();
            CHECK(reopen(path, *row.format).bytes == (whole ? 0 : size));
            const std::string kept = before + (whole ? frame : "");
            const std::string found = read_text(path);
            CHECK(found.starts_with(kept));
            // Only a head may follow, or an empty frame in an empty file.
            const std::string rest = unpacked(std::string_view{found}.substr(kept.size()));
            CHECK(rest == row.format->file_header());
            CHECK(reopen(path, *row.format).bytes == 0);
        }
    }
}

TEST_CASE("the unfinished end of the last segment is removed, if it is one of a recording") {
    struct Row {
        const char* name;
        std::string last;
        std::string kept;
    };

    const std::string frame = checked_frame(records(9));
    const Row rows[] = {
        {"whole", frame, frame},
        {"cut", frame + frame.substr(0, 20), frame},
        {"something else", "dear diary", "dear diary"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TemporaryFolder folder;
        const std::string torn = frame.substr(0, 20);
        write_text(folder.file("r-20261121T161530Z-0001.jsonl.zst"), torn);
        write_text(folder.file("r-20261121T161630Z-0002.jsonl.zst"), row.last);
        Recording recording{
            {.path = folder.path(),
             .compressed = true,
             .segments =
                 SegmentNames{.folder = folder.path(), .name = "r", .suffix = ".jsonl.zst"}},
            Recording::StartMode::append};
        CHECK(recording.state.cut_bytes == row.last.size() - row.kept.size());
        CHECK(read_text(folder.file("r-20261121T161630Z-0002.jsonl.zst")) == row.kept);
        CHECK(read_text(folder.file("r-20261121T161530Z-0001.jsonl.zst")) == torn);
        CHECK(segments_in(folder.path()).size() == 3);
    }
}

TEST_CASE("the whole units that are removed are counted as far as they can be read") {
    struct Row {
        const char* name;
        const RecordingFormat* format;
        std::string text;
        std::size_t missing; ///< bytes at the end of its frame
        std::uint64_t cut;
    };

    const std::string head = capture_format().file_header();
    const Row rows[] = {
        {"records without their checksum", &record_line_format(), records(3'000), 4, 3'000},
        {"records without their end", &record_line_format(), records(30) + R"({"v":1)", 4, 30},
        {"packets", &capture_format(), head + packets_of_500(300), 4, 300},
        {"nothing that can be read", &record_line_format(), records(30), 900, 0},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TemporaryFolder folder;
        const std::string path = folder.file("a.zst");
        const std::string frame = checked_frame(row.text);
        write_text(path, frame.substr(0, frame.size() - row.missing));
        CHECK(reopen(path, *row.format).units == row.cut);
    }
}

TEST_CASE("an unfinished frame that cannot be removed is an error, and stays") {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.jsonl.zst");
    const std::string frame = checked_frame(records(9));
    const std::string cut = frame + frame.substr(0, frame.size() / 2);
    write_text(path, cut);
    FaultyDisk disk;
    disk.truncates = false;
    CHECK_THROWS_AS(reopen(path, record_line_format(), disk), std::system_error);
    CHECK(read_text(path) == cut);
    // A full disk does not keep the frame from being removed.
    disk.truncates = true;
    disk.room = 0;
    CHECK(reopen(path, record_line_format(), disk).bytes == cut.size() - frame.size());
    CHECK(read_text(path) == frame);
}

TEST_CASE("what nobody recorded live is not cut off, and said what to do about") {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.jsonl.zst");
    const std::string line = records(1);
    std::string text;
    while (text.size() <= (std::size_t{192} << 20U)) {
        text += line;
    }
    const std::string frame = checked_frame(text);
    const std::string cut = frame.substr(0, frame.size() - 10);
    write_text(path, cut);
    try {
        reopen(path, record_line_format());
        FAIL("it was opened");
    } catch (const std::runtime_error& error) {
        CHECK(std::string{error.what()} ==
              path +
                  " ends in the middle of compressed data that was not recorded live and would be "
                  "lost; save what can be read with 'twscope records " +
                  path + " -o OTHER.jsonl.zst', then move it away");
    }
    CHECK(read_text(path) == cut);
}

TEST_CASE("compressed files that hold something else stay as they are") {
    const std::string capture = capture_format().file_header() + packets_of_500(3);
    const TemporaryFolder folder;
    const std::string path = folder.file("a.zst");

    struct Row {
        const char* name;
        const RecordingFormat* format;
        std::string bytes;
        bool foreign;
    };

    const std::string skipped{"\x50\x2A\x4D\x18\x03\x00\x00\x00xyz", 11};
    const Row rows[] = {
        {"nothing", &record_line_format(), checked_frame(""), false},
        {"records", &record_line_format(), checked_frame("") + skipped + checked_frame(records(2)),
         false},
        {"a diary", &record_line_format(), checked_frame("dear diary\n"), true},
        {"a diary behind something", &record_line_format(),
         checked_frame("") + skipped + checked_frame("dear\n"), true},
        {"half a diary", &record_line_format(), checked_frame("dear diary\n").substr(0, 17), true},
        {"JSON of another kind", &record_line_format(), checked_frame("{\"t\":1}\n"), true},
        {"a capture as records", &record_line_format(), checked_frame(capture), true},
        {"a capture", &capture_format(), checked_frame(capture), false},
        {"records as a capture", &capture_format(), checked_frame(records(2)), true},
        {"a long text", &record_line_format(), checked_frame(std::string(1'000'000, 'x')), true},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        write_text(path, row.bytes);
        if (!row.foreign) {
            CHECK_NOTHROW(reopen(path, *row.format));
            continue;
        }
        CHECK_THROWS_AS(reopen(path, *row.format), std::runtime_error);
        CHECK(read_text(path) == row.bytes);
    }
}

TEST_CASE("a last record that lacks only the end of its line gets it") {
    struct Row {
        const char* name;
        std::string last;
        std::string kept;
    };

    const Row rows[] = {
        {"all of it", R"({"v":1,"a":"x"})", "{\"v\":1,\"a\":\"x\"}\n"},
        {"not quite", R"({"v":1,"a":"x")", ""},
        {"something in it", "{\"v\":1,\"a\":\"\x01\"}", ""},
    };
    const std::string before = records(2);
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TemporaryFolder folder;
        const std::string path = folder.file("a.jsonl");
        write_text(path, before + row.last);
        {
            Recording recording{{.path = path}, Recording::StartMode::append};
            recording.write("next\n");
            recording.finish_writing();
        }
        CHECK(read_text(path) == before + row.kept + "next\n");
    }
}
