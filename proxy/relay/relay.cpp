#include "proxy/relay/relay.h"

#include "proxy/relay/relay_thread.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>

namespace tw::relay {

using Udp = boost::asio::ip::udp;

/// A server and the data that its threads share.
struct Server {
    Server(LastSessionNumbers& numbers, ServerIndex index, const Udp::endpoint& server,
           ClientAddressMode mode, const Options& options)
        : shared{.numbers = &numbers,
                 .upstreams{server, mode, options.socket_buffer_bytes, options.address_key},
                 .max_sessions = options.max_sessions,
                 .idle_timeout = options.idle_timeout,
                 .index = index,
                 .prove = options.prove,
                 .repeating = options.repeating,
                 .limits = options.new_clients,
                 .pools = SessionPoolSizes{options.max_sessions, options.threads,
                                           options.new_clients.max_per_address}} {}

    SharedServer shared;
    std::vector<Udp::endpoint> listen{};
    std::size_t sets = 0; ///< number of socket sets; a set has a socket for each listening address
    bool removed = false;

    [[nodiscard]] std::size_t num_sockets() const { return sets * listen.size(); }
};

struct Relay::State {
    State(const Options& given, ObserverSharedMemory* shown)
        : options{given}, observation{shown != nullptr ? shown : &own}, impairment{
                                                                            given.impairment} {}

    /// Returns the thread that has a listening socket of a server, and the socket's index among
    /// that thread's sockets of the server.
    [[nodiscard]] std::pair<std::size_t, std::size_t>
    thread_and_index_of(const Server& server, std::size_t socket) const {
        const std::size_t addresses = server.listen.size();
        const std::size_t set = socket / addresses;
        return {set % relay_threads.size(),
                set / relay_threads.size() * addresses + socket % addresses};
    }

    [[nodiscard]] Listener& listener(const Server& server, std::size_t socket) const {
        const auto [thread, index] = thread_and_index_of(server, socket);
        return relay_threads[thread]->forwarder().listener(server.shared, index);
    }

    void check_no_forwarding_loop(const Server& added) const;
    void add(const ServerOptions& wanted, std::vector<base::UniqueFd> listening);
    void take_over(const ServerState& state) const;
    void take_over(const SessionState& state, base::UniqueFd socket) const;

