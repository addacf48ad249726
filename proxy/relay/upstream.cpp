#include "proxy/relay/upstream.h"

#include "proxy/relay/listen_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace tw::relay {

namespace {

constexpr std::uint32_t kFirstLoopback = 0x7f400000; // 127.64.0.0
constexpr std::uint32_t kLoopbackCount = 0x00400000; // up to 127.127.255.255
constexpr std::uint32_t kLastOctet = 0xff;

/// Returns whether a client may get this address. Addresses that end in 0 or 255 are not used,
/// because some tools that read the server's log treat them as networks.
bool is_assignable(std::uint32_t address) {
    return (address & kLastOctet) != 0 && (address & kLastOctet) != kLastOctet;
}

std::error_code last_error() {
    return {errno, std::system_category()};
}

bool enable_socket_option(int socket, int level, int option) {
    const int on = 1;
    return ::setsockopt(socket, level, option, &on, sizeof on) == 0;
}

/// Binds a socket to the client's address, which does not belong to this host.
bool bind_transparent(int socket, const base::Endpoint& client) {
    const bool allowed = client.v6 ? enable_socket_option(socket, SOL_IPV6, IPV6_TRANSPARENT)
                                   : enable_socket_option(socket, SOL_IP, IP_TRANSPARENT);
    if (!allowed || !enable_socket_option(socket, SOL_SOCKET, SO_REUSEADDR)) {
        return false;
    }
    socklen_t length = 0;
    const base::SocketAddress name = base::to_socket_address(client, client.v6, length);
    return ::bind(socket, &name.base, length) == 0;
}

bool bind_loopback(int socket, std::uint32_t address) {
    base::SocketAddress name{};
    name.v4.sin_family = AF_INET;
    name.v4.sin_addr.s_addr = htonl(address);
    return ::bind(socket, &name.base, sizeof name.v4) == 0;
}

} // namespace

std::optional<std::uint32_t> LoopbackAddresses::assign_address(const base::Endpoint& client) {
    const base::Network source = base::narrowest_network(client);
    const std::scoped_lock lock{mutex_};
    const auto known = assignments_.find(source);
    if (known != assignments_.end()) {
        ++known->second.num_sessions;
        return known->second.address;
    }
    std::array<std::byte, 9> octets{}; // the client's address, then its address family
    std::memcpy(octets.data(), &source.address, sizeof source.address);
    octets.back() = source.v6 ? std::byte{1} : std::byte{0};
    const auto start = static_cast<std::uint32_t>(hash_(octets) % kLoopbackCount);
    for (std::uint32_t step = 0; step < kLoopbackCount; ++step) {
        const std::uint32_t address = kFirstLoopback + (start + step) % kLoopbackCount;
        if (is_assignable(address) && assigned_addresses_.insert(address).second) {
            try {
                assignments_.emplace(source, Assignment{.address = address, .num_sessions = 1});
            } catch (...) {
                assigned_addresses_.erase(address); // the assignment failed
                throw;
            }
            return address;
        }
    }
    return std::nullopt;
}

bool LoopbackAddresses::assign_known_address(const base::Endpoint& client, std::uint32_t address) {
    const std::scoped_lock lock{mutex_};
    const bool in_range = address - kFirstLoopback < kLoopbackCount && is_assignable(address);
    const auto [known, added] = assignments_.try_emplace(
        base::narrowest_network(client), Assignment{.address = address, .num_sessions = 0});
    const bool fits = in_range && (added ? assigned_addresses_.insert(address).second
                                         : known->second.address == address);
    if (fits) {
        ++known->second.num_sessions;
    } else if (added) {
        assignments_.erase(known);
    }
    return fits;
}

void LoopbackAddresses::release_address(const base::Endpoint& client) {
    const std::scoped_lock lock{mutex_};
    const auto known = assignments_.find(base::narrowest_network(client));
    if (known != assignments_.end() && --known->second.num_sessions == 0) {
        assigned_addresses_.erase(known->second.address);
        assignments_.erase(known);
    }
}

