#include "proxy/run/answering.h"

#include "proxy/relay/resolve.h"
#include "proxy/run/server_probe.h"

#include <algorithm>
#include <cstddef>
#include <deque>

#include <boost/asio/io_context.hpp>

namespace tw::run {

namespace {

using Udp = boost::asio::ip::udp;

/// More addresses of one name are not asked.
constexpr std::size_t kMaxAsked = 16;

} // namespace

std::vector<Udp::endpoint> answering(const std::vector<Udp::endpoint>& addresses, Enough enough,
                                     std::chrono::milliseconds deadline) {
    if (addresses.size() < 2) {
        return addresses;
    }
    boost::asio::io_context io;
    std::deque<ServerProbe> probes;
    std::vector<bool> answered(std::min(addresses.size(), kMaxAsked));
    std::size_t waiting = answered.size();
    for (std::size_t i = 0; i < answered.size(); ++i) {
        probes.emplace_back(io, addresses[i], deadline).ask([&, i](bool answer) {
            answered[i] = answer;
            --waiting;
            if (waiting == 0 || (answer && enough == Enough::one)) {
                io.stop();
            }
        });
    }
    io.run();
    std::vector<Udp::endpoint> found;
    for (std::size_t i = 0; i < answered.size(); ++i) {
        if (answered[i]) {
            found.push_back(addresses[i]);
        }
    }
    return found.empty() ? addresses : found;
}

std::vector<Udp::endpoint> resolve_answering(const std::string& host, std::uint16_t port,
                                             Enough enough) {
    return answering(relay::resolve_all(host, port), enough);
}

} // namespace tw::run
