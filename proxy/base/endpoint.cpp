#include "proxy/base/endpoint.h"

#include <cstring>

#include <arpa/inet.h>
#include <boost/asio/ip/udp.hpp>

namespace tw::base {

std::string to_string(const Endpoint& endpoint) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(endpoint.v6 ? AF_INET6 : AF_INET, endpoint.address.data(), text.data(), text.size());
    std::string result = endpoint.v6 ? "[" : "";
    result += text.data();
    if (endpoint.scope != 0) {
        result += '%' + std::to_string(endpoint.scope);
    }
    result += endpoint.v6 ? "]:" : ":";
    return result + std::to_string(endpoint.port);
}

std::string to_string(const boost::asio::ip::udp::endpoint& endpoint) {
    return to_string(endpoint_from(endpoint.data()));
}

Endpoint endpoint_from(const sockaddr* address) noexcept {
    Endpoint endpoint;
    SocketAddress name{};
    if (address->sa_family == AF_INET) {
        std::memcpy(&name.v4, address, sizeof name.v4);
        std::memcpy(endpoint.address.data(), &name.v4.sin_addr, sizeof name.v4.sin_addr);
        endpoint.port = ntohs(name.v4.sin_port);
    } else if (address->sa_family == AF_INET6) {
        std::memcpy(&name.v6, address, sizeof name.v6);
        endpoint.port = ntohs(name.v6.sin6_port);
        if (IN6_IS_ADDR_V4MAPPED(&name.v6.sin6_addr)) {
            std::memcpy(endpoint.address.data(), &name.v6.sin6_addr.s6_addr[12], 4);
        } else {
            std::memcpy(endpoint.address.data(), &name.v6.sin6_addr, endpoint.address.size());
            endpoint.scope = name.v6.sin6_scope_id;
            endpoint.v6 = true;
        }
    }
    return endpoint;
}

boost::asio::ip::udp::endpoint to_asio_endpoint(const Endpoint& endpoint) {
    namespace ip = boost::asio::ip;
    if (endpoint.v6) {
        ip::address_v6::bytes_type bytes;
        std::memcpy(bytes.data(), endpoint.address.data(), bytes.size());
        return {ip::address_v6{bytes, endpoint.scope}, endpoint.port};
    }
    ip::address_v4::bytes_type bytes;
    std::memcpy(bytes.data(), endpoint.address.data(), bytes.size());
    return {ip::address_v4{bytes}, endpoint.port};
}

SocketAddress to_socket_address(const Endpoint& endpoint, bool v6, socklen_t& length) noexcept {
    SocketAddress name{};
    if (!v6) {
        name.v4.sin_family = AF_INET;
        name.v4.sin_port = htons(endpoint.port);
        std::memcpy(&name.v4.sin_addr, endpoint.address.data(), sizeof name.v4.sin_addr);
        length = sizeof name.v4;
        return name;
    }
    name.v6.sin6_family = AF_INET6;
    name.v6.sin6_port = htons(endpoint.port);
    name.v6.sin6_scope_id = endpoint.scope;
    if (endpoint.v6) {
        std::memcpy(&name.v6.sin6_addr, endpoint.address.data(), sizeof name.v6.sin6_addr);
    } else {
        name.v6.sin6_addr.s6_addr[10] = name.v6.sin6_addr.s6_addr[11] = 0xff;
        std::memcpy(&name.v6.sin6_addr.s6_addr[12], endpoint.address.data(), 4);
    }
    length = sizeof name.v6;
    return name;
}

bool is_loopback(const Endpoint& endpoint) noexcept {
    if (!endpoint.v6) {
        return endpoint.address[0] == std::byte{127};
    }
    std::array<std::byte, 16> one{};
    one.back() = std::byte{1};
    return endpoint.address == one;
}

} // namespace tw::base
