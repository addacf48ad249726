#pragma once

#include "proxy/report/recorded_stays.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tw::report {

/// Which stay of one view is which of the other.
struct StayPairs {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    std::vector<std::size_t> only_a;
    std::vector<std::size_t> only_b;
};

/// Pairs first those that show the same: at half or more of the ticks that were sampled in both, all
/// items are equal. Then those of the same client and map, then those of the same map: each with the one
/// that has most of the same items, of the same ticks, and as many snapshots. Then the others, in the
/// order in which they appear. With a session only its stays count.
[[nodiscard]] StayPairs pair_stays(const std::vector<Stay>& a, const std::vector<Stay>& b,
                                   std::optional<std::int64_t> session_a,
                                   std::optional<std::int64_t> session_b);

} // namespace tw::report