    Options options;
    ObserverSharedMemory own{.observer{1}};
    ObserverSharedMemory* observation;
    LastSessionNumbers numbers;
    /// Indexed by server number, including removed servers.
    std::vector<std::unique_ptr<Server>> servers;
    mutable std::mutex impairment_mutex;
    Impairment impairment;
    std::vector<std::unique_ptr<RelayThread>> relay_threads;
    std::vector<std::thread> threads;
};

void Relay::State::check_no_forwarding_loop(const Server& added) const {
    const Udp::endpoint server = base::to_asio(added.shared.upstreams.server());
    relay::check_no_forwarding_loop(server, added.listen);
    for (const auto& other : servers) {
        if (!other->removed) {
            relay::check_no_forwarding_loop(server, other->listen);
            relay::check_no_forwarding_loop(base::to_asio(other->shared.upstreams.server()),
                                            added.listen);
        }
    }
}

/// Adds a server. `listening`: sockets that another relay opened; empty: opens new sockets.
void Relay::State::add(const ServerOptions& wanted, std::vector<base::UniqueFd> listening) {
    const Udp::endpoint server = resolve_server(wanted.host, wanted.port);
    const ClientAddressMode mode =
        choose_client_address_mode(options, base::endpoint_from(server.data()));
    if (mode == ClientAddressMode::transparent) {
        check_transparent_mode(server, wanted.listen);
    }
    auto added = std::make_unique<Server>(numbers, static_cast<ServerIndex>(servers.size()), server,
                                          mode, options);
    added->listen = wanted.listen;
    if (listening.empty()) {
        for (unsigned i = 0; i < options.threads; ++i) {
            std::ranges::move(open_listeners(options, added->listen, i == 0),
                              std::back_inserter(listening));
        }
    }
    check_no_forwarding_loop(*added);
    added->sets = check_listening_sockets(listening, added->listen);
    // A set has one listening socket for each address. Each thread gets complete sets. After a
    // takeover, the number of sets can differ from the number of threads.
    auto shares = std::make_shared<std::vector<std::vector<base::UniqueFd>>>(options.threads);
    for (std::size_t i = 0; i < listening.size(); ++i) {
        const std::size_t set = i / added->listen.size();
        (*shares)[set % options.threads].push_back(std::move(listening[i]));
    }
    servers.push_back(std::move(added));
    Server& kept = *servers.back();
    observation->more_servers = static_cast<std::uint32_t>(servers.size() - 1);
    for (std::size_t i = 0; i < relay_threads.size(); ++i) {
        const auto add_it = [&relay_thread = *relay_threads[i], &kept, shares, i] {
            relay_thread.add_server(kept.shared, kept.listen, std::move((*shares)[i]));
        };
        if (threads.empty()) {
            add_it();
        } else {
            relay_threads[i]->run_on_thread(add_it);
        }
    }
}

void Relay::State::take_over(const ServerState& state) const {
    const bool known = state.server < servers.size();
    if (!known || state.listener_drops.size() != servers[state.server]->num_sockets()) {
        throw HandoverError{"the totals that were handed over do not fit the listening sockets"};
    }
    relay::add_counters(observation->counters_of(state.server, 0), state.counters);
    for (std::size_t i = 0; i < state.listener_drops.size(); ++i) {
        listener(*servers[state.server], i).drops = state.listener_drops[i];
    }
}

/// Continues a session of another relay. `socket`: the session's upstream socket.
void Relay::State::take_over(const SessionState& state, base::UniqueFd socket) const {
    if (state.server >= servers.size() || state.listener >= servers[state.server]->num_sockets()) {
        throw HandoverError{"the session of " + base::to_string(state.client) +
                            " was handed over without its listening socket"};
    }
    const Server& server = *servers[state.server];
    const auto [thread, index] = thread_and_index_of(server, state.listener);
    SessionState placed = state;
    placed.listener = static_cast<std::uint32_t>(index);
    relay_threads[thread]->forwarder().take_over_session(server.shared, placed, std::move(socket));
}

Relay::Relay(const Options& options, std::span<Ring* const> rings,
             ObserverSharedMemory* observation, std::vector<base::UniqueFd> listening) {
    check_options(options, rings);
    state_ = std::make_unique<State>(options, observation);
    for (unsigned i = 0; i < options.threads; ++i) {
        Ring* const ring = rings.empty() ? nullptr : rings[i];
        state_->relay_threads.push_back(
            std::make_unique<RelayThread>(options, i, *state_->observation, ring));
    }
    state_->add(
        {.host = options.server_host, .port = options.server_port, .listen = options.listen},
        std::move(listening));
}

ServerIndex Relay::add_server(const ServerOptions& options, std::vector<base::UniqueFd> listening) {
    if (state_->servers.size() == kMaxServers) {
        throw StartError{"a relay has at most " + std::to_string(kMaxServers) +
                         " servers over its lifetime, removed ones included; restart it"};
    }
    check_listen_addresses(options.listen);
    const std::size_t before = state_->servers.size();
    try {
        state_->add(options, std::move(listening));
    } catch (const std::exception&) {
        if (state_->servers.size() != before) {
            remove_server(static_cast<ServerIndex>(before));
        }
        throw;
    }
    return static_cast<ServerIndex>(before);
}

ServerIndex Relay::next_server_index() const noexcept {
    return static_cast<ServerIndex>(state_->servers.size());
}

void Relay::remove_server(ServerIndex server) {
    Server& gone = *state_->servers.at(server);
    gone.removed = true;
    for (auto& relay_thread : state_->relay_threads) {
        // A shared_ptr, because the job may run after run_on_thread() has timed out.
        const auto is_gone = std::make_shared<bool>(false);
        const auto remove_some = [&relay_thread = *relay_thread, &gone, is_gone] {
            *is_gone = relay_thread.remove_server(gone.shared);
        };
        while (!*is_gone) { // between two calls the thread forwards other servers' datagrams
            if (state_->threads.empty()) {
                remove_some();
            } else {
                relay_thread->run_on_thread(remove_some);
            }
        }
    }
}

Relay::~Relay() {
    stop();
    join();
}

void Relay::start() {
    for (auto& relay_thread : state_->relay_threads) {
        state_->threads.emplace_back([&relay_thread = *relay_thread] { relay_thread.run(); });
    }
}

void Relay::stop() {
    for (auto& relay_thread : state_->relay_threads) {
        relay_thread->stop();
    }
}

void Relay::join() {
    for (auto& thread : state_->threads) {
        thread.join();
    }
    state_->threads.clear();
}

bool Relay::pause(std::chrono::milliseconds timeout) {
    const auto deadline = base::Clock::now() + timeout;
    for (auto& relay_thread : state_->relay_threads) {
        relay_thread->request_pause();
    }
    const bool all = std::ranges::all_of(state_->relay_threads, [&](auto& relay_thread) {
        return relay_thread->wait_until_paused(deadline);
    });
    if (!all) {
        resume();
    }
    return all;
}

void Relay::resume() {
    // The pause switched the impairment off. Each thread switches it on again before it receives.
    set_impairment(impairment());
    for (auto& relay_thread : state_->relay_threads) {
        relay_thread->resume();
    }
}

void Relay::stop_for_handover(std::span<const ServerIndex> let_go) {
    for (const ServerIndex server : let_go) {
        state_->servers.at(server)->shared.let_go = true;
    }
    for (auto& relay_thread : state_->relay_threads) {
        relay_thread->stop_for_handover();
    }
}

std::vector<int> Relay::listening_sockets(ServerIndex server) const {
    const Server& own = *state_->servers.at(server);
    std::vector<int> sockets;
    for (std::size_t i = 0; i < own.num_sockets(); ++i) {
        sockets.push_back(state_->listener(own, i).socket);
    }
    return sockets;
}

Relay::HandoverData Relay::handover_state(std::span<const ServerIndex> servers) {
    HandoverData given;
    given.state.last_session = state_->numbers.last_session.load();
    given.state.last_number = state_->numbers.last_number.load();
    given.state.impairment = to_string(impairment());
    given.state.impairment_seed = impairment().seed;
    for (const ServerIndex server : servers) {
        const Server& own = *state_->servers.at(server);
        ServerState& state = given.state.servers.emplace_back();
        state = {.server = server,
                 .counters = totals_of(*state_->observation, server),
                 .listener_drops = {}};
        for (std::size_t i = 0; i < own.num_sockets(); ++i) {
            state.listener_drops.push_back(state_->listener(own, i).drops);
        }
    }
    for (std::size_t thread = 0; thread < state_->relay_threads.size(); ++thread) {
        state_->relay_threads[thread]->forwarder().for_each_session(
            [&](SessionState state, int socket) {
                if (std::ranges::find(servers, state.server) == servers.end()) {
                    return;
                }
                const std::size_t addresses = state_->servers[state.server]->listen.size();
                const std::size_t set =
                    state.listener / addresses * state_->relay_threads.size() + thread;
                state.listener =
                    static_cast<std::uint32_t>(set * addresses + state.listener % addresses);
                given.state.sessions.push_back(std::move(state));
                given.sockets.push_back(socket);
            });
    }
    return given;
}

void Relay::take_over(const RelayState& state, std::vector<base::UniqueFd> sockets) {
    for (const ServerState& server : state.servers) {
        state_->take_over(server);
    }
    if (sockets.size() != state.sessions.size()) {
        throw HandoverError{"the sessions that were handed over do not fit their sockets"};
    }
    std::unordered_set<std::uint32_t> ids;
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        const SessionState& session = state.sessions[i];
        const bool is_new = session.id == 0 || ids.insert(session.id).second;
        if (!is_new || session.id > state.last_session) {
            throw HandoverError{"the numbers of the sessions that were handed over do not fit"};
        }
        state_->take_over(session, std::move(sockets[i]));
    }
    state_->numbers.last_session = state.last_session;
    state_->numbers.last_number = state.last_number;
    const auto impairment = parse_impairment(state.impairment, state.impairment_seed);
    if (!impairment) {
        throw HandoverError{"the impairment that was handed over is damaged"};
    }
    state_->impairment = *impairment;
    for (auto& relay_thread : state_->relay_threads) {
        relay_thread->forwarder().set_impairment(*impairment);
    }
}

