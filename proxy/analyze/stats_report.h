#pragma once

#include "proxy/record/stats.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tw::analyze {

/// The data of a traffic report: losses, snapshot rates, and bytes by message and item type.
struct StatsReport {
    std::vector<std::string> captures;
    std::uint32_t sessions = 0;
    std::int64_t duration_ns = 0;
    const record::SessionStats* totals = nullptr;
    const record::ByteLedger* ledger = nullptr;
};

[[nodiscard]] std::string stats_table(const StatsReport& report);
/// Returns the report as one JSON object, with keys as in records.
[[nodiscard]] std::string stats_json(const StatsReport& report);

/// Returns the totals of captures as text: sessions, snapshots, and a line for each finding that
/// occurred. If other object sizes may explain snapshots that could not be decoded, the last line
/// recommends `sizes_command`, the command that searches for such sizes.
[[nodiscard]] std::string totals_text(const std::vector<std::string>& captures,
                                      const record::SessionStats& totals, std::uint32_t sessions,
                                      std::string_view sizes_command);

} // namespace tw::analyze
