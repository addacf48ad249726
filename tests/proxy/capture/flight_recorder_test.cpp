// Covers: proxy/capture/flight_recorder.cpp
#include "proxy/capture/flight_recorder.h"
#include "proxy/inspect/inspector.h"
#include "tests/support/inspect_file.h"
#include "tests/support/program.h"
#include "tests/support/record_log.h"
#include "tests/support/snapshot_messages.h"
#include "tests/support/test_data.h"
#include "tests/support/time.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>

using namespace tw;
using capture::FlightRecorder;
using capture::FlightRecorderOptions;
using store::FileQueue;

namespace {

using test::kSecond;
constexpr std::size_t kMiB = std::size_t{1} << 20U;

/// Inspects captures, and records them with a flight recorder.
struct RecordedFlight {
    explicit RecordedFlight(const FlightRecorderOptions& options, std::size_t bytes = 4 * kMiB,
                            const std::string& name = "golden/token-map-change.pcap",
                            bool states = true)
        : recorder{in_folder(options), bytes, files} {
        test::NoMaps maps;
        observers.add_observer(recorder);
        std::atomic<std::uint32_t> numbers{0};
        inspect::Inspector inspector{{.observers = &observers}, maps, recorder, numbers};
        if (states) {
            recorder.set_session_state_source(
                [&inspector] { return inspector.encode_current_checkpoint(); });
        }
        capture::CaptureRun run{{test::test_data(name)}, {}};
        run.read_captures(inspector);
        last = run.last_time();
        seen = inspector.totals();
    }

    [[nodiscard]] FlightRecorderOptions in_folder(FlightRecorderOptions options) const {
        options.folder = folder.file(options.folder);
        return options;
    }

    void write() {
        while (recorder.on_time(last)) {
        }
    }

    /// Writes all requested files and returns them.
    std::vector<std::filesystem::path> finish() {
        write();
        files.finish_writing();
        return folder.files();
    }

    test::TemporaryFolder folder;
    FileQueue files;
    FlightRecorder recorder;
    inspect::Observers observers;
    record::Timestamp last = 0;
    record::SessionStats seen;
};

std::array<bool, record::kFindingCount> only_trigger(record::FindingId id) {
    std::array<bool, record::kFindingCount> triggers{};
    triggers[static_cast<std::size_t>(id)] = true;
    return triggers;
}

record::SessionStats decode_stats(const std::filesystem::path& path) {
    test::RecordLog log;
    return test::inspect_file(path, log);
}

record::FindingRecord make_finding(std::uint32_t session, record::FindingId id) {
    return {.head = {.time = 1, .session = session}, .id = id};
}

} // namespace

TEST_CASE("a requested file contains all stored datagrams and is readable by its owner only") {
    RecordedFlight flight{{.time = 3600 * kSecond}};
    flight.write();
    CHECK(flight.folder.files().empty());
    flight.recorder.request_file(0);
    const auto written = flight.finish();
    REQUIRE(written.size() == 1);
    const auto name = written.front().filename().string();
    CHECK(name.starts_with("flight-2"));
    CHECK(name.ends_with("Z.pcapng"));
    const auto again = decode_stats(written.front());
    CHECK(again.snapshots == flight.seen.snapshots);
    CHECK(again.verified == flight.seen.verified);
    CHECK(again.verified > 50);
    CHECK(test::read_text(written.front()).find("flight recorder: the last 3600 s; on request") !=
          std::string::npos);

    struct stat found {};

    REQUIRE(::stat(written.front().c_str(), &found) == 0);
    CHECK((found.st_mode & 0777U) == 0600);
    CHECK(flight.recorder.counts().files == 1);
    CHECK(flight.recorder.counts().lost == 0);
}

TEST_CASE("a finding writes a file of its session, and further findings are counted") {
    const auto id = record::FindingId::snapshot_crc_mismatch;
    RecordedFlight flight{{.time = 60 * kSecond, .triggers = only_trigger(id)}};
    const auto other = make_finding(1, record::FindingId::snapshot_unknown_base);
    flight.recorder.on_record(&other);
    flight.write();
    CHECK(flight.recorder.counts().files == 0);
    for (int i = 0; i < 1000; ++i) {
        const auto found = make_finding(1, id);
        flight.recorder.on_record(&found);
        flight.write();
        flight.last += kSecond / 100;
    }
    CHECK(flight.recorder.counts().files == 1);
    CHECK(flight.recorder.is_busy());
    flight.last += 60 * kSecond;
    flight.write();
    CHECK(flight.recorder.counts().files == 2);
    CHECK(flight.recorder.counts().num_findings_without_file == 998);
    flight.files.finish_writing();
    const auto written = flight.folder.files();
    REQUIRE(written.size() == 2);
    CHECK(written.front().filename().string().ends_with("-s1-snapshot.crc_mismatch.pcapng"));
    CHECK(test::read_text(written.front()).find("session 1: ") != std::string::npos);
    CHECK(test::read_text(written.back()).find("and 998 more findings since the previous file") !=
          std::string::npos);
}

