#include "proxy/relay/observation.h"

namespace tw::relay {

Counters totals(const Observation& observation) noexcept {
    Counters sum;
    for (const LiveCounters& live : observation.counters) {
        accumulate(sum, live);
    }
    return sum;
}

} // namespace tw::relay
