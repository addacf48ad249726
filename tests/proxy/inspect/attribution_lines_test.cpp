// Covers: proxy/record/stats.cpp
// On which lines of the account single datagrams are booked.

#include "tests/proxy/inspect/attribution_run.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test::attribution;
using record::ByteGroup;
using record::BytePart;

TEST_CASE("a rejected delta is booked by why it was rejected") {
    struct Row {
        const char* name;
        Bytes message;
        const char* line;
    };

    test::MessageBuilder behind{spec_of("snap_single")};
    behind.number(100).number(50).number(kSmallCrc);
    behind.number(static_cast<std::int32_t>(small_delta().size())).raw(small_delta());
    const Row rows[] = {
        {"checksum", snap_single(100, small_delta(), kSmallCrc + 1),
         "snapshot with another checksum"},
        {"cut int", snap_single(100, Bytes(20, std::byte{0xff})), "undecodable snapshot"},
        {"base", behind.bytes(), "snapshot on an unknown base"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Run run;
        run.datagram(1, wire::Direction::s2c, packet_of(row.message));
        run.finish();
        CHECK(run.find(wire::Direction::s2c, ByteGroup::unused, row.line).bytes > 0);
        run.check_sums();
    }
}

TEST_CASE("every bit of noise is booked") {
    std::mt19937 random{7}; // NOLINT(bugprone-random-generator-seed): repeatable
    Run run;
    for (int i = 0; i < 20'000; ++i) {
        Bytes bytes(random() % (i % 50 == 0 ? 1600 : 60));
        std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
        if (bytes.size() > 2 && i % 2 == 0) {
            bytes[0] &= std::byte{0x83}; // packets of chunks
            bytes[2] &= std::byte{0x07};
        }
        run.datagram(1 + random() % 3,
                     random() % 2 == 0 ? wire::Direction::c2s : wire::Direction::s2c, bytes);
    }
    run.finish();
    run.check_sums();
}

TEST_CASE("a delta's bytes are booked on its items") {
    Run run;
    run.datagram(1, wire::Direction::s2c, packet_of(snap_single(100, small_delta(), kSmallCrc)));
    run.finish();
    run.check_sums();
    const auto bytes = [&](ByteGroup group, std::string_view name,
                           BytePart part = BytePart::whole) {
        return run.find(wire::Direction::s2c, group, name, part).bytes;
    };
    CHECK(bytes(ByteGroup::packet, "header") == 3);
    CHECK(bytes(ByteGroup::chunk, "header") == 2);
    CHECK(bytes(ByteGroup::message, "snap_single", BytePart::head) == 1);
    CHECK(bytes(ByteGroup::message, "snap_single", BytePart::fields) == 2 + 2 + 2 + 1);
    CHECK(bytes(ByteGroup::delta, "counts") == 3);
    CHECK(bytes(ByteGroup::deletion, "laser") == 3);
    CHECK(bytes(ByteGroup::item, "flag", BytePart::head) == 2);
    CHECK(bytes(ByteGroup::item, "flag", BytePart::fields) == 6);
    CHECK(bytes(ByteGroup::item, "type 16385", BytePart::head) == 5);
    CHECK(bytes(ByteGroup::item, "type 16385", BytePart::fields) == 3);
    CHECK(bytes(ByteGroup::delta, "surplus") == 0);
}

TEST_CASE("a delta in parts is booked when it is complete, in any order") {
    Bytes body = small_delta();
    body.resize(snapshot::kMaxPartSize + 10); // surplus zeros
    const Bytes first{body.begin(), body.begin() + snapshot::kMaxPartSize};
    const Bytes last{body.begin() + snapshot::kMaxPartSize, body.end()};
    for (const bool swapped : {false, true}) {
        CAPTURE(swapped);
        Run run;
        run.datagram(1, wire::Direction::s2c,
                     packet_of(snap_part(100, 2, swapped ? 1 : 0, swapped ? last : first)));
        CHECK(run.find(wire::Direction::s2c, ByteGroup::delta, "counts").bytes == 0);
        // The second one is compressed: its bytes keep their own prices.
        run.datagram(1, wire::Direction::s2c,
                     packet_of(snap_part(100, 2, swapped ? 0 : 1, swapped ? first : last),
                               {.compression = wire::Compression::always}));
        CHECK(run.find(wire::Direction::s2c, ByteGroup::delta, "counts").bytes == 3);
        CHECK(run.find(wire::Direction::s2c, ByteGroup::delta, "surplus").bytes ==
              body.size() - small_delta().size());
        run.check_sums();
        run.datagram(1, wire::Direction::s2c, packet_of(snap_part(100, 2, 0, first)));
        CHECK(run.find(wire::Direction::s2c, ByteGroup::unused, "repeated snapshot").bytes ==
              first.size());
        run.finish();
        run.check_sums();
    }
}

TEST_CASE("a delta whose parts never come is booked as incomplete") {
    struct Row {
        const char* name;
        std::vector<Bytes> behind; ///< packets behind the one part
    };

    const Bytes part(snapshot::kMaxPartSize);
    const Row rows[] = {
        {"the session ends", {}},
        {"a much younger one comes", {packet_of(snap_single(200, small_delta()))}},
        {"a single one of the same tick comes", {packet_of(snap_single(100, small_delta()))}},
        {"a contradicting part comes, and nothing more", {packet_of(snap_part(100, 3, 1, {}))}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Run run;
        run.datagram(1, wire::Direction::s2c, packet_of(snap_part(100, 2, 0, part)));
        for (const Bytes& bytes : row.behind) {
            run.datagram(1, wire::Direction::s2c, bytes);
        }
        run.finish();
        CHECK(run.find(wire::Direction::s2c, ByteGroup::unused, "incomplete snapshot").bytes ==
              part.size());
        run.check_sums();
    }
}

TEST_CASE("resends and what stands behind a gap have lines of their own") {
    const Bytes ready = test::MessageBuilder{spec_of("con_ready")}.bytes();
    Run run;
    run.datagram(1, wire::Direction::s2c, packet_of(ready, {}, true, 5));
    run.datagram(1, wire::Direction::s2c, packet_of(ready, {}, true, 5, true)); // had it
    run.datagram(1, wire::Direction::s2c, packet_of(ready, {}, true, 7));       // 6 is missing
    run.datagram(1, wire::Direction::s2c, packet_of(ready, {}, true, 6, true));
    run.datagram(1, wire::Direction::s2c, packet_of(ready, {}, true, 7, true));
    run.datagram(1, wire::Direction::s2c, packet_of(ready, {}, true, 9));
    run.datagram(1, wire::Direction::s2c, packet_of(ready, {}, true, 8)); // late, not sent again
    run.finish();
    run.check_sums();
    CHECK(run.find(wire::Direction::s2c, ByteGroup::message, "con_ready", BytePart::head).count ==
          4);
    CHECK(run.find(wire::Direction::s2c, ByteGroup::duplicate, "con_ready") ==
          record::ByteCount{.count = 1, .bytes = 4, .bits = 32});
    CHECK(run.find(wire::Direction::s2c, ByteGroup::behind_gap, "con_ready").count == 2);
    CHECK(run.totals().directions[1].recovered == 2);
    CHECK(run.totals().directions[1].reordered == 1);
    CHECK(run.totals().directions[1].duplicates == 1);
    CHECK(run.totals().directions[1].gaps == 2);
}

TEST_CASE("a ledger keeps a bounded number of names and loses no bits") {
    record::ByteLedger ledger;
    constexpr std::size_t kMany = 2 * record::ByteLedger::kMaxRows;
    for (std::size_t i = 0; i < kMany; ++i) {
        ledger.charge(wire::Direction::c2s, ByteGroup::message, BytePart::fields,
                      "game " + std::to_string(i), {1, 2, 16});
    }
    CHECK(ledger.rows(wire::Direction::c2s).size() == record::ByteLedger::kMaxRows + 1);
    CHECK(ledger.total(wire::Direction::c2s) == record::ByteCount{kMany, 2 * kMany, 16 * kMany});
    record::ByteLedger sum;
    sum.merge(ledger);
    sum.merge(ledger);
    CHECK(sum.total(wire::Direction::c2s).bits == 2 * 16 * kMany);
}