TEST_CASE("a finding's file is written before its datagrams are dropped, or names the loss") {
    struct Row {
        std::string_view name;
        int at;                  ///< seconds between a file and the finding
        int pieces;              ///< number of datagrams per second
        int files_after_ten;     ///< number of files ten seconds after the first finding
        std::string_view said{}; ///< text in the file; empty: no such text
    };

    // There is room for 90 datagrams of some 10 kB.
    const Row rows[] = {
        {"little comes", 1, 1, 1},
        {"room for nine seconds", 1, 10, 2},
        {"room for two seconds", 1, 50, 2,
         "its datagrams were already dropped: there is room for 1.8"},
        {"room for two seconds, and it is recent", 4, 50, 2},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const test::TemporaryFolder folder;
        FileQueue files;
        const auto id = record::FindingId::snapshot_crc_mismatch;
        FlightRecorder recorder{
            {.folder = folder.path(), .time = 60 * kSecond, .triggers = only_trigger(id)},
            kMiB,
            files};
        const test::Bytes bytes(10'000);
        const auto found = make_finding(1, id);
        record::Timestamp now = 1000 * kSecond;
        const auto play = [&](int second) {
            for (int i = 0; i < row.pieces; ++i) {
                recorder.on_datagram({.time = now, .session = 1}, bytes);
                if (i == 0 && (second == 0 || second == row.at)) {
                    recorder.on_record(&found);
                }
                recorder.on_datagram_end();
                while (recorder.on_time(now)) {
                }
                now += kSecond / row.pieces;
            }
        };
        for (int second = 0; second < 11; ++second) {
            play(second);
        }
        files.finish_writing();
        const auto written = folder.files();
        CHECK(written.size() == static_cast<std::size_t>(row.files_after_ten));
        const std::string last = test::read_text(written.back());
        CHECK((last.find("already dropped") != std::string::npos) == !row.said.empty());
        CHECK(last.find(row.said) != std::string::npos);
    }
}

TEST_CASE("datagrams that are too old are dropped") {
    RecordedFlight flight{{.time = 2 * kSecond}};
    std::ignore = flight.recorder.on_time(flight.last);
    flight.recorder.request_file(0);
    const auto again = decode_stats(flight.finish().front());
    const auto datagrams = [](const record::SessionStats& stats) {
        return stats.directions[0].datagrams + stats.directions[1].datagrams;
    };
    CHECK(datagrams(again) > 50);
    CHECK(datagrams(again) < datagrams(flight.seen) / 2);
}

TEST_CASE("a file that begins during a game is verified from the first state on") {
    const auto kept = [](bool states) {
        RecordedFlight flight{{.time = 6 * kSecond}, 4 * kMiB, "captures/bench-4.pcap.gz", states};
        std::ignore = flight.recorder.on_time(flight.last);
        flight.recorder.request_file(0);
        return decode_stats(flight.finish().front());
    };
    const auto blind = kept(false);
    const auto again = kept(true);
    CHECK(again.snapshots == blind.snapshots);
    CHECK(again.snapshots > 100);
    CHECK(again.unknown_base < blind.unknown_base);
    CHECK(again.unknown_base < again.snapshots / 2); // a state comes every second
    CHECK(again.verified + again.unknown_base == again.snapshots);
}

TEST_CASE("a request for one session writes only this session") {
    RecordedFlight flight{{.time = 3600 * kSecond}};
    flight.recorder.request_file(7); // an unknown session, or one of another recorder
    flight.write();
    CHECK(flight.recorder.counts().files == 0);
    flight.recorder.request_file(1);
    const auto written = flight.finish();
    REQUIRE(written.size() == 1);
    CHECK(written.front().filename().string().ends_with("-s1.pcapng"));
    const auto again = decode_stats(written.front());
    CHECK(again.verified > 50);
    CHECK(again.snapshots < flight.seen.snapshots);
}

TEST_CASE("waiting requests for different sessions get one file with all sessions") {
    RecordedFlight flight{{.time = 3600 * kSecond}};
    flight.recorder.request_file(1);
    flight.recorder.request_file(7);
    flight.recorder.request_file(1);
    const auto written = flight.finish();
    REQUIRE(written.size() == 1);
    CHECK(written.front().filename().string().ends_with(
        "Z.pcapng")); // a file of all sessions has no session in its name
}

TEST_CASE("at the end, requested files are written completely") {
    RecordedFlight flight{{.time = 3600 * kSecond}, 64 * kMiB};
    // More bytes of noise than the write queue holds during a run.
    const std::vector<std::byte> noise(1200, std::byte{0x55});
    constexpr std::size_t kDatagrams = 20'000;
    for (std::size_t i = 0; i < kDatagrams; ++i) {
        flight.recorder.on_datagram({.time = flight.last, .session = 1}, noise);
        flight.recorder.on_datagram_end();
    }
    flight.recorder.request_file(0);
    flight.recorder.write_remaining_files(flight.last);
    flight.files.finish_writing();
    CHECK(flight.recorder.counts().lost == 0);
    const auto written = flight.folder.files();
    REQUIRE(written.size() == 1);
    CHECK(std::filesystem::file_size(written.front()) > kDatagrams * noise.size());
}

TEST_CASE("a folder that cannot be written to is reported and has no other effect") {
    RecordedFlight flight{{.folder = "not there", .time = 60 * kSecond}};
    flight.recorder.request_file(0);
    flight.write();
    flight.files.finish_writing();
    CHECK(flight.files.take_error_text());
    CHECK(flight.files.num_created_files() == 0);
    CHECK_FALSE(flight.recorder.is_busy());
}

TEST_CASE("a request and held-back findings are written at the end") {
    const auto id = record::FindingId::snapshot_crc_mismatch;
    RecordedFlight flight{{.time = 60 * kSecond, .triggers = only_trigger(id)}};
    for (int i = 0; i < 3; ++i) {
        const auto found = make_finding(1, id);
        flight.recorder.on_record(&found);
        flight.write();
    }
    flight.recorder.request_file(0);
    flight.recorder.write_remaining_files(flight.last);
    flight.files.finish_writing();
    CHECK(flight.folder.files().size() == 3);
    for (const auto& path : flight.folder.files()) {
        CHECK(decode_stats(path).directions[0].datagrams > 50);
    }
}

using tw::capture::FlightRecorderRing;

namespace {

struct RingBlock {
    std::uint32_t session;
    std::int64_t time;
    std::vector<std::byte> bytes;

    friend bool operator==(const RingBlock&, const RingBlock&) = default;
};

std::deque<RingBlock> ring_blocks(const FlightRecorderRing& ring) {
    std::deque<RingBlock> all;
    for (auto number = ring.first_block_number(); number < ring.end_block_number(); ++number) {
        const FlightRecorderRing::Block& block = ring.block(number);
        ring.append_block_bytes(block,
                                all.emplace_back(RingBlock{block.session, block.time, {}}).bytes);
    }
    return all;
}

} // namespace

TEST_CASE("a ring contains the latest blocks, complete and in order") {
    std::mt19937 random{7}; // NOLINT(cert-msc51-cpp): the same each time
    for (const std::size_t capacity : {16U, 64U, 4096U, 10'000U}) {
        CAPTURE(capacity);
        FlightRecorderRing ring{capacity};
        std::deque<RingBlock> pushed;
        std::uint64_t refused = 0;
        for (std::int64_t time = 1; time <= 3000; ++time) {
            const std::size_t size =
                random() % (random() % 7 == 0 ? capacity + 20 : capacity / 3 + 2);
            RingBlock kept{static_cast<std::uint32_t>(random() % 9), time,
                           std::vector<std::byte>(size, static_cast<std::byte>(time))};
            if (ring.push_block(kept.session, kept.time, kept.bytes)) {
                pushed.push_back(std::move(kept));
            } else {
                ++refused;
                CHECK(size > capacity / 8 * 7);
            }
            const auto held = ring_blocks(ring);
            REQUIRE(held.size() == ring.num_blocks());
            REQUIRE(held.size() + ring.first_block_number() == pushed.size());
            REQUIRE(std::equal(held.rbegin(), held.rend(), pushed.rbegin()));
        }
        CHECK(refused > 0);
        ring.drop_blocks_before(2990);
        for (const RingBlock& kept : ring_blocks(ring)) {
            CHECK(kept.time >= 2990);
        }
        ring.drop_blocks_before(5000);
        CHECK(ring.num_blocks() == 0);
        CHECK(ring.first_block_number() == ring.end_block_number());
    }
}
