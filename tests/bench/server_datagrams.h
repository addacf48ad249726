#pragma once

#include "proxy/wire/packet.h"
#include "snapshot/cursor.h"
#include "snapshot/parts.h"

#include <cstddef>
#include <string>
#include <vector>

namespace tw::bench {

/// A datagram that a server sent.
struct ServerDatagram {
    std::size_t session = 0; ///< from 0 in order of appearance
    std::vector<std::byte> bytes;
};

struct ServerDatagrams {
    std::size_t num_sessions = 0;
    std::vector<ServerDatagram> datagrams;
};

/// Returns the server's datagrams in tests/data/captures/NAME. Throws std::runtime_error.
[[nodiscard]] ServerDatagrams read_server_datagrams(const std::string& name);

/// Passes every part of a delta among these chunks to `on_part(const snapshot::Part&)`, and every
/// empty snapshot to `on_empty(tick, base tick)`.
template <typename OnPart, typename OnEmpty>
void for_each_part(wire::ChunkReader chunks, OnPart&& on_part, OnEmpty&& on_empty) {
    // The first int of a message: id * 2 + 1 for system messages.
    constexpr std::int32_t kSnap = 11;
    constexpr std::int32_t kSnapEmpty = 13;
    constexpr std::int32_t kSnapSingle = 15;
    while (const auto chunk = chunks.next()) {
        snapshot::Cursor in{chunk->payload};
        const std::int32_t id = in.var_int();
        if (id != kSnap && id != kSnapEmpty && id != kSnapSingle) {
            continue;
        }
        snapshot::Part part;
        part.tick = in.var_int();
        part.delta_tick = part.tick - in.var_int();
        if (id == kSnapEmpty) {
            on_empty(part.tick, part.delta_tick);
            continue;
        }
        if (id == kSnap) {
            part.num_parts = in.var_int();
            part.part = in.var_int();
        }
        part.crc = in.var_int();
        part.data = in.raw(in.var_int());
        if (!in.failed()) {
            on_part(part);
        }
    }
}

/// Passes every delta among these chunks to `on_delta(const snapshot::AssembledDelta&)`, and every
/// empty snapshot to `on_empty(tick, base tick)`.
template <typename OnDelta, typename OnEmpty>
void for_each_delta(wire::ChunkReader chunks, snapshot::PartAssembler& parts, OnDelta&& on_delta,
                    OnEmpty&& on_empty) {
    for_each_part(
        chunks,
        [&](const snapshot::Part& part) {
            if (parts.add(part) == snapshot::PartStatus::complete) {
                on_delta(parts.assembled());
            }
        },
        on_empty);
}

} // namespace tw::bench
