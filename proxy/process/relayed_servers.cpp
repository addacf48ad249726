#include "proxy/process/relayed_servers.h"

#include "proxy/base/endpoint.h"
#include "proxy/base/log.h"
#include "proxy/process/server_probe.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace tw::process {

namespace {

void log_server_not_added(const ConfiguredServer& server, std::string_view why) {
    log::error("the server {} is unavailable: {}; retrying at the next SIGHUP", server.name, why);
}

/// Returns whether, according to the kernel's tables, a UDP socket listens on `server`. Returns
/// true if the tables cannot be read. Precondition: the address is in 127.0.0.0/8.
bool may_have_listener(const base::Endpoint& server) {
    std::uint32_t address = 0; // the tables contain addresses in this machine's byte order
    std::memcpy(&address, server.address.data(), sizeof address);
    std::string sockets;
    for (const char* table : {"/proc/net/udp", "/proc/net/udp6"}) {
        std::ifstream file{table};
        if (!file && sockets.empty()) {
            return true;
        }
        sockets.append(std::istreambuf_iterator<char>{file}, {});
    }
    const auto has = [&](const std::string& local) { return sockets.find(local) != sockets.npos; };
    return has(fmt::format("{:08X}:{:04X} ", address, server.port)) ||
           has(fmt::format("{:08X}:{:04X} ", 0, server.port)); // listens on 0.0.0.0 or [::]
}

} // namespace

TakeoverRequester::PreparedServer prepare_server(TakeoverRequester* requester,
                                                 const ConfiguredServer& served,
                                                 relay::ServerIndex number) {
    if (requester != nullptr) {
        return requester->prepare_server(served, number);
    }
    TakeoverRequester::PreparedServer begun{.options = served.options};
    // A host name is replaced by its first address that answers.
    if (!host_and_port(served.options).empty()) {
        begun.options.host = resolve_answering_addresses(served.options.host, served.options.port,
                                                         AnswersWanted::one)
                                 .front()
                                 .address()
                                 .to_string();
    }
    return begun;
}

RelayedServers::RelayedServers(relay::Relay& relay, channel::SharedProcessData& process_data,
                               TakeoverRequester* requester,
                               const std::vector<ConfiguredServer>& servers)
    : relay_{&relay}, process_data_{&process_data}, requester_{requester} {
    set_name(0, servers.front().name);
    write_addresses(0);
    servers_.emplace_back(*relay_, relay::ServerIndex{0}, servers.front());
    for (const ConfiguredServer& server : std::span{servers}.subspan(1)) {
        const relay::ServerIndex index = add_server(server);
        servers_.emplace_back(*relay_, index, server);
    }
}

void RelayedServers::log_routes(const std::string& note) const {
    std::vector<std::string> lines;
    for (relay::ServerIndex i = 0; i < relay_->next_server_index(); ++i) {
        std::ranges::move(route_lines(i), std::back_inserter(lines));
    }
    if (!note.empty() && lines.size() == 1) {
        lines.front() += "; " + note;
    } else if (!note.empty()) {
        lines.push_back(note);
    }
    for (const std::string& line : lines) {
        log::info("{}", line);
    }
    for (relay::ServerIndex i = 0; i < relay_->next_server_index(); ++i) {
        const base::Endpoint server = relay_->server_endpoint(i);
        if (!server.v6 && base::is_loopback(server) && !may_have_listener(server)) {
            log::warn("nothing listens on {} yet: players cannot join until the game server does",
                      base::to_string(server));
        }
    }
}

std::vector<std::string> RelayedServers::route_lines(relay::ServerIndex index) const {
    const std::string_view name = process_data_->facts.servers.at(index).name_view();
    std::vector<std::string> routes;
    for (const auto& endpoint : relay_->listen_endpoints(index)) {
        routes.push_back(fmt::format("listening on {}{}, forwarding to {}{}",
                                     base::to_string(endpoint),
                                     endpoint.address().is_loopback() ? kThisMachineOnly : "",
                                     name.empty() ? std::string{} : fmt::format("{}, ", name),
                                     base::to_string(relay_->server_endpoint(index))));
    }
    return routes;
}

