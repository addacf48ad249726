#include "proxy/relay/resolve.h"

#include "proxy/relay/start_error.h"
#include "proxy/relay/unique_fd.h"

#include <algorithm>

#include <boost/asio/io_context.hpp>
#include <sys/socket.h>

namespace tw::relay {

using Udp = boost::asio::ip::udp;

std::vector<Udp::endpoint> resolve_all(const std::string& host, std::uint16_t port) {
    boost::asio::io_context io;
    boost::system::error_code error;
    Udp::resolver resolver{io};
    const auto found =
        resolver.resolve(host, std::to_string(port), Udp::resolver::numeric_service, error);
    if (error || found.empty()) {
        throw NotYetError{"cannot resolve the server's name '" + host + "': " + error.message()};
    }
    std::vector<Udp::endpoint> all{found.begin(), found.end()};
    std::stable_partition(all.begin(), all.end(),
                          [](const Udp::endpoint& each) { return each.address().is_v4(); });
    return all;
}

Udp::endpoint resolve_server(const std::string& host, std::uint16_t port) {
    return resolve_all(host, port).front();
}

bool is_own_address(const Udp::endpoint& endpoint) {
    const UniqueFd probe{::socket(endpoint.protocol().family(), SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const Udp::endpoint any_port{endpoint.address(), 0};
    return ::bind(probe.get(), any_port.data(), static_cast<socklen_t>(any_port.size())) == 0;
}

} // namespace tw::relay
