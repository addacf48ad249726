#include "proxy/relay/counters.h"

#include <algorithm>

namespace tw::relay {

namespace {

using Sum = NewClientTotals<std::uint64_t>;
constexpr auto kSessions = NewClientCounterUnit::sessions;
constexpr auto kDatagrams = NewClientCounterUnit::datagrams;

constexpr NewClientCounterInfo kNewClientCounters[]{
    {"begun", kSessions, "admitted without proof", &Sum::begun},
    {"proven", kSessions, "returned what the server told them", &Sum::verified},
    {"players", kSessions, "proven, and the server plays with them", &Sum::players},
    {"weak", kSessions, "let in by the server without proof", &Sum::weak},
    {"connless", kSessions, "queries without a connection", &Sum::connless},
    {"expired", kSessions, "proved nothing in time", &Sum::expired},
    {"displaced", kSessions, "replaced, unverified, by the next", &Sum::displaced},
    {"flood", kDatagrams, "too many from one address", &Sum::flood},
    {"crowd", kDatagrams, "too many unknown clients at once", &Sum::crowd},
    {"rate", kDatagrams, "too many from one session", &Sum::rate},
    {"own", kDatagrams, "sent in the proxy's or the server's own name", &Sum::own},
    {"address", kDatagrams, "their address has all sessions that it may have", &Sum::address},
};

/// Returns the counters in the order of declaration. All members of Totals have the type Number.
template <typename TotalsOf, typename Number>
std::span<Number> cells_of(TotalsOf& totals) {
    static_assert(sizeof totals % sizeof(Number) == 0 && alignof(TotalsOf) == alignof(Number));
    return {reinterpret_cast<Number*>(&totals), sizeof totals / sizeof(Number)};
}

static_assert(sizeof(LiveCounters) == sizeof(Counters));

} // namespace

std::span<const NewClientCounterInfo> new_client_counter_table() noexcept {
    return kNewClientCounters;
}

void accumulate(Counters& sum, const LiveCounters& live) noexcept {
    const auto from = cells_of<const LiveCounters, const Counter>(live);
    const auto to = cells_of<Counters, std::uint64_t>(sum);
    for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] += from[i].value();
    }
}

void add_counters(LiveCounters& live, const Counters& counters) noexcept {
    const auto from = cells_of<const Counters, const std::uint64_t>(counters);
    const auto to = cells_of<LiveCounters, Counter>(live);
    for (std::size_t i = 0; i < to.size(); ++i) {
        to[i].add(from[i]);
    }
}

Counters totals(const ObserverSharedMemory& observation) noexcept {
    const std::size_t more = observation.more_servers.load(std::memory_order_relaxed);
    Counters sum;
    for (std::size_t i = 0; i < std::min(more + 1, kMaxServers) * kMaxThreads; ++i) {
        accumulate(sum, observation.counters[i]);
    }
    return sum;
}

Counters totals_of(const ObserverSharedMemory& observation, ServerIndex server) noexcept {
    Counters sum;
    const std::span all{observation.counters};
    for (const LiveCounters& live : all.subspan(server * std::size_t{kMaxThreads}, kMaxThreads)) {
        accumulate(sum, live);
    }
    return sum;
}

} // namespace tw::relay
