// Covers: proxy/sink/recording.cpp
#include "proxy/sink/capture_sink.h"
#include "proxy/sink/recording.h"
#include "proxy/sink/zstd_frames.h"
#include "tests/proxy/sink/faulty_disk.h"
#include "tests/proxy/sink/zstd_text.h"
#include "tests/support/program.h"

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using namespace tw::sink;
using namespace tw::test;

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

std::string packets(std::size_t count) {
    std::string text;
    CaptureGathering gathering{[&text](std::span<const std::byte> blocks) {
        text.append(reinterpret_cast<const char*>(blocks.data()), blocks.size());
        return true;
    }};
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<std::byte> datagram(500);
        for (std::byte& byte : datagram) {
            state = state * 1664525U + 1013904223U;
            byte = static_cast<std::byte>(state >> 24U);
        }
        gathering.blocks().on_datagram({.session = 1}, datagram);
        gathering.end_datagram();
    }
    gathering.flush();
    return text;
}

std::string frame_of(std::string_view text) {
    FrameWriter writer;
    std::string frame;
    writer.add(text, frame);
    writer.end(frame);
    return frame;
}

std::string whole_frame_of(std::string_view text) {
    FrameWriter writer;
    std::string frame;
    writer.add_whole(text, frame);
    return frame;
}

/// Goes on behind what is there, and writes nothing.
std::uint64_t reopen(const std::string& path, const Framing& units, Disk& disk = system_disk()) {
    Recording recording{{.path = path, .compressed = path.ends_with(".zst"), .units = &units},
                        Recording::Begin::behind,
                        disk};
    return recording.take_cut_bytes();
}

} // namespace

TEST_CASE("of compressed data that was cut anywhere every unit stays that can be read") {
    struct Row {
        const char* name;
        const Framing* units;
        std::string before; ///< in frames that are whole
        std::string text;   ///< in the last one
        std::size_t heads;  ///< bytes that are written behind what is there
        std::string (*pack)(std::string_view) = &frame_of;
    };

    const std::string head = capture_units().head();
    const Row rows[] = {
        {"one frame of records", &record_lines(), "", records(6'000), 0},
        {"records at once", &record_lines(), records(10), records(3'000), 0, &whole_frame_of},
        {"records behind others", &record_lines(), records(10), records(3'000), 0},
        {"a capture of one frame", &capture_units(), "", head + packets(1'000), head.size()},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const std::string before = row.before.empty() ? "" : frame_of(row.before);
        const std::string frame = row.pack(row.text);
        for (std::size_t size = frame.size(); size > 100;
             size -= std::min(size, frame.size() / 13)) {
            CAPTURE(size);
            const TemporaryFolder folder;
            const std::string path = folder.file("a.zst");
            const std::string cut = before + frame.substr(0, size);
            write_text(path, cut);
            const std::string readable = unpacked(cut).substr(row.before.size());
            const std::string kept = row.before + readable.substr(0, row.units->whole(readable));
            const std::uint64_t cut_bytes = reopen(path, *row.units);
            CHECK(cut_bytes < 200'000);
            CHECK((cut_bytes != 0) == (size != frame.size()));
            const std::string text = unpacked(read_text(path));
            CHECK(text.substr(0, text.size() - row.heads) == kept);
            CHECK(reopen(path, *row.units) == 0);
            CHECK(unpacked(read_text(path)).substr(0, kept.size()) == kept);
        }
    }
}

TEST_CASE("a file that is being mended when all ends has lost nothing") {
    const std::string text = records(3'000);
    const std::string frame = frame_of(text);
    const std::string cut = frame.substr(0, frame.size() - 10);
    const std::string readable = unpacked(cut);
    const std::string kept = readable.substr(0, readable.rfind('\n') + 1);
    REQUIRE(kept.size() > 100'000);

    const TemporaryFolder folder;
    const std::string path = folder.file("a.jsonl.zst");
    for (const std::uint64_t room : {std::uint64_t{0}, std::uint64_t{50'000}, UINT64_MAX}) {
        for (const bool truncates : {true, false}) {
            CAPTURE(room);
            CAPTURE(truncates);
            write_text(path, cut);
            if (!truncates) { // as after the first step
                reopen(path, record_lines());
                write_text(path, cut);
            }
            FaultyDisk disk;
            disk.room = room;
            disk.patches = false;
            CHECK_THROWS_AS(reopen(path, record_lines(), disk), std::system_error);
            CHECK(unpacked(read_text(path)) == readable);
            // Killed before it could take back what it had appended.
            const std::string alone = read_text(path);
            for (const std::size_t size : {std::size_t{5}, std::size_t{9'000}, frame.size()}) {
                write_text(path, alone + frame_of(kept).substr(0, size));
                CHECK(reopen(path, record_lines()) != 0);
                CHECK(unpacked(read_text(path)) == kept);
            }
        }
    }
}

TEST_CASE("what nobody recorded live is not cut off, and said what to do about") {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.jsonl.zst");
    const std::string line = records(1);
    std::string text;
    while (text.size() <= 3 * kMaxFrameText) {
        text += line;
    }
    const std::string frame = frame_of(text);
    const std::string cut = frame.substr(0, frame.size() - 10);
    write_text(path, cut);
    try {
        reopen(path, record_lines());
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
    const std::string capture = capture_units().head() + packets(3);
    const TemporaryFolder folder;
    const std::string path = folder.file("a.zst");

    struct Row {
        const char* name;
        const Framing* units;
        std::string bytes;
        bool foreign;
    };

    const std::string skipped{"\x50\x2A\x4D\x18\x03\x00\x00\x00xyz", 11};
    const Row rows[] = {
        {"nothing", &record_lines(), frame_of(""), false},
        {"records", &record_lines(), frame_of("") + skipped + frame_of(records(2)), false},
        {"a diary", &record_lines(), frame_of("dear diary\n"), true},
        {"a diary behind something", &record_lines(), frame_of("") + skipped + frame_of("dear\n"),
         true},
        {"half a diary", &record_lines(), frame_of("dear diary\n").substr(0, 17), true},
        {"JSON of another kind", &record_lines(), frame_of("{\"t\":1}\n"), true},
        {"a capture as records", &record_lines(), frame_of(capture), true},
        {"a capture", &capture_units(), frame_of(capture), false},
        {"records as a capture", &capture_units(), frame_of(records(2)), true},
        {"a long text", &record_lines(), frame_of(std::string(1'000'000, 'x')), true},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        write_text(path, row.bytes);
        if (!row.foreign) {
            CHECK_NOTHROW(reopen(path, *row.units));
            continue;
        }
        CHECK_THROWS_AS(reopen(path, *row.units), std::runtime_error);
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
        for (const std::string name : {"a.jsonl", "a.jsonl.zst"}) {
            CAPTURE(row.name);
            CAPTURE(name);
            const TemporaryFolder folder;
            const std::string path = folder.file(name);
            const bool zst = name.ends_with(".zst");
            const std::string text = before + row.last;
            const std::string frame = frame_of(text);
            write_text(path, zst ? frame.substr(0, frame.size() - 3) : text);
            {
                Recording recording{{.path = path, .compressed = zst}, Recording::Begin::behind};
                recording.write("next\n");
                recording.finish();
            }
            const std::string found = zst ? unpacked(read_text(path)) : read_text(path);
            CHECK(found == before + row.kept + "next\n");
        }
    }
}
