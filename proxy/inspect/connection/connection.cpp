#include "proxy/inspect/connection/connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tw::inspect {

void AckWindow::reset(ConnectionStart start) {
    newest_accepted_ack_ =
        start == ConnectionStart::seen ? std::optional<std::uint16_t>{0} : std::nullopt;
    newest_sent_chunk_ = newest_accepted_ack_;
    num_acks_above_range_ = 0;
}

void AckWindow::on_chunk_sent(std::uint16_t sequence) {
    if (!newest_sent_chunk_ ||
        wire::sequence_distance(*newest_sent_chunk_, sequence) < wire::kSequenceModulus / 2) {
        newest_sent_chunk_ = sequence;
    }
}

bool AckWindow::is_above_range(std::uint16_t ack) const {
    return newest_accepted_ack_ && newest_sent_chunk_ &&
           wire::sequence_distance(*newest_accepted_ack_, ack) >
               wire::sequence_distance(*newest_accepted_ack_, *newest_sent_chunk_);
}

bool AckWindow::accept_ack_above_range(std::uint16_t ack) {
    // The range moves forward after this many acknowledgements in a row that are slightly above it.
    // Forged packets never reach this number, because genuine packets come between them.
    constexpr int kEnoughAhead = 8;
    constexpr unsigned kMissedCopies = 16;
    if (!is_above_range(ack) || wire::sequence_distance(*newest_sent_chunk_, ack) > kMissedCopies) {
        return false;
    }
    if (++num_acks_above_range_ == kEnoughAhead) {
        newest_accepted_ack_ = newest_sent_chunk_ = ack;
        num_acks_above_range_ = 0;
    }
    return true;
}

bool AckWindow::accept_ack(std::uint16_t ack) {
    if (is_above_range(ack)) {
        return false;
    }
    newest_accepted_ack_ = ack;
    num_acks_above_range_ = 0;
    return true;
}

wire::VitalClass VitalChunkOrder::classify_chunk(std::uint16_t sequence, bool resend) {
    if (!is_position_known_) {
        const bool is_next =
            ack_before_first_chunk_ &&
            wire::classify_sequence(*ack_before_first_chunk_, sequence) == wire::VitalClass::next;
        if (resend && !is_next) {
            return wire::VitalClass::old;
        }
        is_position_known_ = true;
        last_accepted_chunk_ = sequence;
        ++num_accepted_chunks_;
        return wire::VitalClass::next;
    }
    const wire::VitalClass what = wire::classify_sequence(last_accepted_chunk_, sequence);
    if (what == wire::VitalClass::next) {
        last_accepted_chunk_ = sequence;
        has_gap_ = false;
        ++num_accepted_chunks_;
    } else if (what == wire::VitalClass::gap) {
        store_dropped_chunk(sequence);
    }
    return what;
}

void VitalChunkOrder::on_undecided_chunk(std::uint16_t sequence) {
    if (is_position_known_ &&
        wire::classify_sequence(last_accepted_chunk_, sequence) != wire::VitalClass::old) {
        store_dropped_chunk(sequence);
    }
}

void VitalChunkOrder::store_dropped_chunk(std::uint16_t sequence) {
    const wire::VitalClass behind = wire::classify_sequence(last_dropped_chunk_, sequence);
    if (!has_gap_ || behind == wire::VitalClass::gap) {
        first_dropped_chunk_ = last_dropped_chunk_ = sequence;
    } else if (behind == wire::VitalClass::next) {
        last_dropped_chunk_ = sequence;
    }
    has_gap_ = true;
}

