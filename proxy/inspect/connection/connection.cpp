#include "proxy/inspect/connection/connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tw::inspect {

void AckWindow::reset(ConnectionStart start) {
    accepted_ = start == ConnectionStart::seen ? std::optional<std::uint16_t>{0} : std::nullopt;
    newest_sent_ = accepted_;
    num_above_ = 0;
}

void AckWindow::on_chunk_sent(std::uint16_t sequence) {
    if (!newest_sent_ ||
        wire::sequence_distance(*newest_sent_, sequence) < wire::kSequenceModulus / 2) {
        newest_sent_ = sequence;
    }
}

bool AckWindow::is_slightly_above_range(std::uint16_t ack) const {
    constexpr unsigned kMissedCopies = 16;
    return accepted_ && newest_sent_ &&
           wire::sequence_distance(*accepted_, ack) >
               wire::sequence_distance(*accepted_, *newest_sent_) &&
           wire::sequence_distance(*newest_sent_, ack) <= kMissedCopies;
}

bool AckWindow::accept_ack_above_range(std::uint16_t ack) {
    // The accepted range moves forward after this many acknowledgements in a row. Forged packets
    // never reach this number, because genuine packets come between them.
    constexpr int kEnoughAhead = 8;
    if (!is_slightly_above_range(ack)) {
        return false;
    }
    if (++num_above_ == kEnoughAhead) {
        accepted_ = newest_sent_ = ack;
        num_above_ = 0;
    }
    return true;
}

bool AckWindow::accept_ack(std::uint16_t ack) {
    if (accepted_ && newest_sent_ &&
        wire::sequence_distance(*accepted_, ack) >
            wire::sequence_distance(*accepted_, *newest_sent_)) {
        return false;
    }
    accepted_ = ack;
    num_above_ = 0;
    return true;
}

wire::VitalClass VitalOrder::classify_chunk(std::uint16_t sequence, bool resend) {
    if (!is_synced_) {
        const bool is_next =
            first_ack_ && wire::classify_sequence(*first_ack_, sequence) == wire::VitalClass::next;
        if (resend && !is_next) {
            return wire::VitalClass::old;
        }
        is_synced_ = true;
        last_accepted_ = sequence;
        ++num_accepted_;
        return wire::VitalClass::next;
    }
    const wire::VitalClass what = wire::classify_sequence(last_accepted_, sequence);
    if (what == wire::VitalClass::next) {
        last_accepted_ = sequence;
        has_gap_ = false;
        ++num_accepted_;
    } else if (what == wire::VitalClass::gap) {
        drop_chunk(sequence);
    }
    return what;
}

void VitalOrder::on_undecided_chunk(std::uint16_t sequence) {
    if (is_synced_ && wire::classify_sequence(last_accepted_, sequence) != wire::VitalClass::old) {
        drop_chunk(sequence);
    }
}

void VitalOrder::drop_chunk(std::uint16_t sequence) {
    const wire::VitalClass behind = wire::classify_sequence(last_dropped_, sequence);
    if (!has_gap_ || behind == wire::VitalClass::gap) {
        first_dropped_ = last_dropped_ = sequence;
    } else if (behind == wire::VitalClass::next) {
        last_dropped_ = sequence;
    }
    has_gap_ = true;
}

bool VitalOrder::on_ack(std::uint16_t ack) {
    if (!is_synced_) {
        first_ack_ = ack;
        return false;
    }
    const unsigned ahead = wire::sequence_distance(last_accepted_, ack);
    if (!has_gap_ || ahead == 0 || ahead >= wire::kSequenceModulus / 2) {
        return false;
    }
    if (ahead + 1 < wire::sequence_distance(last_accepted_, first_dropped_)) {
        last_accepted_ = ack; // `ack` does not include all missing chunks
        return true;
    }
    last_accepted_ =
        ahead < wire::sequence_distance(last_accepted_, last_dropped_) ? last_dropped_ : ack;
    has_gap_ = false;
    return true;
}

void VitalOrder::reset(ConnectionStart start) {
    last_accepted_ = 0;
    num_accepted_ = 0;
    first_ack_.reset();
    is_synced_ = start == ConnectionStart::seen;
    has_gap_ = false;
}

