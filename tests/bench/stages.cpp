// Plays the capture of four players once through every stage from datagram to record. Each stage is a
// function into which nothing is inlined: count.py makes callgrind count the instructions of each.

#include "proxy/sink/json_lines.h"
#include "proxy/wire/huffman.h"
#include "proxy/wire/packet.h"
#include "snapshot/cursor.h"
#include "snapshot/delta.h"
#include "snapshot/history.h"
#include "tests/bench/server_datagrams.h"
#include "tests/support/captured_traffic.h"

#include <array>
#include <cstdio>
#include <exception>
#include <vector>

namespace tw::bench {

/// count.py uses these names.
namespace stage {

[[gnu::noinline]] bool huffman(std::span<const std::byte> in, std::span<std::byte> out) {
    return wire::huffman_decompress(in, out).has_value();
}

[[gnu::noinline]] wire::Result<wire::Packet> packet(std::span<const std::byte> datagram,
                                                    wire::PacketScratch& scratch) {
    return wire::decode_packet(datagram, wire::Protocol::six, scratch);
}

struct SnapshotMessages {
    struct Empty {
        snapshot::Tick tick = 0;
        snapshot::Tick base = 0;
    };

    std::vector<snapshot::Part> parts;
    std::vector<Empty> empty;
};

[[gnu::noinline]] void chunks(const wire::Packet& packet, SnapshotMessages& heads) {
    heads.parts.clear();
    heads.empty.clear();
    for_each_part(
        wire::ChunkReader{packet.payload, packet.num_chunks, wire::Dialect::six},
        [&](const snapshot::Part& part) { heads.parts.push_back(part); },
        [&](snapshot::Tick tick, snapshot::Tick base) {
            heads.empty.push_back({tick, base});
        });
}

[[gnu::noinline]] bool parts(snapshot::PartAssembler& assembler, const snapshot::Part& part) {
    return assembler.add(part) == snapshot::PartStatus::complete;
}

[[gnu::noinline]] std::size_t varints(std::span<const std::byte> body,
                                      std::span<std::int32_t> out) {
    return snapshot::decode_varints(body, out).count;
}

[[gnu::noinline]] bool delta(std::span<const std::byte> body, snapshot::Delta& out) {
    return snapshot::decode_delta(body, out, snapshot::kAgreedSizes).has_value();
}

[[gnu::noinline]] snapshot::SnapshotView find(const snapshot::History& history,
                                              snapshot::Tick tick) {
    return history.find(tick).value_or(snapshot::SnapshotView{});
}

[[gnu::noinline]] snapshot::Result<snapshot::SnapshotView> apply(const snapshot::SnapshotView& base,
                                                                 const snapshot::Delta& delta,
                                                                 snapshot::History& history) {
    snapshot::DeltaWarnings warnings;
    return snapshot::apply_delta(base, delta, history, warnings);
}

[[gnu::noinline]] std::int32_t checksum(const snapshot::SnapshotView& snapshot) {
    return snapshot.checksum();
}

[[gnu::noinline]] bool commit(snapshot::History& history, snapshot::Tick tick,
                              const snapshot::SnapshotView& built) {
    return history.commit(tick, built);
}

[[gnu::noinline]] void inspect(test::TrafficInspector& inspector,
                               const test::TrafficDatagram& datagram) {
    inspector.on_datagram(datagram);
}

/// Inspects without message records.
[[gnu::noinline]] void verify(test::TrafficInspector& inspector,
                              const test::TrafficDatagram& datagram) {
    inspector.on_datagram(datagram);
}

[[gnu::noinline]] void json(record::RecordSink& lines, const record::Record& record) {
    lines.on_record(record);
}

} // namespace stage

namespace {

constexpr const char* kCapture = "bench-4.pcap.gz";

/// Runs the stages up to the snapshot, one after the other.
class SnapshotStages {
  public:
    explicit SnapshotStages(std::size_t sessions)
        : parts_(sessions), histories_(sessions), ints_(snapshot::kMaxDeltaInts) {}

    void run_datagram(const ServerDatagram& datagram) {
        const auto packet = stage::packet(datagram.bytes, scratch_);
        if (!packet || packet->kind != wire::PacketKind::chunks) {
            return;
        }
        if (packet->compressed &&
            !stage::huffman(std::span{datagram.bytes}.subspan(wire::kHeaderSize), again_)) {
            return;
        }
        stage::chunks(*packet, heads_);
        for (const snapshot::Part& part : heads_.parts) {
            if (stage::parts(parts_[datagram.session], part)) {
                verified += rebuild_snapshot(histories_[datagram.session],
                                             parts_[datagram.session].assembled())
                                ? 1U
                                : 0U;
            }
        }
        for (const stage::SnapshotMessages::Empty& empty : heads_.empty) {
            verified +=
                histories_[datagram.session].store_unchanged(empty.base, empty.tick) ? 1U : 0U;
        }
    }

    std::size_t verified = 0;

  private:
    bool rebuild_snapshot(snapshot::History& history, const snapshot::AssembledDelta& body) {
        ints += stage::varints(body.body, ints_);
        if (!stage::delta(body.body, delta_)) {
            return false;
        }
        const auto built = stage::apply(stage::find(history, body.delta_tick), delta_, history);
        return built && stage::checksum(*built) == body.crc &&
               stage::commit(history, body.tick, *built);
    }

    std::vector<snapshot::PartAssembler> parts_;
    std::vector<snapshot::History> histories_;
    std::vector<std::int32_t> ints_;
    wire::PacketScratch scratch_{};
    std::array<std::byte, wire::kMaxPayloadSize> again_{};
    stage::SnapshotMessages heads_;
    snapshot::Delta delta_;

  public:
    std::size_t ints = 0;
};

class DiscardingOutput final : public sink::Output {
  public:
    void write(std::string_view block) override { bytes += block.size(); }

    std::size_t bytes = 0;
};

class JsonRecordSink final : public record::RecordSink {
  public:
    explicit JsonRecordSink(sink::Output& output) : lines_{{}, output} {}

    void on_record(const record::Record& record) override { stage::json(lines_, record); }

  private:
    sink::JsonLines lines_;
};

int run_all_stages() {
    const ServerDatagrams captured = read_server_datagrams(kCapture);
    SnapshotStages snapshots{captured.num_sessions};
    for (const ServerDatagram& each : captured.datagrams) {
        snapshots.run_datagram(each);
    }
    DiscardingOutput output;
    JsonRecordSink sink{output};
    test::TrafficInspector inspector{{}, sink};
    test::NoSink no_sink;
    test::TrafficInspector verifier{{.emits_message_records = false}, no_sink};
    for (const test::TrafficDatagram& each : test::read_traffic(kCapture)) {
        stage::inspect(inspector, each);
        stage::verify(verifier, each);
    }
    const record::SessionStats totals = inspector.inspector().totals();
    if (snapshots.verified == 0 || snapshots.verified != totals.verified ||
        totals.verified != totals.snapshots) {
        std::fprintf(stderr, "stages: %zu and %llu of %llu snapshots were verified\n",
                     snapshots.verified, static_cast<unsigned long long>(totals.verified),
                     static_cast<unsigned long long>(totals.snapshots));
        return 1;
    }
    std::printf("{\"snapshots\":%zu,\"ints\":%zu,\"json_bytes\":%zu,\"compiler\":\"%s\"}\n",
                snapshots.verified, snapshots.ints, output.bytes, __VERSION__);
    return 0;
}

} // namespace

} // namespace tw::bench

int main() {
    try {
        return tw::bench::run_all_stages();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "stages: %s\n", error.what());
        return 1;
    }
}