bool VitalChunkOrder::on_ack(std::uint16_t ack) {
    if (!is_position_known_) {
        ack_before_first_chunk_ = ack;
        return false;
    }
    const unsigned ahead = wire::sequence_distance(last_accepted_chunk_, ack);
    if (!has_gap_ || ahead == 0 || ahead >= wire::kSequenceModulus / 2) {
        return false;
    }
    if (ahead + 1 < wire::sequence_distance(last_accepted_chunk_, first_dropped_chunk_)) {
        last_accepted_chunk_ = ack; // `ack` covers only a part of the gap
        return true;
    }
    last_accepted_chunk_ =
        ahead < wire::sequence_distance(last_accepted_chunk_, last_dropped_chunk_)
            ? last_dropped_chunk_
            : ack;
    has_gap_ = false;
    return true;
}

void VitalChunkOrder::reset(ConnectionStart start) {
    *this = {};
    is_position_known_ = start == ConnectionStart::seen;
}

PacketChunks::PacketChunks(const wire::Packet& packet, bool ends_with_token, ChunkBuffer& buffer) {
    const bool cut = ends_with_token && packet.payload.size() >= wire::kTokenSize;
    const auto payload =
        cut ? packet.payload.first(packet.payload.size() - wire::kTokenSize) : packet.payload;
    wire::ChunkReader reader{payload, packet.num_chunks, packet.dialect};
    std::size_t count = 0;
    while (count < buffer.size()) {
        const auto chunk = reader.next();
        if (!chunk) {
            break;
        }
        buffer[count++] = *chunk;
    }
    chunks = std::span{buffer}.first(count);
    if (reader.error()) {
        error = reader.error();
    }
    // After a truncated chunk, the token is taken from the end of the payload.
    const bool token_at_end = cut || (error && packet.payload.size() >= wire::kTokenSize);
    trailing_bytes = token_at_end ? packet.payload.last(wire::kTokenSize) : reader.rest();
}

namespace {

/// This many packets with the same token show a connection whose handshake was not seen.
constexpr int kMinPacketsWithToken = 2;

/// Whether an ACCEPT ends with the server's token, as the ACCEPT of a DDNet server does. DDNet 18.3
/// and newer append the token in reverse byte order. `last_bytes`: the last bytes of the ACCEPT.
bool is_token_repeated(const std::optional<wire::Token>& last_bytes,
                       const std::optional<wire::Token>& token) {
    if (!last_bytes || !token) {
        return false;
    }
    wire::Token reversed = *token;
    std::ranges::reverse(reversed);
    return *last_bytes == *token || *last_bytes == reversed;
}

} // namespace

ConnectionChange SevenHandshake::on_control(wire::Direction direction, const wire::Packet& packet,
                                            const wire::Control& control) {
    const bool c2s = direction == wire::Direction::c2s;
    const wire::Token token = packet.header_token.value_or(wire::kTokenUnknown);
    if (c2s && control.kind == wire::ControlKind::token && control.token &&
        token == wire::kTokenUnknown) {
        // The client may repeat its TOKEN before the answer arrives. Only a different token begins
        // a new attempt.
        if (client_token_ != control.token) {
            server_token_.reset();
            previous_server_token_.reset();
            connect_token_.reset();
        }
        client_token_ = control.token;
    } else if (!c2s && control.kind == wire::ControlKind::token && control.token &&
               client_token_ == token) {
        if (server_token_ != control.token) {
            previous_server_token_ = server_token_;
        }
        server_token_ = control.token;
    } else if (c2s && control.kind == wire::ControlKind::connect && server_token_ &&
               (server_token_ == token || previous_server_token_ == token)) {
        connect_token_ = token;
        // The client's TOKEN packet may not have been seen. This CONNECT contains the same token.
        client_token_ = control.token ? control.token : client_token_;
    } else if (!c2s && control.kind == wire::ControlKind::accept && connect_token_ &&
               client_token_ == token) {
        // Both sides repeat CONNECT and ACCEPT for a while.
        const bool is_repeated = awaits_first_chunks_ &&
                                 connection_tokens_[0].token == connect_token_ &&
                                 connection_tokens_[1].token == token;
        if (!is_repeated) {
            connection_tokens_ = {RepeatedTokenCounter{.token = connect_token_},
                                  RepeatedTokenCounter{.token = token}};
            foreign_tokens_ = {};
            awaits_first_chunks_ = true;
            is_accepted_by_ddnet_ = is_token_repeated(control.token, connect_token_);
        }
        connect_token_.reset();
        return is_repeated ? ConnectionChange::none : ConnectionChange::established;
    }
    return ConnectionChange::none;
}

