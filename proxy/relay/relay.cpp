#include "proxy/relay/relay.h"

#include "proxy/relay/listen_socket.h"
#include "proxy/relay/shard.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>

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

std::vector<Udp::endpoint> resolve_all(const std::string& host, std::uint16_t port) {
    boost::asio::io_context io;
    boost::system::error_code error;
    Udp::resolver resolver{io};
    const auto found =
        resolver.resolve(host, std::to_string(port), Udp::resolver::numeric_service, error);
    if (error || found.empty()) {
        throw NotYetError{"cannot resolve the server's name '" + host + "': " + error.message()};
    }
    std::vector<Udp::endpoint> all{found.begin(), found.end()};
    std::stable_partition(all.begin(), all.end(),
                          [](const Udp::endpoint& each) { return each.address().is_v4(); });
    return all;
}

Udp::endpoint resolve_server(const std::string& host, std::uint16_t port) {
    return resolve_all(host, port).front();
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
                 .resync = options.resync,
                 .pools = AdmissionPools{options.max_sessions, options.threads}},
          impairment{options.impairment} {}

    /// Which thread has a listening socket, and as which of its own.
    [[nodiscard]] std::pair<std::size_t, std::size_t> place_of(std::size_t socket) const {
        const std::size_t set = socket / listen.size();
        return {set % shards.size(), set / shards.size() * listen.size() + socket % listen.size()};
    }

    Observation own{.observer{1}};
    Shared shared;
    mutable std::mutex impairment_mutex;
    Impairment impairment;
    std::vector<Udp::endpoint> listen;
    std::size_t sets = 0;                         ///< of listening sockets, one for each address
    std::unordered_set<std::uint32_t> taken_over; ///< ids of sessions
    std::vector<std::unique_ptr<Shard>> shards;
    std::vector<std::thread> threads;
};

