#include "proxy/relay/relay.h"

#include "proxy/relay/listen_socket.h"
#include "proxy/relay/shard.h"
#include "proxy/relay/start_checks.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>

namespace tw::relay {

using Udp = boost::asio::ip::udp;

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

/// A server, and what its threads share.
struct Server {
    Server(SessionNumbers& numbers, ServerIndex index, const Udp::endpoint& server,
           ClientAddress mode, const Options& options)
        : shared{.numbers = &numbers,
                 .upstreams{server, mode, options.socket_buffer_bytes, options.address_key},
                 .max_sessions = options.max_sessions,
                 .idle_timeout = options.idle_timeout,
                 .index = index,
                 .prove = options.prove,
                 .limits = options.admission,
                 .pools = AdmissionPools{options.max_sessions, options.threads}} {}

    Shared shared;
    std::vector<Udp::endpoint> listen{};
    std::size_t sets = 0; ///< of listening sockets, one for each address
    bool removed = false;
};

struct Relay::State {
    State(const Options& given, Observation* shown)
        : options{given}, observation{shown != nullptr ? shown : &own}, impairment{
                                                                            given.impairment} {}

    /// Which thread has a listening socket, and as which of its own; with one server.
    [[nodiscard]] std::pair<std::size_t, std::size_t> place_of(std::size_t socket) const {
        const std::size_t addresses = first().listen.size();
        const std::size_t set = socket / addresses;
        return {set % shards.size(), set / shards.size() * addresses + socket % addresses};
    }

    [[nodiscard]] Server& first() const { return *servers.front(); }

    [[nodiscard]] std::size_t num_sockets() const { return first().sets * first().listen.size(); }

    void check_not_own(const Server& added) const;
    void add(const ServerOptions& wanted, std::vector<UniqueFd> listening);

