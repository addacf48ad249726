#include "proxy/process/server_names.h"

#include "proxy/base/log.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

namespace tw::process {

namespace {

bool is_done(const std::future<ServerAddresses>& addresses) {
    return addresses.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
}

/// Calls `lookup` on a separate thread, because resolving may block for a long time. The thread may
/// outlive the returned future. The future's value is empty if `lookup` throws or no thread can be
/// started.
std::future<ServerAddresses> start_lookup(NameLookup lookup) {
    std::packaged_task<ServerAddresses()> task{[lookup = std::move(lookup)] {
        try {
            return lookup();
        } catch (const std::exception&) {
            return ServerAddresses{}; // treated like a name that does not resolve
        }
    }};
    auto addresses = task.get_future();
    try {
        std::thread{std::move(task)}.detach();
    } catch (const std::system_error&) {
        std::promise<ServerAddresses> none;
        none.set_value({});
        return none.get_future();
    }
    return addresses;
}

} // namespace

std::optional<ServerNameResolver::Endpoint> ServerNameResolver::on_second(Time now, bool silent) {
    if (lookup_in_progress_.valid()) {
        if (!is_done(lookup_in_progress_)) {
            return std::nullopt;
        }
        const ServerAddresses addresses = lookup_in_progress_.get();
        if (addresses.empty() || std::ranges::find(addresses, current_) != addresses.end()) {
            return std::nullopt;
        }
        return addresses.front();
    }
    if (now - last_lookup_ < (silent ? kSilentLookupInterval : kLookupInterval)) {
        return std::nullopt;
    }
    last_lookup_ = now;
    lookup_in_progress_ = start_lookup(lookup_);
    return std::nullopt;
}

std::string host_and_port(const relay::ServerOptions& where) {
    boost::system::error_code is_name;
    static_cast<void>(boost::asio::ip::make_address(where.host, is_name));
    return is_name ? fmt::format("{}:{}", where.host, where.port) : std::string{};
}

ServerAddressUpdater::ServerAddressUpdater(relay::Relay& relay, relay::ServerIndex index,
                                           ConfiguredServer served)
    : relay_{&relay}, index_{index}, served_{std::move(served)} {
    if (!host_and_port(served_.options).empty()) {
        name_resolver_.emplace(
            [host = served_.options.host, port = served_.options.port] {
                return resolve_answering_addresses(host, port, AnswersWanted::all);
            },
            base::to_asio_endpoint(relay.server_endpoint(index)), std::chrono::steady_clock::now());
    }
}

std::optional<base::Endpoint> ServerAddressUpdater::on_second(const relay::Counters& counters,
                                                              bool log_silence) {
    const auto now = std::chrono::steady_clock::now();
    const SilenceDetector::Change change = silence_detector_.on_second(now, counters);
    if (log_silence) {
        const std::string address = base::to_string(relay_->server_endpoint(index_));
        log_silence_change(
            change, served_.name.empty() ? address : fmt::format("{} ({})", served_.name, address),
            silence_detector_.silence(), now);
    }
    if (!name_resolver_) {
        return std::nullopt;
    }
    const auto moved = name_resolver_->on_second(now, silence_detector_.is_silent());
    if (!moved) {
        return std::nullopt;
    }
    try {
        relay_->set_server_address(*moved, index_);
    } catch (const relay::StartError& error) {
        if (rejected_address_ != moved) {
            log::warn("{} now resolves to {}, which cannot be used: {}", served_.options.host,
                      base::to_string(*moved), error.what());
        }
        rejected_address_ = moved;
        return std::nullopt;
    }
    rejected_address_.reset();
    name_resolver_->set_current_address(*moved);
    log::info("the server {} is now at {}; new sessions go there", served_.options.host,
              base::to_string(*moved));
    return relay_->server_endpoint(index_);
}

NameLookup UnresolvedServers::make_system_lookup(const relay::ServerOptions& where) {
    return [host = where.host, port = where.port] {
        return resolve_answering_addresses(host, port, AnswersWanted::one);
    };
}

void UnresolvedServers::add_server(const ConfiguredServer& server) {
    if (std::ranges::find(pending_, server, &UnresolvedServer::server) == pending_.end()) {
        pending_.push_back({server, start_lookup(make_lookup_(server.options))});
    }
}

void UnresolvedServers::remove_unwanted_servers(const std::vector<ConfiguredServer>& wanted) {
    std::erase_if(pending_, [&](const UnresolvedServer& each) {
        return std::ranges::find(wanted, each.server) == wanted.end();
    });
}

std::vector<UnresolvedServers::ResolvedServer> UnresolvedServers::take_resolved_servers() {
    const auto done =
        std::stable_partition(pending_.begin(), pending_.end(), [](const UnresolvedServer& each) {
            return !is_done(each.addresses);
        });
    std::vector<ResolvedServer> arrived;
    for (auto each = done; each != pending_.end(); ++each) {
        arrived.push_back({std::move(each->server), each->addresses.get()});
    }
    pending_.erase(done, pending_.end());
    return arrived;
}

} // namespace tw::process
