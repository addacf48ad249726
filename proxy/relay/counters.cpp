#include "proxy/relay/counters.h"

#include <algorithm>

namespace tw::relay {

namespace {

using NewClientSums = NewClientTotals<std::uint64_t>;
constexpr auto kSessions = NewClientCounterUnit::sessions;
constexpr auto kDatagrams = NewClientCounterUnit::datagrams;

constexpr NewClientCounterInfo kNewClientCounters[]{
    {"begun", kSessions, "admitted without proof", &NewClientSums::begun_sessions},
    {"proven", kSessions, "returned what the server told them", &NewClientSums::verified_sessions},
    {"players", kSessions, "proven, and the server plays with them",
     &NewClientSums::player_sessions},
    {"weak", kSessions, "let in by the server without proof",
     &NewClientSums::unverified_player_sessions},
    {"connless", kSessions, "queries without a connection", &NewClientSums::connless_sessions},
    {"expired", kSessions, "proved nothing in time", &NewClientSums::expired_sessions},
    {"displaced", kSessions, "replaced, unverified, by the next",
     &NewClientSums::displaced_sessions},
    {"flood", kDatagrams, "too many from one address", &NewClientSums::rejected_by_network_limit},
    {"crowd", kDatagrams, "too many unknown clients at once",
     &NewClientSums::rejected_among_too_many},
    {"rate", kDatagrams, "too many from one session", &NewClientSums::rejected_by_session_rate},
    {"own", kDatagrams, "sent in the proxy's or the server's own name",
     &NewClientSums::rejected_own_address},
    {"address", kDatagrams, "their address has all sessions that it may have",
     &NewClientSums::rejected_by_address_limit},
};

/// Returns the counters in the order of declaration. All members of Totals have the type Number.
template <typename TotalsOf, typename Number>
std::span<Number> counters_in(TotalsOf& totals) {
    static_assert(sizeof totals % sizeof(Number) == 0 && alignof(TotalsOf) == alignof(Number));
    return {reinterpret_cast<Number*>(&totals), sizeof totals / sizeof(Number)};
}

static_assert(sizeof(LiveCounters) == sizeof(Counters));

/// Adds the current counters of one thread to `sum`.
void accumulate(Counters& sum, const LiveCounters& live) noexcept {
    const auto from = counters_in<const LiveCounters, const Counter>(live);
    const auto to = counters_in<Counters, std::uint64_t>(sum);
    for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] += from[i].value();
    }
}

} // namespace

std::span<const NewClientCounterInfo> new_client_counter_table() noexcept {
    return kNewClientCounters;
}

void add_counters(LiveCounters& live, const Counters& counters) noexcept {
    const auto from = counters_in<const Counters, const std::uint64_t>(counters);
    const auto to = counters_in<LiveCounters, Counter>(live);
    for (std::size_t i = 0; i < to.size(); ++i) {
        to[i].add(from[i]);
    }
}

Counters totals(const ObserverSharedMemory& observation) noexcept {
    const std::size_t more = observation.num_added_servers.load(std::memory_order_relaxed);
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