    Options options;
    Observation own{.observer{1}};
    Observation* observation;
    SessionNumbers numbers;
    std::vector<std::unique_ptr<Server>> servers; ///< by number; removed ones, too
    mutable std::mutex impairment_mutex;
    Impairment impairment;
    std::unordered_set<std::uint32_t> taken_over; ///< ids of sessions
    std::vector<std::unique_ptr<Shard>> shards;
    std::vector<std::thread> threads;
};

void Relay::State::check_not_own(const Server& added) const {
    const Udp::endpoint server = to_asio(added.shared.upstreams.server());
    relay::check_not_own(server, added.listen);
    for (const auto& other : servers) {
        if (!other->removed) {
            relay::check_not_own(server, other->listen);
            relay::check_not_own(to_asio(other->shared.upstreams.server()), added.listen);
        }
    }
}

/// `listening`: sockets that are there already; none: it opens its own.
void Relay::State::add(const ServerOptions& wanted, std::vector<UniqueFd> listening) {
    const Udp::endpoint server = resolve_server(wanted.host, wanted.port);
    const ClientAddress mode = choose_mode(options, endpoint_from(server.data()));
    if (mode == ClientAddress::transparent) {
        check_transparent(server, wanted.listen);
    }
    auto added = std::make_unique<Server>(numbers, static_cast<ServerIndex>(servers.size()), server,
                                          mode, options);
    added->listen = wanted.listen;
    if (listening.empty()) {
        for (unsigned i = 0; i < options.threads; ++i) {
            std::ranges::move(open_listeners(options, added->listen),
                              std::back_inserter(listening));
        }
    }
    check_not_own(*added);
    added->sets = check_listeners(listening, added->listen);
    // Set by set, so that those of an earlier relay with more threads or fewer have a thread each.
    auto shares = std::make_shared<std::vector<std::vector<UniqueFd>>>(options.threads);
    for (std::size_t i = 0; i < listening.size(); ++i) {
        const std::size_t set = i / added->listen.size();
        (*shares)[set % options.threads].push_back(std::move(listening[i]));
    }
    servers.push_back(std::move(added));
    Server& kept = *servers.back();
    observation->more_servers = static_cast<std::uint32_t>(servers.size() - 1);
    for (std::size_t i = 0; i < shards.size(); ++i) {
        const auto add_it = [&shard = *shards[i], &kept, shares, i] {
            shard.add_server(kept.shared, kept.listen, std::move((*shares)[i]));
        };
        if (threads.empty()) {
            add_it();
        } else {
            shards[i]->call(add_it);
        }
    }
}

Relay::Relay(const Options& options, std::span<Ring* const> rings, Observation* observation,
             std::vector<UniqueFd> listening) {
    check(options, rings);
    state_ = std::make_unique<State>(options, observation);
    for (unsigned i = 0; i < options.threads; ++i) {
        Ring* const ring = rings.empty() ? nullptr : rings[i];
        state_->shards.push_back(std::make_unique<Shard>(options, i, *state_->observation, ring));
    }
    state_->add(
        {.host = options.server_host, .port = options.server_port, .listen = options.listen},
        std::move(listening));
}

ServerIndex Relay::add_server(const ServerOptions& options) {
    if (state_->servers.size() == kMaxServers) {
        throw StartError{"a relay has at most " + std::to_string(kMaxServers) +
                         " servers in its life, also those that were removed; restart it"};
    }
    check_listen(options.listen);
    const std::size_t before = state_->servers.size();
    try {
        state_->add(options, {});
    } catch (const std::exception&) {
        if (state_->servers.size() != before) {
            remove_server(static_cast<ServerIndex>(before));
        }
        throw;
    }
    return static_cast<ServerIndex>(before);
}

ServerIndex Relay::next_server() const noexcept {
    return static_cast<ServerIndex>(state_->servers.size());
}

void Relay::remove_server(ServerIndex server) {
    Server& gone = *state_->servers.at(server);
    gone.removed = true;
    for (auto& shard : state_->shards) {
        const auto remove_it = [&shard = *shard, &gone] { shard.remove_server(gone.shared); };
        if (state_->threads.empty()) {
            remove_it();
        } else {
            shard->call(remove_it);
        }
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
    for (std::size_t i = 0; i < state_->num_sockets(); ++i) {
        const auto [thread, index] = state_->place_of(i);
        sockets.push_back(state_->shards[thread]->listeners()[index].socket);
    }
    return sockets;
}

void Relay::for_each_session(const std::function<void(const SessionState&, int)>& use) {
    const std::size_t addresses = state_->first().listen.size();
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
                     .last_session = state_->numbers.last_session.load(),
                     .last_number = state_->numbers.last_number.load(),
                     .impairment = impairment(),
                     .listener_drops = {}};
    for (std::size_t i = 0; i < state_->num_sockets(); ++i) {
        const auto [thread, index] = state_->place_of(i);
        state.listener_drops.push_back(state_->shards[thread]->forwarder().listener_drops()[index]);
    }
    return state;
}

void Relay::take_over(const SessionState& state, UniqueFd socket) {
    const bool known = state.listener < state_->num_sockets();
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
    if (state.listener_drops.size() != state_->num_sockets() ||
        (newest != state_->taken_over.end() && *newest > state.last_session)) {
        throw HandoverError{"the totals that were handed over do not fit the sessions"};
    }
    state_->taken_over.clear();
    state_->numbers.last_session = state.last_session;
    state_->numbers.last_number = state.last_number;
    state_->impairment = state.impairment;
    add(state_->observation->counters[0], state.counters);
    for (std::size_t i = 0; i < state.listener_drops.size(); ++i) {
        const auto [thread, index] = state_->place_of(i);
        state_->shards[thread]->forwarder().listener_drops()[index] = state.listener_drops[i];
    }
    for (auto& shard : state_->shards) {
        shard->forwarder().set_impairment(state.impairment);
    }
}

const std::vector<Udp::endpoint>& Relay::listen_endpoints(ServerIndex server) const noexcept {
    return state_->servers[server]->listen;
}

Endpoint Relay::server_endpoint(ServerIndex server) const {
    return state_->servers[server]->shared.upstreams.server();
}

void Relay::set_server(const Udp::endpoint& server, ServerIndex index) {
    const ClientAddress mode = client_address(index);
    const Endpoint endpoint = endpoint_from(server.data());
    if (mode == ClientAddress::loopback && (endpoint.v6 || !is_loopback(endpoint))) {
        throw StartError{"clients have loopback addresses of their own at the server, which needs "
                         "one on 127.0.0.0/8, not " +
                         to_string(endpoint)};
    }
    if (mode == ClientAddress::transparent) {
        check_transparent(server, state_->servers[index]->listen);
    }
    for (const auto& each : state_->servers) {
        if (!each->removed) {
            check_not_own(server, each->listen);
        }
    }
    state_->servers[index]->shared.upstreams.set_server(server);
}

std::vector<Endpoint> Relay::former_servers() const {
    return state_->first().shared.upstreams.former_servers();
}

void Relay::set_former_servers(std::vector<Endpoint> former) {
    state_->first().shared.upstreams.set_former_servers(std::move(former));
}

ClientAddress Relay::client_address(ServerIndex server) const noexcept {
    return state_->servers[server]->shared.upstreams.mode();
}

std::error_code Relay::last_session_error() const noexcept {
    return {state_->numbers.session_error.load(std::memory_order_relaxed), std::system_category()};
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
    std::size_t sum = 0;
    for (const auto& server : state_->servers) {
        sum += server->shared.sessions.load(std::memory_order_relaxed);
    }
    return sum;
}

Counters Relay::counters() const noexcept {
    return totals(*state_->observation);
}

} // namespace tw::relay
