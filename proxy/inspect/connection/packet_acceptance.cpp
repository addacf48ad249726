#include "proxy/inspect/connection/packet_acceptance.h"

#include "proxy/wire/message.h"

#include <algorithm>

namespace tw::inspect {

// Source: the history of DDNet's network.cpp, network_conn.cpp and network_server.cpp in
//         src/engine/shared. tests/e2e/evasion.mjs checks the rules with a real DDNet 16.4.
ReceiverRules receiver_rules(const ReceiverProgram& receiver) {
    // In vanilla 0.6.5, UnpackPacket reads a token after the header and decompresses control
    // packets. CNetRecvUnpacker reads the chunks of all packets that CNetConnection::Feed accepts.
    if (receiver.has_header_token) {
        return {.token_bit_rule = TokenBitRule::reads_token};
    }
    // In vanilla 0.6.4, UnpackPacket reads four flags and twelve bits of acknowledgement. 0.6.5
    // does so for clients that joined without a token. If bit 0x08 or 0x04 is set, the
    // acknowledgement is greater than all sent chunks.
    if (receiver.is_vanilla) {
        return {};
    }
    // DDNet numbered its versions before 11 differently, so they count as unknown.
    constexpr std::int32_t kFirst = 11000;
    constexpr std::int32_t kSixFlags = 14000;
    constexpr std::int32_t kChecksHeader = 19040;
    const std::int32_t version = receiver.version.value_or(0);
    const bool is_newest = version < kFirst || version >= kChecksHeader;
    // DDNet drops compressed control packets since 10.3. Since 14.0, it reads six flags:
    // UnpackPacket takes 0x04 for 0.7's flag and ignores 0x08. Since 19.4, it checks each packet
    // with CNetBase::IsValidConnectionOrientedPacket. Clients before 18.6 do not use 0.7's header
    // and were not tested.
    return {.refuses_compressed_control = true,
            .refuses_control_with_chunks = is_newest,
            .token_bit_rule = !is_newest && version >= kSixFlags ? TokenBitRule::ignores_bit
                                                                 : TokenBitRule::drops_packet,
            .reads_seven_header = receiver.is_server && (is_newest || version >= kSixFlags)};
}

namespace {

/// The number of vital chunks in DDNet's anti-spoof prelude; vanilla's prelude has fewer. The
/// prelude is the server's first packet to a client without token support. It contains a map change
/// and empty snapshots. DDNet 14.0 to 16.7 send a damaged prelude, but always with six vital
/// chunks.
constexpr unsigned kVitalChunksInPrelude = 6;

bool looks_like_anti_spoof_prelude(std::span<const wire::Chunk> chunks) {
    if (chunks.empty() || !chunks.front().vital || chunks.front().sequence != 1) {
        return false;
    }
    if (chunks.size() == kVitalChunksInPrelude &&
        std::ranges::all_of(chunks, &wire::Chunk::vital)) {
        return true;
    }
    return std::ranges::any_of(chunks, [](const wire::Chunk& chunk) {
        const auto head = wire::decode_message_header(chunk.payload, wire::Dialect::six);
        return head && head->spec != nullptr && head->spec->id == wire::MessageId::snap_empty;
    });
}

std::string_view refusal_name(PacketRefusal refusal) {
    static constexpr std::array<std::string_view, static_cast<std::size_t>(PacketRefusal::count)>
        kNames{"",
               "wrong_token",
               "ack_window",
               "compressed_control",
               "control_with_chunks",
               "header_token_bit",
               "closed",
               "not_established",
               "other_protocol",
               "ack_window"};
    return kNames[static_cast<std::size_t>(refusal)];
}

bool is_handshake_packet(wire::ControlKind kind) {
    return kind == wire::ControlKind::connect || kind == wire::ControlKind::connectaccept ||
           kind == wire::ControlKind::accept || kind == wire::ControlKind::token;
}

} // namespace

wire::Secrecy secrecy_of_undecoded_bytes(std::span<const std::byte> bytes, std::size_t harmless) {
    return bytes.size() > harmless ? wire::Secrecy::secret : wire::Secrecy::open;
}

void PacketAcceptance::store_activity(record::Timestamp time, wire::Direction direction) {
    SideActivity& side = side_activities_[wire::index_of(direction)];
    side = {.was_seen = true, .last_time = time};
    SideActivity& other = side_activities_[wire::index_of(wire::opposite(direction))];
    other.num_unanswered = std::min(other.num_unanswered + 1, kMaxUnansweredDatagrams);
}

bool PacketAcceptance::has_traffic_from_receiver(wire::Direction direction) const {
    const SideActivity& receiver = side_activities_[wire::index_of(wire::opposite(direction))];
    const SideActivity& sender = side_activities_[wire::index_of(direction)];
    return sees_all_datagrams_ ||
           (receiver.was_seen && (receiver.num_unanswered < kMaxUnansweredDatagrams ||
                                  sender.last_time - receiver.last_time < kMaxSilence));
}

bool PacketAcceptance::is_refusal_uncertain(PacketRefusal refusal,
                                            wire::Direction direction) const {
    if (sees_all_datagrams_) {
        return false;
    }
    switch (refusal) {
    case PacketRefusal::ack_undecidable:
        return true;
    case PacketRefusal::not_established:
    case PacketRefusal::compressed_control:
    case PacketRefusal::control_with_chunks:
        return !had_connection_; // the packet may belong to another protocol
    case PacketRefusal::wrong_token:
        return !has_traffic_from_receiver(direction);
    default:
        return false;
    }
}

ConnectionChange PacketAcceptance::infer_connection_from_client() {
    if (has_seen_direction(wire::Direction::s2c) || connection_.is_established()) {
        return ConnectionChange::none;
    }
    const ConnectionChange seven =
        begin_seven_connection(seven_handshake_.infer_connection_from_client());
    return seven != ConnectionChange::none ? seven : connection_.infer_connection_from_client();
}

void PacketAcceptance::report_refusal(PacketRefusal refusal, Reporter& reporter) {
    if (is_refusal_uncertain(refusal, reporter.direction())) {
        report_refusal_once(record::FindingId::packet_undecided,
                            had_connection_ ? refusal : PacketRefusal::not_established, reporter);
        return;
    }
    if (refusal == PacketRefusal::wrong_token) {
        ++reporter.direction_stats().wrong_token;
        reporter.report_finding_once({.id = record::FindingId::packet_wrong_token});
        return;
    }
    ++reporter.direction_stats().not_accepted;
    if (refusal == PacketRefusal::other_protocol) {
        reporter.report_finding_once({.id = record::FindingId::packet_seven});
        return;
    }
    if (refusal == PacketRefusal::connection_closed) {
        return; // the packet was in flight when the connection was closed, which is normal
    }
    report_refusal_once(record::FindingId::packet_not_accepted, refusal, reporter);
}

void PacketAcceptance::report_refusal_once(record::FindingId id, PacketRefusal refusal,
                                           Reporter& reporter) {
    const auto index = static_cast<std::size_t>(refusal);
    if (reported_refusals_.test(index)) {
        reporter.count_finding(id);
        return;
    }
    reported_refusals_.set(index);
    reporter.report_finding({.id = id, .name = refusal_name(refusal)});
}

ReceiverRules PacketAcceptance::receiver_rules_of(wire::Direction direction) const {
    const bool server = direction == wire::Direction::c2s;
    return receiver_rules({.has_header_token = connection_.token_form() == TokenForm::vanilla,
                           .is_vanilla = server && connection_.token_form() != TokenForm::ddnet &&
                                         server_program_.is_vanilla(),
                           .version = server ? server_program_.version() : client_version_,
                           .is_server = server});
}

wire::HeaderTokenBit PacketAcceptance::meaning_of_token_bit(std::span<const std::byte> datagram,
                                                            wire::Direction direction) const {
    const bool is_ignored =
        wire::has_ambiguous_bits(datagram) && connection_.is_established() &&
        receiver_rules_of(direction).token_bit_rule == TokenBitRule::ignores_bit;
    return is_ignored ? wire::HeaderTokenBit::ignored : wire::HeaderTokenBit::read;
}

PacketRefusal PacketAcceptance::refusal_of_ack(wire::Direction direction, std::uint16_t ack) {
    AckWindow& window = connection_.ack_window(direction);
    if (!has_traffic_from_receiver(direction)) {
        window.reset(ConnectionStart::missed);
    }
    // A server acknowledges only chunks that it received. If it acknowledges a chunk that twscope
    // did not see, twscope missed the datagram. A client may acknowledge chunks that it did not
    // receive.
    if (window.accept_ack(ack) ||
        (direction == wire::Direction::s2c && window.accept_ack_above_range(ack))) {
        return PacketRefusal::none;
    }
    return sees_all_datagrams_ ? PacketRefusal::ack_out_of_range : PacketRefusal::ack_undecidable;
}

PacketRefusal PacketAcceptance::refusal_of_control(const wire::Packet& packet,
                                                   const wire::Control& control,
                                                   wire::Direction direction) {
    if (packet.dialect == wire::Dialect::seven) {
        return refusal_of_seven_control(packet, control, direction);
    }
    const ReceiverRules receiver = receiver_rules_of(direction);
    if (packet.compressed && receiver.refuses_compressed_control) {
        return PacketRefusal::compressed_control;
    }
    if (packet.num_chunks != 0 && receiver.refuses_control_with_chunks) {
        return PacketRefusal::control_with_chunks;
    }
    if (is_handshake_packet(control.kind)) {
        const bool accept =
            control.kind == wire::ControlKind::accept && direction == wire::Direction::c2s;
        return accept && !connection_.is_accept_valid(control) ? PacketRefusal::wrong_token
                                                               : PacketRefusal::none;
    }
    if (connection_.is_closed()) {
        return PacketRefusal::connection_closed;
    }
    if (!connection_.is_established() || connection_.protocol() != wire::Protocol::six) {
        return PacketRefusal::none; // a full server rejects a client before a connection exists
    }
    return refusal_by_connection(packet, direction);
}

PacketRefusal PacketAcceptance::refusal_of_seven_control(const wire::Packet& packet,
                                                         const wire::Control& control,
                                                         wire::Direction direction) {
    const bool connected = connection_.is_established() && !connection_.is_closed();
    if (connected && connection_.protocol() == wire::Protocol::six) {
        // The packet may begin another connection. It does not change this one.
        return is_handshake_packet(control.kind) ? PacketRefusal::none
                                                 : PacketRefusal::other_protocol;
    }
    // DDNet 19.4 and newer reject control packets that are compressed or contain chunks, and no
    // program sends such packets.
    if (packet.compressed) {
        return PacketRefusal::compressed_control;
    }
    if (packet.num_chunks != 0) {
        return PacketRefusal::control_with_chunks;
    }
    if (is_handshake_packet(control.kind)) {
        return PacketRefusal::none; // SevenHandshake checks tokens and order
    }
    if (!connected) {
        return connection_.is_closed() ? PacketRefusal::connection_closed : PacketRefusal::none;
    }
    return seven_handshake_.has_expected_token(direction, packet)
               ? refusal_of_ack(direction, packet.ack)
               : PacketRefusal::wrong_token;
}

PacketRefusal PacketAcceptance::refusal_by_connection(const wire::Packet& packet,
                                                      wire::Direction direction) {
    const auto last_bytes =
        packet.payload.last(std::min<std::size_t>(packet.payload.size(), wire::kTokenSize));
    return connection_.has_expected_token(packet, last_bytes)
               ? refusal_of_ack(direction, packet.ack)
               : PacketRefusal::wrong_token;
}

bool PacketAcceptance::receiver_reads_chunks_of_control(const wire::Packet& packet,
                                                        const PacketChunks& chunks,
                                                        const Reporter& reporter) {
    return refusal_of_chunks(packet, chunks, reporter.direction()) == PacketRefusal::none;
}

std::optional<wire::Packet>
PacketAcceptance::read_as_six_control(std::span<const std::byte> datagram,
                                      const Reporter& reporter) {
    const ReceiverRules receiver = receiver_rules_of(reporter.direction());
    if (!connection_.is_established() || connection_.is_closed() ||
        connection_.protocol() != wire::Protocol::six || !receiver.reads_seven_header) {
        return std::nullopt;
    }
    auto packet = wire::decode_control_with_seven_header(datagram);
    if (packet &&
        (packet->compressed || (packet->num_chunks != 0 && receiver.refuses_control_with_chunks) ||
         refusal_by_connection(*packet, reporter.direction()) != PacketRefusal::none)) {
        packet.reset();
    }
    return packet;
}

bool PacketAcceptance::accept_control_packet(const wire::Packet& packet,
                                             const wire::Control& control, Reporter& reporter) {
    if (packet.compressed) {
        reporter.report_finding_once({.id = record::FindingId::packet_control_compressed});
    }
    if (const PacketRefusal why = refusal_of_control(packet, control, reporter.direction());
        why != PacketRefusal::none) {
        report_refusal(why, reporter);
        return false;
    }
    if (packet.dialect == wire::Dialect::seven && connection_.is_established() &&
        !connection_.is_closed() && connection_.protocol() == wire::Protocol::six) {
        reporter.report_finding_once({.id = record::FindingId::packet_seven});
    }
    if (control.kind == wire::ControlKind::unknown) {
        reporter.report_finding_once(
            {.id = record::FindingId::packet_control_unknown, .value = control.raw_kind});
    }
    return true;
}

ConnectionChange PacketAcceptance::on_control(const wire::Packet& packet,
                                              const wire::Control& control, Reporter& reporter) {
    if (packet.dialect == wire::Dialect::seven) {
        return begin_seven_connection(
            seven_handshake_.on_control(reporter.direction(), packet, control));
    }
    return connection_.on_control(reporter.direction(), packet, control);
}

ConnectionChange PacketAcceptance::begin_seven_connection(ConnectionChange change) {
    if (change != ConnectionChange::none) {
        const bool is_established = change == ConnectionChange::established;
        if (is_established) {
            server_activity_->sends_ddnet_accept = seven_handshake_.is_accepted_by_ddnet();
        }
        connection_.begin_seven_connection(is_established ? ConnectionStart::seen
                                                          : ConnectionStart::missed);
    }
    return change;
}

bool PacketAcceptance::is_effective_close(const wire::Packet& packet,
                                          const Reporter& reporter) const {
    return packet.dialect == wire::Dialect::six || connection_.is_established() ||
           seven_handshake_.ends_handshake_attempt(reporter.direction(), packet);
}

ConnectionChange PacketAcceptance::on_non_six_datagram(std::span<const std::byte> datagram,
                                                       wire::PacketScratch& scratch,
                                                       const Reporter& reporter) {
    if (connection_.is_established() || !wire::may_be_seven_chunks(datagram, scratch)) {
        return ConnectionChange::none;
    }
    connection_.on_seven_datagram();
    const auto packet = wire::decode_seven_header(datagram);
    return begin_seven_connection(
        seven_handshake_.on_seven_packet(reporter.direction(), *packet->header_token));
}

// DDNet servers translate their game for 0.7 clients. The ACCEPT of any session shows whether the
// server is a DDNet server. DDNet's messages are weaker evidence, because 0.7 servers of mods send
// them to DDNet's clients, too.
bool PacketAcceptance::is_translated_to_seven() const {
    return connection_.token_form() == TokenForm::seven &&
           (seven_handshake_.is_accepted_by_ddnet() ||
            (connection_.is_guessed_seven() &&
             server_activity_->sends_ddnet_accept.value_or(server_program_.is_ddnet())));
}

std::string_view PacketAcceptance::protocol_name() const {
    return is_translated_to_seven() ? "0.7+ddnet" : connection_.protocol_name();
}

void PacketAcceptance::close(record::Timestamp time) {
    connection_.close();
    seven_handshake_.allow_next_handshake();
    close_time_ = time;
}

void PacketAcceptance::begin_connection() {
    had_connection_ = true;
    reported_refusals_.reset();
    client_version_.reset();
    server_program_.forget_evidence();
    if (connection_.protocol() == wire::Protocol::six) {
        seven_handshake_.reset();
    }
}

ConnectionChange PacketAcceptance::on_chunk_packet(const wire::Packet& packet,
                                                   const PacketChunks& chunks,
                                                   const Reporter& reporter) {
    if (packet.dialect == wire::Dialect::seven) {
        const bool is_foreign = connection_.is_established() && !connection_.is_closed() &&
                                !chunks.error &&
                                !seven_handshake_.has_expected_token(reporter.direction(), packet);
        return is_foreign ? begin_seven_connection(seven_handshake_.on_foreign_token(
                                reporter.direction(), *packet.header_token))
                          : ConnectionChange::none;
    }
    return connection_.on_chunk_packet(reporter.direction(), packet, chunks,
                                       !has_seen_direction(wire::opposite(reporter.direction())));
}

PacketRefusal PacketAcceptance::refusal_of_chunks(const wire::Packet& packet,
                                                  const PacketChunks& chunks,
                                                  wire::Direction direction) {
    if (connection_.is_closed()) {
        return PacketRefusal::connection_closed;
    }
    if (!connection_.is_established()) {
        return PacketRefusal::not_established;
    }
    const bool seven = packet.dialect == wire::Dialect::seven;
    if (packet.header_token && !seven && connection_.token_form() != TokenForm::vanilla &&
        receiver_rules_of(direction).token_bit_rule != TokenBitRule::reads_token) {
        return PacketRefusal::header_token_bit;
    }
    // A packet of the other protocol does not belong to this connection.
    if (seven != (connection_.token_form() == TokenForm::seven)) {
        return PacketRefusal::not_established;
    }
    if (seven ? !seven_handshake_.has_expected_token(direction, packet)
              : !connection_.has_expected_token(packet, chunks.trailing_bytes)) {
        return PacketRefusal::wrong_token;
    }
    // All chunks of the packet count as sent, even if the receiver does not accept the packet.
    AckWindow& own = connection_.ack_window(wire::opposite(direction));
    for (const wire::Chunk& chunk : chunks.chunks) {
        if (chunk.vital) {
            own.on_chunk_sent(chunk.sequence);
        }
    }
    return refusal_of_ack(direction, packet.ack);
}

bool PacketAcceptance::accept_chunks(const wire::Packet& packet, const PacketChunks& chunks,
                                     Reporter& reporter) {
    if (const PacketRefusal why = refusal_of_chunks(packet, chunks, reporter.direction());
        why != PacketRefusal::none) {
        report_refusal(why, reporter);
        for (const wire::Chunk& chunk : chunks.chunks) {
            if (chunk.vital && why == PacketRefusal::ack_undecidable) {
                connection_.vital_order(reporter.direction()).on_undecided_chunk(chunk.sequence);
            }
        }
        return false;
    }
    if (chunks.error) {
        reporter.report_finding(
            {.id = record::FindingId::chunk_truncated, .offset = chunks.error->offset});
    } else if (!has_ddnet_token() && !chunks.trailing_bytes.empty()) {
        reporter.report_finding_once(
            {.id = record::FindingId::packet_trailing_bytes,
             .value = static_cast<std::int64_t>(chunks.trailing_bytes.size()),
             .bytes = chunks.trailing_bytes,
             .secrecy = secrecy_of_undecoded_bytes(chunks.trailing_bytes, wire::kTokenSize)});
    }
    const wire::Direction sender = wire::opposite(reporter.direction());
    if (connection_.vital_order(sender).on_ack(packet.ack)) {
        if (sees_all_datagrams_) { // on_missed_datagrams() has handled missed copies
            reporter.report_finding(
                {.id = record::FindingId::chunk_unseen_ack, .value = packet.ack});
        } else {
            reporter.report_finding(
                {.id = record::FindingId::inspect_gap, .name = "missed_chunks"});
        }
        has_missed_chunks_ = has_missed_chunks_ || sender == wire::Direction::s2c;
    }
    if (reporter.direction() == wire::Direction::c2s) {
        seven_handshake_.allow_next_handshake();
    }
    if (packet.resend) {
        ++reporter.direction_stats().resend_requests;
    }
    return true;
}

bool PacketAcceptance::is_anti_spoof_prelude(const PacketChunks& chunks, Reporter& reporter) {
    // Only the first chunks of a connection can be a prelude. Sequence numbers repeat after 1024
    // chunks, so a later copy of the prelude could look new.
    const bool possible = reporter.direction() == wire::Direction::s2c && !has_ddnet_token() &&
                          connection_.token_form() != TokenForm::seven &&
                          connection_.vital_order(wire::Direction::s2c).num_accepted_chunks() <=
                              kVitalChunksInPrelude;
    if (!possible || !looks_like_anti_spoof_prelude(chunks.chunks)) {
        return false;
    }
    reporter.report_finding_once({.id = record::FindingId::session_antispoof});
    return true;
}

wire::VitalClass PacketAcceptance::classify_chunk(const wire::Chunk& chunk, Reporter& reporter) {
    record::DirectionStats& stats = reporter.direction_stats();
    ++stats.chunks;
    stats.resent += chunk.resend ? 1 : 0;
    if (!chunk.vital) {
        return wire::VitalClass::next;
    }
    VitalChunkOrder& order = connection_.vital_order(reporter.direction());
    const bool waiting = order.has_gap();
    const wire::VitalClass taken = order.classify_chunk(chunk.sequence, chunk.resend);
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
        reporter.report_finding({.id = record::FindingId::chunk_vital_gap,
                                 .offset = chunk.offset,
                                 .value = chunk.sequence});
        break;
    }
    return taken;
}

} // namespace tw::inspect
