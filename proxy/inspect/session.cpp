#include "proxy/inspect/session.h"

#include "map/game_layer.h"
#include "proxy/wire/text.h"
#include "snapshot/cursor.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tw::inspect {

using wire::MessageId;

namespace {

/// String cleaning that receivers do on map names (protocol sheet, section 3.2).
constexpr std::uint8_t kNameCleaning = 2 | 4;

bool is_snapshot(MessageId id) {
    return id == MessageId::snap || id == MessageId::snap_empty || id == MessageId::snap_single;
}

/// Whether a message may carry a password, a command or a code. What cannot be decoded as a whole
/// cannot be told apart any closer.
wire::Secrecy secrecy_of(const wire::MessageSpec& spec) {
    const bool secret =
        spec.id == MessageId::cl_say || spec.id == MessageId::sv_chat ||
        std::any_of(spec.fields.begin(), spec.fields.end(), [](const wire::MessageField& field) {
            return field.secrecy == wire::Secrecy::secret;
        });
    return secret ? wire::Secrecy::secret : wire::Secrecy::open;
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

std::string clean_name(std::string_view text) {
    return wire::sanitize_string(std::as_bytes(std::span{text}), kNameCleaning);
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
                 const Options& options, MapSource& maps, RecordSink& sink)
    : client_{std::move(client)}, server_{std::move(server)}, options_{options}, maps_{&maps},
      reporter_{number, sink}, snapshots_{options.objects == nullptr
                                              ? snapshot::ObjectSet::standard()
                                              : *options.objects},
      attribution_{options.ledger == nullptr ? nullptr
                                             : std::make_unique<Attribution>(*options.ledger)} {}

void Session::open(Timestamp time) {
    reporter_.begin(time, std::nullopt);
    emit_session(SessionEvent::open);
}

void Session::emit_session(SessionEvent event, std::string_view reason) {
    reporter_.emit(SessionRecord{.head = reporter_.session_head(),
                                 .event = event,
                                 .client = client_,
                                 .server = server_,
                                 .protocol = connection_.protocol_name(),
                                 .reason = reason});
}

void Session::on_datagram(Timestamp time, Direction direction, std::span<const std::byte> bytes,
                          Workspace& workspace) {
    reporter_.begin(time, direction);
    DirectionStats& stats = reporter_.direction_stats();
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
    DirectionStats& stats = reporter_.direction_stats();
    const auto packet = wire::decode_packet(bytes, connection_.protocol(), workspace.packet);
    if (!packet) {
        ++stats.malformed;
        reporter_.finding({.id = finding_of(packet.error().code),
                           .offset = packet.error().offset,
                           .name = wire::error_info(packet.error().code).name,
                           .bytes = bytes.first(std::min<std::size_t>(bytes.size(), 64))});
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
            emit_session(SessionEvent::established);
        }
        reporter_.finding_once({.id = FindingId::packet_seven});
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
    MessageRecord record{
        .head = reporter_.head(), .layer = MessageLayer::connless, .size = packet.payload.size()};
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
        reporter_.finding_once({.id = FindingId::packet_control_compressed});
    }
    if (control.kind == wire::ControlKind::unknown) {
        reporter_.finding_once(
            {.id = FindingId::packet_control_unknown, .value = control.raw_kind});
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
        reporter_.emit(MessageRecord{.head = reporter_.head(),
                                     .layer = MessageLayer::control,
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
            reporter_.finding_once({.id = FindingId::packet_wrong_token});
            return;
        }
        const bool client = direction() == Direction::c2s;
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
        reporter_.finding({.id = FindingId::session_reconnected});
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
    emit_session(SessionEvent::established);
    if (change == ConnectionChange::midway) {
        reporter_.finding({.id = FindingId::session_joined_midway});
    }
}

void Session::end_connection(std::string_view reason) {
    emit_session(SessionEvent::close, reason);
    reporter_.emit(SummaryRecord{.head = reporter_.session_head(), .stats = &reporter_.stats});
    running_ = false;
    closed_ = true;
}

void Session::report(Timestamp time) {
    reporter_.begin(time, std::nullopt);
    reporter_.emit(SummaryRecord{.head = reporter_.session_head(), .stats = &reporter_.stats});
}

void Session::close(Timestamp time, std::string_view reason) {
    reporter_.begin(time, std::nullopt);
    if (attribution_) {
        attribution_->restart();
    }
    if (closed_) {
        return;
    }
    if (running_ && reason == "idle") {
        reporter_.finding({.id = FindingId::session_closed_silently});
    }
    end_connection(reason);
}

SessionStats Session::totals() const {
    SessionStats totals = ended_;
    totals.merge(reporter_.stats);
    return totals;
}

void Session::on_gap(Timestamp time, std::uint64_t lost) {
    reporter_.begin(time, std::nullopt);
    reporter_.stats.gap_lost += lost;
    reporter_.finding(
        {.id = FindingId::inspect_gap, .lost = lost == 0 ? std::nullopt : std::optional{lost}});
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
        reporter_.finding_once({.id = FindingId::packet_wrong_token});
        return;
    }
    if (attribution_) {
        attribution_->on_accepted(connection_.form() == TokenForm::ddnet,
                                  reader.error().has_value());
    }
    if (reader.error()) {
        reporter_.finding({.id = FindingId::chunk_truncated, .offset = reader.error()->offset});
    } else if (connection_.form() != TokenForm::ddnet && !rest.empty()) {
        reporter_.finding_once({.id = FindingId::packet_trailing_bytes,
                                .value = static_cast<std::int64_t>(rest.size()),
                                .bytes = rest});
    }
    const Direction opposite = direction() == Direction::c2s ? Direction::s2c : Direction::c2s;
    connection_.order(opposite).acknowledged(packet.ack);
    if (packet.resend) {
        ++reporter_.direction_stats().resend_requests;
    }
    prelude_ = direction() == Direction::s2c && connection_.form() != TokenForm::ddnet &&
               is_prelude(chunks);
    if (prelude_) {
        reporter_.finding_once({.id = FindingId::session_antispoof});
    }
    for (const wire::Chunk& chunk : chunks) {
        const wire::VitalClass taken = on_chunk(chunk, workspace);
        if (attribution_) {
            attribution_->on_chunk(chunk, taken, snapshots_.types());
        }
    }
    prelude_ = false;
}

wire::VitalClass Session::on_chunk(const wire::Chunk& chunk, Workspace& workspace) {
    DirectionStats& stats = reporter_.direction_stats();
    ++stats.chunks;
    if (chunk.resend) {
        ++stats.resent;
    }
    if (chunk.vital) {
        VitalOrder& order = connection_.order(direction());
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
            return taken;
        case wire::VitalClass::gap:
            ++stats.gaps;
            reporter_.finding({.id = FindingId::chunk_vital_gap,
                               .offset = chunk.offset,
                               .value = chunk.sequence});
            return taken;
        }
    }
    on_content(chunk, workspace);
    return wire::VitalClass::next;
}

void Session::on_content(const wire::Chunk& chunk, Workspace& workspace) {
    if (chunk.payload.empty()) {
        reporter_.finding_once({.id = FindingId::chunk_empty, .offset = chunk.offset});
        return;
    }
    ++reporter_.direction_stats().messages;
    const auto head = wire::decode_message_head(chunk.payload);
    if (!head) {
        if (prelude_) {
            return; // the damaged prelude of DDNet 14.0 to 16.7, told as such
        }
        reporter_.finding(
            {.id = FindingId::message_id_invalid,
             .offset = chunk.offset + head.error().offset,
             .bytes = chunk.payload.first(std::min<std::size_t>(chunk.payload.size(), 32))});
        return;
    }
    on_message(chunk, *head, workspace);
}

void Session::on_message(const wire::Chunk& chunk, const wire::MessageHead& head,
                         Workspace& workspace) {
    if (head.spec == nullptr) {
        report_unknown(chunk, head);
        return;
    }
    // The message first, then what follows from it.
    if (options_.messages || !is_snapshot(head.spec->id)) {
        report_fields(chunk, head, workspace);
    }
    if (!prelude_) {
        act_on(chunk, head, workspace);
    }
}

void Session::report_unknown(const wire::Chunk& chunk, const wire::MessageHead& head) {
    if (options_.messages) {
        reporter_.emit(MessageRecord{.head = reporter_.head(),
                                     .system = head.system,
                                     .vital = chunk.vital,
                                     .sequence = chunk.sequence,
                                     .size = chunk.payload.size(),
                                     .number = head.number,
                                     .uuid = head.uuid,
                                     .raw = head.body});
    }
    if (prelude_) {
        return;
    }
    const FindingRecord finding{
        .id = FindingId::message_unknown,
        .offset = chunk.offset + chunk.header_size,
        .value = head.number,
        .name = head.system ? "system" : "game",
        .bytes = chunk.payload.first(std::min<std::size_t>(chunk.payload.size(), 32))};
    const std::size_t slot = head.number * 2U + (head.system ? 1U : 0U);
    if (head.uuid || slot >= unknown_told_.size()) {
        reporter_.finding_once(finding);
    } else if (unknown_told_.test(slot)) {
        reporter_.count(finding.id);
    } else {
        unknown_told_.set(slot);
        reporter_.finding(finding);
    }
}

void Session::leave_out_bulk(MessageId id, wire::DecodedFields& fields) const {
    const bool map_data = id == MessageId::map_data;
    if ((!is_snapshot(id) && !map_data) || fields.error || fields.values.empty() ||
        fields.values.back().kind != wire::FieldValue::Kind::raw) {
        return;
    }
    const std::size_t size = fields.values.back().bytes.size();
    fields.values.pop_back();
    if (!map_data) {
        return; // the snapshot record shows what is in it
    }
    // last, crc, chunk, size: only the last chunk is shorter than the others.
    const bool last = fields.values.front().integer != 0;
    const auto offset = last ? download_.announced_size() - static_cast<std::int64_t>(size)
                             : fields.values[2].integer * static_cast<std::int64_t>(size);
    if (offset >= 0) {
        fields.values.push_back({.name = "offset", .integer = offset});
    }
}

void Session::report_fields(const wire::Chunk& chunk, const wire::MessageHead& head,
                            Workspace& workspace) {
    wire::DecodedFields& fields = workspace.fields;
    wire::decode_fields(*head.spec, head.body, fields);
    leave_out_bulk(head.spec->id, fields);
    if (options_.messages) {
        reporter_.emit(MessageRecord{.head = reporter_.head(),
                                     .name = head.spec->name,
                                     .system = head.system,
                                     .vital = chunk.vital,
                                     .sequence = chunk.sequence,
                                     .size = chunk.payload.size(),
                                     .number = head.number,
                                     .uuid = head.uuid,
                                     .values = fields.values});
    }
    if (prelude_ || head.system != head.spec->system) {
        return; // receivers ignore a known UUID of the other kind
    }
    const std::size_t body = chunk.offset + chunk.header_size + head.head_size;
    if (fields.error) {
        reporter_.finding(
            {.id = FindingId::message_truncated,
             .offset = body + fields.error->offset,
             .name = head.spec->name,
             .detail = snapshot::error_info(fields.error->code).sentence,
             .bytes = chunk.payload.first(std::min<std::size_t>(chunk.payload.size(), 64)),
             .secrecy = secrecy_of(*head.spec)});
        return;
    }
    if (!fields.trailing.empty()) {
        reporter_.finding_once({.id = FindingId::message_trailing_bytes,
                                .offset = body + head.body.size() - fields.trailing.size(),
                                .name = head.spec->name,
                                .bytes = fields.trailing,
                                .secrecy = secrecy_of(*head.spec)});
    }
    const auto odd = std::find_if(fields.values.begin(), fields.values.end(),
                                  [](const wire::FieldValue& value) { return value.out_of_range; });
    if (odd != fields.values.end()) {
        reporter_.finding_once({.id = FindingId::message_out_of_range,
                                .offset = body + odd->offset,
                                .value = odd->integer,
                                .name = head.spec->name,
                                .detail = odd->name});
    }
}

void Session::act_on(const wire::Chunk& chunk, const wire::MessageHead& head,
                     Workspace& workspace) {
    const bool s2c = direction() == Direction::s2c;
    const MessageId id = head.spec->id;
    if (s2c && is_snapshot(id) && !chunk.vital) {
        snapshots_.on_message(id, head.body, reporter_, workspace.snapshots);
    } else if (s2c && id == MessageId::map_change) {
        on_map_change(head.body);
    } else if (s2c && id == MessageId::map_details) {
        on_map_details(head.body);
    } else if (s2c && id == MessageId::map_data) {
        on_map_data(head.body);
    } else if (!s2c && id == MessageId::enter_game) {
        restart_snapshots();
    } else if (!s2c && id == MessageId::input) {
        on_input(head.body);
    } else if (s2c && id == MessageId::input_timing) {
        snapshot::Cursor in{head.body};
        static_cast<void>(in.var_int());
        if (const std::int32_t margin = in.var_int(); !in.failed()) {
            reporter_.stats.input_margin_ms.add(margin);
        }
    }
}

void Session::restart_snapshots() {
    snapshots_.restart(reporter_);
    inputs_ = {};
    if (attribution_) {
        attribution_->restart();
    }
}

void Session::on_input(std::span<const std::byte> body) {
    snapshot::Cursor in{body};
    const snapshot::Tick acknowledged = in.var_int();
    const snapshot::Tick intended = in.var_int();
    snapshots_.on_ack(acknowledged, reporter_);
    if (in.failed()) {
        return;
    }
    DirectionStats& stats = reporter_.direction_stats();
    if (const auto deviation = inputs_.arrived(intended, reporter_.head().time)) {
        stats.jitter_us.add(*deviation);
    }
}

void Session::on_map_details(std::span<const std::byte> body) {
    snapshot::Cursor in{body};
    MapAnnouncement details{.name = clean_name(in.string())};
    const auto sha256 = in.raw(std::tuple_size_v<decltype(details.sha256)::value_type>);
    details.crc = static_cast<std::uint32_t>(in.var_int());
    details.size = in.var_int();
    if (in.failed()) {
        return;
    }
    details.sha256.emplace();
    std::memcpy(details.sha256->data(), sha256.data(), sha256.size());
    details_ = std::move(details);
}

void Session::on_map_change(std::span<const std::byte> body) {
    snapshot::Cursor in{body};
    MapAnnouncement announced{.name = clean_name(in.string())};
    announced.crc = static_cast<std::uint32_t>(in.var_int());
    announced.size = in.var_int();
    if (in.failed()) {
        return;
    }
    // The details belong to the change that follows them with the same name, crc and size.
    if (details_ && details_->name == announced.name && details_->crc == announced.crc &&
        details_->size == announced.size) {
        announced.sha256 = details_->sha256;
    }
    details_.reset();
    ++reporter_.stats.map_changes;
    restart_snapshots();

    use_map(announced, maps_->find(announced), "folder");
    download_.begin(announced);
}

void Session::on_map_data(std::span<const std::byte> body) {
    if (download_.on_data(body)) {
        const MapAnnouncement announced = download_.announcement();
        use_map(announced, maps_->keep(announced, download_.take_bytes()), "wire");
    }
}

void Session::use_map(const MapAnnouncement& announced, const FoundMap& found,
                      std::string_view source) {
    MapRecord record{.head = reporter_.head(),
                     .name = announced.name,
                     .crc = announced.crc,
                     .size = announced.size,
                     .sha256 = announced.sha256 ? announced.sha256 : found.sha256,
                     .source = "none"};
    if (found.status == MapStatus::found) {
        record.source = source;
        record.width = found.physics->width();
        record.height = found.physics->height();
        snapshots_.set_world(std::make_shared<const World>(found.physics));
    } else {
        snapshots_.set_world(nullptr);
    }
    reporter_.emit(record);
    static constexpr std::array kFindings{FindingId::count, FindingId::map_not_found,
                                          FindingId::map_crc_mismatch, FindingId::map_unreadable,
                                          FindingId::map_name_invalid};
    if (const FindingId id = kFindings[static_cast<std::size_t>(found.status)];
        id != FindingId::count) {
        reporter_.finding({.id = id, .name = announced.name, .detail = found.detail});
    }
}

} // namespace tw::inspect
