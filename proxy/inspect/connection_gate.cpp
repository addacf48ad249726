#include "proxy/inspect/connection_gate.h"

#include "proxy/wire/message.h"

#include <algorithm>

namespace tw::inspect {

namespace {

/// Tokenless, the first packet of the server, with a map change and empty snapshots together; in
/// DDNet 14.0 to 16.7 damaged, but always six vital chunks.
bool looks_like_prelude(std::span<const wire::Chunk> chunks) {
    if (chunks.empty() || !chunks.front().vital || chunks.front().sequence != 1) {
        return false;
    }
    constexpr std::size_t kDdnetChunks = 6;
    const bool all_vital = std::all_of(chunks.begin(), chunks.end(),
                                       [](const wire::Chunk& chunk) { return chunk.vital; });
    if (all_vital && chunks.size() == kDdnetChunks) {
        return true;
    }
    return std::any_of(chunks.begin(), chunks.end(), [](const wire::Chunk& chunk) {
        const auto head = wire::decode_message_head(chunk.payload);
        return head && head->spec != nullptr && head->spec->id == wire::MessageId::snap_empty;
    });
}

void report_wrong_token(Reporter& reporter) {
    ++reporter.direction_stats().wrong_token;
    reporter.finding_once({.id = record::FindingId::packet_wrong_token});
}

} // namespace

wire::Secrecy secrecy_of_undecoded(std::span<const std::byte> bytes, std::size_t harmless) {
    return bytes.size() > harmless ? wire::Secrecy::secret : wire::Secrecy::open;
}

PacketChunks::PacketChunks(const wire::Packet& packet, ChunkRoom& room) {
    wire::ChunkReader reader{packet.payload, packet.num_chunks};
    std::size_t count = 0;
    while (count < room.size()) {
        const auto chunk = reader.next();
        if (!chunk) {
            break;
        }
        room[count++] = *chunk;
    }
    chunks = std::span{room}.first(count);
    if (reader.error()) {
        error = reader.error();
    }
    // After a damaged chunk nobody knows where a token would stand.
    const bool token_at_end = error && packet.payload.size() >= wire::kTokenSize;
    rest = token_at_end ? packet.payload.last(wire::kTokenSize) : reader.rest();
}

ConnectionChange ConnectionGate::on_control(const wire::Packet& packet,
                                            const wire::Control& control, Reporter& reporter) {
    if (packet.compressed) {
        reporter.finding_once({.id = record::FindingId::packet_control_compressed});
    }
    if (control.kind == wire::ControlKind::unknown) {
        reporter.finding_once(
            {.id = record::FindingId::packet_control_unknown, .value = control.raw_kind});
    }
    return connection_.on_control(reporter.direction(), packet, control);
}

bool ConnectionGate::closes(const wire::Control& control, Reporter& reporter) const {
    // A banned client gets a close without token; one with another token is not for this
    // connection.
    if (control.token && connection_.token() && control.token != connection_.token()) {
        report_wrong_token(reporter);
        return false;
    }
    return true;
}

bool ConnectionGate::on_seven() {
    if (connection_.protocol() != wire::Protocol::unknown) {
        return false;
    }
    connection_.set_seven();
    return true;
}

ConnectionChange ConnectionGate::on_chunks(const wire::Packet& packet, const PacketChunks& chunks,
                                           const Reporter& reporter) {
    return connection_.on_chunks(reporter.direction(), packet, chunks.rest,
                                 chunks.chunks.empty() ? nullptr : &chunks.chunks.front());
}

bool ConnectionGate::accept(const wire::Packet& packet, const PacketChunks& chunks,
                            Reporter& reporter) {
    if (!connection_.established() || !connection_.token_fits(packet, chunks.rest)) {
        report_wrong_token(reporter);
        return false;
    }
    if (chunks.error) {
        reporter.finding(
            {.id = record::FindingId::chunk_truncated, .offset = chunks.error->offset});
    } else if (!with_token() && !chunks.rest.empty()) {
        reporter.finding_once({.id = record::FindingId::packet_trailing_bytes,
                               .value = static_cast<std::int64_t>(chunks.rest.size()),
                               .bytes = chunks.rest,
                               .secrecy = secrecy_of_undecoded(chunks.rest, wire::kTokenSize)});
    }
    connection_.order(wire::opposite(reporter.direction())).acknowledged(packet.ack);
    if (packet.resend) {
        ++reporter.direction_stats().resend_requests;
    }
    return true;
}

bool ConnectionGate::is_server_prelude(const PacketChunks& chunks, Reporter& reporter) {
    if (!looks_like_prelude(chunks.chunks)) {
        return false;
    }
    reporter.finding_once({.id = record::FindingId::session_antispoof});
    return true;
}

wire::VitalClass ConnectionGate::take_vital(const wire::Chunk& chunk, Reporter& reporter) {
    record::DirectionStats& stats = reporter.direction_stats();
    VitalOrder& order = connection_.order(reporter.direction());
    const bool waiting = order.waiting();
    const wire::VitalClass taken = order.take(chunk.sequence, chunk.resend);
    switch (taken) {
    case wire::VitalClass::next:
        ++stats.vital;
        if (chunk.resend) {
            ++stats.recovered;
        } else if (waiting) {
            ++stats.reordered;
        }
        break;
    case wire::VitalClass::old:
        ++stats.duplicates;
        break;
    case wire::VitalClass::gap:
        ++stats.gaps;
        reporter.finding({.id = record::FindingId::chunk_vital_gap,
                          .offset = chunk.offset,
                          .value = chunk.sequence});
        break;
    }
    return taken;
}

} // namespace tw::inspect
