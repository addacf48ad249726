#include "proxy/inspect/session.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

using wire::MessageId;

namespace {

/// Bytes that nobody could decode may hold a password or a whisper, unless they are too few.
wire::Secrecy undecoded(std::span<const std::byte> bytes, std::size_t harmless) {
    return bytes.size() > harmless ? wire::Secrecy::secret : wire::Secrecy::open;
}

std::string_view control_name(wire::ControlKind kind) {
    switch (kind) {
    case wire::ControlKind::keepalive:
        return "keepalive";
    case wire::ControlKind::connect:
        return "connect";
    case wire::ControlKind::connectaccept:
        return "connectaccept";
    case wire::ControlKind::accept:
        return "accept";
    case wire::ControlKind::close:
        return "close";
    case wire::ControlKind::unknown:
        break;
    }
    return "";
}

/// The anti-spoof prelude: tokenless, the first packet of the server, with a map change and empty
/// snapshots together; in DDNet 14.0 to 16.7 damaged, but always six vital chunks.
bool is_prelude(std::span<const wire::Chunk> chunks) {
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
        return head && head->spec != nullptr && head->spec->id == MessageId::snap_empty;
    });
}

} // namespace

Session::Session(std::uint32_t number, std::string client, std::string server,
                 const Options& options, MapSource& maps, record::RecordSink& sink)
    : client_{std::move(client)}, server_{std::move(server)}, options_{options}, maps_{&maps},
      reporter_{number, sink}, snapshots_{options.objects == nullptr
                                              ? snapshot::ObjectSet::standard()
                                              : *options.objects},
      attribution_{options.ledger == nullptr ? nullptr
                                             : std::make_unique<Attribution>(*options.ledger)} {}

void Session::open(record::Timestamp time) {
    reporter_.begin(time, std::nullopt);
    emit_session(record::SessionEvent::open);
}

void Session::emit_session(record::SessionEvent event, std::string_view reason) {
    reporter_.emit(record::SessionRecord{.head = reporter_.session_head(),
                                         .event = event,
                                         .client = client_,
                                         .server = server_,
                                         .protocol = connection_.protocol_name(),
                                         .reason = reason});
}

void Session::on_datagram(record::Timestamp time, wire::Direction direction,
                          std::span<const std::byte> bytes, Workspace& workspace) {
    reporter_.begin(time, direction);
    record::DirectionStats& stats = reporter_.direction_stats();
    ++stats.datagrams;
    stats.bytes += bytes.size();
    if (attribution_) {
        attribution_->begin(direction, bytes);
    }
    on_bytes(bytes, workspace);
    if (attribution_) {
        attribution_->end();
    }
}

void Session::on_bytes(std::span<const std::byte> bytes, Workspace& workspace) {
    record::DirectionStats& stats = reporter_.direction_stats();
    const auto packet = wire::decode_packet(bytes, connection_.protocol(), workspace.packet);
    if (!packet) {
        ++stats.malformed;
        reporter_.finding({.id = record::finding_of(packet.error().code),
                           .offset = packet.error().offset,
                           .name = wire::error_info(packet.error().code).name,
                           .bytes = bytes.first(std::min<std::size_t>(bytes.size(), 64)),
                           .secrecy = undecoded(bytes, wire::kHeaderSize)});
        return;
    }
    if (attribution_) {
        attribution_->on_packet(*packet);
    }
    if (packet->compressed) {
        ++stats.compressed;
        stats.compressed_bytes += bytes.size() - std::min(bytes.size(), wire::kHeaderSize);
        stats.decompressed_bytes += packet->payload.size();
    }
    switch (packet->kind) {
    case wire::PacketKind::seven:
        if (connection_.protocol() == wire::Protocol::unknown) {
            connection_.set_seven();
            emit_session(record::SessionEvent::established);
        }
        reporter_.finding_once({.id = record::FindingId::packet_seven});
        break;
    case wire::PacketKind::connless:
        ++stats.connless;
        on_connless(*packet, workspace);
        break;
    case wire::PacketKind::control:
        ++stats.control;
        on_control(*packet, workspace);
        break;
    case wire::PacketKind::chunks:
        on_chunks(*packet, workspace);
        break;
    }
}

void Session::on_connless(const wire::Packet& packet, Workspace& workspace) {
    if (!options_.messages) {
        return;
    }
    record::MessageRecord record{.head = reporter_.head(),
                                 .layer = record::MessageLayer::connless,
                                 .size = packet.payload.size()};
    if (const wire::ConnlessSpec* spec = wire::find_connless(packet.payload); spec != nullptr) {
        wire::decode_connless(*spec, packet, workspace.fields);
        record.name = spec->name;
        record.values = workspace.fields.values;
    } else {
        record.raw = packet.payload;
    }
    reporter_.emit(record);
}

