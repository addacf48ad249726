#include "proxy/admin/http_peer.h"

#include "proxy/relay/endpoint.h"

#include <boost/asio/ip/tcp.hpp>

namespace tw::admin {

namespace {

using Socket = HttpStream::socket_type;
using Error = boost::system::error_code;

} // namespace

relay::Source peer_of(const Socket& socket) {
    Error ignored;
    const auto peer = socket.remote_endpoint(ignored);
    return relay::source_of(relay::endpoint_from(peer.data()));
}

std::string peer_name(const Socket& socket, Way way) {
    Error ignored;
    const auto peer = socket.remote_endpoint(ignored);
    return way == Way::owner || ignored ? "the unix socket"
                                        : relay::to_string(relay::endpoint_from(peer.data()));
}

void send_at_once(Socket& socket) {
    Error ignored; // unix sockets do so anyway, and have no such option
    socket.set_option(boost::asio::ip::tcp::no_delay{true}, ignored);
}

} // namespace tw::admin
