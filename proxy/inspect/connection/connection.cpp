#include "proxy/inspect/connection/connection.h"

#include <cstring>

namespace tw::inspect {

void AckWindow::reset(bool from_start) {
    taken_ = from_start ? std::optional<std::uint16_t>{0} : std::nullopt;
    newest_ = taken_;
    ahead_ = 0;
}

void AckWindow::on_sent(std::uint16_t sequence) {
    if (!newest_ || wire::sequence_distance(*newest_, sequence) < wire::kSequenceModulus / 2) {
        newest_ = sequence;
    }
}

bool AckWindow::is_slightly_above_range(std::uint16_t ack) const {
    constexpr unsigned kMissedCopies = 16;
    return taken_ && newest_ &&
           wire::sequence_distance(*taken_, ack) > wire::sequence_distance(*taken_, *newest_) &&
           wire::sequence_distance(*newest_, ack) <= kMissedCopies;
}

bool AckWindow::accept_ack_above_range(std::uint16_t ack) {
    // The accepted range moves forward after this many acknowledgements in a row. Forged packets
    // never reach this number, because genuine packets come between them.
    constexpr int kEnoughAhead = 8;
    if (!is_slightly_above_range(ack)) {
        return false;
    }
    if (++ahead_ == kEnoughAhead) {
        taken_ = newest_ = ack;
        ahead_ = 0;
    }
    return true;
}

bool AckWindow::accept_ack(std::uint16_t ack) {
    if (taken_ && newest_ &&
        wire::sequence_distance(*taken_, ack) > wire::sequence_distance(*taken_, *newest_)) {
        return false;
    }
    taken_ = ack;
    ahead_ = 0;
    return true;
}

wire::VitalClass VitalOrder::classify_chunk(std::uint16_t sequence, bool resend) {
    if (!synced_) {
        const bool is_next = acknowledged_ && wire::classify_sequence(*acknowledged_, sequence) ==
                                                  wire::VitalClass::next;
        if (resend && !is_next) {
            return wire::VitalClass::old;
        }
        synced_ = true;
        last_ = sequence;
        ++taken_;
        return wire::VitalClass::next;
    }
    const wire::VitalClass what = wire::classify_sequence(last_, sequence);
    if (what == wire::VitalClass::next) {
        last_ = sequence;
        gap_ = false;
        ++taken_;
    } else if (what == wire::VitalClass::gap) {
        drop_chunk(sequence);
    }
    return what;
}

void VitalOrder::skip_chunk(std::uint16_t sequence) {
    if (synced_ && wire::classify_sequence(last_, sequence) != wire::VitalClass::old) {
        drop_chunk(sequence);
    }
}

void VitalOrder::drop_chunk(std::uint16_t sequence) {
    const wire::VitalClass behind = wire::classify_sequence(last_dropped_, sequence);
    if (!gap_ || behind == wire::VitalClass::gap) {
        first_dropped_ = last_dropped_ = sequence;
    } else if (behind == wire::VitalClass::next) {
        last_dropped_ = sequence;
    }
    gap_ = true;
}

bool VitalOrder::on_ack(std::uint16_t ack) {
    if (!synced_) {
        acknowledged_ = ack;
        return false;
    }
    const unsigned ahead = wire::sequence_distance(last_, ack);
    if (!gap_ || ahead == 0 || ahead >= wire::kSequenceModulus / 2) {
        return false;
    }
    if (ahead + 1 < wire::sequence_distance(last_, first_dropped_)) {
        last_ = ack; // `ack` does not include all missing chunks
        return true;
    }
    last_ = ahead < wire::sequence_distance(last_, last_dropped_) ? last_dropped_ : ack;
    gap_ = false;
    return true;
}

void VitalOrder::reset(bool synced) {
    last_ = 0;
    taken_ = 0;
    acknowledged_.reset();
    synced_ = synced;
    gap_ = false;
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

void Connection::resynchronise() {
    for (VitalOrder& order : order_) {
        order.reset(false);
    }
    for (AckWindow& window : windows_) {
        window.reset(false);
    }
}

void Connection::begin_seven_connection(bool from_start) {
    *this = {};
    protocol_ = wire::Protocol::seven;
    form_ = TokenForm::seven;
    guessed_seven_ = !from_start;
    established_ = true;
    for (VitalOrder& order : order_) {
        order.reset(from_start);
    }
    for (AckWindow& window : windows_) {
        window.reset(from_start);
    }
}

ConnectionChange Connection::continue_connection(TokenForm form, std::optional<wire::Token> token) {
    form_ = form;
    token_ = token;
    return establish(false);
}

void Connection::forget_closed_connection() {
    const Handshake handshake = handshake_;
    const auto granted = granted_;
    *this = {};
    handshake_ = handshake;
    granted_ = granted;
}

ConnectionChange Connection::establish(bool from_start) {
    established_ = true;
    closed_ = false;
    fresh_ = from_start;
    guessed_seven_ = false;
    protocol_ = wire::Protocol::six;
    foreign_token_.reset();
    unanswered_ = {};
    header_tokens_ = {};
    handshake_ = {};
    for (VitalOrder& order : order_) {
        order.reset(from_start);
    }
    for (AckWindow& window : windows_) {
        window.reset(from_start);
    }
    return from_start ? ConnectionChange::established : ConnectionChange::midway;
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
        handshake_ = {.connect = true,
                      .token = control.vanilla_token ? control.token : std::nullopt};
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
    form_ = TokenForm::ddnet;
    token_ = control.token;
    return establish(true);
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
                                   std::span<const std::byte> rest,
                                   const wire::Chunk* first) const {
    if (!handshake_.answered || packet.header_token) {
        return false;
    }
    // Without a token, only the first vital chunk shows that a new connection began. The same is
    // true if the ACCEPT was not seen, because DDNet's token is the same for all connections of an
    // address.
    const bool starts = first != nullptr && first->vital && first->sequence == 1;
    if (handshake_.form == TokenForm::ddnet) {
        // A server may already acknowledge the client's first chunk; a client acknowledges nothing.
        const std::uint16_t most = direction == wire::Direction::s2c ? 1 : 0;
        return established_ && starts && (one_side_recorded_ || packet.ack <= most) &&
               handshake_.token && token_in(rest) == handshake_.token;
    }
    // A DDNet server answers a CONNECT without a token only while there is no connection with a
    // token.
    return handshake_.form == TokenForm::none && !is_open_with_ddnet_token() &&
           (!established_ || (starts && (one_side_recorded_ || packet.ack == 0)));
}

ConnectionChange Connection::on_chunks(wire::Direction direction, const wire::Packet& packet,
                                       std::span<const std::byte> rest, const wire::Chunk* first,
                                       bool whole) {
    fresh_ = false;
    if (begins_connection(direction, packet, rest, first)) {
        form_ = handshake_.form;
        token_ = handshake_.form == TokenForm::ddnet ? handshake_.token : std::nullopt;
        return establish(true);
    }
    if (handshake_.answered && handshake_.form == TokenForm::vanilla &&
        direction == wire::Direction::c2s && packet.header_token &&
        packet.header_token == handshake_.token) {
        form_ = TokenForm::vanilla;
        token_ = handshake_.token;
        return establish(true);
    }
    if (!closed_ && (!established_ || !token_fits(packet, rest))) {
        // A packet with a truncated chunk is no valid 0.6 packet: it is damaged or a 0.7 packet.
        return whole ? adopt_connection(direction, packet, rest, first != nullptr)
                     : ConnectionChange::none;
    }
    return ConnectionChange::none;
}

bool Connection::has_token_in_headers(wire::Token token, bool has_chunks) {
    // In 0.7, the header bit is a resend request, which rarely occurs in several packets in a row
    // and mostly in packets without chunks.
    constexpr int kEnough = 3;
    return has_chunks && header_tokens_.count(token) >= kEnough;
}

ConnectionChange Connection::adopt_connection(wire::Direction direction, const wire::Packet& packet,
                                              std::span<const std::byte> rest, bool has_chunks) {
    const auto token = packet.header_token ? packet.header_token : token_in(rest);
    if (!token && !rest.empty()) {
        return ConnectionChange::none; // in 0.6, a token or nothing follows the chunks
    }
    if (established_) {
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
        // A client's packets alone do not prove a connection; only the server's packets do.
        unanswered_.form = form_of(packet, token);
        unanswered_.count(token);
        return ConnectionChange::none;
    } else if (packet.header_token && !has_token_in_headers(*packet.header_token, has_chunks)) {
        return ConnectionChange::none;
    }
    const bool from_start = handshake_.answered;
    form_ = form_of(packet, token);
    token_ = token;
    return establish(from_start);
}

ConnectionChange Connection::infer_from_client() {
    constexpr int kEnough = 2;
    if (established_ || closed_ || handshake_.answered || unanswered_.datagrams < kEnough) {
        return ConnectionChange::none;
    }
    const bool from_start = handshake_.accepted && handshake_.accepted_token == unanswered_.token;
    form_ = unanswered_.form;
    token_ = unanswered_.token;
    return establish(from_start);
}

} // namespace tw::inspect