PacketChunks::PacketChunks(const wire::Packet& packet, bool with_token, ChunkBuffer& room) {
    const bool cut = with_token && packet.payload.size() >= wire::kTokenSize;
    const auto payload =
        cut ? packet.payload.first(packet.payload.size() - wire::kTokenSize) : packet.payload;
    wire::ChunkReader reader{payload, packet.num_chunks, packet.dialect};
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
    // After a truncated chunk, the token is taken from the end of the payload.
    const bool token_at_end = cut || (error && packet.payload.size() >= wire::kTokenSize);
    rest = token_at_end ? packet.payload.last(wire::kTokenSize) : reader.rest();
}

namespace {

/// This many packets with the same token count as a connection whose handshake was not seen.
constexpr int kEnoughPackets = 2;

/// Whether `behind`, the bytes after an ACCEPT, repeat the server's token. DDNet servers repeat it,
/// since 18.3 in reverse byte order.
bool is_token_repeated(const std::optional<wire::Token>& behind,
                       const std::optional<wire::Token>& token) {
    if (!behind || !token) {
        return false;
    }
    wire::Token reversed = *token;
    std::reverse(reversed.begin(), reversed.end());
    return *behind == *token || *behind == reversed;
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
        if (client_ != control.token) {
            server_.reset();
            server_before_.reset();
            connect_.reset();
        }
        client_ = control.token;
    } else if (!c2s && control.kind == wire::ControlKind::token && control.token &&
               client_ == token) {
        if (server_ != control.token) {
            server_before_ = server_;
        }
        server_ = control.token;
    } else if (c2s && control.kind == wire::ControlKind::connect && server_ &&
               (server_ == token || server_before_ == token)) {
        connect_ = token;
        // The client's TOKEN packet may not have been seen; this packet contains the same token.
        client_ = control.token ? control.token : client_;
    } else if (!c2s && control.kind == wire::ControlKind::accept && connect_ && client_ == token) {
        // Both sides repeat CONNECT and ACCEPT for a while.
        const bool is_repeated =
            fresh_ && tokens_[0].token == connect_ && tokens_[1].token == token;
        if (!is_repeated) {
            tokens_ = {TokenCount{.token = connect_}, TokenCount{.token = token}};
            foreign_ = {};
            fresh_ = true;
            ddnet_ = is_token_repeated(control.token, connect_);
        }
        connect_.reset();
        return is_repeated ? ConnectionChange::none : ConnectionChange::established;
    }
    return ConnectionChange::none;
}

// A client's packets alone do not prove a connection; only the server's packets do.
ConnectionChange SevenHandshake::on_seven_packet(wire::Direction direction, wire::Token token) {
    const int count = tokens_[wire::index_of(direction)].count_token(token);
    return direction == wire::Direction::s2c && count >= kEnoughPackets
               ? ConnectionChange::joined_midway
               : ConnectionChange::none;
}

ConnectionChange SevenHandshake::infer_connection_from_client() const {
    return tokens_[wire::index_of(wire::Direction::c2s)].datagrams >= kEnoughPackets
               ? ConnectionChange::joined_midway
               : ConnectionChange::none;
}

ConnectionChange SevenHandshake::on_foreign_token(wire::Direction direction, wire::Token token) {
    foreign_[wire::index_of(direction)].count_token(token);
    for (const TokenCount& each : foreign_) {
        if (each.datagrams < kEnoughPackets) {
            return ConnectionChange::none;
        }
    }
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        tokens_[i].token = std::exchange(foreign_[i], {}).token;
    }
    return ConnectionChange::joined_midway;
}

bool SevenHandshake::token_fits(wire::Direction direction, const wire::Packet& packet) {
    auto& known = tokens_[wire::index_of(direction)].token;
    if (!known) { // neither the handshake nor a packet of this direction was seen so far
        known = packet.header_token;
    }
    return known == packet.header_token;
}

