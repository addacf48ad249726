// Covers: proxy/sink/byte_source.cpp, proxy/sink/unpacker.cpp
#include "proxy/sink/line_reader.h"
#include "tests/proxy/sink/zstd_text.h"
#include "tests/support/program.h"

#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <doctest/doctest.h>
#include <zlib.h>

using namespace tw::sink;
using namespace tw::test;

namespace {

struct Read {
    std::vector<std::string> lines;
    std::string rest;
    FileEnd end = FileEnd::whole;
};

Read read(const std::string& bytes) {
    const TemporaryFolder folder;
    write_text(folder.file("a"), bytes);
    LineReader reader{folder.file("a")};
    Read result;
    for (std::string_view line; reader.next(line);) {
        result.lines.emplace_back(line);
    }
    result.rest = reader.rest();
    result.end = reader.source().end();
    return result;
}

/// As gzip(1) writes it.
std::string gzipped(const std::string& text) {
    constexpr int kGzipWindow = 16 + MAX_WBITS;
    constexpr int kMemory = 8;
    z_stream stream{};
    REQUIRE(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemory,
                         Z_DEFAULT_STRATEGY) == Z_OK);
    std::string in = text;
    std::string out(deflateBound(&stream, text.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(in.data());
    stream.avail_in = static_cast<uInt>(in.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    out.resize(out.size() - stream.avail_out);
    deflateEnd(&stream);
    return out;
}

void append(const std::string& path, const std::string& bytes) {
    write_text(path, read_text(path) + bytes);
}

} // namespace

TEST_CASE("lines are read from files of any form and damage") {
    const std::string one = packed("one\n");
    const std::string two = packed("two\nthr");
    const std::string three = packed("ee\n");
    const std::string long_line(3'000'000, 'x');
    using Lines = std::vector<std::string>;

    struct Row {
        const char* name;
        std::string bytes;
        Lines lines;
        std::string rest;
        FileEnd end = FileEnd::whole;
    };

    const Row rows[] = {
        {"nothing", "", {}, ""},
        {"an empty line", "\n", {""}, ""},
        {"lines", "one\ntwo\n", {"one", "two"}, ""},
        {"lines as Windows ends them", "one\r\n\r\nt\rwo\r\nthr\r", {"one", "", "t\rwo"}, "thr\r"},
        {"half a line", "one\ntw", {"one"}, "tw"},
        {"a long line", long_line + "\ntwo\n", {long_line, "two"}, ""},
        {"frames", one + two + three, {"one", "two", "three"}, ""},
        {"an empty frame first", packed("") + one, {"one"}, ""},
        {"a skippable frame first",
         std::string{"\x50\x2A\x4D\x18\x01\x00\x00\x00x", 9} + one,
         {"one"},
         ""},
        {"frames that compress well", packed(long_line + "\n") + one, {long_line, "one"}, ""},
        {"half a frame", one + three.substr(0, 8), {"one"}, "", FileEnd::within_frame},
        {"half a line in a frame", one + two, {"one", "two"}, "thr"},
        {"text behind a frame", one + "two\n", {"one"}, "", FileEnd::damaged},
        {"a magic number", one.substr(0, 4), {}, "", FileEnd::within_frame},
        {"gzip", gzipped("one\ntwo\nthr"), {"one", "two"}, "thr"},
        {"gzip behind gzip", gzipped("one\ntw") + gzipped("o\n"), {"one", "two"}, ""},
        {"gzip of what compresses well", gzipped(long_line + "\n"), {long_line}, ""},
        {"half of gzip", gzipped("one\n").substr(0, 14), {}, "one", FileEnd::within_frame},
        {"gzip without its checksum",
         gzipped("one\n").substr(0, gzipped("one\n").size() - 8),
         {"one"},
         "",
         FileEnd::within_frame},
        {"a wrong checksum in gzip",
         gzipped("one\n").substr(0, gzipped("one\n").size() - 8) + std::string(8, 'x'),
         {"one"},
         "",
         FileEnd::damaged},
        {"text behind gzip", gzipped("one\n") + "two\n", {"one"}, "", FileEnd::damaged},
        {"gzip's magic number", "\x1f\x8b\x08", {}, "", FileEnd::within_frame},
        {"not quite gzip's", "\x1f\x8b\x09\n", {"\x1f\x8b\x09"}, ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Read found = read(row.bytes);
        CHECK(found.lines == row.lines);
        CHECK(found.rest == row.rest);
        CHECK(found.end == row.end);
    }
}

TEST_CASE("a line that is too long is left out, and the next one is read") {
    const std::string too_long(LineReader::kMaxLineBytes + 5'000'000, 'x');
    const TemporaryFolder folder;
    write_text(folder.file("a"), "one\n" + too_long + "\ntwo\n");
    LineReader reader{folder.file("a")};
    std::string_view line;
    REQUIRE(reader.next(line));
    CHECK(line == "one");
    REQUIRE(reader.next(line));
    CHECK(line == "two");
    CHECK(reader.skipped() == too_long.size() + 1);
    CHECK_FALSE(reader.next(line));
}

TEST_CASE("a file that grows is read on, line by line and frame by frame") {
    const TemporaryFolder folder;
    for (const bool zst : {false, true}) {
        CAPTURE(zst);
        const std::string path = folder.file(zst ? "b" : "a");
        const auto form = [&](const std::string& text) { return zst ? packed(text) : text; };
        write_text(path, form("one\n"));
        LineReader reader{path};
        std::string_view line;
        REQUIRE(reader.next(line));
        CHECK(line == "one");
        CHECK_FALSE(reader.next(line));
        const std::string next = form("two\n");
        append(path, next.substr(0, next.size() - 1));
        CHECK_FALSE(reader.next(line));
        append(path, next.substr(next.size() - 1));
        REQUIRE(reader.next(line));
        CHECK(line == "two");
        CHECK_FALSE(reader.next(line));
        CHECK(reader.source().end() == FileEnd::whole);
    }
}

TEST_CASE("what cannot be opened or read says so") {
    const TemporaryFolder folder;
    CHECK_THROWS_AS(LineReader{folder.file("nothing")}, std::system_error);
    LineReader reader{folder.path()};
    std::string_view line;
    CHECK_FALSE(reader.next(line));
    CHECK(reader.source().end() == FileEnd::unreadable);
}
