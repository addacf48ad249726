#include "proxy/run/followed_server.h"

#include "proxy/run/answering.h"

#include <chrono>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace tw::run {

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
            relay::to_asio(relay.server_endpoint(index)), std::chrono::steady_clock::now());
    }
}

std::optional<relay::Endpoint> FollowedServer::follow(const relay::Counters& counters) {
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
                         relay::to_string(*moved), error.what());
        }
        refused_ = moved;
        return std::nullopt;
    }
    refused_.reset();
    name_->set_current(*moved);
    spdlog::info("the server {} is now at {}; new sessions go there", served_.where.host,
                 relay::to_string(*moved));
    return relay_->server_endpoint(index_);
}

void FollowedServer::report(const relay::Counters& counters) {
    const std::string address = relay::to_string(relay_->server_endpoint(index_));
    report_.check(std::chrono::steady_clock::now(), counters,
                  served_.name.empty() ? address : fmt::format("{} ({})", served_.name, address),
                  nullptr, {}, {});
}

} // namespace tw::run
