// Covers: proxy/sink/file_output.cpp
#include "proxy/sink/capture_sink.h"
#include "proxy/sink/file_output.h"
#include "proxy/sink/recording.h"
#include "tests/proxy/sink/faulty_disk.h"
#include "tests/support/program.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using namespace tw::sink;

namespace {

/// Packets as blocks, each with so many bytes in it.
std::string packets(const std::vector<std::size_t>& sizes) {
    std::string text;
    CaptureBlockBuffer block_buffer{[&text](std::span<const std::byte> blocks) {
        text.append(reinterpret_cast<const char*>(blocks.data()), blocks.size());
        return true;
    }};
    for (const std::size_t size : sizes) {
        const std::vector<std::byte> datagram(size, std::byte{'\n'});
        block_buffer.blocks().on_datagram({.session = 1}, datagram);
        block_buffer.end_datagram();
    }
    block_buffer.flush();
    return text;
}

} // namespace

TEST_CASE("a text is cut between its units only") {
    const std::string one = packets({10});
    const std::string two = packets({10, 500});

    struct Row {
        const char* name;
        const Framing* units;
        std::string text;
        std::size_t first; ///< bytes of its first unit
        std::uint64_t count;
    };

    const Row rows[] = {
        {"lines", &record_lines(), "one\ntwo\n", 4, 2},
        {"one line", &record_lines(), "one\n", 4, 1},
        {"packets", &capture_units(), two, one.size(), 2},
        {"a head, then packets", &capture_units(), capture_units().file_header() + two, 0, 2},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(row.units->count_units(row.text) == row.count);
        CHECK(row.units->size_of_whole_units(row.text) == row.text.size());
        CHECK(row.units->size_of_first_units(row.text, row.text.size()) == row.text.size());
        if (row.first != 0) {
            CHECK(row.units->size_of_first_units(row.text, 1) == row.first);
            CHECK(row.units->size_of_first_units(row.text, row.first) == row.first);
        }
        for (std::size_t cut = 0; cut < row.text.size(); ++cut) {
            const std::string_view torn = std::string_view{row.text}.substr(0, cut);
            const std::size_t whole = row.units->size_of_whole_units(torn);
            REQUIRE(whole <= cut);
            REQUIRE(row.units->size_of_whole_units(torn.substr(0, whole)) == whole);
            REQUIRE(
                (whole == 0 || row.units->size_of_whole_units(torn.substr(0, whole - 1)) < whole));
        }
    }
}

TEST_CASE("what are no blocks are counted as none, whatever lengths they claim") {
    for (const std::string& text :
         {std::string(100, '\0'), std::string(100, '\xff'), std::string{"\n\r\r\n"},
          std::string{"\x06\0\0\0\x0b\0\0\0aaa", 11},
          std::string{"\x06\0\0\0\xfc\xff\xff\xff", 8}}) {
        CAPTURE(text);
        CHECK(capture_units().count_units(text) == 0);
        CHECK(capture_units().size_of_whole_units(text) == 0);
        CHECK(capture_units().size_of_first_units(text, 1) == text.size());
    }
}

TEST_CASE("a capture on a disk that is full holds whole packets, and goes on with what waited") {
    for (const char* const name : {"a.pcapng", "a.pcapng.zst"}) {
        CAPTURE(name);
        const bool packed = std::string_view{name}.ends_with(".zst");
        const test::TemporaryFolder folder;
        test::FaultyDisk disk;
        const std::string first = packets({100, 200});
        const std::string second = packets({300, 400, 500});
        Recording recording{{.path = folder.file(name),
                             .compressed = packed,
                             .units = &capture_units(),
                             .readers = Readers::owner},
                            Recording::StartMode::behind,
                            disk};
        auto now = OutputFile::Clock::now();
        const auto pass = [&] { recording.on_time(now += std::chrono::seconds{2}); };
        recording.write(first);
        pass();
        disk.room = packed ? 20 : packets({300}).size() + 50;
        recording.write(second);
        pass();
        CHECK(recording.failed());
        if (!packed) {
            CHECK(test::read_text(folder.file(name)) ==
                  capture_units().file_header() + first + packets({300}));
        }
        recording.write(first); // and is lost
        CHECK(recording.lost() == 2);
        disk.room = UINT64_MAX;
        pass();
        CHECK(!recording.failed());
        recording.finish();
        CHECK(recording.lost() == 2);
        if (!packed) {
            CHECK(test::read_text(folder.file(name)) ==
                  fmt::format("{}{}{}", capture_units().file_header(), first, second));
        }
    }
}

TEST_CASE("what is missing in a capture stands there") {
    const std::string said = capture_units().loss_unit({.count = 12, .cause = "disk_full"}, 5);
    CHECK(said.find("twscope: 12 packets are missing here (disk_full)") != std::string::npos);
    CHECK(capture_units().size_of_whole_units(said) == said.size());
    CHECK(capture_units().count_units(said) == 0);
}
