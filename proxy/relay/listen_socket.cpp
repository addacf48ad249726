#include "proxy/relay/listen_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/mman.h>

namespace tw::relay {

using Udp = boost::asio::ip::udp;

namespace {

/// The distance between the starts of two buffers in bytes. A power of two would map all buffers to
/// the same cache sets.
constexpr std::size_t kBufferStride = DatagramBatch::kBufferBytes + std::size_t{2} * 1024 + 128;
constexpr std::size_t kBufferMemory = kBufferStride * DatagramBatch::kDatagrams;

[[noreturn]] void throw_start_error(const char* what, const Udp::endpoint& endpoint) {
    const int error = errno;
    const std::string text = std::string{"cannot "} + what + ' ' + base::to_string(endpoint) +
                             ": " + std::system_category().message(error);
    if (error == EADDRINUSE) {
        throw RetryableStartError{text + " (ss -ulpn shows which program has the port)"};
    }
    if (error == EADDRNOTAVAIL) {
        throw RetryableStartError{text + " (ip address shows the addresses that this host has)"};
    }
    throw StartError{text + (error == EACCES ? " (ports below 1024 need root)" : "")};
}

void set_socket_option(int socket, int level, int option, int value, const char* what,
                       const Udp::endpoint& endpoint) {
    if (::setsockopt(socket, level, option, &value, sizeof value) != 0) {
        throw_start_error(what, endpoint);
    }
}

/// Opens a listening socket. `is_first_set`: no other socket may be bound to the address, except
/// sockets that this relay opens later.
base::UniqueFd open_listener(const Options& options, Udp::endpoint& endpoint, bool v6_only,
                             bool is_first_set) {
    const bool v6 = endpoint.address().is_v6();
    base::UniqueFd listener{
        ::socket(endpoint.protocol().family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!listener.valid()) {
        throw_start_error("open a socket for", endpoint);
    }
    const int socket = listener.get();
    if (v6) {
        set_socket_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, v6_only ? 1 : 0, "set up", endpoint);
    }
    const auto share = [&] {
        set_socket_option(socket, SOL_SOCKET, SO_REUSEPORT, 1, "share between threads", endpoint);
    };
    if (!is_first_set) {
        share();
    }
    if (endpoint.address().is_unspecified()) {
        // The IPv6 option also applies to IPv4 datagrams that an IPv6 socket receives.
        set_socket_option(socket, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
                          v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, 1, "set up", endpoint);
    }
    set_socket_buffers(socket, options.socket_buffer_bytes);
    if (::bind(socket, endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0) {
        throw_start_error("listen on", endpoint);
    }
    if (is_first_set && options.threads > 1) {
        share();
    }
    auto length = static_cast<socklen_t>(endpoint.capacity());
    if (::getsockname(socket, endpoint.data(), &length) != 0) {
        throw_start_error("set up", endpoint);
    }
    endpoint.resize(length);
    return listener;
}

} // namespace

DatagramBatch::DatagramBatch() {
    void* const memory = ::mmap(nullptr, kBufferMemory, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc{};
    }
    memory_ = static_cast<std::byte*>(memory);
    for (std::size_t i = 0; i < kDatagrams; ++i) {
        vectors_[i] = {memory_ + i * kBufferStride, kBufferBytes};
        messages_[i].msg_hdr.msg_iov = &vectors_[i];
        messages_[i].msg_hdr.msg_iovlen = 1;
    }
}

DatagramBatch::~DatagramBatch() {
    ::munmap(memory_, kBufferMemory);
}

int DatagramBatch::receive(int socket, std::size_t at, bool with_senders,
                           bool with_destinations) noexcept {
    for (std::size_t i = at; i < kDatagrams; ++i) {
        vectors_[i].iov_len = kBufferBytes;
        msghdr& header = messages_[i].msg_hdr;
        header.msg_name = with_senders ? &sender_addresses_[i] : nullptr;
        header.msg_namelen = with_senders ? sizeof sender_addresses_[i] : 0;
        header.msg_control = with_destinations ? control_[i].data() : nullptr;
        header.msg_controllen = with_destinations ? control_[i].size() : 0;
    }
    const int received = ::recvmmsg(socket, &messages_[at], static_cast<unsigned>(kDatagrams - at),
                                    MSG_DONTWAIT, nullptr);
    return received < 0 ? -errno : received;
}

std::vector<base::Endpoint> interface_addresses() {
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) {
        return {};
    }
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned{first, &::freeifaddrs};
    std::vector<base::Endpoint> addresses;
    for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr != nullptr &&
            (each->ifa_addr->sa_family == AF_INET || each->ifa_addr->sa_family == AF_INET6)) {
            addresses.push_back(base::endpoint_from(each->ifa_addr));
        }
    }
    return addresses;
}

