#include "proxy/relay/relay.h"

#include "proxy/relay/shard.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <thread>

namespace tw::relay {

namespace {

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
        throw SharedAddressError{"the server " + to_string(server) +
                                 " is not on 127.0.0.0/8, so all clients would have one address "
                                 "there: one ban for all, one anti-spoofing token, and a stranger "
                                 "could throw players out or speak as them"};
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

/// A relay that is its own server would send each datagram in circles for ever.
void check_not_own(const Udp::endpoint& server, const std::vector<Udp::endpoint>& listen) {
    for (const auto& own : listen) {
        const bool reaches = own.address() == server.address() ||
                             (own.address().is_unspecified() && server.address().is_loopback());
        if (reaches && own.port() == server.port()) {
            throw StartError{"the server's address " + to_string(server) +
                             " is the one the proxy listens on"};
        }
    }
}

void check(const Options& options, std::span<Ring* const> rings) {
    if (options.listen.empty() || options.listen.size() > kMaxListeners) {
        throw StartError{"the number of addresses to listen on must be from 1 to " +
                         std::to_string(kMaxListeners)};
    }
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

} // namespace

Udp::endpoint resolve_server(const std::string& host, std::uint16_t port) {
    boost::asio::io_context io;
    boost::system::error_code error;
    Udp::resolver resolver{io};
    const auto found =
        resolver.resolve(host, std::to_string(port), Udp::resolver::numeric_service, error);
    if (error || found.empty()) {
        throw NotYetError{"cannot resolve the server's name '" + host + "': " + error.message()};
    }
    const auto v4 = std::find_if(found.begin(), found.end(), [](const auto& entry) {
        return entry.endpoint().address().is_v4();
    });
    return v4 != found.end() ? v4->endpoint() : found.begin()->endpoint();
}

bool is_own_address(const Udp::endpoint& endpoint) {
    const UniqueFd probe{::socket(endpoint.protocol().family(), SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const Udp::endpoint any_port{endpoint.address(), 0};
    return ::bind(probe.get(), any_port.data(), static_cast<socklen_t>(any_port.size())) == 0;
}

struct Relay::State {
    State(const Udp::endpoint& server, ClientAddress mode, const Options& options,
          Observation* observation)
        : shared{.observation = observation != nullptr ? observation : &own,
                 .upstreams{server, mode, options.socket_buffer_bytes, options.address_key},
                 .max_sessions = options.max_sessions,
                 .idle_timeout = options.idle_timeout,
                 .prove = options.prove,
                 .limits = options.admission,
                 .pools = AdmissionPools{options.max_sessions, options.threads}},
          impairment{options.impairment} {}

    Observation own{.observer{1}};
    Shared shared;
    mutable std::mutex impairment_mutex;
    Impairment impairment;
    std::vector<Udp::endpoint> listen;
    std::vector<std::unique_ptr<Shard>> shards;
    std::vector<std::thread> threads;
};

Relay::Relay(const Options& options, std::span<Ring* const> rings, Observation* observation) {
    check(options, rings);
    const Udp::endpoint server = resolve_server(options.server_host, options.server_port);
    const ClientAddress mode = choose_mode(options, endpoint_from(server.data()));
    if (mode == ClientAddress::transparent) {
        check_transparent(server, options.listen);
    }
    state_ = std::make_unique<State>(server, mode, options, observation);
    state_->listen = options.listen;
    for (unsigned i = 0; i < options.threads; ++i) {
        Ring* const ring = rings.empty() ? nullptr : rings[i];
        state_->shards.push_back(
            std::make_unique<Shard>(options, i, state_->listen, state_->shared, ring));
    }
    check_not_own(server, state_->listen);
}

Relay::~Relay() {
    stop();
    join();
}

void Relay::start() {
    for (auto& shard : state_->shards) {
        state_->threads.emplace_back([&shard = *shard] { shard.run(); });
    }
}

void Relay::stop() {
    for (auto& shard : state_->shards) {
        shard->stop();
    }
}

void Relay::join() {
    for (auto& thread : state_->threads) {
        thread.join();
    }
    state_->threads.clear();
}

const std::vector<Udp::endpoint>& Relay::listen_endpoints() const noexcept {
    return state_->listen;
}

Endpoint Relay::server_endpoint() const noexcept {
    return state_->shared.upstreams.server();
}

ClientAddress Relay::client_address() const noexcept {
    return state_->shared.upstreams.mode();
}

std::error_code Relay::last_session_error() const noexcept {
    return {state_->shared.session_error.load(std::memory_order_relaxed), std::system_category()};
}

void Relay::set_impairment(const Impairment& impairment) {
    const std::scoped_lock lock{state_->impairment_mutex};
    state_->impairment = impairment;
    for (auto& shard : state_->shards) {
        shard->set_impairment(impairment);
    }
}

Impairment Relay::impairment() const {
    const std::scoped_lock lock{state_->impairment_mutex};
    return state_->impairment;
}

std::size_t Relay::num_sessions() const noexcept {
    return state_->shared.sessions.load(std::memory_order_relaxed);
}

Counters Relay::counters() const noexcept {
    return totals(*state_->shared.observation);
}

} // namespace tw::relay
