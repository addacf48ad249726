// Covers: proxy/capture/capture_run.cpp
#include "proxy/capture/capture_run.h"
#include "proxy/demo/demo_reader.h"
#include "proxy/wire/huffman.h"
#include "tests/support/capture_writer.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/hex.h"
#include "tests/support/record_log.h"
#include "tests/support/snapshot_messages.h"

#include <filesystem>
#include <limits>
#include <set>

#include <doctest/doctest.h>

using namespace tw;
using demo::decode_demo_parts;
using demo::DemoErrc;
using test::Bytes;

namespace {

const Bytes kMap{std::byte{1}, std::byte{2}, std::byte{3}};

Bytes make_demo(int version) {
    Bytes bytes = demo::DemoEncoder::encode_start(test::demo_header(version), kMap);
    bytes.push_back(std::byte{0x40});
    return bytes;
}

void set_bytes(Bytes& bytes, std::size_t at, std::initializer_list<int> values) {
    for (const int value : values) {
        bytes[at++] = static_cast<std::byte>(value);
    }
}

} // namespace

TEST_CASE("reading a header reverses writing it") {
    for (const int version : {3, 4, 5, 6}) {
        CAPTURE(version);
        const Bytes bytes = make_demo(version);
        const auto head = decode_demo_parts(bytes);
        REQUIRE(head.has_value());
        CHECK(head->header.version == version);
        CHECK(head->header.net_version == demo::kNetVersion);
        CHECK(head->header.map_name == "dm1");
        CHECK(head->header.map_crc == 0x01020304);
        CHECK(head->header.type == "client");
        CHECK(head->header.length == 3);
        CHECK(head->header.timestamp == "2026-11-21_16-15-30");
        CHECK(head->header.sha256.has_value() == (version == 6));
        CHECK(Bytes{head->map.begin(), head->map.end()} == kMap);
        CHECK(head->chunks.size() == 1);
        CHECK(head->chunks_at + 1 == bytes.size());
    }
}

TEST_CASE("a header cut at any byte is an error") {
    for (const int version : {3, 4, 5, 6}) {
        const Bytes whole = make_demo(version);
        for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
            CAPTURE(version);
            CAPTURE(size);
            const auto head = decode_demo_parts(std::span{whole}.first(size));
            REQUIRE_FALSE(head.has_value());
            const DemoErrc expected = size < 7 ? DemoErrc::no_demo : DemoErrc::header_cut;
            CHECK((head.error().code == expected || head.error().code == DemoErrc::map_cut));
        }
    }
}

TEST_CASE("hostile headers are rejected, unusual ones are read as demo players read them") {
    struct Row {
        std::string_view name;
        std::size_t at;
        std::initializer_list<int> bytes;
        DemoErrc error;
    };

    const Row rows[] = {
        {"as it is", 0, {'T'}, DemoErrc::none},
        {"other magic", 0, {'X'}, DemoErrc::no_demo},
        {"version 2", 7, {2}, DemoErrc::version_unsupported},
        {"version 7", 7, {7}, DemoErrc::version_unsupported},
        {"of 0.7", 8, {'0', '.', '7'}, DemoErrc::none},
        {"negative map", 136, {0xff, 0xff, 0xff, 0xff}, DemoErrc::map_size_invalid},
        {"huge map", 136, {4, 0, 0, 1}, DemoErrc::map_size_invalid},
        {"map larger than the file", 136, {0, 0, 0, 9}, DemoErrc::map_cut},
        {"many markers", 176, {0, 0, 1, 0}, DemoErrc::none},
        {"negative markers", 176, {0xff, 0, 1, 0}, DemoErrc::none},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Bytes bytes = make_demo(6);
        set_bytes(bytes, row.at, row.bytes);
        const auto head = decode_demo_parts(bytes);
        CHECK((head ? DemoErrc::none : head.error().code) == row.error);
        if (head) {
            CHECK(head->header.markers.size() <= 64);
        }
    }
}

TEST_CASE("in a demo of version 6 without the extension, the map follows the header") {
    Bytes bytes = demo::DemoEncoder::encode_start(test::demo_header(5), kMap);
    bytes.resize(bytes.size() + 100);
    set_bytes(bytes, 7, {6});
    const auto head = decode_demo_parts(bytes);
    REQUIRE(head.has_value());
    CHECK(head->map_at == 436);
    CHECK_FALSE(head->header.sha256.has_value());
}

TEST_CASE("a text may fill its field") {
    Bytes bytes = make_demo(6);
    for (std::size_t i = 0; i < 64; ++i) {
        bytes[72 + i] = std::byte{'m'};
    }
    const auto head = decode_demo_parts(bytes);
    REQUIRE(head.has_value());
    CHECK(head->header.map_name == std::string(64, 'm'));
}

