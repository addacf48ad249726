// Covers: proxy/inspect/inspector.cpp, proxy/demo/demo_reader.cpp
#include "proxy/demo/demo_reader.h"
#include "proxy/wire/huffman.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/record_log.h"
#include "tests/support/record_sink.h"
#include "tests/support/session_script.h"

#include <atomic>
#include <set>

#include <doctest/doctest.h>

using namespace tw;
using record::FindingId;
using test::append;
using test::Bytes;
using test::bytes_of;
using test::Items;
using test::kPickupAndPlayer;

namespace {

const Items kTwoPickups{{{4, 1}, {11, 20, 0, 0}}, {{4, 2}, {5, 5, 0, 0}}};

const Bytes kNextTick = bytes_of({0xa2}); ///< two ticks later

/// Returns a demo of two ticks with further chunks.
Bytes demo_with(const std::vector<Bytes>& chunks) {
    Bytes demo = test::demo_of(6, {{10, kPickupAndPlayer}, {12, kTwoPickups}});
    for (const Bytes& chunk : chunks) {
        append(demo, chunk);
    }
    return demo;
}

/// The records of a demo, and how reading it ended.
struct PlayedDemo {
    explicit PlayedDemo(const Bytes& bytes) {
        test::FakeMaps maps;
        std::atomic<std::uint32_t> numbers{0};
        inspect::Inspector inspector{{}, maps, log, numbers};
        const auto head = demo::decode_demo_parts(bytes);
        REQUIRE(head.has_value());
        end = demo::inspect_demo(*head, "a.demo", inspector);
        totals = inspector.totals();
        CHECK(inspector.num_sessions_opened() == 1);
    }

    /// Returns the snapshots and messages of the further chunks of demo_with().
    [[nodiscard]] std::vector<std::string> further_lines() const {
        auto lines = log.lines({"snapshot", "message"});
        REQUIRE(lines.size() >= 2);
        CHECK(lines[0] == "snapshot 10<--1 ok 2");
        CHECK(lines[1] == "snapshot 12<-10 ok 2");
        lines.erase(lines.begin(), lines.begin() + 2);
        return lines;
    }

    test::RecordLog log;
    demo::DemoReadResult end;
    record::SessionStats totals;
};

Bytes int_chunk(int type, const std::vector<std::int32_t>& ints) {
    const Bytes data =
        wire::huffman_compress(test::body_of(ints), wire::HuffmanEnding::without_zero_byte);
    Bytes chunk = bytes_of({type << 5 | 30, static_cast<int>(data.size())});
    append(chunk, data);
    return chunk;
}

} // namespace

TEST_CASE("a demo becomes a session with its map, snapshots and messages, with the demo's times") {
    for (const int version : {3, 4, 5, 6}) {
        CAPTURE(version);
        Bytes demo =
            demo::DemoEncoder::encode_start(test::demo_header(version), bytes_of({1, 2, 3}));
        demo::DemoEncoder encoder{version, snapshot::Dialect::six};
        REQUIRE(encoder.append_snapshot(10, test::to_snapshot(kPickupAndPlayer).view(), demo));
        REQUIRE(encoder.append_message(test::message("sv_motd").string("hello").bytes(), demo));
        REQUIRE(encoder.append_snapshot(12, test::to_snapshot(kPickupAndPlayer).view(), demo));
        REQUIRE(encoder.append_snapshot(64, test::to_snapshot(kTwoPickups).view(), demo));
        REQUIRE(encoder.append_snapshot(400, test::to_snapshot(kTwoPickups).view(), demo));
        const PlayedDemo played{demo};
        CHECK(played.log.lines({"session", "map", "message", "snapshot", "finding"}) ==
              std::vector<std::string>{"session open", "session established 0.6", "map dm1 none",
                                       "finding map.not_found dm1", "snapshot 10<--1 ok 2",
                                       "message s2c sv_motd #0", "snapshot 12<-10 ok 2",
                                       "snapshot 64<-12 ok 2", "snapshot 400<--1 ok 2",
                                       "session close end of demo"});
        CHECK(played.end.error.code == demo::DemoErrc::none);
        CHECK(played.end.last - played.end.first == 390 * 20'000'000LL);
        CHECK(played.totals.snapshots == 4);
        CHECK(played.totals.verified == 4);
        CHECK(played.totals.empty == 1);
        CHECK(played.totals.full == 2);
    }
}

