#pragma once

#include "proxy/record/stats.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tw::analyze {

/// What `twscope stats` reports.
struct StatsReport {
    std::vector<std::string> captures;
    std::uint32_t sessions = 0;
    std::int64_t duration_ns = 0;
    const record::SessionStats* totals = nullptr;
    const record::Ledger* ledger = nullptr;
};

/// Part of a whole; nothing of nothing is 0.
[[nodiscard]] constexpr double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Aligned columns for people.
[[nodiscard]] std::string stats_table(const StatsReport& report);
/// One JSON object, keys as in records.
[[nodiscard]] std::string stats_json(const StatsReport& report);

/// What captures held, for people: sessions, snapshots, and a line for each finding that occurred.
[[nodiscard]] std::string totals_text(const std::vector<std::string>& captures,
                                      const record::SessionStats& totals, std::uint32_t sessions);

} // namespace tw::analyze
