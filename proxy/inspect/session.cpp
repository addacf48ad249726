#include "proxy/inspect/session.h"

#include "proxy/wire/bodies.h"
#include "proxy/wire/connless.h"

#include <algorithm>

namespace tw::inspect {

using record::FindingId;
using wire::MessageId;

namespace {

/// Updates the roster from a 0.7 message. Other messages change nothing.
void update_roster(const wire::MessageHeader& head, record::Roster& roster) {
    switch (head.spec->id) {
    case wire::MessageId::sv_client_info:
        if (const auto player = wire::decode_client_info(head.body)) {
            roster.add_player({.client_id = player->client_id,
                               .is_own = player->local != 0,
                               .team = player->team,
                               .name = player->name});
        }
        break;
    case wire::MessageId::sv_team:
        if (const auto change = wire::decode_team(head.body)) {
            roster.change_team(change->client_id, change->team);
        }
        break;
    case wire::MessageId::sv_client_drop:
        if (const auto drop = wire::decode_client_drop(head.body)) {
            roster.remove_player(drop->client_id);
        }
        break;
    default:
        break;
    }
}

bool is_connless(std::span<const std::byte> datagram) {
    constexpr std::byte kConnlessBit{0x20}; // 0.6 and 0.7 use the same bit
    return !datagram.empty() && (datagram.front() & kConnlessBit) != std::byte{0};
}

/// Whether a client may begin a connection with this datagram.
bool may_begin_connection(std::span<const std::byte> datagram) {
    if (wire::is_six_handshake(datagram)) {
        return true;
    }
    const auto seven = wire::decode_seven_header(datagram);
    if (!seven || seven->kind != wire::PacketKind::control) {
        return false;
    }
    const wire::ControlKind kind = wire::decode_seven_control(*seven).kind;
    return kind == wire::ControlKind::token || kind == wire::ControlKind::connect;
}

/// Whether any counter is not zero. Only datagrams and findings are examined, because no counter
/// changes without them.
bool has_nonzero_counts(const record::SessionStats& stats) {
    return stats.directions[0].datagrams + stats.directions[1].datagrams != 0 ||
           std::ranges::any_of(stats.findings, [](std::uint64_t count) { return count != 0; });
}

} // namespace

Session::Session(std::uint32_t number, std::string client, std::string server,
                 const Options& options, MapSource& maps, record::RecordSink& sink)
    : observers_{options.observers}, described_messages_{options.described_messages},
      reporter_{number, sink, std::move(client), std::move(server)},
      silence_detector_{options.server_activities == nullptr
                            ? std::make_shared<ServerActivity>()
                            : options.server_activities->find_or_add_server(reporter_.server())},
      acceptance_{options.sees_all_datagrams, silence_detector_.server_activity()},
      message_reporter_{options.emits_message_records, options.shown_commands, *options.observers},
      map_tracker_{maps}, snapshot_tracker_{*options.objects,
                                            *options.observers,
                                            options.learn_sizes,
                                            options.learned_sizes == nullptr
                                                ? nullptr
                                                : options.learned_sizes->find_or_add_server(
                                                      reporter_.server()),
                                            options.arena,
                                            map_tracker_,
                                            silence_detector_.server_activity()},
      sees_all_datagrams_{options.sees_all_datagrams} {}

void Session::open_session(record::Timestamp time) {
    reporter_.set_head(time, std::nullopt);
    reporter_.emit_session_event(record::SessionEvent::open, acceptance_.protocol_name(), {},
                                 pending_checkpoint_.has_value());
}

void Session::on_datagram(record::Timestamp time, wire::Direction direction,
                          std::span<const std::byte> bytes, DecodeBuffers& workspace) {
    reporter_.set_head(time, direction);
    if (time_reliability_.on_datagram(time)) {
        snapshot_tracker_.stall_detector().on_clock_step_back();
        silence_detector_.on_missed_datagrams();
    }
    reporter_.set_times_reliable(time_reliability_.is_reliable());
    if (!is_connless(bytes)) {
        acceptance_.store_activity(time, direction);
        ++num_datagrams_;
    }
    if (sees_all_datagrams_) {
        check_server_silence(bytes, false);
        read_datagram(bytes, workspace);
        return;
    }
    acceptance_.expire_closed_connection(time);
    apply_pending_checkpoint();
    const bool is_held = must_hold_datagram(bytes, workspace);
    check_server_silence(bytes, is_held);
    if (!is_held) {
        read_datagram(bytes, workspace);
        if (num_datagrams_ >= DatagramsOfUnknownProtocol::kMaxDatagrams) {
            report_missing_side();
        }
        return;
    }
    held_datagrams_.hold_datagram(time, direction, bytes);
    if (held_datagrams_.is_full()) {
        stop_holding_datagrams(workspace);
    }
}

/// Checks whether the server is silent, unless a missing answer proves nothing. After a connection
/// was closed, servers answer only handshakes. In a running connection without any datagram of the
/// server, the recording may lack the server's side. `is_held`: whether the connection's protocol
/// is not known yet.
void Session::check_server_silence(std::span<const std::byte> bytes, bool is_held) {
    if (is_close_reported_ && reporter_.direction() == wire::Direction::c2s &&
        !may_begin_connection(bytes)) {
        return;
    }
    if (reporter_.direction() == wire::Direction::c2s && !reporter_.are_times_reliable()) {
        silence_detector_.on_missed_datagrams();
        return;
    }
    const bool goes_on = is_held || acceptance_.connection().is_established();
    if (!goes_on || acceptance_.has_seen_direction(wire::Direction::s2c)) {
        silence_detector_.on_datagram(reporter_);
    }
}

bool Session::must_hold_datagram(std::span<const std::byte> bytes, DecodeBuffers& workspace) {
    ConnectionChange change = ConnectionChange::none;
    bool is_held = false;
    // If only one side is recorded, no complete handshake is seen. So the first handshake packet
    // after a closed connection begins a new connection.
    if (acceptance_.connection().is_closed() && wire::is_six_handshake(bytes) &&
        !acceptance_.has_seen_direction(wire::opposite(reporter_.direction()))) {
        acceptance_.forget_closed_connection();
    }
    if (!acceptance_.connection().is_established() && !acceptance_.connection().is_closed()) {
        const auto packet = wire::decode_packet(
            bytes, acceptance_.connection().expected_protocol(), workspace.packet_scratch,
            acceptance_.meaning_of_token_bit(bytes, reporter_.direction()));
        // If earlier datagrams are held, this one is held, too, so that records stay in the order
        // of time.
        if (!packet || packet->kind == wire::PacketKind::connless) {
            return !held_datagrams_.empty();
        }
        const bool keepalive =
            packet->kind == wire::PacketKind::control &&
            wire::decode_control(*packet, std::nullopt).kind == wire::ControlKind::keepalive;
        is_held = packet->kind == wire::PacketKind::chunks;
        if (is_held) {
            const PacketChunks chunks{*packet, acceptance_.has_ddnet_token(), workspace.chunks};
            change = acceptance_.on_chunk_packet(*packet, chunks, reporter_);
        }
        if (change == ConnectionChange::none) {
            change = acceptance_.on_non_six_datagram(bytes, workspace.packet_scratch, reporter_);
        }
        is_held = change == ConnectionChange::none &&
                  (is_held || wire::may_be_seven_chunks(bytes, workspace.packet_scratch));
        if (keepalive && change == ConnectionChange::none) {
            is_held = is_held || !held_datagrams_.empty();
        } else if (!is_held && change == ConnectionChange::none) {
            // This is a new handshake or a CLOSE: the connection of the held datagrams has ended.
            stop_holding_datagrams(workspace);
        }
    }
    if (change != ConnectionChange::none ||
        (acceptance_.connection().is_established() && !held_datagrams_.empty())) {
        read_held_datagrams(change, workspace);
        workspace.packet_scratch.begin_datagram(bytes, {});
    }
    return is_held;
}

void Session::read_held_datagrams(ConnectionChange change, DecodeBuffers& workspace) {
    const record::RecordHeader now = reporter_.head();
    const std::vector<DatagramsOfUnknownProtocol::HeldDatagram> held =
        held_datagrams_.take_held_datagrams();
    if (!held.empty()) {
        reporter_.set_head(held.front().time, held.front().direction);
    }
    begin_connection(change);
    for (const DatagramsOfUnknownProtocol::HeldDatagram& each : held) {
        workspace.packet_scratch.begin_datagram(each.bytes, {});
        reporter_.set_head(each.time, each.direction);
        read_datagram(each.bytes, workspace);
    }
    reporter_.set_head(now.time, now.direction);
}

void Session::stop_holding_datagrams(DecodeBuffers& workspace) {
    if (!held_datagrams_.empty()) {
        read_held_datagrams(acceptance_.infer_connection_from_client(), workspace);
    }
}

void Session::report_missing_side() {
    for (const auto side : {wire::Direction::c2s, wire::Direction::s2c}) {
        if (is_connected_ && !is_missing_side_reported_ && !acceptance_.has_seen_direction(side)) {
            is_missing_side_reported_ = true;
            reporter_.report_finding({.id = FindingId::session_one_direction,
                                      .name = side == wire::Direction::c2s ? "c2s" : "s2c"});
        }
    }
}

void Session::read_datagram(std::span<const std::byte> bytes, DecodeBuffers& workspace) {
    record::DirectionStats& stats = reporter_.direction_stats();
    ++stats.datagrams;
    stats.bytes += bytes.size();
    observers_->notify(&Observer::on_datagram, reporter_.head(), bytes);
    acceptance_.expire_closed_connection(reporter_.head().time);
    apply_pending_checkpoint();
    const auto packet = wire::decode_packet(
        bytes, acceptance_.connection().expected_protocol(), workspace.packet_scratch,
        acceptance_.meaning_of_token_bit(bytes, reporter_.direction()));
    if (!packet) {
        ++stats.malformed;
        reporter_.report_finding({.id = record::finding_of(packet.error().code),
                                  .offset = packet.error().offset,
                                  .name = wire::error_info(packet.error().code).name,
                                  .bytes = bytes.first(std::min<std::size_t>(bytes.size(), 64)),
                                  .secrecy = secrecy_of_undecoded_bytes(bytes, wire::kHeaderSize)});
    } else if (packet->dialect == wire::Dialect::seven &&
               packet->kind == wire::PacketKind::control) {
        const auto control = acceptance_.read_as_six_control(bytes, reporter_);
        on_packet(control ? *control : *packet, bytes, workspace);
    } else {
        on_packet(*packet, bytes, workspace);
    }
    observers_->notify(&Observer::on_datagram_end);
}

void Session::on_packet(const wire::Packet& packet, std::span<const std::byte> bytes,
                        DecodeBuffers& workspace) {
    record::DirectionStats& stats = reporter_.direction_stats();
    observers_->notify(&Observer::on_packet, packet);
    if (packet.compressed) {
        ++stats.compressed;
        stats.compressed_bytes += bytes.size() - std::min(bytes.size(), wire::header_size(packet));
        stats.decompressed_bytes += packet.payload.size();
    }
    switch (packet.kind) {
    case wire::PacketKind::connless:
        ++stats.connless;
        message_reporter_.report_connless(packet, workspace.decoded_fields, reporter_);
        if (reporter_.direction() == wire::Direction::s2c &&
            acceptance_.server_program().is_version_unannounced()) {
            if (const auto version = wire::find_server_version(packet.payload, packet.dialect)) {
                acceptance_.server_program().on_server_info(*version);
            }
        }
        break;
    case wire::PacketKind::control:
        ++stats.control;
        on_control(packet, workspace);
        break;
    case wire::PacketKind::chunks:
        on_chunk_packet(packet, workspace);
        break;
    }
    if (packet.kind != wire::PacketKind::connless && !acceptance_.connection().is_established()) {
        begin_connection(
            acceptance_.on_non_six_datagram(bytes, workspace.packet_scratch, reporter_));
    }
}

void Session::on_control(const wire::Packet& packet, DecodeBuffers& workspace) {
    const wire::Control control = wire::decode_control(packet, acceptance_.connection().token());
    const bool with_chunks = packet.num_chunks != 0;
    if (!with_chunks) {
        observers_->notify(&Observer::on_control, control);
    }
    if (!acceptance_.accept_control_packet(packet, control, reporter_)) {
        return;
    }
    const ConnectionChange change = acceptance_.on_control(packet, control, reporter_);
    message_reporter_.report_control(packet, control, workspace.decoded_fields, reporter_);
    begin_connection(change);
    if (control.kind == wire::ControlKind::close && !is_close_reported_ &&
        acceptance_.is_effective_close(packet, reporter_)) {
        const bool client = reporter_.direction() == wire::Direction::c2s;
        end_connection(!control.reason.empty() ? control.reason
                       : client                ? "closed by the client"
                                               : "closed by the server");
        acceptance_.close(reporter_.head().time);
    } else if (with_chunks && change == ConnectionChange::none) {
        const PacketChunks chunks{packet, acceptance_.has_ddnet_token(), workspace.chunks};
        if (acceptance_.receiver_reads_chunks_of_control(packet, chunks, reporter_)) {
            read_accepted_chunks(packet, chunks, workspace);
        }
    }
}

void Session::on_chunk_packet(const wire::Packet& packet, DecodeBuffers& workspace) {
    const PacketChunks chunks{packet, acceptance_.has_ddnet_token(), workspace.chunks};
    begin_connection(acceptance_.on_chunk_packet(packet, chunks, reporter_));
    if (acceptance_.accept_chunks(packet, chunks, reporter_)) {
        read_accepted_chunks(packet, chunks, workspace);
    }
}

void Session::read_accepted_chunks(const wire::Packet& packet, const PacketChunks& chunks,
                                   DecodeBuffers& workspace) {
    observers_->notify(&Observer::on_accepted_payload,
                       AcceptedPayload{.ends_with_token = acceptance_.has_ddnet_token(),
                                       .is_last_chunk_truncated = chunks.error.has_value()});
    const bool prelude = acceptance_.is_anti_spoof_prelude(chunks, reporter_);
    if (acceptance_.take_missed_chunks_flag()) {
        map_tracker_.on_missed_datagrams();
        snapshot_tracker_.on_missed_datagrams(reporter_);
    }
    const bool to_client = reporter_.direction() == wire::Direction::s2c;
    if (!to_client) {
        snapshot_tracker_.stall_detector().on_chunk_ack(packet.ack, reporter_.head().time);
    }
    for (const wire::Chunk& chunk : chunks.chunks) {
        auto head =
            wire::decode_message_header(chunk.payload, packet.dialect, *described_messages_);
        const bool likely = head && clear_mistaken_message_spec(*head);
        const wire::VitalClass taken = acceptance_.classify_chunk(chunk, reporter_);
        if (to_client && chunk.vital && taken == wire::VitalClass::next) {
            snapshot_tracker_.stall_detector().on_chunk(chunk.sequence, reporter_.head().time);
        }
        observers_->notify(&Observer::on_chunk, chunk, taken, head ? &*head : nullptr);
        if (taken != wire::VitalClass::next) {
            continue;
        }
        if (chunk.payload.empty()) {
            reporter_.report_finding_once({.id = FindingId::chunk_empty, .offset = chunk.offset});
            continue;
        }
        if (head) {
            ++reporter_.direction_stats().messages;
            AcceptedMessage message{.chunk = chunk,
                                    .head = *head,
                                    .is_in_prelude = prelude,
                                    .is_meaning_uncertain = likely};
            on_message(message, packet.compressed, workspace);
        } else if (!prelude) { // a damaged prelude is reported as session_antispoof
            MessageReporter::report_unreadable_chunk(chunk, head.error(), reporter_);
        }
    }
}

/// Treats the message as unknown if this server uses its id for another message. Returns true if
/// the server's version is unknown, so that the meaning of the id is uncertain.
bool Session::clear_mistaken_message_spec(wire::MessageHeader& head) {
    using IdInterpretation = ServerProgram::IdInterpretation;
    if (head.spec == nullptr || head.spec->removed_in == 0 ||
        reporter_.direction() != wire::Direction::s2c) {
        return false;
    }
    const IdInterpretation reading = acceptance_.server_program().interpret_message_id(head);
    if (reading == IdInterpretation::mistaken) {
        head.spec = nullptr;
    }
    return reading == IdInterpretation::likely;
}

void Session::on_message(AcceptedMessage& message, bool compressed, DecodeBuffers& workspace) {
    const wire::MessageHeader& head = message.head;
    const bool snapshot = head.spec != nullptr && wire::is_snapshot(head.spec->id);
    message.is_expected = head.spec != nullptr &&
                          wire::is_processed_by_receivers(
                              *head.spec, head.system, reporter_.direction(), message.chunk.vital);
    message.is_snapshot_message = snapshot && message.is_expected && !message.is_in_prelude;
    if (message.is_snapshot_message) {
        message.snapshot_body = wire::decode_snapshot(head.spec->id, head.body);
    }
    // The message's own record comes before the records that result from the message.
    message_reporter_.report_message(message, map_tracker_, workspace.decoded_fields, reporter_);
    if (message.is_snapshot_message) {
        map_tracker_.search_missing_map_if_due(reporter_);
        if (message.snapshot_body) {
            snapshot_tracker_.on_message(*message.snapshot_body, head.spec->id, compressed,
                                         reporter_, workspace.snapshot_buffers);
        } else { // message_reporter_ has reported message.truncated
            observers_->notify(&Observer::on_message_fields, head.body.size());
        }
        if (acceptance_.server_program().wants_snapshot()) {
            if (const auto newest = snapshot_tracker_.newest_snapshot()) {
                acceptance_.server_program().on_snapshot(*newest, snapshot_tracker_.types());
            }
        }
    } else if (message.is_expected && !message.is_in_prelude && message.is_accepted_by_receiver) {
        reporter_.direction() == wire::Direction::s2c ? handle_server_message(head)
                                                      : handle_client_message(head);
    }
}

void Session::handle_server_message(const wire::MessageHeader& head) {
    if (head.uuid) {
        acceptance_.server_program().on_uuid_message(*head.spec);
    }
    switch (head.spec->id) {
    case MessageId::map_change:
        if (const auto change = wire::decode_map_change(head.body, head.dialect)) {
            acceptance_.server_program().on_map_change();
            ++reporter_.stats.map_changes;
            snapshot_tracker_.on_map_change(reporter_);
            map_tracker_.on_map_change(*change, acceptance_.is_translated_to_seven(), reporter_);
        }
        break;
    case MessageId::map_details:
        if (const auto details = wire::decode_map_details(head.body)) {
            map_tracker_.on_map_details(*details);
        }
        break;
    case MessageId::map_data:
        if (const auto data = wire::decode_map_data(head.body, head.dialect)) {
            map_tracker_.on_map_data(*data, reporter_);
        }
        break;
    case MessageId::input_timing:
        if (const auto timing = wire::decode_input_timing(head.body)) {
            snapshot_tracker_.on_input_timing(*timing, reporter_);
        }
        break;
    case MessageId::sv_chat:
        if (acceptance_.server_program().is_version_unannounced()) {
            if (const auto line = wire::find_server_chat(head.body, head.dialect)) {
                acceptance_.server_program().on_server_chat(*line);
            }
        }
        break;
    case MessageId::other:
        message_reporter_.update_announced_commands(head);
        break;
    default:
        update_roster(head, snapshot_tracker_.roster());
        break;
    }
}

void Session::handle_client_message(const wire::MessageHeader& head) {
    switch (head.spec->id) {
    case MessageId::input:
        if (const auto input = wire::decode_input(head.body)) {
            snapshot_tracker_.on_input(*input, reporter_);
        }
        break;
    case MessageId::enter_game:
        snapshot_tracker_.on_enter_game(reporter_.head().time);
        break;
    case MessageId::client_version:
        if (const auto version = wire::decode_client_version(head.body)) {
            acceptance_.on_client_version(version->ddnet_version);
            snapshot_tracker_.stall_detector().on_client_version(version->ddnet_version);
        }
        break;
    default:
        break;
    }
}

void Session::apply_pending_checkpoint() {
    if (!pending_checkpoint_) {
        return;
    }
    if (is_connected_) {
        apply_checkpoint(*std::exchange(pending_checkpoint_, std::nullopt));
    } else if (acceptance_.connection().is_established()) {
        pending_checkpoint_.reset(); // the checkpoint's connection has been closed
    } else if (pending_checkpoint_->token_form != TokenForm::unknown) {
        begin_connection(acceptance_.continue_connection(*pending_checkpoint_));
    }
}

/// Adds the checkpoint's state to the session's state. State that the session already has is only
/// replaced if packets were missed.
void Session::apply_checkpoint(const SessionCheckpoint& checkpoint) {
    const bool other_map = checkpoint.map && checkpoint.map != map_tracker_.announced_map();
    if (checkpoint.dialect != snapshot_tracker_.dialect() ||
        !(other_map || snapshot_tracker_.is_older_than(checkpoint))) {
        return;
    }
    if (other_map && map_tracker_.announced_map()) {
        snapshot_tracker_.on_map_change(reporter_);
    }
    if (other_map) {
        map_tracker_.set_announced_map(*checkpoint.map, reporter_);
    }
    snapshot_tracker_.restore_snapshots(checkpoint);
    acceptance_.restore_client_version(checkpoint);
}

void Session::begin_connection(ConnectionChange change) {
    if (change == ConnectionChange::none) {
        return;
    }
    if (is_connected_) {
        end_connection(record::kReconnected);
    }
    if (is_close_reported_) {
        reporter_.forget_reported_findings();
        reporter_.report_finding({.id = FindingId::session_reconnected});
    }
    const bool seven = acceptance_.connection().protocol() == wire::Protocol::seven;
    snapshot_tracker_.begin_connection(seven ? wire::Dialect::seven : wire::Dialect::six,
                                       reporter_);
    map_tracker_.forget_map();
    message_reporter_.begin_connection();
    acceptance_.begin_connection();
    is_connected_ = true;
    is_close_reported_ = false;
    reporter_.emit_session_event(record::SessionEvent::established, acceptance_.protocol_name());
    const auto checkpoint = std::exchange(pending_checkpoint_, std::nullopt);
    if (!checkpoint && !acceptance_.has_seen_direction(wire::Direction::s2c)) {
        report_missing_side();
    } else if (change == ConnectionChange::joined_midway && checkpoint) {
        apply_checkpoint(*checkpoint);
    } else if (change == ConnectionChange::joined_midway) {
        reporter_.report_finding(
            {.id = FindingId::session_joined_midway,
             .detail =
                 seven ? "the names of players already in the game are unknown: 0.7 sends them once"
                       : ""});
    }
}

void Session::end_connection(std::string_view reason) {
    report_missing_side();
    // end_snapshot_sequence() counts the incomplete snapshots, so it must come before the summary.
    snapshot_tracker_.end_snapshot_sequence(reporter_);
    reporter_.emit_session_event(record::SessionEvent::close, acceptance_.protocol_name(), reason);
    reporter_.emit_summary();
    // This connection's summary is written. Later datagrams count for the next connection.
    totals_of_ended_connections_.merge(std::exchange(reporter_.stats, {}));
    is_connected_ = false;
    is_close_reported_ = true;
}

void Session::close_session(record::Timestamp time, std::string_view reason,
                            DecodeBuffers& workspace) {
    reporter_.set_head(time, std::nullopt);
    stop_holding_datagrams(workspace);
    if (is_close_reported_) {
        if (has_nonzero_counts(reporter_.stats)) {
            emit_summary(time);
        }
        return;
    }
    if (is_connected_ && reason == "idle") {
        reporter_.report_finding({.id = FindingId::session_closed_silently});
    }
    end_connection(reason);
}

void Session::on_missed_datagrams(record::Timestamp time, std::uint64_t lost,
                                  std::string_view reason) {
    reporter_.set_head(time, std::nullopt);
    reporter_.stats.gap_lost += lost;
    reporter_.report_finding({.id = FindingId::inspect_gap,
                              .lost = lost == 0 ? std::nullopt : std::optional{lost},
                              .name = reason});
    acceptance_.on_missed_datagrams();
    map_tracker_.on_missed_datagrams();
    snapshot_tracker_.on_missed_datagrams(reporter_);
    silence_detector_.on_missed_datagrams();
}

void Session::on_full_snapshot_request(record::Timestamp time) {
    reporter_.set_head(time, wire::Direction::c2s);
    reporter_.report_finding({.id = FindingId::session_resync});
}

void Session::free_traffic_memory(record::Timestamp time) {
    on_missed_datagrams(time, held_datagrams_.take_held_datagrams().size(), "memory");
    snapshot_tracker_.free_all_snapshots(reporter_);
    map_tracker_.abandon_download();
}

} // namespace tw::inspect
