// Tests that every byte of original and changed captures is counted, and how the bytes of single
// datagrams are counted.
// Covers: proxy/inspect/snapshots/attribution.cpp, proxy/record/stats.cpp
#include "proxy/inspect/snapshots/attribution.h"
#include "proxy/wire/huffman.h"
#include "proxy/wire/packet.h"
#include "snapshot/delta.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/record_sink.h"
#include "tests/support/snapshot_messages.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using record::ByteGroup;
using record::BytePart;
using test::Bytes;

namespace {

/// Adds up the sizes of the deltas of verified snapshots.
struct VerifiedBytes final : test::TypedRecordSink<VerifiedBytes> {
    void on(const record::SnapshotRecord& snapshot) {
        total += snapshot.rebuilt ? snapshot.bytes : 0;
    }

    std::uint64_t total = 0;
};

/// Adds up the bits of the parts of accepted deltas, without the ledger. The ledger must count the
/// same number of bits for items.
class VerifiedBits final : public inspect::Observer {
  public:
    void on_delta(const inspect::ObservedDelta& delta) override {
        if (delta.outcome != inspect::DeltaOutcome::accepted) {
            return;
        }
        for (std::size_t i = 0; i < delta.delta.body.size(); ++i) {
            const bool compressed = delta.delta.marked[i / snapshot::kMaxPartSize];
            total += compressed ? wire::huffman_code_lengths()[std::to_integer<std::size_t>(
                                      delta.delta.body[i])]
                                : 8U;
        }
    }

    std::uint64_t total = 0;
};

/// Inspects sessions and attributes their bytes to the rows of a ledger.
class CountedTraffic {
  public:
    CountedTraffic() {
        observers_.add_observer(attribution_);
        observers_.add_observer(verified_bits_);
    }

    void add_datagram(std::uint64_t session, wire::Direction direction, const Bytes& bytes) {
        if (opened_.emplace(session, true).second) {
            inspector_.on_open(session, time_, "client", "server");
        }
        payload_[direction == wire::Direction::s2c ? 1 : 0] += bytes.size();
        inspector_.on_datagram(session, time_ += 1'000'000, direction, bytes);
    }

    void close_sessions() { inspector_.close_all_sessions(time_, "end of test"); }

    [[nodiscard]] std::uint64_t payload_bytes(wire::Direction direction) const {
        return payload_[direction == wire::Direction::s2c ? 1 : 0];
    }

    [[nodiscard]] const record::ByteLedger& ledger() const { return ledger_; }

    [[nodiscard]] record::SessionStats totals() const { return inspector_.totals(); }

    void add_from_server(const Bytes& bytes) { add_datagram(1, wire::Direction::s2c, bytes); }

    /// Returns the total of a row of the server's bytes.
    [[nodiscard]] record::ByteCount row_total(ByteGroup group, std::string_view name,
                                              BytePart part = BytePart::whole) const {
        for (const record::ByteLedgerRow& row : ledger_.rows(wire::Direction::s2c)) {
            if (row.group == group && row.name == name && row.part == part) {
                return row.total;
            }
        }
        return {};
    }

    void check_sums() const {
        for (const wire::Direction direction : {wire::Direction::c2s, wire::Direction::s2c}) {
            CHECK(ledger_.total(direction).bits == 8 * payload_bytes(direction));
        }
        record::ByteCount items;
        for (const record::ByteLedgerRow& row : ledger_.rows(wire::Direction::s2c)) {
            if (row.group == ByteGroup::delta || row.group == ByteGroup::deletion ||
                row.group == ByteGroup::item) {
                items.add(row.total);
            }
        }
        CHECK(items.bytes == sink_.total);
        CHECK(items.bits == verified_bits_.total);
    }

