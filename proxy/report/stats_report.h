#pragma once

#include "proxy/record/ledger.h"
#include "proxy/record/stats.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::report {

/// What `twscope stats` tells.
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

/// The counters of a direction by the names they have in records.
using DirectionCounter = std::pair<std::string_view, std::uint64_t record::DirectionStats::*>;
inline constexpr std::array kDirectionCounters{
    DirectionCounter{"datagrams", &record::DirectionStats::datagrams},
    DirectionCounter{"bytes", &record::DirectionStats::bytes},
    DirectionCounter{"malformed", &record::DirectionStats::malformed},
    DirectionCounter{"wrong_token", &record::DirectionStats::wrong_token},
    DirectionCounter{"control", &record::DirectionStats::control},
    DirectionCounter{"connless", &record::DirectionStats::connless},
    DirectionCounter{"chunks", &record::DirectionStats::chunks},
    DirectionCounter{"messages", &record::DirectionStats::messages},
    DirectionCounter{"vital", &record::DirectionStats::vital},
    DirectionCounter{"resent", &record::DirectionStats::resent},
    DirectionCounter{"recovered", &record::DirectionStats::recovered},
    DirectionCounter{"duplicates", &record::DirectionStats::duplicates},
    DirectionCounter{"gaps", &record::DirectionStats::gaps},
    DirectionCounter{"reordered", &record::DirectionStats::reordered},
    DirectionCounter{"resend_requests", &record::DirectionStats::resend_requests},
    DirectionCounter{"compressed", &record::DirectionStats::compressed},
    DirectionCounter{"compressed_bytes", &record::DirectionStats::compressed_bytes},
    DirectionCounter{"decompressed_bytes", &record::DirectionStats::decompressed_bytes},
};

/// The counters of a run's snapshots.
using SnapshotCounter = std::pair<std::string_view, std::uint64_t record::SessionStats::*>;
inline constexpr std::array kSnapshotCounters{
    SnapshotCounter{"total", &record::SessionStats::snapshots},
    SnapshotCounter{"verified", &record::SessionStats::verified},
    SnapshotCounter{"mismatched", &record::SessionStats::mismatched},
    SnapshotCounter{"undecodable", &record::SessionStats::undecodable},
    SnapshotCounter{"unknown_base", &record::SessionStats::unknown_base},
    SnapshotCounter{"incomplete", &record::SessionStats::incomplete},
    SnapshotCounter{"missed", &record::SessionStats::missed},
    SnapshotCounter{"ticks_skipped", &record::SessionStats::ticks_skipped},
    SnapshotCounter{"repeated", &record::SessionStats::repeated},
    SnapshotCounter{"full", &record::SessionStats::full},
    SnapshotCounter{"empty", &record::SessionStats::empty},
    SnapshotCounter{"parts", &record::SessionStats::parts},
    SnapshotCounter{"delta_bytes", &record::SessionStats::delta_bytes},
};

/// Aligned columns for people.
[[nodiscard]] std::string stats_table(const StatsReport& report);
/// One JSON object, keys as in records.
[[nodiscard]] std::string stats_json(const StatsReport& report);

} // namespace tw::report
