#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <boost/asio/ip/udp.hpp>

/// Where a server's name leads.
namespace tw::relay {

/// All addresses of the server, the IPv4 ones first. Errors: StartError.
[[nodiscard]] std::vector<boost::asio::ip::udp::endpoint> resolve_all(const std::string& host,
                                                                      std::uint16_t port);

/// The server's address: of several the first IPv4 one. Errors: StartError.
[[nodiscard]] boost::asio::ip::udp::endpoint resolve_server(const std::string& host,
                                                            std::uint16_t port);

/// Whether the address is one of this host's.
[[nodiscard]] bool is_own_address(const boost::asio::ip::udp::endpoint& endpoint);

} // namespace tw::relay
