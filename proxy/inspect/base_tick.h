#pragma once

#include "snapshot/item.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tw::inspect {

/// Tick of the base that a distance on the wire names: any negative one means none.
struct Base {
    snapshot::Tick tick = snapshot::kNoBase;
    bool odd = false; ///< negative, but not -1
};

[[nodiscard]] inline Base base_tick(snapshot::Tick tick, std::int32_t distance) {
    const std::int64_t base = std::int64_t{tick} - distance;
    if (base < 0) {
        return {.tick = snapshot::kNoBase, .odd = base != snapshot::kNoBase};
    }
    // A negative distance names a base of the future; it will not be found.
    constexpr std::int64_t kLast = std::numeric_limits<snapshot::Tick>::max();
    return {.tick = static_cast<snapshot::Tick>(std::min(base, kLast)), .odd = false};
}

} // namespace tw::inspect
