// Tests captures of real traffic with simulated loss, duplicates and reordering. The expected
// result of every snapshot is computed from the remaining datagrams by the protocol's rules.

#include "proxy/wire/packet.h"
#include "snapshot/cursor.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/record_sink.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using test::TrafficDatagram;

namespace {

using Tick = snapshot::Tick;

/// A snapshot message: its tick, part and base (-1: none).
struct SnapMessage {
    Tick tick = 0;
    Tick base = -1;
    std::int32_t num_parts = 1;
    std::int32_t part = 0;
};

/// Returns the snapshot messages of a datagram.
std::vector<SnapMessage> snapshots_in(const TrafficDatagram& datagram) {
    std::vector<SnapMessage> found;
    wire::PacketScratch scratch;
    const auto packet = wire::decode_packet(datagram.bytes, wire::Protocol::six, scratch);
    if (datagram.direction == wire::Direction::c2s || !packet ||
        packet->kind != wire::PacketKind::chunks) {
        return found;
    }
    wire::ChunkReader chunks{packet->payload, packet->num_chunks, wire::Dialect::six};
    while (const auto chunk = chunks.next()) {
        // Ids as the wire writes them: id * 2 + 1.
        constexpr std::int32_t kSnap = 11;
        constexpr std::int32_t kSnapEmpty = 13;
        constexpr std::int32_t kSnapSingle = 15;
        snapshot::Cursor in{chunk->payload};
        const std::int32_t id = in.var_int();
        if (id == kSnap || id == kSnapEmpty || id == kSnapSingle) {
            SnapMessage message;
            message.tick = in.var_int();
            message.base = message.tick - in.var_int();
            if (id == kSnap) {
                message.num_parts = in.var_int();
                message.part = in.var_int();
            }
            found.push_back(message);
        }
    }
    return found;
}

struct DamageRates {
    std::string capture;
    unsigned drop; ///< per thousand datagrams, like the others
    unsigned duplicate;
    unsigned delay; ///< until after the next datagram of its flow
};

/// Damages a capture after each session's first snapshot, so that handshakes stay complete.
std::vector<TrafficDatagram> damage_traffic(const std::vector<TrafficDatagram>& traffic,
                                            const DamageRates& damage) {
    std::mt19937 random{20240607};
    std::set<std::uint64_t> playing;
    std::map<std::pair<std::uint64_t, wire::Direction>, TrafficDatagram> held;
    std::vector<TrafficDatagram> left;
    for (const TrafficDatagram& datagram : traffic) {
        const std::pair flow{datagram.session, datagram.direction};
        const bool fair = !playing.contains(datagram.session);
        if (fair && !snapshots_in(datagram).empty()) {
            playing.insert(datagram.session);
        }
        constexpr unsigned kThousand = 1000;
        const auto fate = static_cast<unsigned>(fair ? kThousand : random() % kThousand);
        if (fate < damage.drop) {
            continue;
        }
        if (fate < damage.drop + damage.delay && !held.contains(flow)) {
            held.emplace(flow, datagram);
            continue;
        }
        left.push_back(datagram);
        if (fate >= damage.drop + damage.delay &&
            fate < damage.drop + damage.delay + damage.duplicate) {
            left.push_back(datagram);
        }
        if (auto late = held.extract(flow)) {
            left.push_back(std::move(late.mapped()));
            left.back().time = datagram.time;
        }
    }
    return left;
}

/// Computes the expected results of one session's snapshots.
class ExpectedResults {
  public:
    void add_snap_message(const SnapMessage& message) {
        if (rebuilt.contains(message.tick)) {
            ++repeated;
            return;
        }
        auto& parts = parts_[message.tick];
        if (message.num_parts > 1 && !parts.insert(message.part).second) {
            ++repeated;
            return;
        }
        if (message.num_parts > 1 && parts.size() < static_cast<std::size_t>(message.num_parts)) {
            open_.insert(message.tick);
            return;
        }
        open_.erase(message.tick);
        const bool known = message.base == -1 || rebuilt.contains(message.base);
        if (known) {
            rebuilt.insert(message.tick);
        } else if (!on_unknown_base.insert(message.tick).second) {
            ++repeated; // failed before, and its base is still missing
            return;
        }
        outcomes.emplace_back(message.tick, message.base, known);
    }

