// Covers: proxy/capture/pcapng.cpp
#include "proxy/capture/capture_run.h"
#include "proxy/capture/capture_sink.h"
#include "proxy/inspect/inspector.h"
#include "proxy/sink/json_lines.h"
#include "proxy/store/recording.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/program.h"
#include "tests/support/test_data.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tw;
using capture::CaptureSink;
using store::Recording;

namespace {

/// Stores the text of each segment. The next segment begins after `max_datagrams` datagrams.
class SegmentTexts final : public sink::Output {
  public:
    std::vector<std::string> texts{""};
    std::size_t arrived = 1;
    std::uint32_t max_datagrams = UINT32_MAX;

    void write(std::string_view block) override { write_to_segment(current_segment(), block); }

    [[nodiscard]] std::uint32_t current_segment() const override {
        return std::max(static_cast<std::uint32_t>(texts.size()), 1 + asked_++ / max_datagrams);
    }

    void write_to_segment(std::uint32_t segment, std::string_view block) override {
        texts.resize(std::max<std::size_t>(texts.size(), segment));
        texts[segment - 1] += block;
    }

    void advance_to_segment(std::uint32_t segment) override { arrived = segment; }

  private:
    mutable std::uint32_t asked_ = 0; ///< number of calls of current_segment()
};

store::RecordingOptions capture_options(const std::filesystem::path& path) {
    return {.path = path,
            .format = &capture::capture_format(),
            .readers = store::AllowedReaders::owner};
}

/// Returns the records of captures. If `capture` is not null, it writes the datagrams again.
std::string decode_captures(const std::vector<std::string>& paths, CaptureSink* capture) {
    test::NoMaps maps;
    sink::TextOutput output;
    sink::JsonLines json{{.items = sink::ItemChoice::all, .show_secrets = true}, output};
    test::NoSink nothing;
    record::RecordSink* const written = capture;
    test::BothSinks sinks{json, written != nullptr ? *written : nothing};
    inspect::Observers observers;
    if (capture != nullptr) {
        observers.add_observer(*capture);
    }
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{.observers = &observers}, maps, sinks, numbers};
    if (capture != nullptr) {
        capture->set_session_state_source(
            [&inspector] { return inspector.encode_current_checkpoint(); });
    }
    capture::CaptureRun run{paths, {}};
    run.read_captures(inspector);
    if (capture != nullptr) {
        capture->write_remaining_data(run.last_time());
    }
    json.flush();
    return output.text;
}

/// Returns the lines of snapshots, without the text before their ticks.
std::string snapshot_lines(const std::string& records) {
    constexpr std::string_view kAgain = R"(,"full":true)";
    std::istringstream lines{records};
    std::string snapshots;
    for (std::string line; std::getline(lines, line);) {
        if (line.find(R"("type":"snapshot")") == std::string::npos) {
            continue;
        }
        if (const auto full = line.find(kAgain); full != std::string::npos) {
            line.erase(full, kAgain.size());
        }
        snapshots += line.substr(line.find(R"("tick":)")) + '\n';
    }
    return snapshots;
}

std::uint64_t size_of_complete_blocks(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const std::uint64_t bytes = capture::complete_blocks_size(descriptor);
    ::close(descriptor);
    return bytes;
}

} // namespace