std::size_t make_reply_control(msghdr& from, ReplyControl& to) {
    for (cmsghdr* c = CMSG_FIRSTHDR(&from); c != nullptr; c = CMSG_NXTHDR(&from, c)) {
        std::size_t space = 0;
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            in_pktinfo info{};
            std::memcpy(&info, CMSG_DATA(c), sizeof info);
            info.ipi_ifindex = 0; // the routing table chooses the interface
            info.ipi_addr = {};
            std::memcpy(CMSG_DATA(c), &info, sizeof info);
            space = CMSG_SPACE(sizeof info);
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            in6_pktinfo info{};
            std::memcpy(&info, CMSG_DATA(c), sizeof info);
            if (!IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) {
                info.ipi6_ifindex = 0;
            }
            std::memcpy(CMSG_DATA(c), &info, sizeof info);
            space = CMSG_SPACE(sizeof info);
        }
        if (space != 0 && space <= to.size()) {
            std::memcpy(to.data(), c, space);
            return space;
        }
    }
    return 0;
}

std::vector<ListenerIndex> listeners_of(const SessionTable& table, std::span<const Listener> all) {
    std::vector<ListenerIndex> places;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].table == &table) {
            places.push_back(static_cast<ListenerIndex>(i));
        }
    }
    return places;
}

void set_socket_buffers(int socket, int bytes) noexcept {
    ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

bool is_udp_socket(int descriptor) noexcept {
    int protocol = 0;
    socklen_t length = sizeof protocol;
    return ::getsockopt(descriptor, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 &&
           protocol == IPPROTO_UDP;
}

std::uint32_t read_new_kernel_drops(int socket, std::uint32_t& seen) noexcept {
    std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
    socklen_t length = sizeof info;
    if (::getsockopt(socket, SOL_SOCKET, SO_MEMINFO, info.data(), &length) != 0) {
        return 0;
    }
    const std::uint32_t before = std::exchange(seen, info[SK_MEMINFO_DROPS]);
    return seen - before; // also correct if the counter wrapped
}

std::vector<Udp::endpoint> resolve_addresses(const std::string& host, std::uint16_t port) {
    boost::asio::io_context io;
    boost::system::error_code error;
    Udp::resolver resolver{io};
    const auto found =
        resolver.resolve(host, std::to_string(port), Udp::resolver::numeric_service, error);
    if (error || found.empty()) {
        throw RetryableStartError{"cannot resolve the server's name '" + host +
                                  "': " + error.message()};
    }
    std::vector<Udp::endpoint> all{found.begin(), found.end()};
    std::stable_partition(all.begin(), all.end(),
                          [](const Udp::endpoint& each) { return each.address().is_v4(); });
    return all;
}

bool is_local_address(const Udp::endpoint& endpoint) {
    const base::UniqueFd probe{
        ::socket(endpoint.protocol().family(), SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const Udp::endpoint any_port{endpoint.address(), 0};
    return ::bind(probe.get(), any_port.data(), static_cast<socklen_t>(any_port.size())) == 0;
}

void check_no_forwarding_loop(const Udp::endpoint& server,
                              const std::vector<Udp::endpoint>& listen) {
    for (const auto& own : listen) {
        if (own.port() != server.port()) {
            continue;
        }
        const bool leads_to_loopback = server.address().is_unspecified();
        if (own.address() == server.address() ||
            (own.address().is_unspecified() && (leads_to_loopback || is_local_address(server))) ||
            (own.address().is_loopback() && leads_to_loopback)) {
            throw StartError{
                base::to_string(own) +
                (own == server ? " is the server's own address"
                               : " includes " + base::to_string(server) + ", where the server is") +
                "; listen on this machine's public address, or give the server "
                "another port"};
        }
    }
}

void check_listen_addresses(const std::vector<Udp::endpoint>& listen) {
    if (listen.empty() || listen.size() > kMaxListeners) {
        throw StartError{"the number of listening addresses must be from 1 to " +
                         std::to_string(kMaxListeners)};
    }
}

std::vector<base::UniqueFd> open_listeners(const Options& options,
                                           std::vector<Udp::endpoint>& listen, bool is_first_set) {
    const bool v6_only = std::any_of(listen.begin(), listen.end(),
                                     [](const auto& e) { return e.address().is_v4(); });
    std::vector<base::UniqueFd> sockets;
    sockets.reserve(listen.size());
    for (auto& endpoint : listen) {
        sockets.push_back(open_listener(options, endpoint, v6_only, is_first_set));
    }
    return sockets;
}

std::size_t check_listening_sockets(const std::vector<base::UniqueFd>& sockets,
                                    const std::vector<Udp::endpoint>& listen) {
    if (sockets.empty() || sockets.size() > kMaxListeningSockets ||
        sockets.size() % listen.size() != 0) {
        throw TakeoverError{"the listening sockets that were handed over are not complete"};
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
            throw TakeoverError{"a listening socket that was handed over is not bound to " +
                                base::to_string(listen[i % listen.size()])};
        }
    }
    return sockets.size() / listen.size();
}

} // namespace tw::relay