  private:
    test::NoMaps maps_;
    VerifiedBytes sink_;
    VerifiedBits verified_bits_;
    record::ByteLedger ledger_;
    inspect::ByteAttribution attribution_{ledger_};
    inspect::Observers observers_;
    std::atomic<std::uint32_t> numbers_{0};
    inspect::Inspector inspector_{
        {.emits_message_records = false, .observers = &observers_}, maps_, sink_, numbers_};
    std::map<std::uint64_t, bool> opened_;
    std::int64_t time_ = 0;
    std::uint64_t payload_[2] = {};
};

/// The most datagrams of a capture that are read; more take long without optimisation.
constexpr std::size_t kMaxDatagrams = 6'000;

/// Inspects a capture. `change` may change, drop or duplicate its datagrams.
template <typename F>
void inspect_capture(CountedTraffic& run, const std::string& name, F&& change) {
    auto traffic = test::read_traffic(name);
    traffic.resize(std::min(traffic.size(), kMaxDatagrams));
    for (const test::TrafficDatagram& datagram : traffic) {
        change(datagram.session, datagram.direction, datagram.bytes);
    }
    run.close_sessions();
}

/// Inspects an unchanged capture.
void inspect_capture(CountedTraffic& run, const std::string& name) {
    inspect_capture(run, name,
                    [&](std::uint64_t session, wire::Direction direction, const Bytes& bytes) {
                        run.add_datagram(session, direction, bytes);
                    });
}

Bytes make_packet(const Bytes& message, wire::PacketSpec spec = {}, bool vital = false,
                  std::uint16_t sequence = 0, bool resend = false) {
    Bytes chunks;
    wire::append_chunk(chunks, vital, sequence, resend, message, spec.dialect);
    spec.num_chunks = 1;
    spec.chunks = chunks;
    return wire::encode_packet(spec);
}

/// The checksum of the snapshot that small_delta encodes: the sum of its ints.
constexpr std::int32_t kSmallCrc = 100 - 200 + 300 + 5 + 6000;

/// A delta with a deletion of type 3, an update of type 5 (three ints) and one of an unknown type.
Bytes small_delta() {
    return test::body_of({1, 2, 0, 0x30005, 5, 7, 100, -200, 300, 0x4001, 9, 2, 5, 6000});
}

Bytes full_snap_single(std::int32_t tick, const Bytes& body, std::int32_t crc = 0) {
    return test::snap_single(tick, snapshot::kNoBase, crc, body);
}

Bytes full_snap_part(std::int32_t tick, std::int32_t num_parts, std::int32_t part,
                     const Bytes& data) {
    return test::snap_part(tick, snapshot::kNoBase, num_parts, part, kSmallCrc, data);
}

const char* const kGolden[] = {
    "../golden/token-ddnet-layers-rejoin.pcap", "../golden/token-high-bandwidth.pcap",
    "../golden/token-map-change.pcap", "../golden/token-map-download.pcap",
    "../golden/tokenless-map-change.pcap"};

} // namespace

TEST_CASE("every bit of a capture is counted exactly once") {
    for (const char* name : {"bench-4.pcap.gz", "bench-64.pcap.gz"}) {
        CAPTURE(name);
        CountedTraffic run;
        inspect_capture(run, name);
        run.check_sums();
        const auto totals = run.totals();
        CHECK(totals.verified > 0);
        CHECK(totals.verified == totals.snapshots);
        CHECK(run.row_total(ByteGroup::item, "character", BytePart::fields).count > 0);
        CHECK(run.row_total(ByteGroup::unused, "malformed").bits == 0);
        CHECK(run.row_total(ByteGroup::delta, "damaged").bits == 0);
        // The rows' bytes add up to the decompressed bytes.
        const auto& s2c = totals.directions[1];
        CHECK(run.ledger().total(wire::Direction::s2c).bytes ==
              s2c.bytes - s2c.compressed_bytes + s2c.decompressed_bytes);
    }
}

