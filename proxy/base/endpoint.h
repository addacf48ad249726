#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <netinet/in.h>
#include <sys/socket.h>

namespace boost::asio::ip {
class udp;
template <typename>
class basic_endpoint;
} // namespace boost::asio::ip

namespace tw::base {

using AsioEndpoint = boost::asio::ip::basic_endpoint<boost::asio::ip::udp>;

/// An IPv4 or IPv6 address with a UDP port. It is trivially copyable, so it can be stored in shared
/// memory.
///
/// Layout:  `address` is in network byte order. An IPv4 address uses the first four bytes, and the
/// others are zero. IPv4-mapped IPv6 addresses are stored as IPv4.
struct Endpoint {
    std::array<std::byte, 16> address{};
    std::uint32_t scope = 0; ///< scope id of a link-local IPv6 address; 0 for other addresses
    std::uint16_t port = 0;
    bool v6 = false;

    friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// Returns `192.0.2.1:8303` or `[2001:db8::1]:8303`, with `%scope` if the endpoint has a scope id.
[[nodiscard]] std::string to_string(const Endpoint& endpoint);
[[nodiscard]] std::string to_string(const AsioEndpoint& endpoint);

/// Converts an IPv4 or IPv6 socket address. Returns an empty endpoint for other address families.
[[nodiscard]] Endpoint endpoint_from(const sockaddr* address) noexcept;

[[nodiscard]] AsioEndpoint to_asio_endpoint(const Endpoint& endpoint);

/// An IPv4 or IPv6 socket address. It is smaller than sockaddr_storage, so that the 64 addresses of
/// a batch of datagrams fit into the cache.
union SocketAddress {
    sockaddr base;
    sockaddr_in v4;
    sockaddr_in6 v6;
};

/// Converts an endpoint to an address for an IPv4 socket or, if `v6` is set, for an IPv6 socket.
/// For an IPv6 socket, an IPv4 address is mapped to IPv6. Sets `length` to the size of the result.
[[nodiscard]] SocketAddress to_socket_address(const Endpoint& endpoint, bool v6,
                                              socklen_t& length) noexcept;

/// Whether the endpoint's address is in 127.0.0.0/8 or is ::1.
[[nodiscard]] bool is_loopback(const Endpoint& endpoint) noexcept;

} // namespace tw::base