    /// Returns the ticks with a part that never arrived.
    [[nodiscard]] const std::set<Tick>& incomplete_ticks() const { return open_; }

    std::set<Tick> rebuilt;
    std::set<Tick> on_unknown_base;
    std::vector<std::tuple<Tick, Tick, bool>> outcomes; ///< in order: tick, base, rebuilt
    std::uint64_t repeated = 0;

  private:
    std::map<Tick, std::set<std::int32_t>> parts_;
    std::set<Tick> open_;
};

/// Collects the result of every snapshot, by session.
struct SnapshotResults final : test::TypedRecordSink<SnapshotResults> {
    void on(const record::SnapshotRecord& snapshot) {
        sessions[snapshot.head.session].emplace_back(snapshot.tick, snapshot.delta_tick,
                                                     snapshot.rebuilt);
    }

    void on(const record::FindingRecord& found) {
        if (found.id == record::FindingId::snapshot_part_missing) {
            incomplete[found.head.session].insert(found.tick.value_or(-1));
        }
    }

    std::map<std::uint32_t, std::vector<std::tuple<Tick, Tick, bool>>> sessions;
    std::map<std::uint32_t, std::set<Tick>> incomplete;
};

std::set<Tick> ticks_of_session(const std::vector<TrafficDatagram>& traffic,
                                std::uint64_t session) {
    std::set<Tick> ticks;
    for (const TrafficDatagram& datagram : traffic) {
        if (datagram.session == session) {
            for (const SnapMessage& message : snapshots_in(datagram)) {
                ticks.insert(message.tick);
            }
        }
    }
    return ticks;
}

} // namespace

TEST_CASE("every snapshot is counted despite loss, duplicates and reordering") {
    // The rates are low, because no client requests a full snapshot here: after a loss, all later
    // snapshots fail.
    const DamageRates rows[] = {
        {"bench-4.pcap.gz", 1, 0, 0},   {"bench-4.pcap.gz", 0, 100, 0},
        {"bench-4.pcap.gz", 0, 0, 1},   {"bench-4.pcap.gz", 1, 30, 1},
        {"bench-64.pcap.gz", 5, 30, 5}, {"bench-64.pcap.gz", 60, 30, 50},
    };
    for (const DamageRates& row : rows) {
        CAPTURE(row.capture);
        CAPTURE(row.drop);
        CAPTURE(row.duplicate);
        CAPTURE(row.delay);
        const auto whole = test::read_traffic(row.capture);
        const auto traffic = damage_traffic(whole, row);
        SnapshotResults sink;
        test::TrafficInspector run{{.emits_message_records = false}, sink};
        std::map<std::uint64_t, ExpectedResults> expected;
        std::vector<std::uint64_t> order; // sessions are numbered as they appear
        for (const TrafficDatagram& datagram : traffic) {
            if (!expected.contains(datagram.session)) {
                order.push_back(datagram.session);
            }
            ExpectedResults& session = expected[datagram.session];
            for (const SnapMessage& message : snapshots_in(datagram)) {
                session.add_snap_message(message);
            }
            run.on_datagram(datagram);
        }
        run.finish();

        std::uint64_t rebuilt = 0;
        std::uint64_t failed = 0;
        std::uint64_t incomplete = 0;
        std::uint64_t repeated = 0;
        for (std::size_t i = 0; i < order.size(); ++i) {
            const auto number = static_cast<std::uint32_t>(i + 1);
            CAPTURE(number);
            const ExpectedResults& session = expected.at(order[i]);
            CHECK(sink.sessions[number] == session.outcomes);
            CHECK(sink.incomplete[number] == session.incomplete_ticks());
            rebuilt += session.rebuilt.size();
            failed += session.outcomes.size() - session.rebuilt.size();
            incomplete += session.incomplete_ticks().size();
            repeated += session.repeated;
        }
        const record::SessionStats totals = run.inspector().totals();
        CHECK(totals.verified == rebuilt);
        CHECK(totals.unknown_base == failed);
        CHECK(totals.incomplete == incomplete);
        CHECK(totals.repeated == repeated);
        CHECK(totals.mismatched == 0);
        CHECK(totals.undecodable == 0);
        CHECK((repeated > 0) == (row.duplicate > 0));
        CHECK(rebuilt > 200);
        MESSAGE(row.capture, ": ", rebuilt, " rebuilt, ", failed, " on an unknown base, ",
                incomplete, " incomplete, ", repeated, " repeated");
    }
}

