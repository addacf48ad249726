// Covers: proxy/store/recording.cpp
#include "proxy/store/recording.h"
#include "tests/proxy/store/faulty_disk.h"
#include "tests/proxy/store/recording_bytes.h"
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

/// Returns this many records. They contain random numbers, so that they cannot be compressed much.
std::string make_record_lines(std::size_t count) {
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

/// Returns the blocks of a capture with this many packets of 500 bytes.
std::string capture_blocks_of_500(std::size_t count) {
    return capture_blocks(std::vector<std::size_t>(count, 500));
}

struct CutOffData {
    std::uint64_t bytes;
    std::uint64_t entries;
};

/// Opens a recording to append to it, and closes it. Returns how much data was cut off.
CutOffData open_and_repair(const std::string& path, const RecordingFormat& format,
                           Disk& disk = system_disk()) {
    Recording recording{{.path = path, .compressed = path.ends_with(".zst"), .format = &format},
                        Recording::StartMode::append,
                        disk};
    return {recording.state.cut_off_bytes, recording.state.num_cut_off_entries};
}

} // namespace

TEST_CASE("a frame truncated at any byte is removed, and nothing before it") {
    struct Row {
        const char* name;
        const RecordingFormat* format;
        std::string before; ///< text in a complete frame before the last frame
        std::string text;   ///< text in the last frame, which is truncated
    };

    const std::string head = capture_format().file_header();
    const Row rows[] = {
        {"only one frame", &record_line_format(), "", make_record_lines(9)},
        {"records after others", &record_line_format(), make_record_lines(10),
         make_record_lines(9)},
        {"a capture", &capture_format(), head + capture_blocks_of_500(2),
         head + capture_blocks_of_500(2)},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const std::string before = row.before.empty() ? "" : frame_with_checksum(row.before);
        const std::string frame = frame_with_checksum(row.text);
        for (std::size_t size = 0; size <= frame.size(); ++size) {
            CAPTURE(size);
            const TemporaryFolder folder;
            const std::string path = folder.file("a.zst");
            write_text(path, before + frame.substr(0, size));
            const bool whole = size == frame.size();
            CHECK(open_and_repair(path, *row.format).bytes == (whole ? 0 : size));
            const std::string kept = before + (whole ? frame : "");
            const std::string found = read_text(path);
            CHECK(found.starts_with(kept));
            // After the kept frames, the file contains only a new header, or an empty frame.
            const std::string rest = decompressed_text(std::string_view{found}.substr(kept.size()));
            CHECK(rest == row.format->file_header());
            CHECK(open_and_repair(path, *row.format).bytes == 0);
        }
    }
}

TEST_CASE("the unfinished end of the last segment is removed if it is part of a recording") {
    struct Row {
        const char* name;
        std::string last;
        std::string kept;
    };

    const std::string frame = frame_with_checksum(make_record_lines(9));
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
        CHECK(recording.state.cut_off_bytes == row.last.size() - row.kept.size());
        CHECK(read_text(folder.file("r-20261121T161630Z-0002.jsonl.zst")) == row.kept);
        CHECK(read_text(folder.file("r-20261121T161530Z-0001.jsonl.zst")) == torn);
        CHECK(list_segments(folder.path()).size() == 3);
    }
}

TEST_CASE("the complete entries that are removed are counted if they can be read") {
    struct Row {
        const char* name;
        const RecordingFormat* format;
        std::string text;
        std::size_t missing; ///< number of bytes that are missing at the end of the frame
        std::uint64_t cut;
    };

    const std::string head = capture_format().file_header();
    const Row rows[] = {
        {"records without their checksum", &record_line_format(), make_record_lines(3'000), 4,
         3'000},
        {"records without their end", &record_line_format(), make_record_lines(30) + R"({"v":1)", 4,
         30},
        {"packets", &capture_format(), head + capture_blocks_of_500(300), 4, 300},
        {"nothing that can be read", &record_line_format(), make_record_lines(30), 900, 0},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TemporaryFolder folder;
        const std::string path = folder.file("a.zst");
        const std::string frame = frame_with_checksum(row.text);
        write_text(path, frame.substr(0, frame.size() - row.missing));
        CHECK(open_and_repair(path, *row.format).entries == row.cut);
    }
}

TEST_CASE("an unfinished frame that cannot be removed is an error, and stays") {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.jsonl.zst");
    const std::string frame = frame_with_checksum(make_record_lines(9));
    const std::string cut = frame + frame.substr(0, frame.size() / 2);
    write_text(path, cut);
    FaultyDisk disk;
    disk.can_truncate = false;
    CHECK_THROWS_AS(open_and_repair(path, record_line_format(), disk), std::system_error);
    CHECK(read_text(path) == cut);
    // The frame is removed even if the disk is full.
    disk.can_truncate = true;
    disk.room = 0;
    CHECK(open_and_repair(path, record_line_format(), disk).bytes == cut.size() - frame.size());
    CHECK(read_text(path) == frame);
}

TEST_CASE(
    "unfinished data that twscope did not record is not cut off, and the error says what to do") {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.jsonl.zst");
    const std::string line = make_record_lines(1);
    std::string text;
    while (text.size() <= (std::size_t{192} << 20U)) {
        text += line;
    }
    const std::string frame = frame_with_checksum(text);
    const std::string cut = frame.substr(0, frame.size() - 10);
    write_text(path, cut);
    try {
        open_and_repair(path, record_line_format());
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

TEST_CASE("compressed files with other data are not changed") {
    const std::string capture = capture_format().file_header() + capture_blocks_of_500(3);
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
        {"nothing", &record_line_format(), frame_with_checksum(""), false},
        {"records", &record_line_format(),
         frame_with_checksum("") + skipped + frame_with_checksum(make_record_lines(2)), false},
        {"a diary", &record_line_format(), frame_with_checksum("dear diary\n"), true},
        {"a diary behind something", &record_line_format(),
         frame_with_checksum("") + skipped + frame_with_checksum("dear\n"), true},
        {"half a diary", &record_line_format(), frame_with_checksum("dear diary\n").substr(0, 17),
         true},
        {"JSON of another kind", &record_line_format(), frame_with_checksum("{\"t\":1}\n"), true},
        {"a capture as records", &record_line_format(), frame_with_checksum(capture), true},
        {"a capture", &capture_format(), frame_with_checksum(capture), false},
        {"records as a capture", &capture_format(), frame_with_checksum(make_record_lines(2)),
         true},
        {"a long text", &record_line_format(), frame_with_checksum(std::string(1'000'000, 'x')),
         true},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        write_text(path, row.bytes);
        if (!row.foreign) {
            CHECK_NOTHROW(open_and_repair(path, *row.format));
            continue;
        }
        CHECK_THROWS_AS(open_and_repair(path, *row.format), std::runtime_error);
        CHECK(read_text(path) == row.bytes);
    }
}

TEST_CASE("a last record that lacks only its newline is completed") {
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
    const std::string before = make_record_lines(2);
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
