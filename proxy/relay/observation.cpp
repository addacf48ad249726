#include "proxy/relay/observation.h"

#include <algorithm>
#include <span>

namespace tw::relay {

Counters totals(const Observation& observation) noexcept {
    const std::size_t more = observation.more_servers.load(std::memory_order_relaxed);
    Counters sum;
    for (std::size_t i = 0; i < std::min(more + 1, kMaxServers) * kMaxThreads; ++i) {
        accumulate(sum, observation.counters[i]);
    }
    return sum;
}

Counters totals_of(const Observation& observation, ServerIndex server) noexcept {
    Counters sum;
    const std::span all{observation.counters};
    for (const LiveCounters& live : all.subspan(server * std::size_t{kMaxThreads}, kMaxThreads)) {
        accumulate(sum, live);
    }
    return sum;
}

} // namespace tw::relay