// A client's packets alone do not prove a connection; only the server's packets do.
ConnectionChange SevenHandshake::on_seven_packet(wire::Direction direction, wire::Token token) {
    const int count = connection_tokens_[wire::index_of(direction)].count_datagram_with(token);
    return direction == wire::Direction::s2c && count >= kMinPacketsWithToken
               ? ConnectionChange::joined_midway
               : ConnectionChange::none;
}

ConnectionChange SevenHandshake::infer_connection_from_client() const {
    return connection_tokens_[wire::index_of(wire::Direction::c2s)].num_datagrams >=
                   kMinPacketsWithToken
               ? ConnectionChange::joined_midway
               : ConnectionChange::none;
}

ConnectionChange SevenHandshake::on_foreign_token(wire::Direction direction, wire::Token token) {
    foreign_tokens_[wire::index_of(direction)].count_datagram_with(token);
    for (const RepeatedTokenCounter& each : foreign_tokens_) {
        if (each.num_datagrams < kMinPacketsWithToken) {
            return ConnectionChange::none;
        }
    }
    for (std::size_t i = 0; i < connection_tokens_.size(); ++i) {
        connection_tokens_[i].token = std::exchange(foreign_tokens_[i], {}).token;
    }
    return ConnectionChange::joined_midway;
}

bool SevenHandshake::has_expected_token(wire::Direction direction, const wire::Packet& packet) {
    auto& known = connection_tokens_[wire::index_of(direction)].token;
    if (!known) { // neither the handshake nor a packet of this direction was seen so far
        known = packet.header_token;
    }
    return known == packet.header_token;
}

bool SevenHandshake::ends_handshake_attempt(wire::Direction direction,
                                            const wire::Packet& packet) const {
    const auto& token = packet.header_token;
    return direction == wire::Direction::s2c
               ? client_token_ && token == client_token_
               : token == wire::kTokenUnknown || (server_token_ && token == server_token_);
}

namespace {

std::optional<wire::Token> token_from_bytes(std::span<const std::byte> bytes) {
    if (bytes.size() != wire::kTokenSize) {
        return std::nullopt;
    }
    wire::Token token;
    std::memcpy(token.data(), bytes.data(), token.size());
    return token;
}

/// Returns the token form of a packet. `token`: the packet's token; nullopt if it has no token.
TokenForm token_form_of(const wire::Packet& packet, std::optional<wire::Token> token) {
    return packet.header_token ? TokenForm::vanilla : token ? TokenForm::ddnet : TokenForm::none;
}

} // namespace

std::string_view Connection::protocol_name() const {
    switch (token_form_) {
    case TokenForm::seven:
        return "0.7";
    case TokenForm::none:
        return "0.6";
    case TokenForm::ddnet:
        return "0.6+ddnet";
    case TokenForm::vanilla:
        return "0.6+token";
    case TokenForm::unknown:
        break;
    }
    return "";
}

void Connection::reset_vital_order(ConnectionStart start) {
    for (VitalChunkOrder& order : vital_orders_) {
        order.reset(start);
    }
    for (AckWindow& window : ack_windows_) {
        window.reset(start);
    }
}

void Connection::begin_seven_connection(ConnectionStart start) {
    *this = {};
    token_form_ = TokenForm::seven;
    is_guessed_seven_ = start == ConnectionStart::missed;
    reset_vital_order(start);
}

void Connection::forget_closed_connection() {
    Connection next;
    next.handshake_ = handshake_;
    next.granted_token_ = granted_token_;
    *this = next;
}

