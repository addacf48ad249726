// Covers: proxy/store/byte_source.cpp, proxy/store/zstd_frames.cpp
#include "proxy/store/byte_source.h"
#include "tests/proxy/store/recording_bytes.h"
#include "tests/support/program.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

using namespace tw::store;
using namespace tw::test;

namespace {

struct LineReaderResult {
    std::vector<std::string> lines;
    std::string rest;
    ReadStopReason end = ReadStopReason::file_end;
    std::uint64_t skipped_bytes = 0;
    bool has_damaged_text = false;
};

LineReaderResult read_file_lines(const std::string& path) {
    LineReader reader{path};
    LineReaderResult result;
    for (std::string_view line; reader.next_line(line);) {
        result.lines.emplace_back(line);
    }
    result.rest = reader.unfinished_line();
    result.end = reader.source().stop_reason();
    result.skipped_bytes = reader.source().skipped_bytes();
    result.has_damaged_text = reader.source().has_returned_damaged_text();
    return result;
}

LineReaderResult read_lines_from_bytes(const std::string& bytes) {
    const TemporaryFolder folder;
    write_text(folder.file("a"), bytes);
    return read_file_lines(folder.file("a"));
}

/// Reads bytes from a pipe, which cannot be read twice. Precondition: the pipe has room for them.
LineReaderResult read_lines_from_pipe(const std::string& bytes) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    REQUIRE(::write(ends[1], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    const std::string path = fmt::format("/dev/fd/{}", ends[0]);
    ::close(ends[1]);
    LineReaderResult result = read_file_lines(path);
    ::close(ends[0]);
    return result;
}

void append_to_file(const std::string& path, const std::string& bytes) {
    write_text(path, read_text(path) + bytes);
}

} // namespace

TEST_CASE("lines are read from plain, compressed, truncated and damaged files") {
    const std::string one = frame_without_checksum("one\n");
    const std::string two = frame_without_checksum("two\nthr");
    const std::string three = frame_without_checksum("ee\n");
    const std::string long_line(3'000'000, 'x');
    using Lines = std::vector<std::string>;

    struct Row {
        const char* name;
        std::string bytes;
        Lines lines;
        std::string rest;
        ReadStopReason end = ReadStopReason::file_end;
    };

    const Row rows[] = {
        {"nothing", "", {}, ""},
        {"an empty line", "\n", {""}, ""},
        {"lines", "one\ntwo\n", {"one", "two"}, ""},
        {"lines as Windows ends them", "one\r\n\r\nt\rwo\r\nthr\r", {"one", "", "t\rwo"}, "thr\r"},
        {"half a line", "one\ntw", {"one"}, "tw"},
        {"a long line", long_line + "\ntwo\n", {long_line, "two"}, ""},
        {"frames", one + two + three, {"one", "two", "three"}, ""},
        {"an empty frame first", frame_without_checksum("") + one, {"one"}, ""},
        {"a skippable frame first",
         std::string{"\x50\x2A\x4D\x18\x01\x00\x00\x00x", 9} + one,
         {"one"},
         ""},
        {"frames that compress well",
         frame_without_checksum(long_line + "\n") + one,
         {long_line, "one"},
         ""},
        {"half a frame", one + three.substr(0, 8), {"one"}, "", ReadStopReason::within_frame},
        {"half a line in a frame", one + two, {"one", "two"}, "thr"},
        {"text behind a frame", one + "two\n", {"one"}, "", ReadStopReason::damaged},
        {"a magic number", one.substr(0, 4), {}, "", ReadStopReason::within_frame},
        {"gzip", gzipped("one\ntwo\nthr"), {"one", "two"}, "thr"},
        {"gzip behind gzip", gzipped("one\ntw") + gzipped("o\n"), {"one", "two"}, ""},
        {"gzip of what compresses well", gzipped(long_line + "\n"), {long_line}, ""},
        {"half of gzip", gzipped("one\n").substr(0, 14), {}, "one", ReadStopReason::within_frame},
        {"gzip without its checksum",
         gzipped("one\n").substr(0, gzipped("one\n").size() - 8),
         {"one"},
         "",
         ReadStopReason::within_frame},
        {"a wrong checksum in gzip",
         gzipped("one\n").substr(0, gzipped("one\n").size() - 8) + std::string(8, 'x'),
         {"one"},
         "",
         ReadStopReason::damaged},
        {"text behind gzip", gzipped("one\n") + "two\n", {"one"}, "", ReadStopReason::damaged},
        {"gzip's magic number", "\x1f\x8b\x08", {}, "", ReadStopReason::within_frame},
        {"not quite gzip's", "\x1f\x8b\x09\n", {"\x1f\x8b\x09"}, ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const LineReaderResult found = read_lines_from_bytes(row.bytes);
        CHECK(found.lines == row.lines);
        CHECK(found.rest == row.rest);
        CHECK(found.end == row.end);
    }
}

TEST_CASE("a line that is too long is skipped, and the next line is read") {
    const std::string too_long(tw::sink::kMaxLineBytes + 5'000'000, 'x');
    const TemporaryFolder folder;
    write_text(folder.file("a"), "one\n" + too_long + "\ntwo\n");
    LineReader reader{folder.file("a")};
    std::string_view line;
    REQUIRE(reader.next_line(line));
    CHECK(line == "one");
    REQUIRE(reader.next_line(line));
    CHECK(line == "two");
    CHECK(reader.skipped_bytes() == too_long.size() + 1);
    CHECK_FALSE(reader.next_line(line));
}

TEST_CASE("lines and frames that are appended to a file are read later") {
    const TemporaryFolder folder;
    for (const bool zst : {false, true}) {
        CAPTURE(zst);
        const std::string path = folder.file(zst ? "b" : "a");
        const auto form = [&](const std::string& text) {
            return zst ? frame_without_checksum(text) : text;
        };
        write_text(path, form("one\n"));
        LineReader reader{path};
        std::string_view line;
        REQUIRE(reader.next_line(line));
        CHECK(line == "one");
        CHECK_FALSE(reader.next_line(line));
        const std::string next = form("two\n");
        append_to_file(path, next.substr(0, next.size() - 1));
        CHECK_FALSE(reader.next_line(line));
        append_to_file(path, next.substr(next.size() - 1));
        REQUIRE(reader.next_line(line));
        CHECK(line == "two");
        CHECK_FALSE(reader.next_line(line));
        CHECK(reader.source().stop_reason() == ReadStopReason::file_end);
    }
}

TEST_CASE("a damaged frame is skipped, and the frames around it are read") {
    std::string lines;
    for (int i = 0; i < 40; ++i) {
        lines += std::to_string(i * i * i) + "\n";
    }
    const std::string first = frame_with_checksum("first\n");
    const std::string second = frame_with_checksum(lines);
    const std::string third = frame_with_checksum("third\n");
    std::vector<std::string> with{"first"};
    for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) {
        with.push_back(lines.substr(at, lines.find('\n', at) - at));
    }
    with.emplace_back("third");
    const std::vector<std::string> without{"first", "third"};
    std::size_t skipped_bytes = 0;
    constexpr unsigned kBits = 8;
    for (std::size_t at = 0; at < second.size(); ++at) {
        for (const std::size_t bit : {at % kBits, (at + 3) % kBits}) {
            CAPTURE(at);
            CAPTURE(bit);
            std::string bytes = second;
            bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << bit));
            const LineReaderResult found = read_lines_from_bytes(first + bytes + third);
            CHECK((found.lines == without || found.lines == with));
            CHECK(found.end == ReadStopReason::file_end);
            skipped_bytes += found.lines == without ? 1U : 0U;
            CHECK((found.lines == with || found.skipped_bytes == bytes.size()));
            CHECK(read_lines_from_pipe(first + bytes + third).lines == found.lines);
        }
    }
    CHECK(skipped_bytes > second.size()); // changes of a few bits do not matter
    CHECK(read_lines_from_bytes(first + second.substr(0, 50) + third).lines == without);
    CHECK(read_lines_from_bytes(first + second.substr(3) + third).skipped_bytes ==
          second.size() - 3);
    CHECK(read_lines_from_bytes(first + std::string(100'000, 'x') + third).lines == without);
}

TEST_CASE("a file whose every byte may begin a long damaged frame is read in bounded time") {
    using namespace std::string_view_literals;
    // A frame of stored blocks of 15 bytes. Each ends where the next frame has its first block.
    constexpr std::string_view kBegin = "\x28\xB5\x2F\xFD\x00\x58\x78\x00\x00"sv;
    std::string nested;
    for (std::size_t i = 0; i < 200'000; ++i) {
        nested += kBegin;
    }
    const LineReaderResult found =
        read_lines_from_bytes(nested + std::string(1'000'000, 'x') + frame_with_checksum("last\n"));
    CHECK_FALSE(found.lines.empty());
    CHECK(found.lines.back() == "last");
}

TEST_CASE("the parts of a line around a damaged frame are not joined") {
    const std::string broken = frame_with_checksum("lost\n").replace(9, 1, "x");
    const LineReaderResult found = read_lines_from_bytes(
        frame_with_checksum("one\n{\"a\":{}") + broken + broken + frame_with_checksum("}\ntwo\n"));
    CHECK(found.lines == std::vector<std::string>{"one", "{\"a\":{}\x18", "}", "two"});
    CHECK(found.skipped_bytes == 2 * broken.size());
    CHECK_FALSE(found.has_damaged_text);
}

TEST_CASE("a reader reports that it returned text of a large damaged frame") {
    std::string text;
    while (text.size() <= std::size_t{100} << 20U) {
        text += "a line\n";
    }
    std::string frame = frame_with_checksum(text);
    frame.back() = static_cast<char>(frame.back() ^ 1);
    const TemporaryFolder folder;
    write_text(folder.file("a"), frame + frame_with_checksum("next\n"));
    LineReader reader{folder.file("a")};
    std::string last;
    for (std::string_view line; reader.next_line(line);) {
        last = line;
    }
    CHECK(last == "next");
    CHECK(reader.source().has_returned_damaged_text());
    CHECK(reader.source().skipped_bytes() == frame.size());
}

TEST_CASE("frames that are appended after damaged data are read") {
    const TemporaryFolder folder;
    const std::string path = folder.file("a");
    const std::string frame = frame_with_checksum("two\n");
    write_text(path, frame_with_checksum("one\n") + "no frame" + frame.substr(0, 2));
    LineReader reader{path};
    std::string_view line;
    REQUIRE(reader.next_line(line));
    CHECK_FALSE(reader.next_line(line));
    CHECK(reader.source().stop_reason() == ReadStopReason::damaged);
    append_to_file(path, frame.substr(2));
    REQUIRE(reader.next_line(line));
    CHECK(line == "two");
    CHECK(reader.source().skipped_bytes() == 8);
}

TEST_CASE("a frame that needs too large a window is not reported as damaged") {
    ZSTD_CCtx* const context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 28);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    std::string frame(1000, '\0');
    ZSTD_inBuffer in{.src = "one\n", .size = 4, .pos = 0};
    ZSTD_outBuffer out{.dst = frame.data(), .size = frame.size(), .pos = 0};
    REQUIRE(ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush) == 0);
    REQUIRE(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end) == 0);
    ZSTD_freeCCtx(context);
    const LineReaderResult found = read_lines_from_bytes(frame.substr(0, out.pos));
    CHECK(found.lines.empty());
    CHECK(found.end == ReadStopReason::window_too_large);
}

