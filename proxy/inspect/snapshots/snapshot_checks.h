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

/// Warns before snapshots exceed a limit: reports items and bytes, their trend and the growing
/// type. Does nothing while less than half of a limit is used.
class SnapshotBudget {
  public:
    /// A limit is reported if it would be reached within this time at the current rate.
    static constexpr snapshot::Tick kSoon = 60 * 50;
    /// The rate is measured over at least this time, at most four times as long.
    static constexpr snapshot::Tick kTrend = 5 * 50;

    void look_at(const record::SnapshotRecord& record, Reporter& reporter) {
        if (record.items.size() < snapshot::kMaxItems / 2 && record.items.data().size() < kManyInts)
            [[likely]] {
            return;
        }
        examine(record, reporter);
    }

  private:
    /// Half of the ints that fit into the byte limit.
    static constexpr std::size_t kManyInts = snapshot::kMaxSnapshotBytes / 8;

    /// An earlier snapshot, to compare the sizes per type with.
    struct Sample {
        snapshot::Tick tick = 0;
        std::vector<std::uint32_t> keys;
        std::vector<std::uint32_t> ends;
    };

    struct Limit;

    void examine(const record::SnapshotRecord& record, Reporter& reporter);
    void take_sample(const record::SnapshotRecord& record);
    void warn_of_limit(const Limit& limit, const record::SnapshotRecord& record,
                       Reporter& reporter);
    void report_exceeded(const Limit& limit, const record::SnapshotRecord& record,
                         Reporter& reporter);

    Sample sample_;
    std::array<bool, 2> told_{}; ///< items, bytes: reported since the sample was taken
    bool full_ = false;
};

/// Checks verified snapshots for limits that are near, types without a descriptor, and characters
/// in impossible places. Reports when a problem begins, not at each tick.
class SnapshotChecks {
  public:
    /// Precondition: the snapshot was rebuilt.
    void look_at(const record::SnapshotRecord& record, Reporter& reporter);

    /// The following snapshots belong to another map, or some were missed. Reported unknown types
    /// stay reported.
    void begin_anew();

  private:
    void check_limits(const record::SnapshotRecord& record, Reporter& reporter);
    void check_world(const record::SnapshotRecord& record, Reporter& reporter);
    void check_types(const record::SnapshotRecord& record, Reporter& reporter);

    /// Characters with higher ids are not checked for impossible places.
    static constexpr std::size_t kMaxClients = 128;
    /// Number of unknown types reported one by one, more than any mod has. Further ones are only
    /// counted.
    static constexpr std::size_t kMaxUnknownTypes = 64;

    std::bitset<kMaxClients> misplaced_;
    bool near_cap_ = false;
    SnapshotBudget budget_;
    std::vector<std::uint16_t> unknown_types_; ///< unknown types that were reported
};

} // namespace tw::inspect
