#include "proxy/inspect/seven_handshake.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

namespace {

using wire::ControlKind;
using wire::Direction;
using wire::Token;

/// Packets that must agree before an unseen handshake is believed in.
constexpr int kEnough = 2;

/// DDNet's servers write their token once more behind an ACCEPT, since 18.3 back to front.
bool repeats(const std::optional<Token>& behind, const std::optional<Token>& token) {
    if (!behind || !token) {
        return false;
    }
    Token reversed = *token;
    std::reverse(reversed.begin(), reversed.end());
    return *behind == *token || *behind == reversed;
}

} // namespace

SevenChange SevenHandshake::on_control(Direction direction, const wire::Packet& packet,
                                       const wire::Control& control) {
    const bool c2s = direction == Direction::c2s;
    const Token token = packet.header_token.value_or(wire::kTokenUnknown);
    if (c2s && control.kind == ControlKind::token && control.token &&
        token == wire::kTokenUnknown) {
        if (client_ != control.token) { // it may ask again before the answer reaches it
            server_.reset();
            server_before_.reset();
            connect_.reset();
        }
        client_ = control.token;
    } else if (!c2s && control.kind == ControlKind::token && control.token && client_ == token) {
        if (server_ != control.token) {
            server_before_ = server_;
        }
        server_ = control.token;
    } else if (c2s && control.kind == ControlKind::connect && server_ &&
               (server_ == token || server_before_ == token)) {
        connect_ = token;
        client_ = control.token ? control.token : client_; // its TOKEN may have passed unseen
    } else if (!c2s && control.kind == ControlKind::accept && connect_ && client_ == token) {
        const Tokens agreed{std::exchange(connect_, std::nullopt), client_};
        if (fresh_ && tokens_ == agreed) {
            return SevenChange::none; // both repeat themselves until the client's first chunks
        }
        tokens_ = agreed;
        fresh_ = true;
        ddnet_ = repeats(control.token, tokens_[wire::index_of(Direction::c2s)]);
        fitting_ = {};
        strange_ = {};
        return SevenChange::established;
    }
    return SevenChange::none;
}

// Anybody can send a server anything. That there is a connection, the server says.
SevenChange SevenHandshake::on_fitting(Direction direction, Token token) {
    const std::size_t at = wire::index_of(direction);
    fitting_[at] = tokens_[at] == token ? fitting_[at] + 1 : 1;
    tokens_[at] = token;
    return direction == Direction::s2c && fitting_[at] >= kEnough ? SevenChange::midway
                                                                  : SevenChange::none;
}

SevenChange SevenHandshake::take_one_side() const {
    return fitting_[wire::index_of(Direction::c2s)] >= kEnough ? SevenChange::midway
                                                               : SevenChange::none;
}

SevenChange SevenHandshake::on_stranger(Direction direction, Token token) {
    const std::size_t at = wire::index_of(direction);
    strange_[at] = strangers_[at] == token ? strange_[at] + 1 : 1;
    strangers_[at] = token;
    if (std::any_of(strange_.begin(), strange_.end(), [](int count) { return count < kEnough; })) {
        return SevenChange::none;
    }
    tokens_ = strangers_;
    strange_ = {};
    return SevenChange::midway;
}

bool SevenHandshake::token_fits(Direction direction, const wire::Packet& packet) {
    auto& known = tokens_[wire::index_of(direction)];
    if (!known) { // joined midway: the other direction was not heard so far
        known = packet.header_token;
    }
    return known == packet.header_token;
}

bool SevenHandshake::refuses(Direction direction, const wire::Packet& packet) const {
    const auto& token = packet.header_token;
    return direction == Direction::s2c
               ? client_ && token == client_
               : token == wire::kTokenUnknown || (server_ && token == server_);
}

} // namespace tw::inspect