ConnectionChange Connection::establish_connection(TokenForm form, std::optional<wire::Token> token,
                                                  ConnectionStart start) {
    token_form_ = form;
    token_ = token;
    is_closed_ = false;
    awaits_first_chunk_ = start == ConnectionStart::seen;
    is_guessed_seven_ = false;
    foreign_token_.reset();
    client_token_counter_ = {};
    header_token_counter_ = {};
    handshake_ = {};
    reset_vital_order(start);
    return awaits_first_chunk_ ? ConnectionChange::established : ConnectionChange::joined_midway;
}

bool Connection::is_accept_valid(const wire::Control& control) const {
    const bool answered = handshake_.is_answered && handshake_.token_form == TokenForm::ddnet;
    const bool running = is_open_with_ddnet_token();
    if (!answered && !running) {
        return true; // the connection has no token, or an unknown one
    }
    return control.token &&
           ((answered && control.token == handshake_.token) ||
            (running && control.token == token_) || control.token == granted_token_);
}

ConnectionChange Connection::on_control(wire::Direction direction, const wire::Packet& packet,
                                        const wire::Control& control) {
    const bool c2s = direction == wire::Direction::c2s;
    if (control.kind == wire::ControlKind::connect && c2s) {
        handshake_ = {.token = control.vanilla_token ? control.token : std::nullopt};
        return ConnectionChange::none;
    }
    if (control.kind == wire::ControlKind::connectaccept && !c2s) {
        handshake_.is_answered = true;
        handshake_.token = control.token;
        if (control.has_token_magic && control.token) {
            granted_token_ = control.token;
        }
        handshake_.token_form = packet.header_token       ? TokenForm::vanilla
                                : control.has_token_magic ? TokenForm::ddnet
                                                          : TokenForm::none;
        return ConnectionChange::none;
    }
    if (control.kind != wire::ControlKind::accept || !c2s) {
        return ConnectionChange::none;
    }
    handshake_.is_accept_seen = true;
    handshake_.accept_token = control.token;
    if (!control.token) {
        return ConnectionChange::none;
    }
    const bool answers = handshake_.is_answered && handshake_.token_form == TokenForm::ddnet &&
                         control.token == handshake_.token;
    // A DDNet server accepts an ACCEPT with the right token at any time, even without a CONNECT
    // before it, and then restarts the connection (CNetServer::OnConnCtrlMsg).
    const bool repeats = is_open_with_ddnet_token() && control.token == token_;
    const bool granted = !is_open_with_ddnet_token() && control.token == granted_token_;
    if (!answers && !granted && (!repeats || awaits_first_chunk_)) {
        return ConnectionChange::none;
    }
    return establish_connection(TokenForm::ddnet, control.token, ConnectionStart::seen);
}

bool Connection::has_expected_token(const wire::Packet& packet,
                                    std::span<const std::byte> rest) const {
    switch (token_form_) {
    case TokenForm::ddnet:
        return token_from_bytes(rest) == token_;
    case TokenForm::vanilla:
        return packet.header_token == token_;
    case TokenForm::none:
    case TokenForm::seven:
    case TokenForm::unknown:
        break;
    }
    return !packet.header_token;
}

bool Connection::begins_connection(wire::Direction direction, const wire::Packet& packet,
                                   const PacketChunks& chunks, bool is_one_sided) const {
    if (!handshake_.is_answered || packet.header_token) {
        return false;
    }
    // Without a token, only the first vital chunk shows that a new connection began. If the ACCEPT
    // was not seen, DDNet's token does not show it either, because all connections of an address
    // have the same token.
    const bool starts = !chunks.chunks.empty() && chunks.chunks.front().vital &&
                        chunks.chunks.front().sequence == 1;
    if (handshake_.token_form == TokenForm::ddnet) {
        // In its first packet, a server may acknowledge the client's first chunk; a client
        // acknowledges nothing.
        const std::uint16_t most = direction == wire::Direction::s2c ? 1 : 0;
        return is_established() && starts && (is_one_sided || packet.ack <= most) &&
               handshake_.token && token_from_bytes(chunks.trailing_bytes) == handshake_.token;
    }
    // A DDNet server answers a CONNECT without a token only while there is no connection with a
    // token.
    return handshake_.token_form == TokenForm::none && !is_open_with_ddnet_token() &&
           (!is_established() || (starts && (is_one_sided || packet.ack == 0)));
}

