#include "proxy/inspect/seven_handshake.h"

namespace tw::inspect {

using wire::SevenControl;

SevenChange SevenHandshake::on_packet(wire::Direction direction, const wire::SevenPacket& packet,
                                      bool established) {
    if (!packet.control) {
        return SevenChange::none;
    }
    if (packet.kind != SevenControl::close) {
        return on_handshake(direction, packet);
    }
    const auto& token = tokens_[wire::index_of(direction)];
    return established && (!token || *token == packet.token) ? SevenChange::closed
                                                             : SevenChange::none;
}

SevenChange SevenHandshake::on_handshake(wire::Direction direction,
                                         const wire::SevenPacket& packet) {
    const bool c2s = direction == wire::Direction::c2s;
    if (c2s && packet.kind == SevenControl::token && packet.own_token &&
        packet.token == wire::kTokenUnknown) {
        client_ = packet.own_token;
        server_.reset();
        connect_ = false;
    } else if (!c2s && packet.kind == SevenControl::token && packet.own_token && client_ &&
               packet.token == *client_) {
        server_ = packet.own_token;
    } else if (c2s && packet.kind == SevenControl::connect && server_ && packet.token == *server_) {
        connect_ = true;
    } else if (!c2s && packet.kind == SevenControl::accept && connect_ && client_ &&
               packet.token == *client_) {
        tokens_ = {server_, client_};
        connect_ = false; // ACCEPT may come again; it changes nothing then
        fitting_ = 0;
        return SevenChange::established;
    }
    return SevenChange::none;
}

SevenChange SevenHandshake::on_fitting(wire::Direction direction, const wire::SevenPacket& packet) {
    constexpr int kEnough = 2;
    auto& token = tokens_[wire::index_of(direction)];
    fitting_ = token && *token != packet.token ? 1 : fitting_ + 1;
    token = packet.token;
    return fitting_ >= kEnough ? SevenChange::midway : SevenChange::none;
}

} // namespace tw::inspect
