#pragma once

#include "proxy/inspect/inspector.h"
#include "proxy/inspect/snapshots/attribution.h"
#include "proxy/wire/huffman.h"
#include "proxy/wire/packet.h"
#include "snapshot/cursor.h"
#include "snapshot/delta.h"
#include "tests/support/capture.h"
#include "tests/support/message_builder.h"
#include "tests/support/test_data.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

/// What the tests of attribution feed, and how they look at the account.
namespace tw::test::attribution {

using Bytes = std::vector<std::byte>;

class NoMaps final : public inspect::MapSource {
  public:
    inspect::FoundMap find(const inspect::MapAnnouncement& /*unused*/) override { return {}; }

    inspect::FoundMap keep(const inspect::MapAnnouncement& /*unused*/, Bytes /*unused*/) override {
        return {};
    }
};

/// Adds up the deltas of the snapshots that were verified.
class VerifiedBytes final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        if (const auto* const* snapshot = std::get_if<const record::SnapshotRecord*>(&record)) {
            total += (*snapshot)->rebuilt ? (*snapshot)->bytes : 0;
        }
    }

    std::uint64_t total = 0;
};

/// Adds up what the parts of accepted deltas cost, datagram by datagram, by other means than the
/// ledger: what is booked as items has to come to the same.
class VerifiedBits final : public inspect::Observer {
  public:
    void on_delta(const inspect::DeltaSeen& delta) override {
        if (delta.fate != inspect::DeltaFate::accepted) {
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

/// Sessions whose bytes are booked.
class Run {
  public:
    Run() {
        observers_.add(attribution_);
        observers_.add(verified_bits_);
    }

    void datagram(std::uint64_t session, wire::Direction direction, const Bytes& bytes) {
        if (opened_.emplace(session, true).second) {
            inspector_.on_open(session, time_, "client", "server");
        }
        payload_[direction == wire::Direction::s2c ? 1 : 0] += bytes.size();
        inspector_.on_datagram(session, time_ += 1'000'000, direction, bytes);
    }

    void finish() { inspector_.finish(time_, "end of test"); }

    [[nodiscard]] std::uint64_t payload(wire::Direction direction) const {
        return payload_[direction == wire::Direction::s2c ? 1 : 0];
    }

    [[nodiscard]] const record::ByteLedger& ledger() const { return ledger_; }

    [[nodiscard]] record::SessionStats totals() const { return inspector_.totals(); }

    [[nodiscard]] record::ByteCount find(wire::Direction direction, record::ByteGroup group,
                                         std::string_view name,
                                         record::BytePart part = record::BytePart::whole) const {
        for (const record::LedgerRow& row : ledger_.rows(direction)) {
            if (row.group == group && row.name == name && row.part == part) {
                return row.total;
            }
        }
        return {};
    }

    void check_sums() const {
        for (const wire::Direction direction : {wire::Direction::c2s, wire::Direction::s2c}) {
            CHECK(ledger_.total(direction).bits == 8 * payload(direction));
        }
        record::ByteCount items;
        for (const record::LedgerRow& row : ledger_.rows(wire::Direction::s2c)) {
            if (row.group == record::ByteGroup::delta || row.group == record::ByteGroup::deletion ||
                row.group == record::ByteGroup::item) {
                items.add(row.total);
            }
        }
        CHECK(items.bytes == sink_.total);
        CHECK(items.bits == verified_bits_.total);
    }

  private:
    NoMaps maps_;
    VerifiedBytes sink_;
    VerifiedBits verified_bits_;
    record::ByteLedger ledger_;
    inspect::Attribution attribution_{ledger_};
    inspect::Observers observers_;
    std::atomic<std::uint32_t> numbers_{0};
    inspect::Inspector inspector_{
        {.messages = false, .observers = &observers_}, maps_, sink_, numbers_};
    std::map<std::uint64_t, bool> opened_;
    std::int64_t time_ = 0;
    std::uint64_t payload_[2] = {};
};

/// More of a capture than this shows nothing new, and takes long without optimisation.
inline constexpr std::size_t kMaxDatagrams = 6'000;

/// Feeds a capture; `change` may alter, drop or double what passes.
template <typename F>
void feed_capture(Run& run, const std::string& name, F&& change) {
    const bool golden = name.ends_with(".pcap");
    auto datagrams = read_capture(test::test_data((golden ? "golden/" : "captures/") + name));
    datagrams.resize(std::min(datagrams.size(), kMaxDatagrams));
    std::map<std::uint16_t, std::size_t> ports;
    for (const auto& datagram : datagrams) {
        ++ports[datagram.source_port];
        ++ports[datagram.destination_port];
    }
    // The server is who takes part in everything.
    const auto server = std::ranges::max_element(ports, [](auto& a, auto& b) {
                            return a.second < b.second;
                        })->first;
    for (const auto& datagram : datagrams) {
        const bool s2c = datagram.source_port == server;
        change(std::uint64_t{s2c ? datagram.destination_port : datagram.source_port} + 1,
               s2c ? wire::Direction::s2c : wire::Direction::c2s, datagram.payload);
    }
    run.finish();
}

inline const wire::MessageSpec& spec_of(std::string_view name) {
    const auto table = wire::message_table();
    const auto found =
        std::ranges::find_if(table, [name](const auto& spec) { return spec.name == name; });
    REQUIRE(found != table.end());
    return *found;
}

inline Bytes packet_of(const Bytes& message, wire::PacketSpec spec = {}, bool vital = false,
                       std::uint16_t sequence = 0, bool resend = false) {
    Bytes chunks;
    wire::append_chunk(chunks, vital, sequence, resend, message, spec.dialect);
    spec.num_chunks = 1;
    spec.chunks = chunks;
    return wire::encode_packet(spec);
}

inline Bytes snap_single(std::int32_t tick, const Bytes& body, std::int32_t crc = 0) {
    MessageBuilder message{spec_of("snap_single")};
    message.number(tick).number(tick + 1).number(crc);
    message.number(static_cast<std::int32_t>(body.size()));
    return message.raw(body).bytes();
}

/// Checksum of what small_delta makes of nothing: the sum of its ints.
inline constexpr std::int32_t kSmallCrc = 100 - 200 + 300 + 5 + 6000;

inline Bytes snap_part(std::int32_t tick, std::int32_t num_parts, std::int32_t part,
                       const Bytes& data) {
    MessageBuilder message{spec_of("snap")};
    message.number(tick).number(tick + 1).number(num_parts).number(part).number(kSmallCrc);
    return message.number(static_cast<std::int32_t>(data.size())).raw(data).bytes();
}

/// A deletion of type 3, an update of type 5 (three ints, agreed), one of an unknown type.
inline Bytes small_delta() {
    Bytes body;
    for (const std::int32_t value :
         {1, 2, 0, 0x30005, 5, 7, 100, -200, 300, 0x4001, 9, 2, 5, 6000}) {
        snapshot::encode_varint(value, body);
    }
    return body;
}

} // namespace tw::test::attribution
