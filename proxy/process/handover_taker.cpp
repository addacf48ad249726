#include "proxy/process/handover_taker.h"

#include "proxy/base/endpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace tw::process {

namespace {

using relay::HandoverError;
using std::chrono::milliseconds;

/// The old relay answers at once, unless the machine is busy.
constexpr milliseconds kPatience{5000};

constexpr const char* kEndedIt = "the running twscope aborted the takeover (see its log)";

/// The server's name and address for log messages.
std::string shown(const TakeoverServer& server) {
    return server.name.empty() ? base::to_string(server.server) : server.name;
}

/// Checks that a server is the running relay's: with the same address or the same host name, which
/// may resolve to a new address by now.
/// Errors: relay::HandoverError.
void check_same(const relay::Relay& relay, const HandoverTaker::Taken& taken) {
    const TakeoverServer& there = *taken.from;
    const bool same = relay.server_endpoint(taken.number) == there.server ||
                      (!taken.host_name.empty() && taken.host_name == there.host_name);
    if (!same || relay.client_address(taken.number) != there.mode) {
        throw HandoverError{fmt::format("the running twscope forwards to {}{}, or uses other "
                                        "client addresses; restart it to change that",
                                        there.name.empty() ? "" : there.name + " at ",
                                        base::to_string(there.server))};
    }
}

relay::ServerState expect_totals(const TakeoverLink::Message& message) {
    if (message.word != TakeoverMessage::totals) {
        throw HandoverError{"totals were announced but did not arrive"};
    }
    return relay::read_server(message.body);
}

TakeoverLink ask(const std::filesystem::path& file) {
    auto link = TakeoverSocket::ask(file);
    if (!link) {
        throw NoTakeoverPeer{fmt::format("there is no running twscope to take over from ({}: {})",
                                         file.string(), std::system_category().message(errno))};
    }
    if (!link->is_trusted()) {
        throw HandoverError{fmt::format("{} belongs to another user's process", file.string())};
    }
    return std::move(*link);
}

} // namespace

HandoverTaker::HandoverTaker(std::filesystem::path file)
    : file_{std::move(file)}, link_{ask(file_)} {
    std::ignore = link_.send(TakeoverMessage::hello, written(TakeoverHello{}), {},
                             base::Clock::now() + kPatience);
    auto offered = receive(TakeoverMessage::offer, kPatience);
    offer_ = read_offer(offered.body);
    if (offered.descriptors.size() == 1) {
        takeover_socket_ = std::move(offered.descriptors.front());
    }
    for (std::uint32_t i = 0; i < offer_.servers; ++i) {
        hear_of_server();
    }
    if (offer_.network != own_network()) {
        throw HandoverError{"the running twscope is in another network namespace"};
    }
}

/// Receives the next server's description and listening sockets.
void HandoverTaker::hear_of_server() {
    TakeoverServer server = read_server(receive(TakeoverMessage::server, kPatience).body);
    if (find(server.name) != nullptr ||
        (!servers_.empty() && servers_.back().number >= server.number)) {
        throw HandoverError{"the running twscope names a server twice"};
    }
    std::vector<base::UniqueFd> listening;
    while (listening.size() < server.listening_sockets) {
        auto message = receive(TakeoverMessage::listening, kPatience);
        if (message.descriptors.empty()) {
            throw HandoverError{"listening sockets were announced but did not arrive"};
        }
        std::ranges::move(message.descriptors, std::back_inserter(listening));
    }
    servers_.push_back(std::move(server));
    listening_.push_back(std::move(listening));
}

TakeoverLink::Message HandoverTaker::receive_any(milliseconds patience) {
    auto message = link_.receive(base::Clock::now() + patience);
    if (!message) {
        throw HandoverError{link_.closed() ? kEndedIt : "the running twscope does not respond"};
    }
    if (message->word == TakeoverMessage::busy) {
        throw NoTakeoverPeer{"another takeover from the running twscope is in progress"};
    }
    if (message->word == TakeoverMessage::refusal) {
        const std::string why{reinterpret_cast<const char*>(message->body.data()),
                              message->body.size()};
        throw HandoverError{why};
    }
    return std::move(*message);
}

TakeoverLink::Message HandoverTaker::receive(TakeoverMessage wanted, milliseconds patience) {
    auto message = receive_any(patience);
    if (message.word != wanted) {
        throw HandoverError{"the running twscope sent an unexpected message"};
    }
    return message;
}

const TakeoverServer* HandoverTaker::find(std::string_view name) const {
    const auto found = std::ranges::find(servers_, name, &TakeoverServer::name);
    return found == servers_.end() ? nullptr : &*found;
}

void HandoverTaker::check(const std::vector<ServedServer>& wanted) const {
    const auto is_there = [this](const ServedServer& each) { return find(each.name) != nullptr; };
    if (std::ranges::none_of(wanted, is_there)) {
        throw HandoverError{fmt::format("the running twscope has none of these servers, but {}; "
                                        "restart it instead",
                                        shown(servers_.front()))};
    }
    for (const ServedServer& each : wanted) {
        const TakeoverServer* const same = find(each.name);
        for (const TakeoverServer& other : servers_) {
            // Both would be bound if threads share the address.
            if (&other != same && std::ranges::any_of(each.where.listen, [&](const auto& own) {
                    return std::ranges::find(other.listen, base::endpoint_from(own.data())) !=
                           other.listen.end();
                })) {
                throw HandoverError{fmt::format("the running twscope listens on {} for {}, which "
                                                "should now be {}; restart it to change that",
                                                base::to_string(each.where.listen.front()),
                                                shown(other), each.name)};
            }
        }
    }
}

