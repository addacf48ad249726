#include "proxy/relay/counters.h"

#include <cstddef>

namespace tw::relay {

namespace {

using Sum = AdmissionTotals<std::uint64_t>;
using Live = AdmissionTotals<Counter>;
constexpr auto kSessions = AdmissionUnit::sessions;
constexpr auto kDatagrams = AdmissionUnit::datagrams;

constexpr AdmissionRow kAdmission[]{
    {"begun", kSessions, "given a place without proof", &Sum::begun, &Live::begun},
    {"proven", kSessions, "returned what the server told them", &Sum::proven, &Live::proven},
    {"weak", kSessions, "let in by the server without proof", &Sum::weak, &Live::weak},
    {"connless", kSessions, "asked without a connection", &Sum::connless, &Live::connless},
    {"expired", kSessions, "proved nothing in time", &Sum::expired, &Live::expired},
    {"displaced", kSessions, "left unproven for the next", &Sum::displaced, &Live::displaced},
    {"flood", kDatagrams, "too many of one address", &Sum::flood, &Live::flood},
    {"crowd", kDatagrams, "too many strangers at once", &Sum::crowd, &Live::crowd},
    {"rate", kDatagrams, "too many of one session", &Sum::rate, &Live::rate},
};

} // namespace

std::span<const AdmissionRow> admission_rows() noexcept {
    return kAdmission;
}

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
    for (const AdmissionRow& row : kAdmission) {
        sum.admission.*row.value += (live.admission.*row.live).value();
    }
    sum.sessions_opened += live.sessions_opened.value();
    sum.sessions_closed += live.sessions_closed.value();
    sum.sessions_refused += live.sessions_refused.value();
    sum.sessions_failed += live.sessions_failed.value();
    sum.icmp_refused += live.icmp_refused.value();
    sum.receive_errors += live.receive_errors.value();
    sum.truncated += live.truncated.value();
    sum.kernel_dropped += live.kernel_dropped.value();
    sum.turns += live.turns.value();
}

} // namespace tw::relay