TEST_CASE("a timestamp is a valid time or nullopt") {
    CHECK(demo::parse_demo_time("1970-01-01_00-00-01") == 1'000'000'000);
    CHECK(demo::parse_demo_time("2026-11-21_16-15-30") == 1'795'277'730'000'000'000);
    for (const std::string_view text :
         {"", "2026", "2026-13-01_00-00-00", "2026-02-30_00-00-00", "2026-11-21_24-00-00",
          "2026-11-21 16:15:", "-026-11-21_16-15-30", "1969-11-21_16-15-30"}) {
        CAPTURE(text);
        CHECK_FALSE(demo::parse_demo_time(text).has_value());
    }
}

TEST_CASE("every error of demos has a name and a sentence") {
    std::set<std::string_view> names;
    for (const demo::DemoErrorInfo& info : demo::kDemoErrorTable) {
        CHECK(names.insert(info.name).second);
        CHECK_FALSE(info.sentence.empty());
        CHECK(&demo::demo_error_info(info.code) == &info);
    }
}

using demo::DemoChunk;
using demo::DemoChunkReader;
using test::bytes_of;
using test::from_hex;

namespace {

/// Lists the chunks as "tick 500 key", "snapshot 17" or "other 2", then the error if there is one: "chunk_cut @3".
std::vector<std::string> describe_chunks(const Bytes& bytes, int version) {
    DemoChunkReader chunks{bytes, version, 100};
    std::vector<std::string> lines;
    while (const auto chunk = chunks.next_chunk()) {
        static constexpr std::string_view kNames[] = {"tick", "snapshot", "delta", "message",
                                                      "other"};
        std::string line{kNames[static_cast<std::size_t>(chunk->kind)]};
        if (chunk->kind == DemoChunk::Kind::tick) {
            line += ' ' + std::to_string(chunk->tick) + (chunk->keyframe ? " key" : "");
        } else {
            line += ' ' + std::to_string(chunk->data.size());
        }
        lines.push_back(std::move(line));
    }
    if (chunks.has_failed()) {
        lines.push_back(std::string{demo::demo_error_info(chunks.error().code).name} + " @" +
                        std::to_string(chunks.error().offset - 100));
    }
    return lines;
}

} // namespace

TEST_CASE("ticks and sizes are read in every form that recorders write") {
    struct Row {
        std::string_view name;
        int version;
        std::string_view hex;
        std::vector<std::string> lines;
    };

    const Row rows[] = {
        {"nothing", 6, "", {}},
        {"keyframe", 6, "c0000001f4", {"tick 500 key"}},
        {"old step", 4, "80000001f482", {"tick 500", "tick 502"}},
        {"new step", 6, "80000001f4a2", {"tick 500", "tick 502"}},
        {"longest old step", 3, "8000000001bf", {"tick 1", "tick 64"}},
        {"longest new step", 5, "8000000001bf", {"tick 1", "tick 32"}},
        {"the same tick twice", 6, "8000000001a0", {"tick 1", "tick 1"}},
        {"the same tick, absolute", 4, "80000000018000000001", {"tick 1", "tick 1"}},
        {"a tick in the past", 6, "80000001f48000000001", {"tick 500", "tick 1"}},
        {"largest tick", 6, "806ffffffe", {"tick 1879048190"}},
        {"small chunks", 6, "21aa40610b", {"snapshot 1", "message 0", "delta 1"}},
        {"one byte of size", 6, "5e02aabb", {"message 2"}},
        {"two bytes of size", 6, "5f0200aabb", {"message 2"}},
        {"of no type", 6, "02aabb41cc", {"other 2", "message 1"}},
        {"step before a tick", 6, "a2", {"tick_before_first @0"}},
        {"old step before a tick",
         4,
         "40"
         "82",
         {"message 0", "tick_before_first @1"}},
        {"tick too large", 6, "806fffffff", {"tick_out_of_range @0"}},
        {"negative tick", 6, "80ffffffff", {"tick_out_of_range @0"}},
        {"step past the largest", 6, "806ffffffea1", {"tick 1879048190", "tick_out_of_range @5"}},
        {"cut tick", 6, "80000001", {"chunk_cut @0"}},
        {"cut size", 6, "5e", {"chunk_cut @0"}},
        {"cut sizes", 6, "5f01", {"chunk_cut @0"}},
        {"cut chunk", 6, "42aa", {"chunk_cut @0"}},
        {"cut long chunk",
         6,
         "40"
         "5fffffaa",
         {"message 0", "chunk_cut @1"}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(describe_chunks(from_hex(row.hex), row.version) == row.lines);
    }
}

TEST_CASE("an error is permanent") {
    const Bytes bytes = bytes_of({0xa2, 0x40});
    DemoChunkReader chunks{bytes, 6, 0};
    CHECK_FALSE(chunks.next_chunk().has_value());
    CHECK_FALSE(chunks.next_chunk().has_value());
    CHECK(chunks.error() == demo::DemoError{DemoErrc::tick_before_first, 0});
}

TEST_CASE("payloads decode as the reference says") {
    struct Row {
        std::string_view name;
        std::string_view hex;
        std::vector<std::int32_t> ints;
    };

    const Row rows[] = {
        {"snapshot",
         "31d425c200c0f587bfab016b93c4a4cd8a1b",
         {56, 2, 0, 36, 393216, 0, 0, 0, 0, 20, 0, 0, 0, 262151, 528, 400, 0, 0}},
        {"delta", "6c885d0d587b049698b4597103", {1, 1, 0, 262151, 4, 8, 560, 400, 0, 0}},
        {"message", "485200d0e8588e8a1b", {1749024774, 105}},
    };
    demo::DemoChunkDecoder payload;
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Bytes bytes = from_hex(row.hex);
        DemoChunkReader chunks{bytes, 6, 0};
        const auto chunk = chunks.next_chunk();
        REQUIRE(chunk.has_value());
        const auto ints = payload.decode_ints(*chunk);
        REQUIRE(ints.has_value());
        CHECK(std::vector<std::int32_t>{ints->begin(), ints->end()} == row.ints);
        if (chunk->kind == DemoChunk::Kind::message) {
            const auto message = payload.decode_message(*chunk);
            REQUIRE(message.has_value());
            CHECK(Bytes{message->begin(), message->end()} == from_hex("0600406869000000"));
        }
    }
}

TEST_CASE("payloads that no demo player can decompress are errors") {
    const auto chunk_of = [](const Bytes& data) {
        return DemoChunk{.kind = DemoChunk::Kind::snapshot, .offset = 9, .data = data};
    };
    const auto packed = [](const Bytes& bytes) {
        return wire::huffman_compress(bytes, wire::HuffmanEnding::without_zero_byte);
    };
    demo::DemoChunkDecoder payload;
    const Bytes nothing;
    const Bytes half = bytes_of({1});
    const Bytes large = packed(Bytes(65537));
    const Bytes largest = packed(Bytes(65536, std::byte{0x80}));
    const Bytes many = packed(Bytes(16385));
    const Bytes cut = packed(bytes_of({0x80}));
    const auto none = payload.decode_ints(chunk_of(nothing)); // an empty chunk is not decompressed
    REQUIRE(none.has_value());
    CHECK(none->empty());
    CHECK(payload.decode_ints(chunk_of(half)).error().code == DemoErrc::payload_undecodable);
    CHECK(payload.decompress_varints(chunk_of(large)).error().code == DemoErrc::payload_too_long);
    CHECK(payload.decompress_varints(chunk_of(largest)).has_value());
    CHECK(payload.decode_ints(chunk_of(many)).error().code == DemoErrc::payload_too_long);
    CHECK(payload.decode_ints(chunk_of(cut)).error() ==
          demo::DemoError{DemoErrc::payload_ints_cut, 9});
    CHECK(payload.decode_message(chunk_of(cut)).error().code == DemoErrc::payload_ints_cut);
}

namespace {

constexpr std::int32_t kGameInfo = 6 << 16;
constexpr std::int32_t kPickup7 = 4 << 16 | 7;
constexpr std::int32_t kHuge = std::numeric_limits<std::int32_t>::max();

} // namespace

TEST_CASE("full snapshots are read, their items sorted by key") {
    snapshot::Snapshot read;
    const std::vector<std::int32_t> ints{28, 2, 0, 20, kPickup7, 528, 400, 0, 0, kGameInfo, 5};
    CHECK(demo::decode_demo_snapshot(ints, read).error.empty());
    CHECK(read == test::to_snapshot({{{4, 7}, {528, 400, 0, 0}}, {{6, 0}, {5}}}));
    const std::vector<std::int32_t> other{28, 2, 0, 8, kGameInfo, 5, kPickup7, 528, 400, 0, 0};
    snapshot::Snapshot sorted;
    CHECK(demo::decode_demo_snapshot(other, sorted).error.empty());
    CHECK(sorted == read);
    CHECK(demo::decode_demo_snapshot(std::vector<std::int32_t>{0, 0}, read).error.empty());
    CHECK(read.view().empty());
}

TEST_CASE("of several items with the same key, the first one counts") {
    snapshot::Snapshot read;
    const std::vector<std::int32_t> ints{16, 2, 0, 8, kGameInfo, 5, kGameInfo, 6};
    const auto result = demo::decode_demo_snapshot(ints, read);
    CHECK(result.error.empty());
    CHECK(result.duplicates == 1);
    CHECK(read == test::to_snapshot({{{6, 0}, {5}}}));
}

TEST_CASE("a snapshot that demo players skip is rejected with the index of the wrong int") {
    struct Row {
        std::string_view name;
        std::vector<std::int32_t> ints;
        std::string_view error;
        std::size_t index;
    };

    constexpr std::string_view kCounts = "its counts do not match its size";
    constexpr std::string_view kOffsets = "an item's offset is invalid";
    constexpr std::string_view kType = "an item's type is invalid";
    const Row rows[] = {
        {"nothing", {}, kCounts, 0},
        {"half a head", {0}, kCounts, 0},
        {"negative size", {-4, 0}, kCounts, 0},
        {"negative count", {0, -1}, kCounts, 0},
        {"too many items", {0, 1025}, kCounts, 0},
        {"huge count", {0, kHuge}, kCounts, 0},
        {"huge size", {kHuge, 0}, kCounts, 0},
        {"odd size", {5, 1, 0, kGameInfo}, kCounts, 0},
        {"more than it says", {4, 1, 0, kGameInfo, 1}, kCounts, 0},
        {"less than it says", {12, 1, 0, kGameInfo, 1}, kCounts, 0},
        {"negative offset", {8, 1, -4, kGameInfo, 1}, kOffsets, 2},
        {"odd offset", {8, 1, 2, kGameInfo, 1}, kOffsets, 2},
        {"offset at the end", {8, 1, 8, kGameInfo, 1}, kOffsets, 2},
        {"offset past the end", {8, 1, 12, kGameInfo, 1}, kOffsets, 2},
        {"huge offset", {8, 1, kHuge - 3, kGameInfo, 1}, kOffsets, 2},
        {"offsets back", {16, 2, 8, 0, kGameInfo, 1, kPickup7, 1}, kOffsets, 2},
        {"smallest offset", {16, 2, 0, -kHuge - 1, kGameInfo, 1, kPickup7, 1}, kOffsets, 2},
        {"negative type", {8, 1, 0, -1, 1}, kType, 3},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        snapshot::Snapshot read;
        const auto result = demo::decode_demo_snapshot(row.ints, read);
        CHECK(result.error == row.error);
        CHECK(result.index == row.index);
    }
}

using capture::CaptureError;
using demo::DemoFile;

TEST_CASE("a demo is recognised by its first bytes") {
    const test::TemporaryFile demo{test::demo_of(6, {})};
    const test::TemporaryFile cut{test::bytes_of({'T', 'W', 'D'})};
    const test::TemporaryFile other{Bytes(100)};
    CHECK(DemoFile::is_demo(demo.path()));
    CHECK_FALSE(DemoFile::is_demo(cut.path()));
    CHECK_FALSE(DemoFile::is_demo(other.path()));
    CHECK_FALSE(DemoFile::is_demo("-"));
    CHECK_FALSE(DemoFile::is_demo("/dev/zero"));
    CHECK_FALSE(DemoFile::is_demo("/no such file"));
    CHECK(DemoFile{demo.path()}.bytes().size() == std::filesystem::file_size(demo.path()));
    CHECK_THROWS_AS(DemoFile{"/no such file"}, std::runtime_error);
    const test::TemporaryFile empty{Bytes{}};
    CHECK_THROWS_AS(DemoFile{empty.path()}, std::runtime_error);
}

TEST_CASE("demos are read in their order among captures, each as one session") {
    const test::TemporaryFile first{test::demo_of(6, {{1, {}}, {3, {}}})};
    Bytes damaged = test::demo_of(4, {{1, {}}, {3, {}}});
    test::append(damaged, test::bytes_of({0x82, 0x21, 1}));
    const test::TemporaryFile second{damaged};
    const test::TemporaryFile capture{test::pcap_file({}, {})};
    test::NoMaps maps;
    test::RecordLog log;
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{}, maps, log, numbers};
    capture::CaptureRun run{{first.path(), capture.path(), second.path()}, {}};
    CHECK_FALSE(run.is_damaged());
    run.read_captures(inspector);
    CHECK(run.is_damaged());
    CHECK(inspector.num_sessions_opened() == 2);
    CHECK(log.lines({"snapshot"}).size() == 4);
    // the damaged demo has one more tick
    CHECK(run.last_time() - run.first_time() == 4 * 20'000'000LL);
}

TEST_CASE("a demo with an invalid header is rejected before any file is read") {
    const Bytes whole = test::demo_of(6, {});
    Bytes young = whole;
    young[7] = std::byte{7};
    for (const Bytes& bytes : {young, Bytes{whole.begin(), whole.begin() + 100}}) {
        const test::TemporaryFile file{bytes};
        CHECK_THROWS_AS((capture::CaptureRun{{file.path()}, {}}), CaptureError);
    }
}
