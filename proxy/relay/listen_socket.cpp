#include "proxy/relay/listen_socket.h"

#include "proxy/relay/endpoint.h"
#include "proxy/relay/handover.h"
#include "proxy/relay/start_error.h"
#include "proxy/relay/upstream.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace tw::relay {

namespace {

using Udp = boost::asio::ip::udp;

[[noreturn]] void fail(const char* what, const Udp::endpoint& endpoint) {
    const int error = errno;
    const std::string text = std::string{"cannot "} + what + ' ' + to_string(endpoint) + ": " +
                             std::system_category().message(error);
    if (error == EADDRINUSE || error == EADDRNOTAVAIL) {
        throw NotYetError{text};
    }
    throw StartError{text};
}

void set(int socket, int level, int option, int value, const char* what,
         const Udp::endpoint& endpoint) {
    if (::setsockopt(socket, level, option, &value, sizeof value) != 0) {
        fail(what, endpoint);
    }
}

/// `first`: nobody else may listen there, other threads of ours excepted.
UniqueFd open_listener(const Options& options, Udp::endpoint& endpoint, bool v6_only, bool first) {
    const bool v6 = endpoint.address().is_v6();
    UniqueFd listener{
        ::socket(endpoint.protocol().family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!listener.valid()) {
        fail("open a socket for", endpoint);
    }
    const int socket = listener.get();
    if (v6) {
        set(socket, IPPROTO_IPV6, IPV6_V6ONLY, v6_only ? 1 : 0, "set up", endpoint);
    }
    const auto share = [&] {
        set(socket, SOL_SOCKET, SO_REUSEPORT, 1, "share between threads", endpoint);
    };
    if (!first) {
        share();
    }
    if (endpoint.address().is_unspecified()) {
        // A socket for both families takes both options; one of them is enough for either.
        set(socket, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, 1, "set up",
            endpoint);
    }
    set_socket_buffers(socket, options.socket_buffer_bytes);
    if (::bind(socket, endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0) {
        fail("listen on", endpoint);
    }
    if (first && options.threads > 1) {
        share();
    }
    auto length = static_cast<socklen_t>(endpoint.capacity());
    if (::getsockname(socket, endpoint.data(), &length) != 0) {
        fail("set up", endpoint);
    }
    endpoint.resize(length);
    return listener;
}

} // namespace

std::vector<UniqueFd> open_listeners(const Options& options, std::vector<Udp::endpoint>& listen,
                                     bool first) {
    const bool v6_only = std::any_of(listen.begin(), listen.end(),
                                     [](const auto& e) { return e.address().is_v4(); });
    std::vector<UniqueFd> sockets;
    sockets.reserve(listen.size());
    for (auto& endpoint : listen) {
        sockets.push_back(open_listener(options, endpoint, v6_only, first));
    }
    return sockets;
}

std::size_t check_listeners(const std::vector<UniqueFd>& sockets,
                            const std::vector<Udp::endpoint>& listen) {
    if (sockets.empty() || sockets.size() > kMaxListeningSockets ||
        sockets.size() % listen.size() != 0) {
        throw HandoverError{"the listening sockets that were handed over are not complete"};
    }
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        const int socket = sockets[i].get();
        Udp::endpoint bound;
        auto length = static_cast<socklen_t>(bound.capacity());
        const bool known =
            is_udp_socket(socket) && ::getsockname(socket, bound.data(), &length) == 0;
        bound.resize(known ? length : bound.size());
        if (!known || bound != listen[i % listen.size()] ||
            ::fcntl(socket, F_SETFL, O_NONBLOCK) != 0) {
            throw HandoverError{"a listening socket that was handed over is not bound to " +
                                to_string(listen[i % listen.size()])};
        }
    }
    return sockets.size() / listen.size();
}

} // namespace tw::relay
