#include "proxy/relay/start_checks.h"

#include "proxy/relay/observation.h"
#include "proxy/relay/resolve.h"
#include "proxy/relay/start_error.h"
#include "proxy/relay/unique_fd.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include <netinet/in.h>
#include <sys/socket.h>

namespace tw::relay {

using Udp = boost::asio::ip::udp;

ClientAddress choose_mode(const Options& options, const Endpoint& server) {
    const ClientAddress wanted = options.client_address;
    const bool possible = !server.v6 && is_loopback(server);
    const bool shared = wanted == ClientAddress::shared || wanted == ClientAddress::automatic;
    if (possible) {
        return wanted == ClientAddress::automatic ? ClientAddress::loopback : wanted;
    }
    if (wanted == ClientAddress::loopback) {
        throw StartError{"client address mode 'loopback' needs a server on 127.0.0.0/8, not " +
                         to_string(server) + "; use 'transparent'"};
    }
    if (shared && !options.insecure_shared) {
        throw SharedAddressError{
            "the server " + to_string(server) +
            " is not on 127.0.0.0/8, so all clients would share one address there: one ban for "
            "all, one anti-spoofing token, and a stranger could kick players or speak as them"};
    }
    return shared ? ClientAddress::shared : wanted;
}

void check_transparent(const Udp::endpoint& server, const std::vector<Udp::endpoint>& listen) {
    const auto other = std::find_if(listen.begin(), listen.end(), [&](const Udp::endpoint& own) {
        return own.protocol() != server.protocol();
    });
    if (other != listen.end()) {
        throw StartError{"client address mode 'transparent' needs clients and server of one "
                         "family: listen on an " +
                         std::string{server.address().is_v6() ? "IPv6" : "IPv4"} +
                         " address instead of " + to_string(*other) + ", as the server " +
                         to_string(server) + " has one"};
    }
    const UniqueFd probe{::socket(server.protocol().family(), SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const int on = 1;
    const int result = server.address().is_v6()
                           ? ::setsockopt(probe.get(), SOL_IPV6, IPV6_TRANSPARENT, &on, sizeof on)
                           : ::setsockopt(probe.get(), SOL_IP, IP_TRANSPARENT, &on, sizeof on);
    if (result != 0) {
        throw StartError{"client address mode 'transparent' needs CAP_NET_ADMIN (" +
                         std::system_category().message(errno) +
                         "); run as root, or: setcap cap_net_admin+ep twscope"};
    }
}

void check_not_own(const Udp::endpoint& server, const std::vector<Udp::endpoint>& listen) {
    for (const auto& own : listen) {
        if (own.port() != server.port()) {
            continue;
        }
        const bool leads_to_loopback = server.address().is_unspecified();
        if (own.address() == server.address() ||
            (own.address().is_unspecified() && (leads_to_loopback || is_own_address(server))) ||
            (own.address().is_loopback() && leads_to_loopback)) {
            throw StartError{"the server's address " + to_string(server) +
                             " is the one the proxy listens on"};
        }
    }
}

void check_listen(const std::vector<Udp::endpoint>& listen) {
    if (listen.empty() || listen.size() > kMaxListeners) {
        throw StartError{"the number of listening addresses must be from 1 to " +
                         std::to_string(kMaxListeners)};
    }
}

void check(const Options& options, std::span<Ring* const> rings) {
    check_listen(options.listen);
    if (options.threads == 0 || options.threads > kMaxThreads) {
        throw StartError{"the number of relay threads must be from 1 to " +
                         std::to_string(kMaxThreads)};
    }
    if (options.server_port == 0) {
        throw StartError{"the server's port is missing"};
    }
    if (!rings.empty() && rings.size() != options.threads) {
        throw StartError{"there must be one ring for each relay thread"};
    }
}

} // namespace tw::relay
