#include "proxy/process/followed_server.h"

#include "proxy/process/server_probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace tw::process {

struct NameSearch::Result {
    std::vector<Endpoint> found;
    std::atomic<bool> done{false}; ///< once true, only the owner accesses `found`
};

std::optional<NameSearch> NameSearch::begin(Lookup lookup) {
    auto result = std::make_shared<Result>();
    try {
        std::thread{[result, lookup = std::move(lookup)] {
            try {
                result->found = lookup();
            } catch (const std::exception&) {
                result->found.clear(); // treated as a name that does not resolve
            }
            result->done.store(true, std::memory_order_release);
        }}.detach();
    } catch (const std::system_error&) {
        return std::nullopt;
    }
    return NameSearch{std::move(result)};
}

bool NameSearch::done() const {
    return result_->done.load(std::memory_order_acquire);
}

const std::vector<NameSearch::Endpoint>& NameSearch::found() const {
    return result_->found;
}

ServerName::ServerName(Lookup lookup, Endpoint current, Time now)
    : lookup_{std::move(lookup)}, current_{std::move(current)}, looked_{now} {}

std::optional<ServerName::Endpoint> ServerName::on_second(Time now, bool silent) {
    if (search_) {
        if (!search_->done()) {
            return std::nullopt;
        }
        const NameSearch search = *std::exchange(search_, std::nullopt);
        const auto& found = search.found();
        if (found.empty() || std::find(found.begin(), found.end(), current_) != found.end()) {
            return std::nullopt;
        }
        return found.front();
    }
    if (now - looked_ < (silent ? kSilentInterval : kInterval)) {
        return std::nullopt;
    }
    looked_ = now;
    search_ = NameSearch::begin(lookup_); // nullopt: tried again later
    return std::nullopt;
}

std::string host_name(const relay::ServerOptions& where) {
    boost::system::error_code is_name;
    static_cast<void>(boost::asio::ip::make_address(where.host, is_name));
    return is_name ? fmt::format("{}:{}", where.host, where.port) : std::string{};
}

FollowedServer::FollowedServer(relay::Relay& relay, relay::ServerIndex index, ServedServer served)
    : relay_{&relay}, index_{index}, served_{std::move(served)} {
    if (!host_name(served_.where).empty()) {
        name_.emplace(
            [host = served_.where.host, port = served_.where.port] {
                return resolve_answering(host, port, Enough::all);
            },
            base::to_asio(relay.server_endpoint(index)), std::chrono::steady_clock::now());
    }
}

std::optional<base::Endpoint> FollowedServer::follow(const relay::Counters& counters) {
    if (!name_) {
        return std::nullopt;
    }
    const auto now = std::chrono::steady_clock::now();
    static_cast<void>(
        watch_.on_second(now, {.to_server = counters.directions[0].datagrams - counters.strays,
                               .from_server = counters.directions[1].datagrams,
                               .refused = counters.icmp_refused}));
    const auto moved = name_->on_second(now, watch_.silent());
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

void FollowedServer::report(const relay::Counters& counters) {
    const std::string address = base::to_string(relay_->server_endpoint(index_));
    report_.check(std::chrono::steady_clock::now(), counters,
                  served_.name.empty() ? address : fmt::format("{} ({})", served_.name, address),
                  nullptr, {}, {});
}

NameSearch::Lookup ServerArrivals::system_lookup(const relay::ServerOptions& where) {
    return [host = where.host, port = where.port] {
        return resolve_answering(host, port, Enough::one);
    };
}

void ServerArrivals::expect(const ServedServer& server) {
    if (std::ranges::find(expected_, server, &Expected::server) == expected_.end()) {
        expected_.push_back({server, NameSearch::begin(lookup_of_(server.where))});
    }
}

void ServerArrivals::keep(const std::vector<ServedServer>& wanted) {
    std::erase_if(expected_, [&](const Expected& each) {
        return std::ranges::find(wanted, each.server) == wanted.end();
    });
}

std::vector<ServerArrivals::Arrived> ServerArrivals::take() {
    const auto is_under_way = [](const Expected& each) {
        return each.search && !each.search->done();
    };
    const auto done = std::stable_partition(expected_.begin(), expected_.end(), is_under_way);
    std::vector<Arrived> arrived;
    for (auto each = done; each != expected_.end(); ++each) {
        const bool known = each->search && !each->search->found().empty();
        arrived.push_back({std::move(each->server),
                           known ? std::optional{each->search->found().front()} : std::nullopt});
    }
    expected_.erase(done, expected_.end());
    return arrived;
}

} // namespace tw::process