bool SevenHandshake::ends_handshake_attempt(wire::Direction direction,
                                            const wire::Packet& packet) const {
    const auto& token = packet.header_token;
    return direction == wire::Direction::s2c
               ? client_ && token == client_
               : token == wire::kTokenUnknown || (server_ && token == server_);
}

namespace {

std::optional<wire::Token> token_in(std::span<const std::byte> bytes) {
    if (bytes.size() != wire::kTokenSize) {
        return std::nullopt;
    }
    wire::Token token;
    std::memcpy(token.data(), bytes.data(), token.size());
    return token;
}

/// Returns the token form of a packet that contains `token`.
TokenForm form_of(const wire::Packet& packet, std::optional<wire::Token> token) {
    return packet.header_token ? TokenForm::vanilla : token ? TokenForm::ddnet : TokenForm::none;
}

} // namespace

std::string_view Connection::protocol_name() const {
    switch (form_) {
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
    for (VitalOrder& order : order_) {
        order.reset(start);
    }
    for (AckWindow& window : windows_) {
        window.reset(start);
    }
}

void Connection::begin_seven_connection(ConnectionStart start) {
    *this = {};
    form_ = TokenForm::seven;
    guessed_seven_ = start == ConnectionStart::missed;
    reset_vital_order(start);
}

void Connection::forget_closed_connection() {
    Connection next;
    next.handshake_ = handshake_;
    next.granted_ = granted_;
    *this = next;
}

ConnectionChange Connection::establish(TokenForm form, std::optional<wire::Token> token,
                                       ConnectionStart start) {
    form_ = form;
    token_ = token;
    closed_ = false;
    fresh_ = start == ConnectionStart::seen;
    guessed_seven_ = false;
    foreign_token_.reset();
    unanswered_ = {};
    header_tokens_ = {};
    handshake_ = {};
    reset_vital_order(start);
    return fresh_ ? ConnectionChange::established : ConnectionChange::joined_midway;
}

bool Connection::is_accept_valid(const wire::Control& control) const {
    const bool answered = handshake_.answered && handshake_.form == TokenForm::ddnet;
    const bool running = is_open_with_ddnet_token();
    if (!answered && !running) {
        return true; // the connection has no token, or an unknown one
    }
    return control.token && ((answered && control.token == handshake_.token) ||
                             (running && control.token == token_) || control.token == granted_);
}

ConnectionChange Connection::on_control(wire::Direction direction, const wire::Packet& packet,
                                        const wire::Control& control) {
    const bool c2s = direction == wire::Direction::c2s;
    if (control.kind == wire::ControlKind::connect && c2s) {
        handshake_ = {.token = control.vanilla_token ? control.token : std::nullopt};
        return ConnectionChange::none;
    }
    if (control.kind == wire::ControlKind::connectaccept && !c2s) {
        handshake_.answered = true;
        handshake_.token = control.token;
        if (control.has_token_magic && control.token) {
            granted_ = control.token;
        }
        handshake_.form = packet.header_token       ? TokenForm::vanilla
                          : control.has_token_magic ? TokenForm::ddnet
                                                    : TokenForm::none;
        return ConnectionChange::none;
    }
    if (control.kind != wire::ControlKind::accept || !c2s) {
        return ConnectionChange::none;
    }
    handshake_.accepted = true;
    handshake_.accepted_token = control.token;
    if (!control.token) {
        return ConnectionChange::none;
    }
    const bool answers = handshake_.answered && handshake_.form == TokenForm::ddnet &&
                         control.token == handshake_.token;
    // A DDNet server accepts an ACCEPT with the right token at any time, even without a CONNECT
    // before it, and then restarts the connection (CNetServer::OnConnCtrlMsg).
    const bool repeats = is_open_with_ddnet_token() && control.token == token_;
    const bool granted = !is_open_with_ddnet_token() && control.token == granted_;
    if (!answers && !granted && (!repeats || fresh_)) {
        return ConnectionChange::none;
    }
    return establish(TokenForm::ddnet, control.token, ConnectionStart::seen);
}

bool Connection::token_fits(const wire::Packet& packet, std::span<const std::byte> rest) const {
    switch (form_) {
    case TokenForm::ddnet:
        return token_in(rest) == token_;
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
    if (!handshake_.answered || packet.header_token) {
        return false;
    }
    // Without a token, only the first vital chunk shows that a new connection began. The same is
    // true if the ACCEPT was not seen, because DDNet's token is the same for all connections of an
    // address.
    const bool starts = !chunks.chunks.empty() && chunks.chunks.front().vital &&
                        chunks.chunks.front().sequence == 1;
    if (handshake_.form == TokenForm::ddnet) {
        // A server may already acknowledge the client's first chunk; a client acknowledges nothing.
        const std::uint16_t most = direction == wire::Direction::s2c ? 1 : 0;
        return is_established() && starts && (is_one_sided || packet.ack <= most) &&
               handshake_.token && token_in(chunks.rest) == handshake_.token;
    }
    // A DDNet server answers a CONNECT without a token only while there is no connection with a
    // token.
    return handshake_.form == TokenForm::none && !is_open_with_ddnet_token() &&
           (!is_established() || (starts && (is_one_sided || packet.ack == 0)));
}

ConnectionChange Connection::on_chunk_packet(wire::Direction direction, const wire::Packet& packet,
                                             const PacketChunks& chunks, bool is_one_sided) {
    fresh_ = false;
    if (begins_connection(direction, packet, chunks, is_one_sided)) {
        const bool has_token = handshake_.form == TokenForm::ddnet;
        return establish(handshake_.form, has_token ? handshake_.token : std::nullopt,
                         ConnectionStart::seen);
    }
    if (handshake_.answered && handshake_.form == TokenForm::vanilla &&
        direction == wire::Direction::c2s && packet.header_token &&
        packet.header_token == handshake_.token) {
        return establish(TokenForm::vanilla, handshake_.token, ConnectionStart::seen);
    }
    // A packet with a truncated chunk is no valid 0.6 packet: it is damaged or a 0.7 packet.
    const bool is_foreign = !closed_ && (!is_established() || !token_fits(packet, chunks.rest));
    return is_foreign && !chunks.error ? adopt_connection(direction, packet, chunks)
                                       : ConnectionChange::none;
}

ConnectionChange Connection::adopt_connection(wire::Direction direction, const wire::Packet& packet,
                                              const PacketChunks& chunks) {
    // In 0.7, the bit of a header token is a resend request, which rarely occurs in several packets
    // in a row and mostly in packets without chunks.
    constexpr int kEnoughHeaderTokens = 3;
    const auto token = packet.header_token ? packet.header_token : token_in(chunks.rest);
    if (!token && !chunks.rest.empty()) {
        return ConnectionChange::none; // in 0.6, a token or nothing follows the chunks
    }
    if (is_established()) {
        // One packet with another token is old or forged. Packets of both directions with the same
        // other token belong to a new connection whose handshake was not seen.
        if (!token || foreign_token_ != token || foreign_token_direction_ == direction) {
            foreign_token_ = token;
            foreign_token_direction_ = direction;
            return ConnectionChange::none;
        }
    } else if (handshake_.answered) {
        if (token != handshake_.token) {
            return ConnectionChange::none; // the packet is a late one of an older connection
        }
    } else if (direction == wire::Direction::c2s) {
        unanswered_form_ = form_of(packet, token);
        unanswered_.count_token(token);
        return ConnectionChange::none;
    } else if (packet.header_token &&
               (chunks.chunks.empty() || header_tokens_.count_token(token) < kEnoughHeaderTokens)) {
        return ConnectionChange::none;
    }
    return establish(form_of(packet, token), token,
                     handshake_.answered ? ConnectionStart::seen : ConnectionStart::missed);
}

ConnectionChange Connection::infer_connection_from_client() {
    if (is_established() || closed_ || handshake_.answered ||
        unanswered_.datagrams < kEnoughPackets) {
        return ConnectionChange::none;
    }
    const bool is_seen = handshake_.accepted && handshake_.accepted_token == unanswered_.token;
    return establish(unanswered_form_, unanswered_.token,
                     is_seen ? ConnectionStart::seen : ConnectionStart::missed);
}

} // namespace tw::inspect
