#pragma once

#include "proxy/relay/options.h"
#include "proxy/relay/unique_fd.h"

#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::relay {

/// One set of listening sockets, in the order of `listen`, whose ports are filled in: the next set
/// is bound to the same ones. Non-blocking. `first`: nobody may be bound there yet; later ones share.
/// Errors: NotYetError, StartError.
[[nodiscard]] std::vector<UniqueFd>
open_listeners(const Options& options, std::vector<boost::asio::ip::udp::endpoint>& listen,
               bool first);

/// Sets that another relay opened: every socket has to be a UDP socket bound to its address of
/// `listen`. Returns how many sets there are.
/// Errors: HandoverError.
[[nodiscard]] std::size_t
check_listeners(const std::vector<UniqueFd>& sockets,
                const std::vector<boost::asio::ip::udp::endpoint>& listen);

} // namespace tw::relay
