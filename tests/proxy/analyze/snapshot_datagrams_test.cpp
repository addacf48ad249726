#include "proxy/analyze/snapshot_datagrams.h"
#include "proxy/inspect/reporter.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using analyze::SnapshotDatagrams;

namespace {

constexpr std::size_t kHeader = 3;

/// Passes datagrams with one part each to SnapshotDatagrams.
class Capture {
  public:
    /// Passes a datagram of 40 bytes whose part starts at byte 10.
    void pass(std::uint32_t session, std::int32_t tick, std::int32_t part,
              inspect::PartFate fate = inspect::PartFate::stored, bool compressed = false) {
        place_ = {.file = "a.pcap", .frame = place_.frame + 1, .time = place_.time + 1};
        read(session, place_.time, tick, part, fate, compressed);
    }

    void read(std::uint32_t session, std::int64_t time, std::int32_t tick, std::int32_t part,
              inspect::PartFate fate, bool compressed) {
        const std::span<const std::byte> datagram{bytes_};
        record::RecordHead head;
        head.time = time;
        head.session = session;
        datagrams.on_datagram(head, datagram);
        wire::Packet packet;
        packet.compressed = compressed;
        packet.payload = datagram.subspan(kHeader);
        datagrams.on_packet(packet);
        wire::SnapshotBody body;
        body.tick = tick;
        body.num_parts = 3;
        body.part = part;
        body.data = datagram.subspan(10);
        datagrams.on_part({.body = body, .fate = fate});
        datagrams.on_datagram_end();
    }

    [[nodiscard]] std::uint64_t frame() const { return place_.frame; }

    SnapshotDatagrams datagrams{[this] { return place_; }, [this] { ++ends; }};
    int ends = 0;

  private:
    std::array<std::byte, 40> bytes_{};
    SnapshotDatagrams::DatagramPosition place_;
};

} // namespace

TEST_CASE("the datagrams of a snapshot are found by session and tick, one for each part") {
    Capture capture;
    capture.pass(1, 12, 1);
    capture.pass(2, 12, 0);
    capture.pass(1, 12, 0);
    capture.pass(1, 14, 0);
    capture.pass(1, 12, 0, inspect::PartFate::repeated);
    const auto found = capture.datagrams.find(1, 12);
    REQUIRE(found.size() == 2);
    CHECK(found[0].part == 0);
    CHECK(found[0].frame == 3);
    CHECK(found[0].file == "a.pcap");
    CHECK(found[0].num_parts == 3);
    CHECK(found[0].bytes == 40);
    CHECK(found[0].size == 30);
    CHECK(found[1].frame == 1);
    CHECK(capture.datagrams.find(3, 12).empty());
    CHECK(capture.datagrams.find(1, 13).empty());
    CHECK(capture.ends == 5);
}

TEST_CASE("offsets are in the payload, or in what is decompressed after the header") {
    Capture capture;
    capture.pass(1, 12, 0);
    capture.pass(1, 13, 0, inspect::PartFate::complete, true);
    CHECK(capture.datagrams.find(1, 12).front().begin == 10);
    const auto compressed = capture.datagrams.find(1, 13);
    CHECK(compressed.front().compressed);
    CHECK(compressed.front().header == kHeader);
    CHECK(compressed.front().begin == 10 - kHeader);
}

TEST_CASE("a datagram that was held back has no frame number") {
    Capture capture;
    capture.pass(1, 10, 0);
    capture.read(1, -5, 12, 0, inspect::PartFate::stored, false);
    const auto found = capture.datagrams.find(1, 12);
    REQUIRE(found.size() == 1);
    CHECK(found.front().frame == 0);
    CHECK(found.front().time == -5);
}

TEST_CASE("memory is bounded: the oldest datagrams and the last sessions are left out") {
    Capture capture;
    for (std::int32_t i = 0; i < 200; ++i) {
        capture.pass(1, i, 0);
    }
    CHECK(capture.datagrams.find(1, 199 - 64).empty());
    CHECK_FALSE(capture.datagrams.find(1, 199 - 63).empty());
    for (std::uint32_t session = 2; session < 5000; ++session) {
        capture.pass(session, 7, 0);
    }
    CHECK_FALSE(capture.datagrams.find(SnapshotDatagrams::kMaxSessions, 7).empty());
    CHECK(capture.datagrams.find(SnapshotDatagrams::kMaxSessions + 1, 7).empty());
}