void Session::on_control(const wire::Packet& packet, Workspace& workspace) {
    const wire::Control control = wire::decode_control(packet, connection_.token());
    if (attribution_) {
        attribution_->on_control(control);
    }
    if (packet.compressed) {
        reporter_.finding_once({.id = record::FindingId::packet_control_compressed});
    }
    if (control.kind == wire::ControlKind::unknown) {
        reporter_.finding_once(
            {.id = record::FindingId::packet_control_unknown, .value = control.raw_kind});
    }
    const ConnectionChange change = connection_.on_control(direction(), packet, control);
    if (options_.messages) {
        auto& values = workspace.fields.values;
        values.clear();
        if (control.kind == wire::ControlKind::close) {
            values.push_back({.kind = wire::FieldValue::Kind::string,
                              .name = "reason",
                              .bytes = std::as_bytes(std::span{control.reason})});
        }
        if (control.token) {
            values.push_back({.kind = wire::FieldValue::Kind::raw,
                              .name = "token",
                              .bytes = std::as_bytes(std::span{*control.token})});
        }
        reporter_.emit(record::MessageRecord{.head = reporter_.head(),
                                             .layer = record::MessageLayer::control,
                                             .name = control_name(control.kind),
                                             .size = packet.payload.size(),
                                             .number = control.raw_kind,
                                             .values = values});
    }
    if (change != ConnectionChange::none) {
        begin_connection(change);
    }
    if (control.kind == wire::ControlKind::close && !closed_) {
        // A banned client gets a close without token; one with another token is not for this
        // connection.
        if (control.token && connection_.token() && control.token != connection_.token()) {
            ++reporter_.direction_stats().wrong_token;
            reporter_.finding_once({.id = record::FindingId::packet_wrong_token});
            return;
        }
        const bool client = direction() == wire::Direction::c2s;
        end_connection(!control.reason.empty() ? control.reason
                       : client                ? "closed by the client"
                                               : "closed by the server");
    }
}

void Session::begin_connection(ConnectionChange change) {
    if (running_) {
        end_connection("reconnected");
    }
    if (closed_) {
        ended_.merge(std::exchange(reporter_.stats, {}));
        reporter_.forget_once();
        reporter_.finding({.id = record::FindingId::session_reconnected});
    }
    snapshots_.reset(reporter_);
    snapshots_.set_world(nullptr);
    inputs_ = {};
    if (attribution_) {
        attribution_->restart();
    }
    details_.reset();
    download_.clear();
    unknown_told_.reset();
    running_ = true;
    closed_ = false;
    emit_session(record::SessionEvent::established);
    if (change == ConnectionChange::midway) {
        reporter_.finding({.id = record::FindingId::session_joined_midway});
    }
}

void Session::end_connection(std::string_view reason) {
    snapshots_.restart(reporter_); // what is incomplete now stays so, and belongs in the summary
    emit_session(record::SessionEvent::close, reason);
    reporter_.emit(
        record::SummaryRecord{.head = reporter_.session_head(), .stats = &reporter_.stats});
    running_ = false;
    closed_ = true;
}

void Session::report(record::Timestamp time) {
    reporter_.begin(time, std::nullopt);
    reporter_.emit(
        record::SummaryRecord{.head = reporter_.session_head(), .stats = &reporter_.stats});
}

void Session::close(record::Timestamp time, std::string_view reason) {
    reporter_.begin(time, std::nullopt);
    if (attribution_) {
        attribution_->restart();
    }
    if (closed_) {
        return;
    }
    if (running_ && reason == "idle") {
        reporter_.finding({.id = record::FindingId::session_closed_silently});
    }
    end_connection(reason);
}

record::SessionStats Session::totals() const {
    record::SessionStats totals = ended_;
    totals.merge(reporter_.stats);
    return totals;
}

void Session::on_gap(record::Timestamp time, std::uint64_t lost) {
    reporter_.begin(time, std::nullopt);
    reporter_.stats.gap_lost += lost;
    reporter_.finding({.id = record::FindingId::inspect_gap,
                       .lost = lost == 0 ? std::nullopt : std::optional{lost}});
    connection_.resynchronise();
}

void Session::on_chunks(const wire::Packet& packet, Workspace& workspace) {
    wire::ChunkReader reader{packet.payload, packet.num_chunks};
    std::size_t count = 0;
    while (count < Workspace::kMaxChunks) {
        const auto chunk = reader.next();
        if (!chunk) {
            break;
        }
        workspace.chunks[count++] = *chunk;
    }
    const std::span<const wire::Chunk> chunks{workspace.chunks.data(), count};
    // After a damaged chunk nobody knows where a token would stand.
    const auto rest = reader.error() && packet.payload.size() >= wire::kTokenSize
                          ? packet.payload.last(wire::kTokenSize)
                          : reader.rest();
    const ConnectionChange change = connection_.on_chunks(
        direction(), packet, rest, chunks.empty() ? nullptr : &chunks.front());
    if (change != ConnectionChange::none) {
        begin_connection(change);
    }
    if (!connection_.established() || !connection_.token_fits(packet, rest)) {
        ++reporter_.direction_stats().wrong_token;
        reporter_.finding_once({.id = record::FindingId::packet_wrong_token});
        return;
    }
    if (attribution_) {
        attribution_->on_accepted(connection_.form() == TokenForm::ddnet,
                                  reader.error().has_value());
    }
    if (reader.error()) {
        reporter_.finding(
            {.id = record::FindingId::chunk_truncated, .offset = reader.error()->offset});
    } else if (connection_.form() != TokenForm::ddnet && !rest.empty()) {
        reporter_.finding_once({.id = record::FindingId::packet_trailing_bytes,
                                .value = static_cast<std::int64_t>(rest.size()),
                                .bytes = rest,
                                .secrecy = undecoded(rest, wire::kTokenSize)});
    }
    const wire::Direction opposite =
        direction() == wire::Direction::c2s ? wire::Direction::s2c : wire::Direction::c2s;
    connection_.order(opposite).acknowledged(packet.ack);
    if (packet.resend) {
        ++reporter_.direction_stats().resend_requests;
    }
    prelude_ = direction() == wire::Direction::s2c && connection_.form() != TokenForm::ddnet &&
               is_prelude(chunks);
    if (prelude_) {
        reporter_.finding_once({.id = record::FindingId::session_antispoof});
    }
    for (const wire::Chunk& chunk : chunks) {
        const wire::VitalClass taken = on_chunk(chunk, workspace);
        if (attribution_) {
            attribution_->on_chunk(chunk, taken, snapshots_.types());
        }
    }
    prelude_ = false;
}

} // namespace tw::inspect
