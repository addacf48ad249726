#include "proxy/record/stats.h"

namespace tw::record {

void DirectionStats::merge(const DirectionStats& other) {
    static constexpr auto kCounters = {
        &DirectionStats::datagrams,
        &DirectionStats::bytes,
        &DirectionStats::malformed,
        &DirectionStats::compressed,
        &DirectionStats::compressed_bytes,
        &DirectionStats::decompressed_bytes,
        &DirectionStats::chunks,
        &DirectionStats::messages,
        &DirectionStats::vital,
        &DirectionStats::resent,
        &DirectionStats::duplicates,
        &DirectionStats::gaps,
        &DirectionStats::recovered,
        &DirectionStats::reordered,
        &DirectionStats::resend_requests,
        &DirectionStats::control,
        &DirectionStats::connless,
        &DirectionStats::wrong_token,
    };
    for (const auto counter : kCounters) {
        this->*counter += other.*counter;
    }
    jitter_us.merge(other.jitter_us);
}

void SessionStats::merge(const SessionStats& other) {
    static constexpr auto kCounters = {
        &SessionStats::snapshots,   &SessionStats::verified,     &SessionStats::mismatched,
        &SessionStats::undecodable, &SessionStats::unknown_base, &SessionStats::incomplete,
        &SessionStats::repeated,    &SessionStats::full,         &SessionStats::empty,
        &SessionStats::parts,       &SessionStats::delta_bytes,  &SessionStats::ticks_skipped,
        &SessionStats::missed,      &SessionStats::map_changes,  &SessionStats::gap_lost,
    };
    static constexpr auto kSpreads = {
        &SessionStats::items,          &SessionStats::snapshot_bytes,
        &SessionStats::delta_distance, &SessionStats::snapshot_interval_us,
        &SessionStats::ack_lag_ticks,  &SessionStats::input_margin_ms,
    };
    for (const auto counter : kCounters) {
        this->*counter += other.*counter;
    }
    for (const auto spread : kSpreads) {
        (this->*spread).merge(other.*spread);
    }
    for (std::size_t i = 0; i < directions.size(); ++i) {
        directions[i].merge(other.directions[i]);
    }
    for (std::size_t i = 0; i < findings.size(); ++i) {
        findings[i] += other.findings[i];
    }
}

} // namespace tw::record
