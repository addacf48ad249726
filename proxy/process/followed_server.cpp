#include "proxy/process/followed_server.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace tw::process {

struct NameLookup::Result {
    std::vector<Endpoint> addresses;
    std::atomic<bool> done{false}; ///< after true, the lookup's thread does not access `addresses`
};

std::optional<NameLookup> NameLookup::start(Lookup lookup) {
    auto result = std::make_shared<Result>();
    try {
        std::thread{[result, lookup = std::move(lookup)] {
            try {
                result->addresses = lookup();
            } catch (const std::exception&) {
                result->addresses.clear(); // treated like a name that does not resolve
            }
            result->done.store(true, std::memory_order_release);
        }}.detach();
    } catch (const std::system_error&) {
        return std::nullopt;
    }
    return NameLookup{std::move(result)};
}

bool NameLookup::is_done() const {
    return result_->done.load(std::memory_order_acquire);
}

const std::vector<NameLookup::Endpoint>& NameLookup::addresses() const {
    return result_->addresses;
}

ServerNameResolver::ServerNameResolver(Lookup lookup, Endpoint current, Time now)
    : lookup_{std::move(lookup)}, current_{std::move(current)}, last_lookup_{now} {}

std::optional<ServerNameResolver::Endpoint> ServerNameResolver::on_second(Time now, bool silent) {
    if (lookup_in_progress_) {
        if (!lookup_in_progress_->is_done()) {
            return std::nullopt;
        }
        const NameLookup search = *std::exchange(lookup_in_progress_, std::nullopt);
        const auto& addresses = search.addresses();
        if (addresses.empty() || std::ranges::find(addresses, current_) != addresses.end()) {
            return std::nullopt;
        }
        return addresses.front();
    }
    if (now - last_lookup_ < (silent ? kSilentInterval : kInterval)) {
        return std::nullopt;
    }
    last_lookup_ = now;
    // if no thread can be started, the next call tries again
    lookup_in_progress_ = NameLookup::start(lookup_);
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
    if (!host_and_port(served_.where).empty()) {
        name_.emplace(
            [host = served_.where.host, port = served_.where.port] {
                return resolve_answering_addresses(host, port, AnswersWanted::all);
            },
            base::to_asio(relay.server_endpoint(index)), std::chrono::steady_clock::now());
    }
}

std::optional<base::Endpoint>
ServerAddressUpdater::update_address(const relay::Counters& counters) {
    if (!name_) {
        return std::nullopt;
    }
    const auto now = std::chrono::steady_clock::now();
    static_cast<void>(
        watch_.on_second(now, {.to_server = counters.directions[0].datagrams - counters.strays,
                               .from_server = counters.directions[1].datagrams,
                               .refused = counters.icmp_refused}));
    const auto moved = name_->on_second(now, watch_.is_silent());
    if (!moved) {
        return std::nullopt;
    }
    try {
        relay_->set_server(*moved, index_);
    } catch (const relay::StartError& error) {
        if (refused_ != moved) {
            spdlog::warn("{} now resolves to {}, which cannot be used: {}", served_.where.host,
                         base::to_string(*moved), error.what());
        }
        refused_ = moved;
        return std::nullopt;
    }
    refused_.reset();
    name_->set_current(*moved);
    spdlog::info("the server {} is now at {}; new sessions go there", served_.where.host,
                 base::to_string(*moved));
    return relay_->server_endpoint(index_);
}

void ServerAddressUpdater::log_silence(const relay::Counters& counters) {
    const std::string address = base::to_string(relay_->server_endpoint(index_));
    report_.check(std::chrono::steady_clock::now(), counters,
                  served_.name.empty() ? address : fmt::format("{} ({})", served_.name, address),
                  nullptr, {}, {});
}

NameLookup::Lookup PendingServers::system_lookup(const relay::ServerOptions& where) {
    return [host = where.host, port = where.port] {
        return resolve_answering_addresses(host, port, AnswersWanted::one);
    };
}

void PendingServers::add(const ConfiguredServer& server) {
    if (std::ranges::find(pending_, server, &Pending::server) == pending_.end()) {
        pending_.push_back({server, NameLookup::start(make_lookup_(server.where))});
    }
}

void PendingServers::keep_only(const std::vector<ConfiguredServer>& wanted) {
    std::erase_if(pending_, [&](const Pending& each) {
        return std::ranges::find(wanted, each.server) == wanted.end();
    });
}

std::vector<PendingServers::Resolved> PendingServers::take_resolved() {
    const auto is_under_way = [](const Pending& each) {
        return each.search && !each.search->is_done();
    };
    const auto done = std::stable_partition(pending_.begin(), pending_.end(), is_under_way);
    std::vector<Resolved> arrived;
    for (auto each = done; each != pending_.end(); ++each) {
        const bool known = each->search && !each->search->addresses().empty();
        arrived.push_back(
            {std::move(each->server),
             known ? std::optional{each->search->addresses().front()} : std::nullopt});
    }
    pending_.erase(done, pending_.end());
    return arrived;
}

} // namespace tw::process