TEST_CASE("a file that cannot be opened or read is an error") {
    const TemporaryFolder folder;
    CHECK_THROWS_AS(LineReader{folder.file("nothing")}, std::system_error);
    LineReader reader{folder.path()};
    std::string_view line;
    CHECK_FALSE(reader.next_line(line));
    CHECK(reader.source().stop_reason() == ReadStopReason::read_error);
}

using namespace tw;
using namespace tw::test;

TEST_CASE("the start of a file is decompressed, and the data of a pipe is not consumed") {
    const TemporaryFolder folder;
    const std::string file = folder.file("file");
    write_text(file, "some text\n");
    CHECK(store::FileStartReader{file, 4}.bytes() == "some");
    CHECK(store::FileStartReader{file, 40}.bytes() == "some text\n");
    CHECK(store::FileStartReader{folder.file("missing"), 4}.bytes().empty());
    CHECK(store::FileStartReader{folder.path(), 4}.bytes().empty());
    CHECK(store::FileStartReader{"/dev/null", 4}.bytes().empty());

    std::array<int, 2> pipe{};
    REQUIRE(::pipe(pipe.data()) == 0);
    constexpr std::string_view kLines = "first\nsecond\n";
    REQUIRE(::write(pipe[1], kLines.data(), kLines.size()) == 13);
    ::close(pipe[1]);
    const std::string name = fmt::format("/dev/fd/{}", pipe[0]);
    CHECK(store::FileStartReader{name, 7}.bytes() == "first\ns");
    CHECK(store::FileStartReader{name, 40}.bytes() == kLines);
    store::LineReader lines{name};
    std::string_view line;
    REQUIRE(lines.next_line(line));
    CHECK(line == "first");
    ::close(pipe[0]);
}