TEST_CASE("with loss only, exactly dropped snapshots and those based on them are missing") {
    const DamageRates row{"bench-64.pcap.gz", 30, 0, 0};
    const auto whole = test::read_traffic(row.capture);
    const auto traffic = damage_traffic(whole, row);
    SnapshotResults sink;
    test::TrafficInspector run{{.emits_message_records = false}, sink};
    std::vector<std::uint64_t> order;
    for (const TrafficDatagram& datagram : traffic) {
        if (std::ranges::find(order, datagram.session) == order.end()) {
            order.push_back(datagram.session);
        }
        run.on_datagram(datagram);
    }
    run.finish();
    std::size_t lost_in_all = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        // The sent parts, the received parts and each tick's base.
        std::map<Tick, std::set<std::int32_t>> missing;
        std::map<Tick, Tick> base;
        for (const bool sent : {true, false}) {
            for (const TrafficDatagram& datagram : sent ? whole : traffic) {
                if (datagram.session != order[i]) {
                    continue;
                }
                for (const SnapMessage& message : snapshots_in(datagram)) {
                    base[message.tick] = message.base;
                    if (sent) {
                        missing[message.tick].insert(message.part);
                    } else {
                        missing[message.tick].erase(message.part);
                    }
                }
            }
        }
        std::set<Tick> lost;
        for (const auto& [tick, parts] : missing) {
            const auto on = base.at(tick);
            if (!parts.empty() || (on != -1 && (lost.contains(on) || !base.contains(on)))) {
                lost.insert(tick);
            }
        }
        std::set<Tick> seen;
        for (const auto& [tick, on, ok] : sink.sessions[static_cast<std::uint32_t>(i + 1)]) {
            if (ok) {
                seen.insert(tick);
            }
        }
        CAPTURE(i);
        for (const Tick tick : ticks_of_session(whole, order[i])) {
            CAPTURE(tick);
            CHECK(seen.contains(tick) != lost.contains(tick));
        }
        lost_in_all += lost.size();
    }
    CHECK(lost_in_all > 100);
}

TEST_CASE("resent and duplicate vital chunks are counted, and each chunk is accepted once") {
    const auto whole = test::read_traffic("bench-4.pcap.gz");

    const auto play = [](const std::vector<TrafficDatagram>& traffic) {
        test::NoSink sink;
        test::TrafficInspector run{{.emits_message_records = false}, sink};
        run.play(traffic);
        return run.inspector().totals();
    };
    const auto clean = play(whole);
    std::vector<TrafficDatagram> twice;
    std::array<std::uint64_t, 2> vital_twice{};
    std::set<std::uint64_t> playing;
    for (const TrafficDatagram& datagram : whole) {
        twice.push_back(datagram);
        wire::PacketScratch scratch;
        const auto packet = wire::decode_packet(datagram.bytes, wire::Protocol::six, scratch);
        if (!packet || packet->kind != wire::PacketKind::chunks) {
            continue;
        }
        twice.push_back(datagram);
        wire::ChunkReader chunks{packet->payload, packet->num_chunks, wire::Dialect::six};
        while (const auto chunk = chunks.next()) {
            vital_twice.at(datagram.direction == wire::Direction::s2c ? 1 : 0) +=
                chunk->vital ? 1U : 0U;
        }
    }
    const auto doubled = play(twice);
    for (std::size_t i = 0; i < vital_twice.size(); ++i) {
        CAPTURE(i);
        CHECK(doubled.directions.at(i).vital == clean.directions.at(i).vital);
        CHECK(doubled.directions.at(i).duplicates ==
              clean.directions.at(i).duplicates + vital_twice.at(i));
        CHECK(doubled.directions.at(i).resent == 2 * clean.directions.at(i).resent);
    }
    CHECK(doubled.verified == clean.verified);
    CHECK(doubled.repeated == clean.parts + clean.empty);
}
