#include "proxy/record/stats.h"

namespace tw::record {

void DirectionStats::merge(const DirectionStats& other) {
    merge_cells<DirectionCounters>(*this, other);
    merge_cells<DirectionSpreads>(*this, other);
}

void SessionStats::merge(const SessionStats& other) {
    merge_cells<SnapshotCounters>(*this, other);
    merge_cells<SnapshotSpreads>(*this, other);
    merge_cells<SessionSpreads>(*this, other);
    merge_cells<SessionCounters>(*this, other);
    for (std::size_t i = 0; i < directions.size(); ++i) {
        directions[i].merge(other.directions[i]);
    }
    for (std::size_t i = 0; i < findings.size(); ++i) {
        findings[i] += other.findings[i];
    }
}

} // namespace tw::record