HandoverTaker::Begun HandoverTaker::begin(const ServedServer& served, relay::ServerIndex number) {
    Begun begun{.where = served.where};
    const TakeoverServer* const there = listening_.empty() ? nullptr : find(served.name);
    if (there == nullptr) {
        return begun;
    }
    begun.where.listen.clear();
    for (const base::Endpoint& endpoint : there->listen) {
        begun.where.listen.push_back(base::to_asio(endpoint));
    }
    const auto fits = [](const auto& own, const auto& other) {
        return own.address() == other.address() && (own.port() == 0 || own.port() == other.port());
    };
    if (!std::ranges::equal(served.where.listen, begun.where.listen, fits)) {
        throw HandoverError{
            fmt::format("the running twscope listens on other addresses{} ({} first); "
                        "restart it to change them",
                        there->name.empty() ? "" : " for " + there->name,
                        base::to_string(there->listen.front()))};
    }
    begun.listening = std::move(listening_[static_cast<std::size_t>(there - servers_.data())]);
    taken_.push_back({.from = there, .number = number, .host_name = host_name(served.where)});
    return begun;
}

TakeoverRest HandoverTaker::take(relay::Relay& relay) {
    for (const Taken& each : taken_) {
        check_same(relay, each);
    }
    listening_.clear(); // closes the sockets of servers that are not continued
    say_ready();
    for (const Taken& each : taken_) {
        auto servers = each.from->former;
        servers.push_back(each.from->server);
        relay.set_former_servers(std::move(servers), each.number);
    }
    std::uint32_t sessions = 0;
    auto message = receive_any(kPatience);
    for (; message.word == TakeoverMessage::sessions; message = receive_any(kPatience)) {
        auto states = read_sessions(message);
        for (std::size_t i = 0; i < states.size(); ++i, ++sessions) {
            states[i].server = number_here(states[i].server);
            relay.take_over(states[i], std::move(message.descriptors[i]));
        }
    }
    for (std::size_t i = 0; i < taken_.size(); ++i, message = receive_any(kPatience)) {
        relay::ServerState state = expect_totals(message);
        if (state.server != taken_[i].from->number) {
            throw HandoverError{"the running twscope sent the totals of another server"};
        }
        state.server = taken_[i].number;
        relay.take_over(state);
    }
    TakeoverRest rest = read_rest(message.body);
    if (message.word != TakeoverMessage::rest || rest.sessions != sessions) {
        throw HandoverError{"sessions were announced but did not arrive"};
    }
    relay.take_over(relay::read_relay(rest.relay));
    if (!link_.send(TakeoverMessage::taken, base::Clock::now() + kPatience)) {
        throw HandoverError{kEndedIt};
    }
    std::ignore = receive(TakeoverMessage::go, kPatience);
    return rest;
}

void HandoverTaker::say_ready() const {
    TakeoverSelection selection;
    for (const Taken& each : taken_) {
        selection.servers.push_back(each.from->number);
    }
    if (!link_.send(TakeoverMessage::ready, written(selection), {},
                    base::Clock::now() + kPatience)) {
        throw HandoverError{kEndedIt};
    }
}

relay::ServerIndex HandoverTaker::number_here(relay::ServerIndex there) const {
    const auto found = std::ranges::find_if(
        taken_, [there](const Taken& each) { return each.from->number == there; });
    if (found == taken_.end()) {
        throw HandoverError{"the running twscope handed over a session of another server"};
    }
    return found->number;
}

void HandoverTaker::confirm_forwarding() const {
    if (!link_.send(TakeoverMessage::going, base::Clock::now() + kPatience)) {
        throw HandoverError{"the running twscope timed out, and carries on"};
    }
}

std::optional<TakeoverSocket> HandoverTaker::take_socket() {
    return TakeoverSocket::take_over(file_, std::move(takeover_socket_));
}

std::optional<HandoverTaker::Left> HandoverTaker::left() {
    auto message = link_.receive(base::Clock::now());
    if (!message || message->word != TakeoverMessage::left) {
        return std::nullopt;
    }
    try {
        Left left{.said = read_left(message->body)};
        if (message->descriptors.size() == 1) {
            left.checkpoint = std::move(message->descriptors.front());
        }
        return left;
    } catch (const HandoverError&) {
        return std::nullopt;
    }
}

void report_takeover(const HandoverTaker& taker, const relay::Relay& relay, unsigned threads) {
    const auto& taken = taker.taken();
    // new servers have sockets in all threads
    std::size_t sets = taken.size() < relay.next_server() ? threads : 0;
    for (const auto& [there, number, host] : taken) {
        const base::Endpoint now = relay.server_endpoint(number);
        if (now != there->server) {
            spdlog::info("the server {} is now at {}; new sessions go there", host,
                         base::to_string(now));
        }
        sets = std::max(sets, there->listening_sockets / there->listen.size());
    }
    for (const TakeoverServer& there : taker.servers()) {
        if (std::ranges::find(taken, &there, &HandoverTaker::Taken::from) == taken.end()) {
            spdlog::warn("the server {} is no longer configured: its sessions end", there.name);
        }
    }
    if (sets < threads) {
        spdlog::warn(
            "{} of {} relay threads are idle: only a restart spreads the clients over more threads",
            threads - sets, threads);
    }
}

} // namespace tw::process
