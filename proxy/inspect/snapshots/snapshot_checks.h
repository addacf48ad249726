#pragma once

#include "proxy/inspect/reporter.h"
#include "snapshot/snapshot.h"

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tw::inspect {

/// Warns before a server's snapshots exceed the limit of items or bytes. A warning contains the
/// current number of items or bytes, its growth and the item type that grows. While snapshots use
/// less than half of both limits, nothing is examined.
class SnapshotLimitCheck {
  public:
    /// A warning is reported if snapshots would reach a limit within this time (ticks) at the
    /// current rate.
    static constexpr snapshot::Tick kWarningTicks = 60 * 50;
    /// The snapshots' growth rate is measured over the last one to four intervals of this many
    /// ticks.
    static constexpr snapshot::Tick kTrendTicks = 5 * 50;

    void check_snapshot(const record::SnapshotRecord& record, Reporter& reporter) {
        if (record.items.size() < snapshot::kMaxItems / 2 &&
            record.items.data().size() < kHalfOfInts) [[likely]] {
            return;
        }
        compare_with_limits(record, reporter);
    }

  private:
    /// A snapshot with fewer ints than this has less than half of the allowed bytes.
    static constexpr std::size_t kHalfOfInts = snapshot::kMaxSnapshotBytes / 8;

    struct Limit;

    void compare_with_limits(const record::SnapshotRecord& record, Reporter& reporter);
    void store_trend_sample(const record::SnapshotRecord& record);
    void warn_of_approaching_limit(const Limit& limit, const record::SnapshotRecord& record,
                                   Reporter& reporter);
    void report_dropped_items(const Limit& limit, const record::SnapshotRecord& record,
                              Reporter& reporter);

    /// An earlier snapshot, from which the growth per type is computed; empty if there is none.
    snapshot::Snapshot sample_snapshot_;
    snapshot::Tick sample_tick_ = 0;
    /// Whether growth was reported. The array's index is Limit::index.
    std::array<bool, 2> is_growth_reported_{};
    bool was_limit_reached_ = false; ///< the previous snapshot reached a limit
};

/// Checks verified snapshots for sizes near a limit, types without a descriptor, and characters at
/// impossible positions. A problem is reported when it begins, not at each tick.
class SnapshotChecks {
  public:
    /// Checks one snapshot. Precondition: the snapshot was rebuilt.
    void check_snapshot(const record::SnapshotRecord& record, Reporter& reporter);

    /// Must be called if the next snapshots belong to another map, or if snapshots were missed.
    /// Problems are then reported again, except unknown types.
    void forget_reported_problems();

  private:
    void check_limits(const record::SnapshotRecord& record, Reporter& reporter);
    void check_character_positions(const record::SnapshotRecord& record, Reporter& reporter);
    /// `keys`: the keys of the items with numbered types.
    void check_unknown_types(const record::SnapshotRecord& record,
                             std::span<const std::uint32_t> keys, Reporter& reporter);

    /// Characters with this client id or a higher one are not checked for impossible positions.
    static constexpr std::size_t kMaxClients = 128;
    /// The most unknown types that are reported. Further unknown types are only counted.
    static constexpr std::size_t kMaxUnknownTypes = 64;

    std::bitset<kMaxClients> misplaced_characters_;
    bool was_near_limit_ = false;
    /// The previous snapshot had the descriptors of all its types.
    bool had_all_descriptors_ = false;
    SnapshotLimitCheck limit_check_;
    std::vector<std::uint16_t> unknown_types_; ///< unknown types that were reported
};

} // namespace tw::inspect
