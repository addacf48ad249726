#pragma once

#include "proxy/report/game_comparison.h"
#include "proxy/report/recorded_stays.h"
#include "proxy/report/stay_pairs.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tw::report {

/// What there is to say about two views of a game, A and B.
struct ComparisonReport {
    std::array<std::string, 2> files;
    std::array<const std::vector<Stay>*, 2> stays{};
    const StayPairs* pairs = nullptr;
    const GameComparison* comparison = nullptr;
    std::array<std::uint64_t, 2> unusable{}; ///< snapshots of which not all items are known
    std::array<std::uint64_t, 2> behind{};   ///< snapshots that came late, or twice
};

/// For people.
[[nodiscard]] std::string comparison_text(const ComparisonReport& report);
/// One object, with a line's end.
[[nodiscard]] std::string comparison_json(const ComparisonReport& report);

} // namespace tw::report