TEST_CASE("the capture of a run gives the records of the run, byte for byte") {
    for (const std::string name :
         {"token-ddnet-layers-rejoin", "token-high-bandwidth", "token-map-change",
          "token-map-download", "tokenless-map-change"}) {
        CAPTURE(name);
        const test::TemporaryFolder folder;
        const auto path = folder.file("a.pcapng");
        std::string first;
        {
            Recording target{capture_options(path), Recording::StartMode::empty};
            CaptureSink capture{target};
            first = decode_captures({test::test_data("golden/" + name + ".pcap")}, &capture);
            CHECK(capture.num_lost_datagrams() == 0);
        }
        const bool same = first == decode_captures({path}, nullptr);
        CHECK(same);
        CHECK(first.size() > 10'000);
        const std::string bytes = test::read_text(path);
        CHECK(bytes.find("twscope: session 1: ") != std::string::npos);
        CHECK(bytes.find(": closed: ") != std::string::npos);
        CHECK(size_of_complete_blocks(path) == bytes.size());
    }
}

TEST_CASE("appending to a capture continues after its last complete block in a new section") {
    const test::TemporaryFolder folder;
    const auto path = folder.file("a.pcapng");
    const auto write = [&path](Recording::StartMode begin) {
        Recording target{capture_options(path), begin};
        CaptureSink capture{target};
        return decode_captures({test::test_data("golden/token-map-download.pcap")}, &capture);
    };
    write(Recording::StartMode::empty);
    const auto once = test::read_text(path).size();
    for (const std::size_t cut : {1U, 11U, 40U}) {
        CAPTURE(cut);
        std::filesystem::resize_file(path, once - cut);
        const std::uint64_t whole = size_of_complete_blocks(path);
        CHECK(whole < once - cut + 1);
        CHECK(whole > once / 2);
        write(Recording::StartMode::append);
        CHECK(test::read_text(path).size() == whole + once);
        CHECK(size_of_complete_blocks(path) == whole + once);
    }
    write(Recording::StartMode::empty);
    CHECK(test::read_text(path).size() == once);
}

TEST_CASE("a file that is not a capture is not changed") {
    const test::TemporaryFolder folder;
    CHECK(capture::complete_blocks_size(-1) == 0);
    const auto file = folder.file("text");
    const std::string_view text = "this is no capture at all";
    std::ofstream{file} << text;
    CHECK(size_of_complete_blocks(file) == 0);
    CHECK_THROWS_AS((Recording{capture_options(file), Recording::StartMode::append}),
                    std::runtime_error);
    CHECK(test::read_text(file).size() == text.size()); // the file is unchanged
}

TEST_CASE("a foreign file is rejected unchanged, and a truncated header is rewritten") {
    const std::string own = capture::capture_format().file_header();
    // A header in the other byte order, as other machines write it. Its first word is the same.
    std::string big{"\x0a\x0d\x0d\x0a\0\0\0\x1c\x1a\x2b\x3c\x4d\0\1\0\0", 16};
    big += std::string(8, '\xff') + std::string{"\0\0\0\x1c", 4};
    std::string torn = own.substr(0, 28);
    torn[4] = '\x7f'; // now the block is longer than the file

    struct Row {
        const char* name;
        std::string bytes;
        bool refused;
    };

    const Row rows[] = {
        {"big-endian", big, true},
        {"big-endian, cut short", big.substr(0, 10), true},
        {"nothing whole in it", torn + std::string(40, 'x'), true},
        {"a head that was cut short", own.substr(0, 9), false},
        {"less than a type", own.substr(0, 3), false},
        {"nothing", "", false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const test::TemporaryFolder folder;
        const auto path = folder.file("a.pcapng");
        std::ofstream{path, std::ios::binary} << row.bytes;
        if (row.refused) {
            CHECK_THROWS_AS((Recording{capture_options(path), Recording::StartMode::append}),
                            std::runtime_error);
            CHECK((test::read_text(path) == row.bytes));
        } else {
            { const Recording recording{capture_options(path), Recording::StartMode::append}; }
            CHECK((test::read_text(path) == own));
        }
    }
}

TEST_CASE("a capture is readable by its owner only, and its complete blocks are measured") {
    const test::TemporaryFolder folder;
    const auto path = folder.file("a.pcapng");
    {
        Recording target{capture_options(path), Recording::StartMode::empty};
        CaptureSink capture{target};
        const test::Bytes datagram(1000, std::byte{7});
        for (int i = 0; i < 1000; ++i) {
            capture.on_datagram({.time = i, .session = 1}, datagram);
            capture.on_datagram_end();
        }
        capture.write_remaining_data(1000);
    }

    struct stat found {};

    REQUIRE(::stat(path.c_str(), &found) == 0);
    CHECK((found.st_mode & 0777U) == 0600U);
    CHECK(size_of_complete_blocks(path) == test::read_text(path).size());
}

TEST_CASE("a capture that is truncated to zero bytes gets a new header") {
    const test::TemporaryFolder folder;
    const auto path = folder.file("a.pcapng");
    Recording target{capture_options(path), Recording::StartMode::empty};
    CaptureSink capture{target};
    const test::Bytes datagram = test::bytes_of({1, 2, 3}); // must exist until on_datagram_end()
    const auto write = [&] {
        capture.on_datagram({.time = 5, .session = 1}, datagram);
        capture.on_datagram_end();
        capture.flush();
    };
    write();
    const auto once = test::read_text(path);
    std::filesystem::resize_file(path, 0);
    write();
    CHECK(test::read_text(path) == once);
}

TEST_CASE("a selected datagram has comments with its findings and earlier session events") {
    SegmentTexts segments;
    CaptureSink capture{segments, CaptureSink::DatagramChoice::selected};
    const test::Bytes bytes = test::bytes_of({1, 2, 3});
    const auto finding = [&capture](std::uint32_t session, record::FindingId id) {
        const record::FindingRecord found{.head = {.time = 5, .session = session}, .id = id};
        capture.on_record(&found);
    };
    const auto event = [&capture](std::uint32_t session, record::SessionEvent what) {
        const std::string client = fmt::format("10.0.0.{}:1", session);
        const record::SessionRecord record{.head = {.time = 5, .session = session},
                                           .event = what,
                                           .client = client,
                                           .server = "10.0.1.1:2",
                                           .protocol = "0.6-token"};
        capture.on_record(&record);
    };
    const auto datagram = [&](std::uint32_t session, bool wanted, auto found) {
        capture.on_datagram({.time = 6, .session = session}, bytes);
        found();
        if (wanted) {
            capture.select_current_datagram();
        }
        capture.on_datagram_end();
    };
    for (const std::uint32_t session : {1U, 2U, 3U}) {
        event(session, record::SessionEvent::open);
        datagram(session, false, [&] { event(session, record::SessionEvent::established); });
    }
    datagram(1, false, [&] { finding(1, record::FindingId::packet_too_short); });
    finding(2, record::FindingId::snapshot_crc_mismatch); // a finding between two datagrams
    datagram(3, true, [&] { finding(3, record::FindingId::chunk_vital_gap); });
    datagram(3, true, [] {});
    datagram(2, true, [&] {
        for (int i = 0; i < 20; ++i) {
            finding(2, record::FindingId::chunk_vital_gap);
        }
    });
    capture.write_remaining_data(7);
    const auto count = [&segments](std::string_view text) {
        std::size_t times = 0;
        for (std::size_t at = 0; (at = segments.texts[0].find(text, at)) != std::string::npos;
             ++at) {
            ++times;
        }
        return times;
    };
    REQUIRE(segments.texts.size() == 1);
    CHECK(count("twscope: session 1") == 0);
    CHECK(count("packet.too_short") == 0);
    CHECK(count("twscope: session 3: 10.0.0.3:1 to 10.0.1.1:2") == 1);
    CHECK(count("twscope: session 3: established") == 1);
    CHECK(count("twscope: session 2: 10.0.0.2:1 to 10.0.1.1:2") == 1);
    CHECK(count("snapshot.crc_mismatch") == 1);
    CHECK(count("chunk.vital_gap") == 17);
    CHECK(count("twscope: 4 more") == 1);
    CHECK(count("from before") == 0);
    CHECK(segments.texts[0].find("session 3: ") < segments.texts[0].find("session 2: "));
}

TEST_CASE("beyond the limit of sessions, closed sessions are forgotten first") {
    constexpr std::uint32_t kMany = 65'536 + 100;
    capture::CaptureEncoder blocks;
    const auto event = [&blocks](std::uint32_t session, record::SessionEvent what) {
        const record::SessionRecord record{.head = {.session = session},
                                           .event = what,
                                           .client = "10.0.0.1:1",
                                           .server = "10.0.1.1:2"};
        blocks.on_record(&record);
    };
    for (std::uint32_t session = 1; session <= kMany; ++session) {
        event(session, record::SessionEvent::open);
        if (session != 1 && session != 50) {
            event(session, record::SessionEvent::close);
        }
    }
    event(60, record::SessionEvent::close); // this session was forgotten
    CHECK(!blocks.describe_session(1).empty());
    CHECK(!blocks.describe_session(50).empty());
    CHECK(blocks.describe_session(60).empty());
    CHECK(!blocks.describe_session(200).empty());
    CHECK(!blocks.describe_session(kMany).empty());
}

TEST_CASE("each segment of a capture can be read alone, and all together give the records") {
    for (const std::string name :
         {"token-ddnet-layers-rejoin", "token-high-bandwidth", "token-map-change",
          "tokenless-map-change", "seven-map-change", "seven-on-ddnet"}) {
        CAPTURE(name);
        const test::TemporaryFolder folder;
        SegmentTexts segments;
        segments.max_datagrams = 151;
        CaptureSink capture{segments};
        const std::string all =
            decode_captures({test::test_data("golden/" + name + ".pcap")}, &capture);
        REQUIRE(segments.texts.size() >= 2);
        CHECK(segments.arrived == segments.texts.size());
        std::string alone;
        std::vector<std::string> paths;
        for (const std::string& text : segments.texts) {
            CAPTURE(alone.size());
            const std::string path = folder.file(fmt::format("{}.pcapng", paths.size()));
            paths.push_back(path);
            std::ofstream{path, std::ios::binary} << capture::capture_format().file_header()
                                                  << text;
            CHECK(size_of_complete_blocks(path) == test::read_text(path).size());
            CHECK(text.find("twscope: session 1: ") != std::string::npos);
            const std::string records = decode_captures({path}, nullptr);
            alone += snapshot_lines(records);
            CHECK(records.find("session.joined_midway") == std::string::npos);
            // A capture that was written from this one can also be read.
            const auto copy = folder.file("copy.pcapng");
            {
                Recording target{capture_options(copy), Recording::StartMode::empty};
                CaptureSink again{target};
                decode_captures({path}, &again);
            }
            CHECK((records == decode_captures({copy}, nullptr)));
        }
        CHECK((alone == snapshot_lines(all)));
        CHECK((decode_captures(paths, nullptr) == all));
        // One segment is missing.
        const std::size_t gap = paths.size() / 2;
        const std::string without = snapshot_lines(decode_captures({paths[gap]}, nullptr));
        paths.erase(paths.begin() + static_cast<std::ptrdiff_t>(gap));
        alone.erase(alone.find(without), without.size());
        CHECK((snapshot_lines(decode_captures(paths, nullptr)) == alone));
    }
}

TEST_CASE("session states take at most a quarter of the traffic's bytes") {
    constexpr std::uint32_t kSessions = 64;
    constexpr std::size_t kSegment = std::size_t{1} << 20U;
    capture::CaptureEncoder blocks;
    const test::Bytes state(43'000);
    const test::Bytes datagram(1000, std::byte{1});
    std::size_t states = 0;
    blocks.set_session_state_source([&] {
        ++states;
        return test::Bytes{state};
    });
    for (std::uint32_t session = 1; session <= kSessions; ++session) {
        const record::SessionRecord open{.head = {.session = session}};
        blocks.on_record(&open);
    }
    test::Bytes written;
    std::size_t traffic = 0;
    std::size_t first = 0; // number of states in the first segment
    for (; traffic < 64 * kSegment; traffic += datagram.size()) {
        const auto session = static_cast<std::uint32_t>(traffic / datagram.size() % kSessions);
        blocks.on_datagram({.session = session + 1}, datagram);
        REQUIRE(blocks.end_datagram(written));
        if (written.size() >= kSegment) {
            written.clear();
            blocks.on_new_file();
            first = first == 0 ? states : first;
        }
    }
    constexpr auto kMaxStateBytesAtOnce =
        static_cast<std::size_t>(capture::SessionStateBudget::kMaxStateBytesAtOnce);
    CHECK(first * state.size() > kSegment / 2);
    CHECK(states * state.size() <= traffic / 4 + kMaxStateBytesAtOnce + state.size());
    CHECK(states * state.size() >= traffic / 5);
}

TEST_CASE("a session without an address is written with an address for tests") {
    const test::TemporaryFolder folder;
    const auto path = folder.file("a.pcapng");
    {
        Recording target{capture_options(path), Recording::StartMode::empty};
        CaptureSink capture{target};
        const record::RecordHeader head{.time = 5, .session = 258};
        const record::SessionRecord open{.head = head, .client = "client-abc:1", .server = "x"};
        capture.on_record(&open);
        const test::Bytes datagram = test::bytes_of({1, 2, 3});
        capture.on_datagram({.time = 6, .session = 258, .direction = wire::Direction::c2s},
                            datagram);
        capture.on_datagram_end();
        capture.write_remaining_data(7);
    }
    capture::CaptureFile read{path};
    capture::CapturedDatagram datagram;
    REQUIRE(read.read_datagram(datagram));
    CHECK(to_string(datagram.source) == "198.18.1.2:49152");
    CHECK(to_string(datagram.destination) == "198.18.0.0:49152");
    CHECK(datagram.time == 6);
}
