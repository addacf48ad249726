#include "proxy/store/zstd_frames.h"
#include "tests/proxy/store/zstd_text.h"
#include "tests/support/program.h"

#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

using namespace tw::store;
using namespace tw::test;

namespace {

std::optional<FrameScan> scan(const std::string& bytes) {
    const TemporaryFolder folder;
    write_text(folder.file("frames"), bytes);
    const int file = ::open(folder.file("frames").c_str(), O_RDONLY | O_CLOEXEC);
    const auto found = scan_frames(file);
    ::close(file);
    return found;
}

/// Text that does not compress to nothing.
std::string lines(std::size_t count) {
    std::string text;
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < count; ++i) {
        state = state * 1664525U + 1013904223U;
        text += std::to_string(state) + '\n';
    }
    return text;
}

} // namespace

TEST_CASE("frames that were written are read by the library as one text") {
    ZstdFrameWriter writer;
    std::string out;
    std::string expected;
    std::size_t expected_frames = 0;
    const std::string repetitive(kFrameText, 'x'); // the second one is compressed with less effort
    for (const std::string& text :
         {lines(1), std::string{}, lines(100'000), repetitive, repetitive, lines(10)}) {
        writer.append_frame(text, out);
        expected += text;
        ++expected_frames;
        CHECK((unpacked(out) == expected));
    }
    std::size_t frames = 0;
    for (std::size_t at = 0; at < out.size(); ++frames) {
        const std::size_t size = ZSTD_findFrameCompressedSize(&out[at], out.size() - at);
        REQUIRE(ZSTD_isError(size) == 0);
        at += size;
    }
    CHECK(frames == expected_frames);
    const auto found = scan(out);
    REQUIRE(found);
    CHECK(found->complete_bytes == out.size());
    CHECK_FALSE(found->foreign);
}

TEST_CASE("a file cut at any byte ends where its last whole frame does") {
    const std::string first = packed("one\n");
    const std::string second = packed(lines(200));
    const std::string both = first + second;
    for (std::size_t size = 0; size <= both.size(); ++size) {
        CAPTURE(size);
        const auto found = scan(both.substr(0, size));
        REQUIRE(found);
        CHECK_FALSE(found->foreign);
        CHECK(found->complete_bytes == (size < first.size()  ? 0
                                        : size < both.size() ? first.size()
                                                             : size));
    }
}

TEST_CASE("frames of all forms are stepped over") {
    std::string repeated(std::size_t{1} << 20U, 'x');
    std::string stored(ZSTD_compressBound(100), '\0');
    ZSTD_CCtx* const context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    stored.resize(ZSTD_compress2(context, stored.data(), stored.size(), "abc", 3));
    ZSTD_freeCCtx(context);
    const std::string rows[] = {packed(""),
                                packed(repeated),
                                packed(lines(100'000)),
                                stored,
                                std::string{"\x50\x2A\x4D\x18\x03\x00\x00\x00xyz", 11},
                                std::string{"\x5F\x2A\x4D\x18\x00\x00\x00\x00", 8}};
    std::string all;
    for (const std::string& row : rows) {
        all += row;
        const auto found = scan(all);
        REQUIRE(found);
        CHECK(found->complete_bytes == all.size());
        CHECK_FALSE(found->foreign);
    }
}

TEST_CASE("what is no frame is told apart from what is not finished") {
    const std::string frame = packed("one\n");

    struct Row {
        const char* name;
        std::string bytes;
        std::uint64_t whole;
        bool foreign;
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
        const auto found = scan(row.bytes);
        REQUIRE(found);
        CHECK(found->complete_bytes == row.whole);
        CHECK(found->foreign == row.foreign);
    }
    CHECK_FALSE(scan_frames(-1));
}
