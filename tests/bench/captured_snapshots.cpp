#include "tests/bench/captured_snapshots.h"

#include "proxy/wire/packet.h"
#include "tests/bench/server_datagrams.h"
#include "tests/support/capture.h"
#include "tests/support/test_data.h"

#include <map>
#include <utility>

namespace tw::bench {

ServerDatagrams read_server_datagrams(const std::string& name) {
    ServerDatagrams found;
    std::map<std::uint16_t, std::size_t> sessions; // by the client's port
    std::uint16_t server = 0;
    for (auto& each : test::read_capture(test::test_data("captures/" + name))) {
        if (server == 0) {
            server = each.destination_port; // a client sends the first datagram
        }
        if (each.source_port == server) {
            const auto session = sessions.try_emplace(each.destination_port, sessions.size()).first;
            found.datagrams.push_back({session->second, std::move(each.payload)});
        }
    }
    found.num_sessions = sessions.size();
    return found;
}

Capture read_snapshots(const std::string& name) {
    const ServerDatagrams captured = read_server_datagrams(name);
    Capture capture;
    capture.num_sessions = captured.num_sessions;
    std::vector<snapshot::PartAssembler> parts(captured.num_sessions);
    for (const ServerDatagram& each : captured.datagrams) {
        wire::PacketScratch scratch;
        const auto packet = wire::decode_packet(each.bytes, wire::Protocol::six, scratch);
        if (!packet || packet->kind != wire::PacketKind::chunks) {
            continue;
        }
        for_each_delta(
            wire::ChunkReader{packet->payload, packet->num_chunks, wire::Dialect::six},
            parts[each.session],
            [&](const snapshot::AssembledDelta& delta) {
                capture.snapshots.push_back({each.session,
                                             delta.tick,
                                             delta.delta_tick,
                                             delta.crc,
                                             {delta.body.begin(), delta.body.end()}});
            },
            [&](snapshot::Tick tick, snapshot::Tick base) {
                capture.snapshots.push_back({each.session, tick, base, {}, {}});
            });
    }
    return capture;
}

} // namespace tw::bench
