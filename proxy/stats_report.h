#pragma once

#include "proxy/inspect/ledger.h"
#include "proxy/inspect/stats.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw {

/// What `twscope stats` tells.
struct StatsReport {
    std::vector<std::string> captures;
    std::uint32_t sessions = 0;
    std::int64_t duration_ns = 0;
    const inspect::SessionStats* totals = nullptr;
    const inspect::Ledger* ledger = nullptr;
};

/// Part of a whole; nothing of nothing is 0.
[[nodiscard]] constexpr double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// The counters of a direction by the names they have in records.
using DirectionCounter = std::pair<std::string_view, std::uint64_t inspect::DirectionStats::*>;
inline constexpr std::array kDirectionCounters{
    DirectionCounter{"datagrams", &inspect::DirectionStats::datagrams},
    DirectionCounter{"bytes", &inspect::DirectionStats::bytes},
    DirectionCounter{"malformed", &inspect::DirectionStats::malformed},
    DirectionCounter{"wrong_token", &inspect::DirectionStats::wrong_token},
    DirectionCounter{"control", &inspect::DirectionStats::control},
    DirectionCounter{"connless", &inspect::DirectionStats::connless},
    DirectionCounter{"chunks", &inspect::DirectionStats::chunks},
    DirectionCounter{"messages", &inspect::DirectionStats::messages},
    DirectionCounter{"vital", &inspect::DirectionStats::vital},
    DirectionCounter{"resent", &inspect::DirectionStats::resent},
    DirectionCounter{"recovered", &inspect::DirectionStats::recovered},
    DirectionCounter{"duplicates", &inspect::DirectionStats::duplicates},
    DirectionCounter{"gaps", &inspect::DirectionStats::gaps},
    DirectionCounter{"reordered", &inspect::DirectionStats::reordered},
    DirectionCounter{"resend_requests", &inspect::DirectionStats::resend_requests},
    DirectionCounter{"compressed", &inspect::DirectionStats::compressed},
    DirectionCounter{"compressed_bytes", &inspect::DirectionStats::compressed_bytes},
    DirectionCounter{"decompressed_bytes", &inspect::DirectionStats::decompressed_bytes},
};

/// The counters of a run's snapshots.
using SnapshotCounter = std::pair<std::string_view, std::uint64_t inspect::SessionStats::*>;
inline constexpr std::array kSnapshotCounters{
    SnapshotCounter{"total", &inspect::SessionStats::snapshots},
    SnapshotCounter{"verified", &inspect::SessionStats::verified},
    SnapshotCounter{"mismatched", &inspect::SessionStats::mismatched},
    SnapshotCounter{"undecodable", &inspect::SessionStats::undecodable},
    SnapshotCounter{"unknown_base", &inspect::SessionStats::unknown_base},
    SnapshotCounter{"incomplete", &inspect::SessionStats::incomplete},
    SnapshotCounter{"missed", &inspect::SessionStats::missed},
    SnapshotCounter{"ticks_skipped", &inspect::SessionStats::ticks_skipped},
    SnapshotCounter{"repeated", &inspect::SessionStats::repeated},
    SnapshotCounter{"full", &inspect::SessionStats::full},
    SnapshotCounter{"empty", &inspect::SessionStats::empty},
    SnapshotCounter{"parts", &inspect::SessionStats::parts},
    SnapshotCounter{"delta_bytes", &inspect::SessionStats::delta_bytes},
};

/// Aligned columns for people.
[[nodiscard]] std::string stats_table(const StatsReport& report);
/// One JSON object, keys as in records.
[[nodiscard]] std::string stats_json(const StatsReport& report);

} // namespace tw
