#include "tests/bench/captured_snapshots.h"

#include "proxy/wire/chunk.h"
#include "proxy/wire/packet.h"
#include "snapshot/cursor.h"
#include "tests/support/capture.h"

#include <map>
#include <span>
#include <utility>

namespace tw::bench {

namespace {

using snapshot::Cursor;

// Messages as the wire writes them: id * 2 + 1 for system messages.
constexpr std::int32_t kSnap = 11;
constexpr std::int32_t kSnapEmpty = 13;
constexpr std::int32_t kSnapSingle = 15;

class Reader {
  public:
    void datagram(const test::CapturedDatagram& each) {
        if (server_ == 0) {
            server_ = each.destination_port; // a client speaks first
        }
        if (each.source_port == server_) {
            const auto [session, is_new] = sessions_.try_emplace(each.destination_port);
            if (is_new) {
                session->second.index = sessions_.size() - 1;
            }
            datagram(session->second, each.payload);
        }
    }

    Capture take() {
        capture_.num_sessions = sessions_.size();
        return std::move(capture_);
    }

  private:
    struct Session {
        std::size_t index = 0;
        snapshot::PartAssembler parts;
    };

    void datagram(Session& session, std::span<const std::byte> data) {
        wire::PacketScratch scratch;
        const auto packet = wire::decode_packet(data, wire::Protocol::six, scratch);
        if (!packet || packet->kind != wire::PacketKind::chunks) {
            return;
        }
        wire::ChunkReader chunks{packet->payload, packet->num_chunks};
        while (const auto chunk = chunks.next()) {
            message(session, chunk->payload);
        }
    }

    void message(Session& session, std::span<const std::byte> data) {
        Cursor in{data};
        const std::int32_t id = in.var_int();
        if (id != kSnap && id != kSnapEmpty && id != kSnapSingle) {
            return;
        }
        snapshot::Part part;
        part.tick = in.var_int();
        part.delta_tick = part.tick - in.var_int();
        if (id == kSnapEmpty) {
            capture_.snapshots.push_back({session.index, part.tick, part.delta_tick, {}, {}});
            return;
        }
        if (id == kSnap) {
            part.num_parts = in.var_int();
            part.part = in.var_int();
        }
        part.crc = in.var_int();
        part.data = in.raw(in.var_int());
        if (in.failed() || session.parts.add(part) != snapshot::PartStatus::complete) {
            return;
        }
        const auto& delta = session.parts.assembled();
        capture_.snapshots.push_back({session.index,
                                      delta.tick,
                                      delta.delta_tick,
                                      delta.crc,
                                      {delta.body.begin(), delta.body.end()}});
    }

    std::uint16_t server_ = 0;
    std::map<std::uint16_t, Session> sessions_;
    Capture capture_;
};

} // namespace

Capture read_snapshots(const std::string& name) {
    Reader reader;
    for (const auto& each : test::read_capture(TW_TEST_DATA "/captures/" + name)) {
        reader.datagram(each);
    }
    return reader.take();
}

} // namespace tw::bench
