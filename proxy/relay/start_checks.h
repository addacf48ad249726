#pragma once

#include "proxy/relay/endpoint.h"
#include "proxy/relay/options.h"
#include "proxy/relay/ring.h"

#include <span>
#include <vector>

#include <boost/asio/ip/udp.hpp>

/// What a relay looks at before it begins. All throw StartError.
namespace tw::relay {

void check(const Options& options, std::span<Ring* const> rings);

void check_listen(const std::vector<boost::asio::ip::udp::endpoint>& listen);

/// The mode to use: never `automatic`. Throws SharedAddressError, too.
[[nodiscard]] ClientAddress choose_mode(const Options& options, const Endpoint& server);

void check_transparent(const boost::asio::ip::udp::endpoint& server,
                       const std::vector<boost::asio::ip::udp::endpoint>& listen);

/// A relay that is its own server would send each datagram in circles for ever.
void check_not_own(const boost::asio::ip::udp::endpoint& server,
                   const std::vector<boost::asio::ip::udp::endpoint>& listen);

} // namespace tw::relay
