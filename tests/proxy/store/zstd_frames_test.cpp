#include "proxy/store/zstd_frames.h"
#include "tests/proxy/store/recording_bytes.h"
#include "tests/support/program.h"

#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

using namespace tw::store;
using namespace tw::test;

namespace {

std::optional<FrameScan> scan_zstd_frames(const std::string& bytes) {
    const TemporaryFolder folder;
    write_text(folder.file("frames"), bytes);
    const int file = ::open(folder.file("frames").c_str(), O_RDONLY | O_CLOEXEC);
    const auto found = scan_frames(file);
    ::close(file);
    return found;
}

/// Returns this many lines with random numbers, so that they cannot be compressed much.
std::string make_random_lines(std::size_t count) {
    std::string text;
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < count; ++i) {
        state = state * 1664525U + 1013904223U;
        text += std::to_string(state) + '\n';
    }
    return text;
}

} // namespace

TEST_CASE("the zstd library reads written frames as one text") {
    ZstdFrameWriter writer;
    std::string out;
    std::string expected;
    std::size_t expected_frames = 0;
    const std::string repetitive(kFrameTextBytes,
                                 'x'); // the second frame is compressed with kFastCompressionLevel
    for (const std::string& text : {make_random_lines(1), std::string{}, make_random_lines(100'000),
                                    repetitive, repetitive, make_random_lines(10)}) {
        writer.append_frame(text, out);
        expected += text;
        ++expected_frames;
        CHECK((decompressed_text(out) == expected));
    }
    std::size_t frames = 0;
    for (std::size_t at = 0; at < out.size(); ++frames) {
        const std::size_t size = ZSTD_findFrameCompressedSize(&out[at], out.size() - at);
        REQUIRE(ZSTD_isError(size) == 0);
        at += size;
    }
    CHECK(frames == expected_frames);
    const auto found = scan_zstd_frames(out);
    REQUIRE(found);
    CHECK(found->complete_bytes == out.size());
    CHECK_FALSE(found->has_foreign_data);
}

TEST_CASE("in a file truncated at any byte, the complete frames are found") {
    const std::string first = frame_without_checksum("one\n");
    const std::string second = frame_without_checksum(make_random_lines(200));
    const std::string both = first + second;
    for (std::size_t size = 0; size <= both.size(); ++size) {
        CAPTURE(size);
        const auto found = scan_zstd_frames(both.substr(0, size));
        REQUIRE(found);
        CHECK_FALSE(found->has_foreign_data);
        CHECK(found->complete_bytes == (size < first.size()  ? 0
                                        : size < both.size() ? first.size()
                                                             : size));
    }
}

TEST_CASE("all kinds of zstd frames are found") {
    std::string repeated(std::size_t{1} << 20U, 'x');
    std::string stored(ZSTD_compressBound(100), '\0');
    ZSTD_CCtx* const context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    stored.resize(ZSTD_compress2(context, stored.data(), stored.size(), "abc", 3));
    ZSTD_freeCCtx(context);
    const std::string rows[] = {frame_without_checksum(""),
                                frame_without_checksum(repeated),
                                frame_without_checksum(make_random_lines(100'000)),
                                stored,
                                std::string{"\x50\x2A\x4D\x18\x03\x00\x00\x00xyz", 11},
                                std::string{"\x5F\x2A\x4D\x18\x00\x00\x00\x00", 8}};
    std::string all;
    for (const std::string& row : rows) {
        all += row;
        const auto found = scan_zstd_frames(all);
        REQUIRE(found);
        CHECK(found->complete_bytes == all.size());
        CHECK_FALSE(found->has_foreign_data);
    }
}

TEST_CASE("data that is not a frame is distinguished from an unfinished frame") {
    const std::string frame = frame_without_checksum("one\n");

    struct Row {
        const char* name;
        std::string bytes;
        std::uint64_t whole;
        bool has_foreign_data;
    };

    const Row rows[] = {
        {"nothing", "", 0, false},
        {"text", "{\"v\":1}\n", 0, true},
        {"text behind a frame", frame + "{\"v\":1}\n", frame.size(), true},
        {"zeros, as power loss leaves them", frame + std::string(5000, '\0'), frame.size(), false},
        {"zeros and something", frame + std::string(50, '\0') + "x", frame.size(), true},
        {"a reserved block", std::string{"\x28\xB5\x2F\xFD\x00\x58\x07\x00\x00\x00", 10}, 0, true},
        {"a block longer than the file", std::string{"\x28\xB5\x2F\xFD\x00\x58\xF9\xFF\xFF", 9}, 0,
         false},
        {"a skippable frame longer than the file",
         std::string{"\x50\x2A\x4D\x18\xFF\xFF\xFF\x00", 8}, 0, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto found = scan_zstd_frames(row.bytes);
        REQUIRE(found);
        CHECK(found->complete_bytes == row.whole);
        CHECK(found->has_foreign_data == row.has_foreign_data);
    }
    CHECK_FALSE(scan_frames(-1));
}
