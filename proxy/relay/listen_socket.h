#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/base/endpoint.h"
#include "proxy/relay/options.h"
#include "proxy/relay/ring.h"

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::relay {

/// The relay cannot start; what() is one line for the user.
class StartError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Something that may come yet is not there: a name, an address, a port that another one has.
class NotYetError : public StartError {
  public:
    using StartError::StartError;
};

/// Clients would share an address at the server, and nobody said that they may.
class SharedAddressError : public StartError {
  public:
    using StartError::StartError;
};

// Where a server's name leads.

/// All addresses of the server, the IPv4 ones first. Errors: StartError.
[[nodiscard]] std::vector<boost::asio::ip::udp::endpoint> resolve_all(const std::string& host,
                                                                      std::uint16_t port);

/// The server's address: of several the first IPv4 one. Errors: StartError.
[[nodiscard]] boost::asio::ip::udp::endpoint resolve_server(const std::string& host,
                                                            std::uint16_t port);

/// Whether the address is one of this host's.
[[nodiscard]] bool is_own_address(const boost::asio::ip::udp::endpoint& endpoint);

// What a relay looks at before it begins. All throw StartError.

void check(const Options& options, std::span<Ring* const> rings);

void check_listen(const std::vector<boost::asio::ip::udp::endpoint>& listen);

/// The mode to use: never `automatic`. Throws SharedAddressError, too.
[[nodiscard]] ClientAddress choose_mode(const Options& options, const base::Endpoint& server);

void check_transparent(const boost::asio::ip::udp::endpoint& server,
                       const std::vector<boost::asio::ip::udp::endpoint>& listen);

/// A relay that is its own server would send each datagram in circles for ever.
void check_not_own(const boost::asio::ip::udp::endpoint& server,
                   const std::vector<boost::asio::ip::udp::endpoint>& listen);

/// One set of listening sockets, in the order of `listen`, whose ports are filled in: the next set
/// is bound to the same ones. Non-blocking. `first`: nobody may be bound there yet; later ones share.
/// Errors: NotYetError, StartError.
[[nodiscard]] std::vector<base::UniqueFd>
open_listeners(const Options& options, std::vector<boost::asio::ip::udp::endpoint>& listen,
               bool first);

/// Sets that another relay opened: every socket has to be a UDP socket bound to its address of
/// `listen`. Returns how many sets there are.
/// Errors: HandoverError.
[[nodiscard]] std::size_t
check_listeners(const std::vector<base::UniqueFd>& sockets,
                const std::vector<boost::asio::ip::udp::endpoint>& listen);

} // namespace tw::relay
