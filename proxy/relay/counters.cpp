#include "proxy/relay/counters.h"

#include <cstddef>

namespace tw::relay {

void accumulate(Counters& sum, const LiveCounters& live) noexcept {
    for (std::size_t i = 0; i < sum.directions.size(); ++i) {
        auto& to = sum.directions[i];
        const auto& from = live.directions[i];
        to.datagrams += from.datagrams.value();
        to.bytes += from.bytes.value();
        to.dropped += from.dropped.value();
        to.send_errors += from.send_errors.value();
        to.copies_lost += from.copies_lost.value();
    }
    for (std::size_t i = 0; i < sum.fates.size(); ++i) {
        auto& to = sum.fates[i];
        const auto& from = live.fates[i];
        to.datagrams += from.datagrams.value();
        to.lost += from.lost.value();
        to.rate_dropped += from.rate_dropped.value();
        to.queue_full += from.queue_full.value();
        to.duplicated += from.duplicated.value();
        to.reordered += from.reordered.value();
    }
    sum.sessions_opened += live.sessions_opened.value();
    sum.sessions_closed += live.sessions_closed.value();
    sum.sessions_refused += live.sessions_refused.value();
    sum.sessions_failed += live.sessions_failed.value();
    sum.icmp_refused += live.icmp_refused.value();
    sum.receive_errors += live.receive_errors.value();
    sum.truncated += live.truncated.value();
    sum.kernel_dropped += live.kernel_dropped.value();
}

} // namespace tw::relay