TEST_CASE("padding of a demo's message is not read as a tuning of 0.7") {
    struct Row {
        const char* name;
        int ints;
        int bytes; ///< size of the message
        int read;  ///< number of tunings read
    };

    // The message's number takes one byte, each int before the last one or two bytes.
    const Row rows[] = {
        {"as many as its version has, and a byte of padding", 44, 63, 44},
        {"as many, and none", 44, 64, 44},
        {"one more, laser_damage, and no padding", 45, 64, 45},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        test::MessageBuilder tunings = test::message("sv_tune_params", wire::Dialect::seven);
        for (int i = 0; i < row.ints; ++i) {
            tunings.number(i < row.bytes - 1 - row.ints ? 1000 : 1);
        }
        REQUIRE(tunings.bytes().size() == static_cast<std::size_t>(row.bytes));
        auto header = test::demo_header(demo::kSevenDemoVersion);
        header.net_version = demo::kSevenNetVersion;
        Bytes demo = demo::DemoEncoder::encode_start(header, {});
        demo::DemoEncoder encoder{header.version, snapshot::Dialect::seven};
        REQUIRE(
            encoder.append_snapshot(10, test::to_snapshot({{{4, 1}, {10, 20, 0}}}).view(), demo));
        REQUIRE(encoder.append_message(tunings.bytes(), demo));

        class Tunings final : public test::TypedRecordSink<Tunings> {
          public:
            void on(const record::MessageRecord& it) {
                if (it.name == "sv_tune_params") {
                    for (const auto& value : it.values) {
                        names.emplace_back(value.name);
                    }
                }
            }

            std::vector<std::string> names;
        } read;

        test::FakeMaps maps;
        std::atomic<std::uint32_t> numbers{0};
        inspect::Inspector inspector{{}, maps, read, numbers};
        const auto head = demo::decode_demo_parts(demo);
        REQUIRE(head.has_value());
        const auto end = demo::inspect_demo(*head, "a.demo", inspector);
        CHECK(end.error.code == demo::DemoErrc::none);
        REQUIRE(read.names.size() == static_cast<std::size_t>(row.read));
        CHECK((read.names[30] == "laser_damage") == (row.read == 45));
    }
}

TEST_CASE("every finding about demos is reported for its fault") {
    struct Row {
        FindingId id;
        std::vector<Bytes> chunks;
    };

    using enum FindingId;
    const Row rows[] = {
        {demo_cut_short, {bytes_of({0xa2, 0x2f, 1})}},
        {demo_damaged, {bytes_of({0xa2, 0x21, 1})}},
        {demo_snapshot_invalid, {kNextTick, int_chunk(1, {4, 1})}},
        {demo_tick_order, {bytes_of({0x80, 0, 0, 0, 11}), int_chunk(3, {0, 0, 0})}},
        {demo_duplicate_item, {kNextTick, int_chunk(1, {16, 2, 0, 8, 6 << 16, 5, 6 << 16, 6})}},
        {snapshot_size_out_of_range, {kNextTick, int_chunk(3, {0, 1, 0, 40, 0, -1})}},
        {snapshot_unknown_delete, {kNextTick, int_chunk(3, {1, 0, 0, 99})}},
        {message_id_invalid, {int_chunk(2, {-1})}},
        {message_truncated, {int_chunk(2, {0x01010106})}},
    };
    std::set<FindingId> found;
    for (const Row& row : rows) {
        const std::string name{record::finding_info(row.id).name};
        CAPTURE(name);
        const PlayedDemo played{demo_with(row.chunks)};
        CHECK(played.log.count_of(name) == 1);
        CHECK(played.totals.findings[static_cast<std::size_t>(row.id)] == 1);
        static_cast<void>(played.further_lines()); // the readable part comes first
        found.insert(row.id);
    }
    for (const record::FindingInfo& info : record::finding_table()) {
        CAPTURE(info.name);
        CHECK((found.contains(info.id) || !info.name.starts_with("demo.")));
    }
}

