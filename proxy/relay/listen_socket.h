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

/// A name or an address does not exist yet, or another process uses the port; a later start may
/// succeed.
class NotYetError : public StartError {
  public:
    using StartError::StartError;
};

/// Clients would share one address at the server, and the options do not allow that.
class SharedAddressError : public StartError {
  public:
    using StartError::StartError;
};

// Resolving the server's name.

/// All addresses of the server, the IPv4 ones first. Errors: StartError.
[[nodiscard]] std::vector<boost::asio::ip::udp::endpoint> resolve_all(const std::string& host,
                                                                      std::uint16_t port);

/// Returns the server's first IPv4 address, else its first address. Errors: StartError.
[[nodiscard]] boost::asio::ip::udp::endpoint resolve_server(const std::string& host,
                                                            std::uint16_t port);

/// Whether the address belongs to this host.
[[nodiscard]] bool is_own_address(const boost::asio::ip::udp::endpoint& endpoint);

// Checks before the start. A failed check throws StartError.

void check(const Options& options, std::span<Ring* const> rings);

void check_listen(const std::vector<boost::asio::ip::udp::endpoint>& listen);

/// Returns the mode to use, never `automatic`. Errors: StartError, SharedAddressError.
[[nodiscard]] ClientAddress choose_mode(const Options& options, const base::Endpoint& server);

void check_transparent(const boost::asio::ip::udp::endpoint& server,
                       const std::vector<boost::asio::ip::udp::endpoint>& listen);

/// Rejects a server address that the relay listens on, because datagrams would loop forever.
void check_not_own(const boost::asio::ip::udp::endpoint& server,
                   const std::vector<boost::asio::ip::udp::endpoint>& listen);

/// Opens one set of non-blocking listening sockets, in the order of `listen`. Stores ports that the
/// system chose in `listen`, so that the next set uses the same ports. `first`: this is the first set,
/// so no other socket may be bound to the addresses; later sets share them.
/// Errors: NotYetError, StartError.
[[nodiscard]] std::vector<base::UniqueFd>
open_listeners(const Options& options, std::vector<boost::asio::ip::udp::endpoint>& listen,
               bool first);

/// Checks listening sockets that another relay opened: each must be a UDP socket bound to its
/// address in `listen`. Returns the number of sets of sockets.
/// Errors: HandoverError.
[[nodiscard]] std::size_t
check_listeners(const std::vector<base::UniqueFd>& sockets,
                const std::vector<boost::asio::ip::udp::endpoint>& listen);

} // namespace tw::relay