ConnectionChange Connection::on_chunk_packet(wire::Direction direction, const wire::Packet& packet,
                                             const PacketChunks& chunks, bool is_one_sided) {
    awaits_first_chunk_ = false;
    if (begins_connection(direction, packet, chunks, is_one_sided)) {
        const bool has_token = handshake_.token_form == TokenForm::ddnet;
        return establish_connection(handshake_.token_form,
                                    has_token ? handshake_.token : std::nullopt,
                                    ConnectionStart::seen);
    }
    if (handshake_.is_answered && handshake_.token_form == TokenForm::vanilla &&
        direction == wire::Direction::c2s && packet.header_token &&
        packet.header_token == handshake_.token) {
        return establish_connection(TokenForm::vanilla, handshake_.token, ConnectionStart::seen);
    }
    // A packet with a truncated chunk is no valid 0.6 packet: it is damaged or a 0.7 packet.
    const bool is_foreign =
        !is_closed_ && (!is_established() || !has_expected_token(packet, chunks.trailing_bytes));
    return is_foreign && !chunks.error ? adopt_connection(direction, packet, chunks)
                                       : ConnectionChange::none;
}

ConnectionChange Connection::adopt_connection(wire::Direction direction, const wire::Packet& packet,
                                              const PacketChunks& chunks) {
    // In 0.7, the bit of a header token is a resend request. Resend requests rarely occur in
    // several packets in a row, and mostly in packets without chunks.
    constexpr int kEnoughHeaderTokens = 3;
    const auto token =
        packet.header_token ? packet.header_token : token_from_bytes(chunks.trailing_bytes);
    if (!token && !chunks.trailing_bytes.empty()) {
        return ConnectionChange::none; // in 0.6, only a token can follow the chunks
    }
    if (is_established()) {
        // A single packet with another token is old or forged. If packets of both directions have
        // this token, they belong to a new connection whose handshake was not seen.
        if (!token || foreign_token_ != token || foreign_token_direction_ == direction) {
            foreign_token_ = token;
            foreign_token_direction_ = direction;
            return ConnectionChange::none;
        }
    } else if (handshake_.is_answered) {
        if (token != handshake_.token) {
            return ConnectionChange::none; // a late packet of an older connection
        }
    } else if (direction == wire::Direction::c2s) {
        client_token_form_ = token_form_of(packet, token);
        client_token_counter_.count_datagram_with(token);
        return ConnectionChange::none;
    } else if (packet.header_token &&
               (chunks.chunks.empty() ||
                header_token_counter_.count_datagram_with(token) < kEnoughHeaderTokens)) {
        return ConnectionChange::none;
    }
    return establish_connection(token_form_of(packet, token), token,
                                handshake_.is_answered ? ConnectionStart::seen
                                                       : ConnectionStart::missed);
}

ConnectionChange Connection::infer_connection_from_client() {
    if (is_established() || is_closed_ || handshake_.is_answered ||
        client_token_counter_.num_datagrams < kMinPacketsWithToken) {
        return ConnectionChange::none;
    }
    const bool is_seen =
        handshake_.is_accept_seen && handshake_.accept_token == client_token_counter_.token;
    return establish_connection(client_token_form_, client_token_counter_.token,
                                is_seen ? ConnectionStart::seen : ConnectionStart::missed);
}

} // namespace tw::inspect
