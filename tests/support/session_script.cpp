#include "tests/support/session_script.h"

#include <algorithm>
#include <utility>

namespace tw::test {

namespace {

constexpr record::Timestamp kStep = 10'000'000;

/// Returns the CONNECT of vanilla 0.6.5: the kind and 512 bytes, whose bytes 4 to 7 are the token.
Bytes header_token_connect(const wire::Token& token) {
    constexpr std::size_t kPadding = 512;
    constexpr std::size_t kTokenAt = 4;
    Bytes datagram = wire::encode_control({.kind = wire::ControlKind::connect});
    const std::size_t padding = datagram.size();
    datagram.resize(padding + kPadding);
    std::ranges::copy(bytes_of(token),
                      datagram.begin() + static_cast<std::ptrdiff_t>(padding + kTokenAt));
    return datagram;
}

/// Returns the CONNECTACCEPT of vanilla 0.6.5: the client's token in the header, the server's as
/// payload.
Bytes header_token_accept(const wire::Token& client, const wire::Token& server) {
    MessageBuilder accept;
    return accept.byte(0x18)
        .byte(0)
        .byte(0)
        .raw(bytes_of(client))
        .byte(2)
        .raw(bytes_of(server))
        .bytes();
}

} // namespace

MessageBuilder map_change(std::string_view name) {
    return message("map_change").string(name).number(1).number(100);
}

MessageBuilder input(snapshot::Tick acked, snapshot::Tick intended) {
    return message("input").number(acked).number(intended).number(0);
}

MessageBuilder rcon_line(std::string_view text) {
    return message("rcon_line").string(text);
}

Piece vital(const MessageBuilder& message) {
    return vital(message.bytes());
}

Piece vital(Bytes message) {
    return {.message = std::move(message), .vital = true};
}

Piece non_vital(const MessageBuilder& message) {
    return non_vital(message.bytes());
}

Piece non_vital(Bytes message) {
    return {.message = std::move(message)};
}

Piece resend_piece(Piece piece, std::uint16_t sequence) {
    piece.vital = true;
    piece.resend = true;
    piece.sequence = sequence;
    return piece;
}

SessionScript::SessionScript(inspect::Options options) : SessionScript{options, nullptr} {}

SessionScript::SessionScript(inspect::Options options, record::RecordSink& sink)
    : SessionScript{options, &sink} {}

SessionScript::SessionScript(const inspect::Options& options, record::RecordSink* sink)
    : log_{std::make_unique<RecordLog>()}, maps_{std::make_unique<FakeMaps>()},
      workspace_{std::make_unique<inspect::DecodeBuffers>()},
      session_{std::make_unique<inspect::Session>(1, "127.0.0.1:50000", "127.0.0.1:8303", options,
                                                  *maps_, sink != nullptr ? *sink : *log_)} {
    session_->open_session(time_);
}

void SessionScript::send_datagram(wire::Direction direction, std::span<const std::byte> datagram) {
    time_ += kStep;
    session_->on_datagram(time_, direction, datagram, *workspace_);
}

void SessionScript::send_packet(wire::Direction direction, wire::PacketSpec spec) {
    spec.token = token_;
    send_datagram(direction, wire::encode_packet(spec));
}

void SessionScript::lose_copies(std::uint64_t lost) {
    session_->on_missed_datagrams(time_, lost, "ring_full");
}

void SessionScript::resync() {
    session_->on_full_snapshot_request(time_);
}

void SessionScript::close(std::string_view reason) {
    session_->close_session(time_, reason, *workspace_);
}

void SessionScript::restart(std::optional<wire::Token> token,
                            std::optional<wire::Token> header_token) {
    peers_ = {};
    token_ = token;
    header_token_ = header_token;
    dialect_ = wire::Dialect::six;
    sent_snapshots_.clear();
}

MessageBuilder SessionScript::message_of(std::string_view name) const {
    return message(name, dialect_);
}

void SessionScript::join_ddnet() {
    join_ddnet_with(kToken);
}

void SessionScript::join_ddnet_with(wire::Token token) {
    restart(token, std::nullopt);
    control(wire::Direction::c2s,
            {.kind = wire::ControlKind::connect, .token = wire::kTokenUnknown});
    control(wire::Direction::s2c, {.kind = wire::ControlKind::connectaccept, .token = token});
    control(wire::Direction::c2s, {.kind = wire::ControlKind::accept, .token = token});
}

void SessionScript::join_vanilla() {
    restart(std::nullopt, std::nullopt);
    control(wire::Direction::c2s, {.kind = wire::ControlKind::connect});
    control(wire::Direction::s2c, {.kind = wire::ControlKind::connectaccept});
    control(wire::Direction::c2s, {.kind = wire::ControlKind::accept});
}

void SessionScript::join_header_token() {
    restart(std::nullopt, kToken);
    send_datagram(wire::Direction::c2s, header_token_connect(kClientToken));
    send_datagram(wire::Direction::s2c, header_token_accept(kClientToken, kToken));
}

void SessionScript::assume_ddnet() {
    restart(kToken, std::nullopt);
}

void SessionScript::control(wire::Direction direction, wire::ControlSpec spec) {
    // Control packets of a handshake have no ack.
    if (spec.ack == 0 &&
        (spec.kind == wire::ControlKind::close || spec.kind == wire::ControlKind::keepalive)) {
        spec.ack = peer(direction).received;
    }
    send_datagram(direction, wire::encode_control(spec));
}

Bytes SessionScript::pack(wire::Direction direction, const std::vector<Piece>& pieces) {
    Peer& sender = peer(direction);
    Bytes chunks;
    for (const Piece& piece : pieces) {
        std::uint16_t sequence = 0;
        if (piece.vital && piece.sequence) {
            sequence = *piece.sequence;
        } else if (piece.vital) {
            sender.sent = static_cast<std::uint16_t>((sender.sent + 1) % wire::kSequenceModulus);
            sequence = sender.sent;
        }
        wire::append_chunk(chunks, piece.vital, sequence, piece.resend, piece.message, dialect_);
    }
    return wire::encode_packet({.ack = sender.received,
                                .num_chunks = static_cast<std::uint8_t>(pieces.size()),
                                .chunks = chunks,
                                .token = token_,
                                .header_token = dialect_ == wire::Dialect::six      ? header_token_
                                                : direction == wire::Direction::c2s ? kSevenServer
                                                                                    : kSevenClient,
                                .compression = compression,
                                .dialect = dialect_});
}

Bytes SessionScript::pack_deviating(wire::Direction direction, const std::vector<Piece>& pieces,
                                    const Deviations& odd) {
    const Peer honest = peer(direction);
    Bytes datagram = pack(direction, pieces);
    peer(direction) = honest;
    const int modulus = wire::kSequenceModulus;
    const auto ack = static_cast<unsigned>(
        ((honest.received + odd.ack.value_or(0)) % modulus + modulus) % modulus);
    datagram[0] = static_cast<std::byte>((std::to_integer<unsigned>(datagram[0]) & ~3U) |
                                         odd.flags | ack >> 8U);
    datagram[1] = static_cast<std::byte>(ack & 0xFFU);
    if (odd.count) {
        datagram[2] = std::byte{*odd.count};
    }
    if (odd.behind) {
        datagram.resize(datagram.size() - (token_ ? wire::kTokenSize : 0));
        datagram.insert(datagram.end(), odd.behind->begin(), odd.behind->end());
    }
    return datagram;
}

std::uint16_t SessionScript::next_sequence(wire::Direction direction) {
    return static_cast<std::uint16_t>((peer(direction).sent + 1) % wire::kSequenceModulus);
}

void SessionScript::send(wire::Direction direction, const std::vector<Piece>& pieces) {
    const std::uint16_t before = peer(direction).sent;
    send_datagram(direction, pack(direction, pieces));
    receive(direction, before);
}

void SessionScript::send_unseen(wire::Direction direction, const MessageBuilder& vital_message) {
    const std::uint16_t before = peer(direction).sent;
    static_cast<void>(pack(direction, {vital(vital_message)}));
    receive(direction, before);
}

void SessionScript::receive(wire::Direction direction, std::uint16_t before) {
    // After a gap, the receiver accepts none of these chunks.
    Peer& receiver = peer(opposite(direction));
    if (receiver.received == before) {
        receiver.received = peer(direction).sent;
    }
}

void SessionScript::send(wire::Direction direction, const MessageBuilder& vital_message) {
    send(direction, {vital(vital_message)});
}

void SessionScript::enter_game(std::string_view map) {
    MessageBuilder change = message_of("map_change");
    change.string(map).number(1).number(100);
    if (dialect_ == wire::Dialect::seven) {
        change.number(8).number(1384).raw(Bytes(32, std::byte{7}));
    }
    send(wire::Direction::s2c, change);
    sent_snapshots_.clear();
    send(wire::Direction::c2s, message_of("ready"));
    send(wire::Direction::s2c, message_of("con_ready"));
    send(wire::Direction::c2s, message_of("enter_game"));
}

Bytes SessionScript::snap_datagram(snapshot::Tick tick, snapshot::Tick base, const Items& items) {
    const Items from = base == snapshot::kNoBase ? Items{} : sent_snapshots_[base];
    sent_snapshots_[tick] = items;
    return pack(wire::Direction::s2c, {non_vital(snap_between(tick, base, from, items, dialect_))});
}

void SessionScript::snap(snapshot::Tick tick, snapshot::Tick base, const Items& items) {
    send_datagram(wire::Direction::s2c, snap_datagram(tick, base, items));
}

void SessionScript::snap_body(snapshot::Tick tick, snapshot::Tick base, std::int32_t crc,
                              const Bytes& body) {
    for (const Bytes& message : snap_messages(tick, base, crc, body, dialect_)) {
        send(wire::Direction::s2c, {non_vital(message)});
    }
}

SessionScript joined_session(inspect::Options options) {
    SessionScript script{options};
    script.join_ddnet();
    return script;
}

SessionScript playing_session() {
    SessionScript script = joined_session();
    script.enter_game();
    script.log().clear();
    return script;
}

void SessionScript::join_seven(bool ddnet) {
    using wire::ControlKind;
    control(
        wire::Direction::c2s,
        {.kind = ControlKind::token, .token = kSevenClient, .seven_token = wire::kTokenUnknown});
    control(wire::Direction::s2c,
            {.kind = ControlKind::token, .token = kSevenServer, .seven_token = kSevenClient});
    control(wire::Direction::c2s,
            {.kind = ControlKind::connect, .token = kSevenClient, .seven_token = kSevenServer});
    control(wire::Direction::s2c, {.kind = ControlKind::accept,
                                   .token = ddnet ? std::optional{kSevenServer} : std::nullopt,
                                   .seven_token = kSevenClient});
    restart(std::nullopt, std::nullopt);
    dialect_ = wire::Dialect::seven;
}

void SessionScript::close_seven() {
    control(wire::Direction::c2s, {.kind = wire::ControlKind::close, .seven_token = kSevenServer});
}

} // namespace tw::test