/// Writes a server's name into the shared memory. Must be called before the server's first session
/// begins, because the observer reads the name then.
void RelayedServers::set_name(relay::ServerIndex index, const std::string& name) const {
    channel::ServerFacts& server = process_data_->facts.servers.at(index);
    server.name.fill(0);
    std::copy_n(name.begin(), std::min(name.size(), channel::ServerFacts::kMaxNameBytes),
                server.name.begin());
    server.removed = true; // write_addresses() sets this to false
}

relay::ServerIndex RelayedServers::add_server(const ConfiguredServer& added) {
    const relay::ServerIndex next = relay_->next_server_index();
    if (next < relay::kMaxServers) {
        set_name(next, added.name);
    }
    auto [where, listening] = prepare_server(requester_, added, next);
    const relay::ServerIndex index = relay_->add_server(where, std::move(listening));
    write_addresses(index);
    return index;
}

void RelayedServers::write_addresses(relay::ServerIndex index) const {
    channel::RelayFacts& facts = process_data_->facts;
    channel::ServerFacts& server = facts.servers.at(index);
    // A local counter is used, because a misbehaving observer could change one in shared memory.
    std::uint32_t num_listen_endpoints = 0;
    for (const auto& endpoint : relay_->listen_endpoints(index)) {
        server.listen.at(num_listen_endpoints++) = base::endpoint_from(endpoint.data());
    }
    server.num_listen_endpoints = num_listen_endpoints;
    server.set_address(relay_->server_endpoint(index));
    server.removed = false;
    facts.num_servers = std::uint32_t{index} + 1;
}

void RelayedServers::set_servers(const std::vector<ConfiguredServer>& wanted) {
    try {
        remove_unwanted_servers(wanted);
    } catch (const std::exception& error) {
        log::error("the servers are unchanged: {}", error.what());
        return;
    }
    pending_.remove_unwanted_servers(wanted);
    for (const ConfiguredServer& each : wanted) {
        const bool is_there = std::ranges::any_of(
            servers_, [&](const auto& server) { return server.configured_server() == each; });
        if (!is_there && host_and_port(each.options).empty()) {
            try_add_server(each, each.options);
        } else if (!is_there) {
            pending_.add_server(each);
        }
    }
}

void RelayedServers::remove_unwanted_servers(const std::vector<ConfiguredServer>& wanted) {
    for (auto server = servers_.begin(); server != servers_.end();) {
        if (std::ranges::find(wanted, server->configured_server()) != wanted.end()) {
            ++server;
            continue;
        }
        relay_->remove_server(server->index());
        process_data_->facts.servers.at(server->index()).removed = true;
        log::info("removed the server {}", server->configured_server().name);
        server = servers_.erase(server);
    }
}

/// Adds a server while the relay forwards. `where`: the server's options with its resolved address.
void RelayedServers::try_add_server(const ConfiguredServer& server,
                                    const relay::ServerOptions& where) {
    try {
        const relay::ServerIndex index = add_server({.name = server.name, .options = where});
        servers_.emplace_back(*relay_, index, server);
        for (const std::string& line : route_lines(index)) {
            log::info("{}", line);
        }
    } catch (const std::exception& error) {
        log_server_not_added(server, error.what());
    }
}

void RelayedServers::add_resolved_servers() {
    for (const auto& [server, addresses] : pending_.take_resolved_servers()) {
        if (addresses.empty()) {
            log_server_not_added(server,
                                 fmt::format("cannot resolve the name '{}'", server.options.host));
            continue;
        }
        relay::ServerOptions where = server.options;
        where.host = addresses.front().address().to_string();
        try_add_server(server, where);
    }
}

void RelayedServers::on_second(bool report_silence) {
    add_resolved_servers();
    for (ServerAddressUpdater& server : servers_) {
        const relay::Counters counters =
            relay::totals_of(process_data_->observer_memory, server.index());
        if (const auto to = server.on_second(counters, report_silence)) {
            process_data_->facts.servers.at(server.index()).set_address(*to);
        }
    }
}

std::vector<TakeoverServer> RelayedServers::servers_for_takeover() const {
    std::vector<TakeoverServer> served;
    for (const ServerAddressUpdater& server : servers_) {
        served.push_back({.number = server.index(),
                          .name = server.configured_server().name,
                          .host_name = host_and_port(server.configured_server().options)});
    }
    return served;
}

} // namespace tw::process