TEST_CASE("every bit is counted despite lost, duplicate, reordered or damaged datagrams") {
    std::mt19937 random{20240607}; // NOLINT(bugprone-random-generator-seed): repeatable
    CountedTraffic run;
    Bytes held;
    inspect_capture(run, "bench-4.pcap.gz",
                    [&](std::uint64_t session, wire::Direction direction, const Bytes& original) {
                        Bytes bytes = original;
                        switch (random() % 20) {
                        case 0:
                            return;
                        case 1:
                            run.add_datagram(session, direction, bytes);
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
                        run.add_datagram(session, direction, bytes);
                    });
    run.check_sums();
    CHECK(run.totals().directions[1].duplicates > 0);
    CHECK(run.totals().directions[1].reordered > 0);
    CHECK(run.totals().missed > 0);
}

TEST_CASE("the bits counted for items are those of verified deltas, despite forged datagrams") {
    std::mt19937 random{11}; // NOLINT(bugprone-random-generator-seed): repeatable
    for (const char* name : kGolden) {
        for (const bool forged : {false, true}) {
            CAPTURE(name);
            CAPTURE(forged);
            CountedTraffic run;
            inspect_capture(
                run, name,
                [&](std::uint64_t session, wire::Direction direction, const Bytes& bytes) {
                    run.add_datagram(session, direction, bytes);
                    if (!forged || direction != wire::Direction::s2c || random() % 4 != 0) {
                        return;
                    }
                    const auto tick = static_cast<std::int32_t>(random() % 4'000);
                    const Bytes forgeries[] = {
                        make_packet(full_snap_single(tick, small_delta(), kSmallCrc)),
                        make_packet(full_snap_single(tick, small_delta(), 1)),
                        make_packet(full_snap_single(2'000'000'000, small_delta(), kSmallCrc)),
                        make_packet(full_snap_single(-5, small_delta())),
                        make_packet(full_snap_single(tick, Bytes(20, std::byte{0xff}))),
                        make_packet(full_snap_part(tick, 2, 0, Bytes(snapshot::kMaxPartSize))),
                        make_packet(full_snap_part(tick, 2, 1, Bytes(30)),
                                    {.compression = wire::Compression::always}),
                        make_packet(full_snap_part(tick, 70, 1, Bytes(30)))};
                    run.add_datagram(session, direction,
                                     forgeries[random() % std::size(forgeries)]);
                });
            run.check_sums();
            CHECK(run.totals().verified > 0);
        }
    }
}

TEST_CASE("a forged tick far ahead only changes how its own datagram is counted") {
    // Without tokens, anyone who guesses the addresses can send this datagram.
    const char* const capture = "../golden/tokenless-map-change.pcap";
    CountedTraffic honest;
    inspect_capture(honest, capture);
    Bytes forged = make_packet(full_snap_single(2'000'000'000, small_delta(), kSmallCrc));
    CountedTraffic run;
    int passed = 0;
    inspect_capture(run, capture,
                    [&](std::uint64_t session, wire::Direction direction, const Bytes& bytes) {
                        const bool of_chunks = (bytes[0] & std::byte{0x30}) == std::byte{0};
                        if (direction == wire::Direction::s2c && of_chunks && ++passed == 60) {
                            // The client drops a packet without a current acknowledgement.
                            forged[0] = bytes[0] & std::byte{0x03};
                            forged[1] = bytes[1];
                            run.add_datagram(session, wire::Direction::s2c, forged);
                        }
                        run.add_datagram(session, direction, bytes);
                    });
    REQUIRE(passed >= 60);
    run.check_sums();
    CHECK(run.totals().verified == honest.totals().verified);
    CHECK(run.row_total(ByteGroup::unused, "snapshot of a stray tick").bytes ==
          small_delta().size());
    CHECK(run.row_total(ByteGroup::unused, "repeated snapshot") ==
          honest.row_total(ByteGroup::unused, "repeated snapshot"));
    // Otherwise, only the rows of the forged header, chunk header, id and fields change.
    const auto count_other_rows = [&](const CountedTraffic& each) {
        std::map<std::string, std::uint64_t> rows;
        for (const wire::Direction direction : {wire::Direction::c2s, wire::Direction::s2c}) {
            for (const record::ByteLedgerRow& row : each.ledger().rows(direction)) {
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

TEST_CASE("a rejected delta is counted under the reason of the rejection") {
    struct Row {
        const char* name;
        Bytes message;
        const char* line;
    };

    const Row rows[] = {
        {"checksum", full_snap_single(100, small_delta(), kSmallCrc + 1),
         "snapshot with another checksum"},
        {"cut int", full_snap_single(100, Bytes(20, std::byte{0xff})), "undecodable snapshot"},
        {"base", test::snap_single(100, 50, kSmallCrc, small_delta()),
         "snapshot on an unknown base"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CountedTraffic run;
        run.add_from_server(make_packet(row.message));
        run.close_sessions();
        CHECK(run.row_total(ByteGroup::unused, row.line).bytes > 0);
        run.check_sums();
    }
}

TEST_CASE("every bit of random datagrams is counted") {
    std::mt19937 random{7}; // NOLINT(bugprone-random-generator-seed): repeatable
    CountedTraffic run;
    for (int i = 0; i < 20'000; ++i) {
        Bytes bytes(random() % (i % 50 == 0 ? 1600 : 60));
        std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random()); });
        if (bytes.size() > 2 && i % 2 == 0) {
            bytes[0] &= std::byte{0x83}; // packets of chunks
            bytes[2] &= std::byte{0x07};
        }
        run.add_datagram(1 + random() % 3,
                         random() % 2 == 0 ? wire::Direction::c2s : wire::Direction::s2c, bytes);
    }
    run.close_sessions();
    run.check_sums();
}

TEST_CASE("a delta's bytes are counted for its items") {
    CountedTraffic run;
    run.add_from_server(make_packet(full_snap_single(100, small_delta(), kSmallCrc)));
    run.close_sessions();
    run.check_sums();
    const auto bytes = [&](ByteGroup group, std::string_view name,
                           BytePart part = BytePart::whole) {
        return run.row_total(group, name, part).bytes;
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

TEST_CASE("a delta in several parts is counted once it is complete, in any order") {
    Bytes body = small_delta();
    body.resize(snapshot::kMaxPartSize + 10); // surplus zeros
    const Bytes first{body.begin(), body.begin() + snapshot::kMaxPartSize};
    const Bytes last{body.begin() + snapshot::kMaxPartSize, body.end()};
    for (const bool swapped : {false, true}) {
        CAPTURE(swapped);
        CountedTraffic run;
        run.add_from_server(
            make_packet(full_snap_part(100, 2, swapped ? 1 : 0, swapped ? last : first)));
        CHECK(run.row_total(ByteGroup::delta, "counts").bytes == 0);
        // The second part is compressed: its bytes are counted with their compressed sizes.
        run.add_from_server(
            make_packet(full_snap_part(100, 2, swapped ? 0 : 1, swapped ? first : last),
                        {.compression = wire::Compression::always}));
        CHECK(run.row_total(ByteGroup::delta, "counts").bytes == 3);
        CHECK(run.row_total(ByteGroup::delta, "surplus").bytes ==
              body.size() - small_delta().size());
        run.check_sums();
        run.add_from_server(make_packet(full_snap_part(100, 2, 0, first)));
        CHECK(run.row_total(ByteGroup::unused, "repeated snapshot").bytes == first.size());
        run.close_sessions();
        run.check_sums();
    }
}

TEST_CASE("a delta with a missing part is counted as incomplete") {
    struct Row {
        const char* name;
        std::vector<Bytes> behind; ///< packets after the part
    };

    const Bytes part(snapshot::kMaxPartSize);
    const Row rows[] = {
        {"the session ends", {}},
        {"a much younger one comes", {make_packet(full_snap_single(200, small_delta()))}},
        {"a single one of the same tick comes",
         {make_packet(full_snap_single(100, small_delta()))}},
        {"a contradicting part comes, and nothing more",
         {make_packet(full_snap_part(100, 3, 1, {}))}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CountedTraffic run;
        run.add_from_server(make_packet(full_snap_part(100, 2, 0, part)));
        for (const Bytes& bytes : row.behind) {
            run.add_from_server(bytes);
        }
        run.close_sessions();
        CHECK(run.row_total(ByteGroup::unused, "incomplete snapshot").bytes == part.size());
        run.check_sums();
    }
}

TEST_CASE("duplicates and chunks after a gap are counted separately") {
    const Bytes ready = test::message("con_ready").bytes();
    CountedTraffic run;
    run.add_from_server(make_packet(ready, {}, true, 5));
    run.add_from_server(make_packet(ready, {}, true, 5, true)); // received before
    run.add_from_server(make_packet(ready, {}, true, 7));       // 6 is missing
    run.add_from_server(make_packet(ready, {}, true, 6, true));
    run.add_from_server(make_packet(ready, {}, true, 7, true));
    run.add_from_server(make_packet(ready, {}, true, 9));
    run.add_from_server(make_packet(ready, {}, true, 8)); // late, without the resend bit
    run.close_sessions();
    run.check_sums();
    CHECK(run.row_total(ByteGroup::message, "con_ready", BytePart::head).count == 4);
    CHECK(run.row_total(ByteGroup::duplicate, "con_ready") ==
          record::ByteCount{.count = 1, .bytes = 4, .bits = 32});
    CHECK(run.row_total(ByteGroup::behind_gap, "con_ready").count == 2);
    CHECK(run.totals().directions[1].recovered == 2);
    CHECK(run.totals().directions[1].reordered == 1);
    CHECK(run.totals().directions[1].duplicates == 1);
    CHECK(run.totals().directions[1].gaps == 2);
}

TEST_CASE("a ledger stores a limited number of names and loses no bits") {
    record::ByteLedger ledger;
    constexpr std::size_t kMany = 2 * record::ByteLedger::kMaxRows;
    for (std::size_t i = 0; i < kMany; ++i) {
        ledger.add_bytes(wire::Direction::c2s, ByteGroup::message, BytePart::fields,
                         "game " + std::to_string(i), {1, 2, 16});
    }
    CHECK(ledger.rows(wire::Direction::c2s).size() == record::ByteLedger::kMaxRows + 1);
    CHECK(ledger.total(wire::Direction::c2s) == record::ByteCount{kMany, 2 * kMany, 16 * kMany});
    record::ByteLedger sum;
    sum.merge(ledger);
    sum.merge(ledger);
    CHECK(sum.total(wire::Direction::c2s).bits == 2 * 16 * kMany);
}
