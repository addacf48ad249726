#include "proxy/run/takeover_report.h"

#include "proxy/relay/endpoint.h"

#include <algorithm>
#include <cstddef>

#include <spdlog/spdlog.h>

namespace tw::run {

void report_takeover(const HandoverTaker& taker, const relay::Relay& relay, unsigned threads) {
    const auto& taken = taker.taken();
    std::size_t sets = taken.size() < relay.next_server() ? threads : 0; // new ones have all
    for (const auto& [there, number, host] : taken) {
        const relay::Endpoint now = relay.server_endpoint(number);
        if (now != there->server) {
            spdlog::info("the server {} is now at {}; new sessions go there", host,
                         relay::to_string(now));
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

} // namespace tw::run
