#pragma once

#include "proxy/report/recorded_item.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tw::report {

/// How much of what two stays showed at the same ticks is the same.
struct Likeness {
    std::uint64_t ticks = 0; ///< sampled in both
    std::uint64_t equal = 0; ///< of these: all items are the same
    double items = 0;        ///< share of the items that are the same, as an estimate; 0 to 1
};

/// A few of a stay's snapshots, as hashes, by which it is found again among others of the same game:
/// the first ones, and of the rest as many ticks as there is room for, spread over all of it. Two stays
/// choose the same ticks, or one of them every other one, and so on.
class StaySamples {
  public:
    /// Always kept: stays that were cut off early have no others in common with a long one.
    static constexpr std::size_t kFirst = 32;
    /// Besides these. 1,000 sessions take less than 4 MB.
    static constexpr std::size_t kMost = 256;

    /// Ticks ascend.
    void add(snapshot::Tick tick, const RecordedItems& items);

    [[nodiscard]] Likeness compare(const StaySamples& other) const;

    [[nodiscard]] std::size_t size() const { return samples_.size(); }

  private:
    struct Sample {
        snapshot::Tick tick = 0;
        std::uint32_t all = 0; ///< of all items
        std::uint32_t least =
            0; ///< the least hash of an item, which another tick makes of another one
    };

    std::vector<Sample> samples_;
    std::uint64_t every_ = 1; ///< one tick of so many is taken
};

} // namespace tw::report