UpstreamFactory::UpstreamFactory(const boost::asio::ip::udp::endpoint& server,
                                 ClientAddressMode mode, int buffer_bytes,
                                 const base::SipKey& address_key)
    : server_{server}, addresses_{address_key}, mode_{mode}, buffer_bytes_{buffer_bytes} {}

void UpstreamFactory::set_server_address(const boost::asio::ip::udp::endpoint& server) {
    const std::scoped_lock lock{server_mutex_};
    server_ = server;
    server_generation_.fetch_add(1, std::memory_order_relaxed);
}

base::Endpoint UpstreamFactory::server() const {
    const std::scoped_lock lock{server_mutex_};
    return base::endpoint_from(server_.data());
}

UpstreamSocket UpstreamFactory::open_socket(const base::Endpoint& client, std::error_code& error) {
    error.clear();
    UpstreamSocket upstream;
    boost::asio::ip::udp::endpoint server;
    {
        const std::scoped_lock lock{server_mutex_};
        server = server_;
        upstream.server_generation = server_generation();
    }
    upstream.server = base::endpoint_from(server.data());
    const int family = server.protocol().family();
    upstream.socket =
        base::UniqueFd{::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!upstream.socket.valid()) {
        error = last_error();
        return upstream;
    }
    const int socket = upstream.socket.get();
    set_socket_buffers(socket, buffer_bytes_);
    bool bound = true;
    if (mode_ == ClientAddressMode::transparent) {
        bound = bind_transparent(socket, client);
    } else if (mode_ == ClientAddressMode::loopback) {
        const auto address = addresses_.assign_address(client);
        if (!address) {
            error = std::make_error_code(std::errc::address_not_available);
            return upstream;
        }
        upstream.loopback_client = client;
        bound = bind_loopback(socket, *address);
    }
    const auto length = static_cast<socklen_t>(server.size());
    if (!bound || ::connect(socket, server.data(), length) != 0) {
        error = last_error();
        close_socket(upstream);
        return upstream;
    }
    base::SocketAddress local{};
    socklen_t local_length = sizeof local;
    ::getsockname(socket, &local.base, &local_length);
    upstream.local = base::endpoint_from(&local.base);
    return upstream;
}

UpstreamSocket UpstreamFactory::adopt_socket(base::UniqueFd socket, const base::Endpoint& client,
                                             const base::Endpoint& server) {
    base::SocketAddress peer{};
    base::SocketAddress local{};
    socklen_t peer_length = sizeof peer;
    socklen_t local_length = sizeof local;
    const int descriptor = socket.get();
    if (!is_udp_socket(descriptor) || ::getpeername(descriptor, &peer.base, &peer_length) != 0 ||
        base::endpoint_from(&peer.base) != server ||
        ::getsockname(descriptor, &local.base, &local_length) != 0 ||
        ::fcntl(descriptor, F_SETFL, O_NONBLOCK) != 0) {
        throw TakeoverError{"a socket that was handed over does not lead to " +
                            base::to_string(server)};
    }
    UpstreamSocket upstream;
    upstream.local = base::endpoint_from(&local.base);
    upstream.server = server;
    upstream.server_generation =
        server == this->server() ? server_generation() : server_generation() - 1;
    if (mode_ == ClientAddressMode::loopback) {
        if (upstream.local.v6 ||
            !addresses_.assign_known_address(client, ntohl(local.v4.sin_addr.s_addr))) {
            throw TakeoverError{"the address " + base::to_string(upstream.local) +
                                " that was handed over is another client's, or none of ours"};
        }
        upstream.loopback_client = client;
    }
    upstream.socket = std::move(socket);
    return upstream;
}

void UpstreamFactory::close_socket(UpstreamSocket& upstream) {
    if (upstream.epoll >= 0) {
        // Another relay that took over the session may have a duplicate of the descriptor. Closing
        // the descriptor here would then not remove the socket from the epoll instance.
        ::epoll_ctl(upstream.epoll, EPOLL_CTL_DEL, upstream.socket.get(), nullptr);
        upstream.epoll = -1;
    }
    upstream.socket = base::UniqueFd{};
    if (upstream.loopback_client) {
        addresses_.release_address(*upstream.loopback_client);
        upstream.loopback_client.reset();
    }
}

} // namespace tw::relay
