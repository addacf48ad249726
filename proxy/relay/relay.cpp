#include "proxy/relay/relay.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <tuple>
#include <unordered_set>

#include <netinet/in.h>
#include <sys/socket.h>

namespace tw::relay {

using Udp = boost::asio::ip::udp;

namespace {

void check_options(const Options& options, std::span<Ring* const> rings) {
    check_listen_addresses(options.server.listen);
    if (options.threads == 0 || options.threads > kMaxThreads) {
        throw StartError{"the number of relay threads must be from 1 to " +
                         std::to_string(kMaxThreads)};
    }
    if (options.server.port == 0) {
        throw StartError{"the server's port is missing"};
    }
    if (!rings.empty() && rings.size() != options.threads) {
        throw StartError{"there must be one ring for each relay thread"};
    }
}

/// Throws StartError if the mode `transparent` is impossible.
void check_transparent_mode(const Udp::endpoint& server, const std::vector<Udp::endpoint>& listen) {
    const auto other = std::find_if(listen.begin(), listen.end(), [&](const Udp::endpoint& own) {
        return own.protocol() != server.protocol();
    });
    if (other != listen.end()) {
        throw StartError{"client address mode 'transparent' needs clients and server of one "
                         "family: listen on an " +
                         std::string{server.address().is_v6() ? "IPv6" : "IPv4"} +
                         " address instead of " + base::to_string(*other) + ", as the server " +
                         base::to_string(server) + " has one"};
    }
    const base::UniqueFd probe{::socket(server.protocol().family(), SOCK_DGRAM | SOCK_CLOEXEC, 0)};
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

} // namespace

ClientAddressMode choose_client_address_mode(ClientAddressMode wanted, bool may_share,
                                             const base::Endpoint& server) {
    const bool possible = !server.v6 && base::is_loopback(server);
    const bool shared =
        wanted == ClientAddressMode::shared || wanted == ClientAddressMode::automatic;
    if (possible) {
        return wanted == ClientAddressMode::automatic ? ClientAddressMode::loopback : wanted;
    }
    if (wanted == ClientAddressMode::loopback) {
        throw StartError{"client address mode 'loopback' needs a server on 127.0.0.0/8, not " +
                         base::to_string(server) + "; use 'transparent'"};
    }
    if (shared && !may_share) {
        throw SharedAddressError{
            "the server " + base::to_string(server) +
            " is not on 127.0.0.0/8, so all clients would share one address there: one ban for "
            "all, one anti-spoofing token, and a stranger could kick players or speak as them"};
    }
    return shared ? ClientAddressMode::shared : wanted;
}

Relay::Relay(const Options& options, std::span<Ring* const> rings,
             ObserverSharedMemory* observation, std::vector<base::UniqueFd> listening)
    : options_{options}, observation_{observation}, impairment_{options.impairment} {
    check_options(options, rings);
    if (observation == nullptr) {
        own_observation_ = std::make_unique<ObserverSharedMemory>();
        observation_ = own_observation_.get();
        observation_->observer = 1;
    }
    for (unsigned i = 0; i < options.threads; ++i) {
        Ring* const ring = rings.empty() ? nullptr : rings[i];
        relay_threads_.push_back(std::make_unique<RelayThread>(options, i, *observation_, ring));
    }
    open_server(options.server, std::move(listening));
}

Relay::~Relay() {
    stop();
    join();
}

/// Returns the thread that has a listening socket of a server, and the socket's index among that
/// thread's sockets of the server.
std::pair<std::size_t, std::size_t> Relay::locate_listening_socket(const SharedServerData& server,
                                                                   std::size_t socket) const {
    const std::size_t addresses = server.listen.size();
    const std::size_t set = socket / addresses;
    return {set % relay_threads_.size(),
            set / relay_threads_.size() * addresses + socket % addresses};
}

Listener& Relay::listener(const SharedServerData& server, std::size_t socket) const {
    const auto [thread, index] = locate_listening_socket(server, socket);
    return relay_threads_[thread]->forwarder().listener(server, index);
}

void Relay::check_no_forwarding_loop(const SharedServerData& added) const {
    const Udp::endpoint server = base::to_asio_endpoint(added.upstreams.server());
    relay::check_no_forwarding_loop(server, added.listen);
    for (const auto& other : servers_) {
        if (!other->is_removed) {
            relay::check_no_forwarding_loop(server, other->listen);
            relay::check_no_forwarding_loop(base::to_asio_endpoint(other->upstreams.server()),
                                            added.listen);
        }
    }
}

/// Adds a server. `listening`: sockets that another relay opened; empty: opens new sockets.
void Relay::open_server(const ServerOptions& wanted, std::vector<base::UniqueFd> listening) {
    const Udp::endpoint server = resolve_addresses(wanted.host, wanted.port).front();
    const ClientAddressMode mode = choose_client_address_mode(
        options_.client_address, options_.allow_shared_address, base::endpoint_from(server.data()));
    if (mode == ClientAddressMode::transparent) {
        check_transparent_mode(server, wanted.listen);
    }
    auto added =
        std::make_unique<SharedServerData>(options_, numbers_, next_server_index(), server, mode);
    added->listen = wanted.listen;
    if (listening.empty()) {
        for (unsigned i = 0; i < options_.threads; ++i) {
            std::ranges::move(open_listeners(options_, added->listen, i == 0),
                              std::back_inserter(listening));
        }
    }
    check_no_forwarding_loop(*added);
    added->num_socket_sets = check_listening_sockets(listening, added->listen);
    // A set has one listening socket for each address. Each thread gets complete sets. After a
    // takeover, the number of sets can differ from the number of threads.
    auto shares = std::make_shared<std::vector<std::vector<base::UniqueFd>>>(options_.threads);
    for (std::size_t i = 0; i < listening.size(); ++i) {
        const std::size_t set = i / added->listen.size();
        (*shares)[set % options_.threads].push_back(std::move(listening[i]));
    }
    servers_.push_back(std::move(added));
    SharedServerData& kept = *servers_.back();
    observation_->num_added_servers = static_cast<std::uint32_t>(servers_.size() - 1);
    for (std::size_t i = 0; i < relay_threads_.size(); ++i) {
        relay_threads_[i]->run_on_thread([&relay_thread = *relay_threads_[i], &kept, shares, i] {
            relay_thread.add_server(kept, std::move((*shares)[i]));
        });
    }
}

ServerIndex Relay::add_server(const ServerOptions& options, std::vector<base::UniqueFd> listening) {
    if (servers_.size() == kMaxServers) {
        throw StartError{"a relay has at most " + std::to_string(kMaxServers) +
                         " servers over its lifetime, removed ones included; restart it"};
    }
    check_listen_addresses(options.listen);
    const ServerIndex added = next_server_index();
    try {
        open_server(options, std::move(listening));
    } catch (const std::exception&) {
        if (servers_.size() > added) {
            remove_server(added);
        }
        throw;
    }
    return added;
}

void Relay::remove_server(ServerIndex server) {
    SharedServerData& gone = *servers_.at(server);
    gone.is_removed = true;
    for (auto& relay_thread : relay_threads_) {
        // The job shares the flag, because it may run after run_on_thread() has timed out.
        const auto is_gone = std::make_shared<bool>(false);
        while (!*is_gone) { // the thread forwards other servers' datagrams between two calls
            relay_thread->run_on_thread([&relay_thread = *relay_thread, &gone, is_gone] {
                *is_gone = relay_thread.remove_server(gone);
            });
        }
    }
}

void Relay::start() {
    for (auto& relay_thread : relay_threads_) {
        relay_thread->start();
    }
}

void Relay::stop() {
    for (auto& relay_thread : relay_threads_) {
        relay_thread->stop();
    }
    pause_.end_pause();
}

void Relay::join() {
    for (auto& relay_thread : relay_threads_) {
        relay_thread->join();
    }
}

bool Relay::pause_threads(std::chrono::milliseconds timeout) {
    const auto deadline = base::Clock::now() + timeout;
    pause_.begin_pause();
    for (auto& relay_thread : relay_threads_) {
        relay_thread->run_later([this, &forwarder = relay_thread->forwarder()] {
            forwarder.send_delayed_datagrams();
            pause_.wait_for_end();
        });
    }
    const bool all = pause_.await_threads(relay_threads_.size(), deadline);
    if (!all) {
        resume_threads();
    }
    return all;
}

void Relay::resume_threads() {
    // The pause switched the impairment off. Each thread switches it on again before it receives.
    set_impairment(impairment());
    pause_.end_pause();
}

void Relay::stop_for_takeover(std::span<const ServerIndex> closed_servers) {
    for (const ServerIndex server : closed_servers) {
        servers_.at(server)->closes_at_takeover = true;
    }
    for (auto& relay_thread : relay_threads_) {
        relay_thread->stop(true);
    }
    pause_.end_pause(); // comes last, so that no thread receives further datagrams
}

std::vector<int> Relay::listening_sockets(ServerIndex server) const {
    const SharedServerData& own = *servers_.at(server);
    std::vector<int> sockets;
    for (std::size_t i = 0; i < own.num_sockets(); ++i) {
        sockets.push_back(listener(own, i).socket);
    }
    return sockets;
}

Relay::TakeoverData Relay::takeover_state(std::span<const ServerIndex> servers) {
    const Impairment current = impairment();
    TakeoverData given{.state = {.last_observed_id = numbers_.last_observed_id,
                                 .last_number = numbers_.last_number,
                                 .impairment = to_string(current),
                                 .impairment_seed = current.seed,
                                 .servers = {}},
                       .sockets = {}};
    for (const ServerIndex index : servers) {
        const SharedServerData& server = *servers_.at(index);
        HandedOverServer& state = given.state.servers.emplace_back();
        state.counters = totals_of(*observation_, index);
        for (std::size_t i = 0; i < server.num_sockets(); ++i) {
            state.listener_drops.push_back(listener(server, i).kernel_drops);
        }
        for (std::size_t thread = 0; thread < relay_threads_.size(); ++thread) {
            const auto add_session = [&](HandedOverSession session, int socket) {
                const std::size_t addresses = server.listen.size();
                const std::size_t set =
                    session.listener / addresses * relay_threads_.size() + thread;
                session.listener =
                    static_cast<std::uint32_t>(set * addresses + session.listener % addresses);
                state.sessions.push_back(std::move(session));
                given.sockets.push_back(socket);
            };
            relay_threads_[thread]->forwarder().table_of(server).for_each_session(add_session);
        }
    }
    return given;
}

void Relay::take_over(const HandedOverState& state, std::span<const ServerIndex> servers,
                      std::vector<base::UniqueFd> sockets) {
    std::size_t sessions = 0;
    for (const HandedOverServer& server : state.servers) {
        sessions += server.sessions.size();
    }
    const auto impairment = parse_impairment(state.impairment, state.impairment_seed);
    if (state.servers.size() != servers.size() || sockets.size() != sessions || !impairment) {
        throw TakeoverError{"the state that was handed over does not fit servers and sockets, or "
                            "is damaged"};
    }
    std::unordered_set<std::uint32_t> ids;
    auto socket = sockets.begin();
    for (std::size_t i = 0; i < servers.size(); ++i) {
        const HandedOverServer& given = state.servers[i];
        const SharedServerData& server = *servers_.at(servers[i]);
        if (given.listener_drops.size() != server.num_sockets()) {
            throw TakeoverError{
                "the totals that were handed over do not fit the listening sockets"};
        }
        add_counters(observation_->counters_of(servers[i], 0), given.counters);
        for (std::size_t k = 0; k < given.listener_drops.size(); ++k) {
            listener(server, k).kernel_drops = given.listener_drops[k];
        }
        for (const HandedOverSession& session : given.sessions) {
            const bool is_new = session.id == 0 || ids.insert(session.id).second;
            if (!is_new || session.id > state.last_observed_id) {
                throw TakeoverError{"the numbers of the sessions that were handed over do not fit"};
            }
            add_handed_over_session(server, session, std::move(*socket++));
        }
    }
    numbers_.last_observed_id = state.last_observed_id;
    numbers_.last_number = state.last_number;
    impairment_ = *impairment;
    for (auto& relay_thread : relay_threads_) {
        relay_thread->forwarder().set_impairment(*impairment);
    }
}

/// Continues a session of another relay. `socket`: the session's upstream socket.
void Relay::add_handed_over_session(const SharedServerData& server, HandedOverSession session,
                                    base::UniqueFd socket) {
    if (session.listener >= server.num_sockets()) {
        throw TakeoverError{"the session of " + base::to_string(session.client) +
                            " was handed over without its listening socket"};
    }
    const auto [thread, index] = locate_listening_socket(server, session.listener);
    session.listener = static_cast<std::uint32_t>(index);
    relay_threads_[thread]->forwarder().table_of(server).add_handed_over_session(session,
                                                                                 std::move(socket));
}

void Relay::set_server_address(const Udp::endpoint& server, ServerIndex index) {
    const ClientAddressMode mode = client_address_mode(index);
    std::ignore = choose_client_address_mode(mode, true, base::endpoint_from(server.data()));
    if (mode == ClientAddressMode::transparent) {
        check_transparent_mode(server, servers_[index]->listen);
    }
    for (const auto& each : servers_) {
        if (!each->is_removed) {
            relay::check_no_forwarding_loop(server, each->listen);
        }
    }
    servers_[index]->upstreams.set_server_address(server);
}

void Relay::set_impairment(const Impairment& impairment) {
    const std::scoped_lock lock{impairment_mutex_};
    impairment_ = impairment;
    for (auto& relay_thread : relay_threads_) {
        relay_thread->run_later([&forwarder = relay_thread->forwarder(), impairment] {
            forwarder.set_impairment(impairment);
        });
    }
}

void Relay::request_full_snapshot(std::uint32_t session) {
    for (auto& relay_thread : relay_threads_) {
        relay_thread->run_later([&forwarder = relay_thread->forwarder(), session] {
            forwarder.request_full_snapshot(session);
        });
    }
}

Impairment Relay::impairment() const {
    const std::scoped_lock lock{impairment_mutex_};
    return impairment_;
}

std::size_t Relay::num_sessions() const noexcept {
    std::size_t sum = 0;
    for (const auto& server : servers_) {
        sum += server->num_sessions.load(std::memory_order_relaxed);
    }
    return sum;
}

} // namespace tw::relay
