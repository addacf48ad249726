#pragma once

#include "snapshot/snapshot.h"

#include <cstdint>
#include <vector>

namespace tw::game {

/// Where an item of some bases stands: which one, and the index there.
class BasePlace {
  public:
    static constexpr std::uint32_t kMostBases = 8;

    [[nodiscard]] static constexpr std::uint32_t make(std::size_t base, std::size_t index) {
        return static_cast<std::uint32_t>(base << kShift | index);
    }

    [[nodiscard]] static constexpr std::size_t base_of(std::uint32_t place) {
        return place >> kShift;
    }

    [[nodiscard]] static constexpr std::size_t index_of(std::uint32_t place) {
        return place & ((1U << kShift) - 1);
    }

  private:
    static constexpr unsigned kShift = 28; ///< snapshots have 1024 items
};

/// Items that two snapshots have alike, one behind the other in both.
struct SharedRun {
    std::uint32_t base = 0; ///< BasePlace of the first one in the one
    std::uint32_t item = 0; ///< its index in the other
    std::uint32_t count = 0;

    friend bool operator==(const SharedRun&, const SharedRun&) = default;
};

/// What of a snapshot another one has alike, and what it does not.
struct SharedItems {
    std::vector<SharedRun> runs{};
    std::vector<std::uint32_t> others{}; ///< indices of items that `base` does not have like this

    /// Appends to `runs`, and replaces `others`. `number`: of the base. Ints are compared in
    /// blocks, so that snapshots that are nearly the same cost an instruction or two for each.
    void find(const snapshot::SnapshotView& base, std::size_t number,
              const snapshot::SnapshotView& items);
};

} // namespace tw::game