const std::vector<Udp::endpoint>& Relay::listen_endpoints(ServerIndex server) const noexcept {
    return state_->servers[server]->listen;
}

base::Endpoint Relay::server_endpoint(ServerIndex server) const {
    return state_->servers[server]->shared.upstreams.server();
}

void Relay::set_server_address(const Udp::endpoint& server, ServerIndex index) {
    const ClientAddressMode mode = client_address(index);
    const base::Endpoint endpoint = base::endpoint_from(server.data());
    if (mode == ClientAddressMode::loopback && (endpoint.v6 || !base::is_loopback(endpoint))) {
        throw StartError{"clients have their own loopback addresses at the server, which must be "
                         "on 127.0.0.0/8, not " +
                         base::to_string(endpoint)};
    }
    if (mode == ClientAddressMode::transparent) {
        check_transparent_mode(server, state_->servers[index]->listen);
    }
    for (const auto& each : state_->servers) {
        if (!each->removed) {
            check_no_forwarding_loop(server, each->listen);
        }
    }
    state_->servers[index]->shared.upstreams.set_server_address(server);
}

std::vector<base::Endpoint> Relay::former_server_addresses(ServerIndex server) const {
    return state_->servers[server]->shared.upstreams.former_server_addresses();
}

void Relay::set_former_server_addresses(std::vector<base::Endpoint> former, ServerIndex server) {
    state_->servers[server]->shared.upstreams.set_former_server_addresses(std::move(former));
}

ClientAddressMode Relay::client_address(ServerIndex server) const noexcept {
    return state_->servers[server]->shared.upstreams.mode();
}

std::error_code Relay::last_session_error() const noexcept {
    return {state_->numbers.session_error.load(std::memory_order_relaxed), std::system_category()};
}

void Relay::set_impairment(const Impairment& impairment) {
    const std::scoped_lock lock{state_->impairment_mutex};
    state_->impairment = impairment;
    for (auto& relay_thread : state_->relay_threads) {
        relay_thread->set_impairment(impairment);
    }
}

void Relay::request_full_snapshot(std::uint32_t session) {
    for (auto& relay_thread : state_->relay_threads) {
        relay_thread->request_full_snapshot(session);
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
