#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/inspect/snapshot_budget.h"

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tw::inspect {

/// What verified snapshots should not show: limits that are near, types without a descriptor,
/// characters where none can be. Told when it begins, not once per tick.
class SnapshotChecks {
  public:
    /// Precondition: the snapshot was rebuilt.
    void look_at(const record::SnapshotRecord& record, Reporter& reporter);

    /// The snapshots that follow are of another map, or others were missed. Unknown types that were
    /// reported stay reported.
    void begin_anew();

  private:
    void check_limits(const record::SnapshotRecord& record, Reporter& reporter);
    void check_world(const record::SnapshotRecord& record, Reporter& reporter);
    void check_types(const record::SnapshotRecord& record, Reporter& reporter);

    /// Characters beyond this id are not looked at for misplacement.
    static constexpr std::size_t kMaxClients = 128;
    /// Unknown types that are reported one by one; no mod has as many. Further ones are counted.
    static constexpr std::size_t kMaxUnknownTypes = 64;

    std::bitset<kMaxClients> misplaced_;
    bool near_cap_ = false;
    SnapshotBudget budget_;
    std::vector<std::uint16_t> unknown_types_; ///< that were reported
};

} // namespace tw::inspect
