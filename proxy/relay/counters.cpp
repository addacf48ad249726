#include "proxy/relay/counters.h"

#include <algorithm>

namespace tw::relay {

namespace {

using Sum = AdmissionTotals<std::uint64_t>;
using Live = AdmissionTotals<Counter>;
constexpr auto kSessions = AdmissionUnit::sessions;
constexpr auto kDatagrams = AdmissionUnit::datagrams;

constexpr AdmissionRow kAdmission[]{
    {"begun", kSessions, "admitted without proof", &Sum::begun, &Live::begun},
    {"proven", kSessions, "returned what the server told them", &Sum::proven, &Live::proven},
    {"players", kSessions, "proven, and the server plays with them", &Sum::players, &Live::players},
    {"weak", kSessions, "let in by the server without proof", &Sum::weak, &Live::weak},
    {"connless", kSessions, "queries without a connection", &Sum::connless, &Live::connless},
    {"expired", kSessions, "proved nothing in time", &Sum::expired, &Live::expired},
    {"displaced", kSessions, "replaced, unproven, by the next", &Sum::displaced, &Live::displaced},
    {"flood", kDatagrams, "too many from one address", &Sum::flood, &Live::flood},
    {"crowd", kDatagrams, "too many unknown clients at once", &Sum::crowd, &Live::crowd},
    {"rate", kDatagrams, "too many from one session", &Sum::rate, &Live::rate},
    {"own", kDatagrams, "sent in the proxy's or the server's own name", &Sum::own, &Live::own},
};

const std::uint64_t& of(const AdmissionRow& row, const Sum& totals) {
    return totals.*row.value;
}

std::uint64_t& of(const AdmissionRow& row, Sum& totals) {
    return totals.*row.value;
}

const Counter& of(const AdmissionRow& row, const Live& totals) {
    return totals.*row.live;
}

Counter& of(const AdmissionRow& row, Live& totals) {
    return totals.*row.live;
}

/// Calls `visit` with each counter of `to` and the corresponding counter of `from`.
template <typename Visit, typename To, typename From>
void for_each_counter(Visit&& visit, To& to, const From& from) {
    for (std::size_t i = 0; i < to.directions.size(); ++i) {
        visit(to.directions[i].datagrams, from.directions[i].datagrams);
        visit(to.directions[i].bytes, from.directions[i].bytes);
        visit(to.directions[i].dropped, from.directions[i].dropped);
        visit(to.directions[i].send_errors, from.directions[i].send_errors);
        visit(to.directions[i].copies_lost, from.directions[i].copies_lost);
    }
    for (std::size_t i = 0; i < to.impairment.size(); ++i) {
        visit(to.impairment[i].datagrams, from.impairment[i].datagrams);
        visit(to.impairment[i].lost, from.impairment[i].lost);
        visit(to.impairment[i].rate_dropped, from.impairment[i].rate_dropped);
        visit(to.impairment[i].queue_full, from.impairment[i].queue_full);
        visit(to.impairment[i].duplicated, from.impairment[i].duplicated);
        visit(to.impairment[i].reordered, from.impairment[i].reordered);
    }
    for (const AdmissionRow& row : kAdmission) {
        visit(of(row, to.admission), of(row, from.admission));
    }
    visit(to.sessions_opened, from.sessions_opened);
    visit(to.sessions_closed, from.sessions_closed);
    visit(to.sessions_refused, from.sessions_refused);
    visit(to.sessions_failed, from.sessions_failed);
    visit(to.icmp_refused, from.icmp_refused);
    visit(to.receive_errors, from.receive_errors);
    visit(to.truncated, from.truncated);
    visit(to.rewritten, from.rewritten);
    visit(to.kernel_dropped, from.kernel_dropped);
    visit(to.strays, from.strays);
    visit(to.repeated_answers, from.repeated_answers);
    visit(to.loop_iterations, from.loop_iterations);
}

} // namespace

std::span<const AdmissionRow> admission_rows() noexcept {
    return kAdmission;
}

void accumulate(Counters& sum, const LiveCounters& live) noexcept {
    for_each_counter([](std::uint64_t& to, const Counter& from) { to += from.value(); }, sum, live);
}

void add_counters(LiveCounters& live, const Counters& counters) noexcept {
    for_each_counter([](Counter& to, std::uint64_t from) { to.add(from); }, live, counters);
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