Relay::Relay(const Options& options, std::span<Ring* const> rings, Observation* observation,
             std::vector<UniqueFd> listening) {
    check(options, rings);
    const Udp::endpoint server = resolve_server(options.server_host, options.server_port);
    const ClientAddress mode = choose_mode(options, endpoint_from(server.data()));
    if (mode == ClientAddress::transparent) {
        check_transparent(server, options.listen);
    }
    state_ = std::make_unique<State>(server, mode, options, observation);
    state_->listen = options.listen;
    if (listening.empty()) {
        for (unsigned i = 0; i < options.threads; ++i) {
            std::ranges::move(open_listeners(options, state_->listen),
                              std::back_inserter(listening));
        }
    }
    check_not_own(server, state_->listen);
    state_->sets = check_listeners(listening, state_->listen);
    // Set by set, so that those of an earlier relay with more threads or fewer have a thread each.
    std::vector<std::vector<UniqueFd>> shares(options.threads);
    for (std::size_t i = 0; i < listening.size(); ++i) {
        const std::size_t set = i / state_->listen.size();
        shares[set % options.threads].push_back(std::move(listening[i]));
    }
    for (unsigned i = 0; i < options.threads; ++i) {
        Ring* const ring = rings.empty() ? nullptr : rings[i];
        state_->shards.push_back(std::make_unique<Shard>(
            options, i, state_->listen, std::move(shares[i]), state_->shared, ring));
    }
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

bool Relay::hold(std::chrono::milliseconds patience) {
    const auto deadline = Clock::now() + patience;
    for (auto& shard : state_->shards) {
        shard->ask_to_hold();
    }
    const bool all = std::ranges::all_of(state_->shards,
                                         [&](auto& shard) { return shard->holds_until(deadline); });
    if (!all) {
        resume();
    }
    return all;
}

void Relay::resume() {
    for (auto& shard : state_->shards) {
        shard->resume();
    }
    set_impairment(impairment()); // which does not stand while they hold
}

void Relay::leave() {
    for (auto& shard : state_->shards) {
        shard->leave();
    }
}

std::vector<int> Relay::listening_sockets() const {
    std::vector<int> sockets;
    for (std::size_t i = 0; i < state_->sets * state_->listen.size(); ++i) {
        const auto [thread, index] = state_->place_of(i);
        sockets.push_back(state_->shards[thread]->listeners()[index].socket);
    }
    return sockets;
}

void Relay::for_each_session(const std::function<void(const SessionState&, int)>& use) {
    const std::size_t addresses = state_->listen.size();
    for (std::size_t thread = 0; thread < state_->shards.size(); ++thread) {
        state_->shards[thread]->forwarder().for_each_session([&](SessionState state, int socket) {
            const std::size_t set = state.listener / addresses * state_->shards.size() + thread;
            state.listener =
                static_cast<std::uint32_t>(set * addresses + state.listener % addresses);
            use(state, socket);
        });
    }
}

RelayState Relay::handover_state() {
    RelayState state{.counters = counters(),
                     .last_session = state_->shared.last_session.load(),
                     .last_number = state_->shared.last_number.load(),
                     .impairment = impairment(),
                     .listener_drops = {}};
    for (std::size_t i = 0; i < state_->sets * state_->listen.size(); ++i) {
        const auto [thread, index] = state_->place_of(i);
        state.listener_drops.push_back(state_->shards[thread]->forwarder().listener_drops()[index]);
    }
    return state;
}

void Relay::take_over(const SessionState& state, UniqueFd socket) {
    const bool known = state.listener < state_->sets * state_->listen.size();
    if (!known || (state.id != 0 && !state_->taken_over.insert(state.id).second)) {
        throw HandoverError{"the session of " + to_string(state.client) +
                            " was handed over twice, or belongs to no listening socket"};
    }
    const auto [thread, index] = state_->place_of(state.listener);
    SessionState own = state;
    own.listener = static_cast<std::uint32_t>(index);
    state_->shards[thread]->forwarder().take_over(own, std::move(socket));
}

void Relay::take_over(const RelayState& state) {
    const auto newest = std::ranges::max_element(state_->taken_over);
    if (state.listener_drops.size() != state_->sets * state_->listen.size() ||
        (newest != state_->taken_over.end() && *newest > state.last_session)) {
        throw HandoverError{"the totals that were handed over do not fit the sessions"};
    }
    state_->taken_over.clear();
    state_->shared.last_session = state.last_session;
    state_->shared.last_number = state.last_number;
    state_->impairment = state.impairment;
    add(state_->shared.observation->counters[0], state.counters);
    for (std::size_t i = 0; i < state.listener_drops.size(); ++i) {
        const auto [thread, index] = state_->place_of(i);
        state_->shards[thread]->forwarder().listener_drops()[index] = state.listener_drops[i];
    }
    for (auto& shard : state_->shards) {
        shard->forwarder().set_impairment(state.impairment);
    }
}

const std::vector<Udp::endpoint>& Relay::listen_endpoints() const noexcept {
    return state_->listen;
}

Endpoint Relay::server_endpoint() const {
    return state_->shared.upstreams.server();
}

void Relay::set_server(const Udp::endpoint& server) {
    const ClientAddress mode = client_address();
    const Endpoint endpoint = endpoint_from(server.data());
    if (mode == ClientAddress::loopback && (endpoint.v6 || !is_loopback(endpoint))) {
        throw StartError{"clients have loopback addresses of their own at the server, which needs "
                         "one on 127.0.0.0/8, not " +
                         to_string(endpoint)};
    }
    if (mode == ClientAddress::transparent) {
        check_transparent(server, state_->listen);
    }
    check_not_own(server, state_->listen);
    state_->shared.upstreams.set_server(server);
}

std::vector<Endpoint> Relay::former_servers() const {
    return state_->shared.upstreams.former_servers();
}

void Relay::set_former_servers(std::vector<Endpoint> former) {
    state_->shared.upstreams.set_former_servers(std::move(former));
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

void Relay::resync(std::uint32_t session) {
    for (auto& shard : state_->shards) {
        shard->resync(session);
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
