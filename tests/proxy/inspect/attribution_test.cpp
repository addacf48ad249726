// Captures as they are and changed on the way: the account stays whole.
// Covers: proxy/inspect/snapshots/attribution.cpp

#include "tests/proxy/inspect/attribution_run.h"

#include <map>
#include <random>
#include <string>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test::attribution;
using record::ByteGroup;
using record::BytePart;

TEST_CASE("every bit of a capture is booked, and nothing twice") {
    for (const char* name : {"bench-4.pcap.gz", "bench-64.pcap.gz"}) {
        CAPTURE(name);
        Run run;
        feed_capture(run, name,
                     [&](std::uint64_t session, wire::Direction direction, const Bytes& bytes) {
                         run.datagram(session, direction, bytes);
                     });
        run.check_sums();
        const auto totals = run.totals();
        CHECK(totals.verified > 0);
        CHECK(totals.verified == totals.snapshots);
        CHECK(run.find(wire::Direction::s2c, ByteGroup::item, "character", BytePart::fields).count >
              0);
        CHECK(run.find(wire::Direction::s2c, ByteGroup::unused, "malformed").bits == 0);
        CHECK(run.find(wire::Direction::s2c, ByteGroup::delta, "damaged").bits == 0);
        // What was decompressed is what the items, messages and the rest have in bytes.
        const auto& s2c = totals.directions[1];
        CHECK(run.ledger().total(wire::Direction::s2c).bytes ==
              s2c.bytes - s2c.compressed_bytes + s2c.decompressed_bytes);
    }
}

TEST_CASE("every bit is booked when datagrams are lost, doubled, swapped, cut and damaged") {
    std::mt19937 random{20240607}; // NOLINT(bugprone-random-generator-seed): repeatable
    Run run;
    Bytes held;
    feed_capture(run, "bench-4.pcap.gz",
                 [&](std::uint64_t session, wire::Direction direction, const Bytes& original) {
                     Bytes bytes = original;
                     switch (random() % 20) {
                     case 0:
                         return;
                     case 1:
                         run.datagram(session, direction, bytes);
                         break;
                     case 2:
                         bytes[random() % bytes.size()] ^= std::byte{0x10};
                         break;
                     case 3:
                         bytes.resize(random() % bytes.size());
                         break;
                     case 4:
                         bytes.resize(bytes.size() + random() % 8);
                         break;
                     case 5:
                         std::swap(held, bytes);
                         break;
                     default:
                         break;
                     }
                     run.datagram(session, direction, bytes);
                 });
    run.check_sums();
    CHECK(run.totals().directions[1].duplicates > 0);
    CHECK(run.totals().directions[1].reordered > 0);
    CHECK(run.totals().missed > 0);
}

const char* const kGolden[] = {"token-ddnet-layers-rejoin.pcap", "token-high-bandwidth.pcap",
                               "token-map-change.pcap", "token-map-download.pcap",
                               "tokenless-map-change.pcap"};

TEST_CASE("what is booked as items is what verified snapshots took, whatever is forged between") {
    std::mt19937 random{11}; // NOLINT(bugprone-random-generator-seed): repeatable
    for (const char* name : kGolden) {
        for (const bool forged : {false, true}) {
            CAPTURE(name);
            CAPTURE(forged);
            Run run;
            feed_capture(
                run, name,
                [&](std::uint64_t session, wire::Direction direction, const Bytes& bytes) {
                    run.datagram(session, direction, bytes);
                    if (!forged || direction != wire::Direction::s2c || random() % 4 != 0) {
                        return;
                    }
                    const auto tick = static_cast<std::int32_t>(random() % 4'000);
                    const Bytes forgeries[] = {
                        packet_of(snap_single(tick, small_delta(), kSmallCrc)),
                        packet_of(snap_single(tick, small_delta(), 1)),
                        packet_of(snap_single(2'000'000'000, small_delta(), kSmallCrc)),
                        packet_of(snap_single(-5, small_delta())),
                        packet_of(snap_single(tick, Bytes(20, std::byte{0xff}))),
                        packet_of(snap_part(tick, 2, 0, Bytes(snapshot::kMaxPartSize))),
                        packet_of(snap_part(tick, 2, 1, Bytes(30)),
                                  {.compression = wire::Compression::always}),
                        packet_of(snap_part(tick, 70, 1, Bytes(30)))};
                    run.datagram(session, direction, forgeries[random() % std::size(forgeries)]);
                });
            run.check_sums();
            CHECK(run.totals().verified > 0);
        }
    }
}

TEST_CASE("a forged tick far ahead changes nothing but the account of its own datagram") {
    // Without tokens anyone who guesses the addresses can send it.
    const char* const capture = "tokenless-map-change.pcap";
    Run honest;
    feed_capture(honest, capture,
                 [&](std::uint64_t session, wire::Direction direction, const Bytes& bytes) {
                     honest.datagram(session, direction, bytes);
                 });
    Bytes forged = packet_of(snap_single(2'000'000'000, small_delta(), kSmallCrc));
    Run run;
    int passed = 0;
    feed_capture(run, capture,
                 [&](std::uint64_t session, wire::Direction direction, const Bytes& bytes) {
                     const bool of_chunks = (bytes[0] & std::byte{0x30}) == std::byte{0};
                     if (direction == wire::Direction::s2c && of_chunks && ++passed == 60) {
                         // The acknowledgement of the moment: without it the client drops the packet.
                         forged[0] = bytes[0] & std::byte{0x03};
                         forged[1] = bytes[1];
                         run.datagram(session, wire::Direction::s2c, forged);
                     }
                     run.datagram(session, direction, bytes);
                 });
    REQUIRE(passed >= 60);
    run.check_sums();
    CHECK(run.totals().verified == honest.totals().verified);
    const auto of = [](const Run& each, ByteGroup group, std::string_view name,
                       BytePart part = BytePart::whole) {
        return each.find(wire::Direction::s2c, group, name, part);
    };
    CHECK(of(run, ByteGroup::unused, "snapshot of a stray tick").bytes == small_delta().size());
    CHECK(of(run, ByteGroup::unused, "repeated snapshot") ==
          of(honest, ByteGroup::unused, "repeated snapshot"));
    // Header, chunk header, id, fields: the rest of the forged datagram, and no other row.
    const auto count_other_rows = [&](const Run& each) {
        std::map<std::string, std::uint64_t> rows;
        for (const wire::Direction direction : {wire::Direction::c2s, wire::Direction::s2c}) {
            for (const record::LedgerRow& row : each.ledger().rows(direction)) {
                const bool own = row.name == "snap_single" || row.name == "header" ||
                                 row.name == "snapshot of a stray tick";
                if (!own) {
                    rows[std::to_string(static_cast<int>(direction)) + row.name +
                         std::to_string(static_cast<int>(row.part))] += row.total.bits;
                }
            }
        }
        return rows;
    };
    CHECK(count_other_rows(run) == count_other_rows(honest));
}