TEST_CASE("a snapshot that demo players skip leaves the previous one as base and to be shown") {
    struct Row {
        const char* name;
        std::vector<Bytes> chunks;      ///< of a tick
        std::vector<std::string> lines; ///< records of this tick and the next one
    };

    const Bytes full = int_chunk(1, {4, 1});
    const Bytes delta = int_chunk(3, {0, 1, 0, 40, 0, -1});
    const Bytes right = int_chunk(3, {0, 0, 0});
    const Bytes chat = int_chunk(2, {6});
    const Row rows[] = {
        {"full", {full}, {"snapshot 14<--1 bad", "snapshot 14<-12 ok 2", "snapshot 16<-14 ok 2"}},
        {"delta", {delta}, {"snapshot 14<-12 bad", "snapshot 14<-12 ok 2", "snapshot 16<-14 ok 2"}},
        {"both, and then a right one",
         {full, delta, right},
         {"snapshot 14<--1 bad", "snapshot 14<-12 bad", "snapshot 14<-12 ok 2",
          "snapshot 16<-14 ok 2"}},
        {"behind a right one",
         {right, full},
         {"snapshot 14<-12 ok 2", "snapshot 14<--1 bad", "snapshot 16<-14 ok 2"}},
        {"a message follows",
         {delta, chat},
         {"snapshot 14<-12 bad", "snapshot 14<-12 ok 2", "message s2c sv_chat #0",
          "snapshot 16<-14 ok 2"}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        std::vector<Bytes> chunks = row.chunks;
        chunks.insert(chunks.begin(), kNextTick);
        chunks.insert(chunks.end(), {kNextTick, right});
        const PlayedDemo played{demo_with(chunks)};
        CHECK(played.further_lines() == row.lines);
        CHECK(played.end.error.code == demo::DemoErrc::none);
    }
}

TEST_CASE("an empty chunk is skipped") {
    struct Row {
        const char* name;
        int type;
        std::vector<std::string> lines; ///< records of its tick and the next one
        std::vector<std::string> findings;
    };

    const Row rows[] = {
        {"other", 0, {"snapshot 14<-12 ok 2", "snapshot 16<-14 ok 2"}, {}},
        {"snapshot",
         1,
         {"snapshot 14<--1 bad", "snapshot 14<-12 ok 2", "snapshot 16<-14 ok 2"},
         {"demo.snapshot_invalid"}},
        {"message", 2, {"snapshot 14<-12 ok 2", "snapshot 16<-14 ok 2"}, {}},
        {"delta",
         3,
         {"snapshot 14<-12 bad", "snapshot 14<-12 ok 2", "snapshot 16<-14 ok 2"},
         {"snapshot.deleted_out_of_range"}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const PlayedDemo played{
            demo_with({kNextTick, bytes_of({row.type << 5}), kNextTick, int_chunk(3, {0, 0, 0})})};
        CHECK(played.further_lines() == row.lines);
        CHECK(played.end.error.code == demo::DemoErrc::none);
        for (const std::string& finding : row.findings) {
            CHECK(played.log.count_of(finding) == 1);
        }
    }
}

TEST_CASE("a chunk of an unused type is decompressed, and the previous snapshot is shown again") {
    const PlayedDemo played{
        demo_with({kNextTick, int_chunk(0, {1, 2, 3}), int_chunk(3, {0, 0, 0})})};
    CHECK(played.further_lines() ==
          std::vector<std::string>{"snapshot 14<-12 ok 2", "snapshot 14<-14 ok 2"});
    CHECK(played.end.error.code == demo::DemoErrc::none);

    const PlayedDemo damaged{demo_with({bytes_of({0xa2, 0x01, 0x01}), int_chunk(3, {0, 0, 0})})};
    CHECK(damaged.log.lines({"snapshot"}).size() == 2);
    CHECK(damaged.log.count_of("demo.damaged") == 1);
    CHECK(damaged.end.error.code == demo::DemoErrc::payload_undecodable);
}

TEST_CASE("ticks out of order are shown, and reported once") {
    const PlayedDemo played{demo_with({bytes_of({0xa0, 0x80, 0, 0, 0, 11, 0xa1, 0xa1})})};
    CHECK(played.log.lines({"snapshot", "finding"}) ==
          std::vector<std::string>{"finding map.not_found dm1", "snapshot 10<--1 ok 2",
                                   "snapshot 12<-10 ok 2", "finding demo.tick_order tick 12",
                                   "snapshot 12<-12 ok 2", "snapshot 11<-12 ok 2",
                                   "snapshot 12<-11 ok 2"});
    CHECK(played.totals.findings[static_cast<std::size_t>(FindingId::demo_tick_order)] == 2);
}

TEST_CASE("a delta without a base gives no snapshot") {
    Bytes demo = demo::DemoEncoder::encode_start(test::demo_header(), {});
    append(demo, bytes_of({0x80, 0, 0, 0, 10}));
    append(demo, int_chunk(3, {0, 0, 0}));
    const PlayedDemo played{demo};
    CHECK(played.log.count_of("snapshot.unknown_base") == 1);
    CHECK(played.totals.unknown_base == 1);
    CHECK(played.totals.full == 0);
}

TEST_CASE(
    "a tick without a snapshot shows the previous one once a chunk follows, also the last tick") {
    const std::vector<std::string> shown{"snapshot 14<-12 ok 2", "snapshot 16<-14 ok 2",
                                         "message s2c sv_chat #0"};
    const Bytes chat = int_chunk(2, {6});
    CHECK(PlayedDemo{demo_with({kNextTick, kNextTick, chat, kNextTick})}.further_lines() == shown);
    // A message after the tick suffices.
    CHECK(PlayedDemo{demo_with({kNextTick, kNextTick, chat})}.further_lines() == shown);
    // A message that cannot be decompressed does not.
    const PlayedDemo damaged{demo_with({bytes_of({0xa2, 0x41, 0x01})})};
    CHECK(damaged.log.lines({"snapshot"}).size() == 2);
}

TEST_CASE("joins and leaves in demos of 0.7's client are no findings") {
    Bytes demo = demo::DemoEncoder::encode_start(
        {.version = 4, .net_version = std::string{demo::kSevenNetVersion}}, {});
    demo::DemoEncoder encoder{4, snapshot::Dialect::seven};
    REQUIRE(encoder.append_snapshot(10, test::to_snapshot({{{4, 1}, {10, 20, 0}}}).view(), demo));
    const auto left = test::MessageBuilder{}.number(23 << 1).string("anna").number(2).string("");
    REQUIRE(encoder.append_message(left.bytes(), demo));
    encoder.append_final_chunk(demo);
    const PlayedDemo played{demo};
    CHECK(played.log.count_of("message.unexpected") == 0);
    CHECK(played.log.lines({"message"}) ==
          std::vector<std::string>{"message s2c de_client_leave #0"});
}

TEST_CASE("only the zeros that demos append are removed from messages") {
    struct Row {
        std::string_view name;
        Bytes payload;
        std::size_t findings;
    };

    const auto motd = [](std::string_view text) {
        return test::message("sv_motd").string(text).bytes();
    };
    Bytes surplus = motd("abcd");
    append(surplus, bytes_of({0, 0, 0, 0, 0}));
    const Row rows[] = {{"whole ints", motd("ab"), 0},
                        {"one zero", motd("a"), 0},
                        {"two zeros", motd("abcde"), 0},
                        {"three zeros", motd("abc"), 0},
                        {"more", surplus, 1}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Bytes demo = demo_with({});
        REQUIRE(demo::DemoEncoder{6, snapshot::Dialect::six}.append_message(row.payload, demo));
        const PlayedDemo played{demo};
        CHECK(played.log.count_of("message.trailing_bytes") == row.findings);
        CHECK(played.log.lines({"message"}).size() == 1);
    }
}
