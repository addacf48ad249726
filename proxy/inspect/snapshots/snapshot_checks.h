#pragma once

#include "proxy/inspect/reporter.h"
#include "snapshot/snapshot.h"

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tw::inspect {

/// What snapshots will not hold for much longer: items and bytes against their limits, with the
/// trend and the type that grows. Only looks where half of a limit is used.
class SnapshotBudget {
  public:
    /// Who fills a limit within this time, at the rate of the last seconds, is reported.
    static constexpr snapshot::Tick kSoon = 60 * 50;
    /// The rate is taken over at least so long, and at most four times as long.
    static constexpr snapshot::Tick kTrend = 5 * 50;

    void look_at(const record::SnapshotRecord& record, Reporter& reporter) {
        if (record.items.size() < snapshot::kMaxItems / 2 && record.items.data().size() < kManyInts)
            [[likely]] {
            return;
        }
        examine(record, reporter);
    }

  private:
    /// Half of what a snapshot's bytes can hold.
    static constexpr std::size_t kManyInts = snapshot::kMaxSnapshotBytes / 8;

    /// A snapshot to compare with.
    struct Sample {
        snapshot::Tick tick = 0;
        std::vector<std::uint32_t> keys;
        std::vector<std::uint32_t> ends;
    };

    struct Limit;

    void examine(const record::SnapshotRecord& record, Reporter& reporter);
    void take_sample(const record::SnapshotRecord& record);
    void foretell(const Limit& limit, const record::SnapshotRecord& record, Reporter& reporter);
    void tell_gone(const Limit& limit, const record::SnapshotRecord& record, Reporter& reporter);

    Sample sample_;
    std::array<bool, 2> told_{}; ///< of items, bytes: since the sample began
    bool full_ = false;
};

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
