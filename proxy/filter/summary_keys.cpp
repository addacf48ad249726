// The keys of summaries: totals by direction, of snapshots, spreads, and findings by id.

#include "proxy/filter/tables.h"

namespace tw::filter {

using record::DirectionStats;
using record::FateStats;
using record::SessionStats;
using record::Spread;
using record::SummaryRecord;

namespace {

struct DirectionKey {
    std::string_view name;
    std::uint64_t DirectionStats::*count;
};

constexpr std::array<DirectionKey, 18> kDirectionKeys{{
    {"datagrams", &DirectionStats::datagrams},
    {"bytes", &DirectionStats::bytes},
    {"malformed", &DirectionStats::malformed},
    {"control", &DirectionStats::control},
    {"connless", &DirectionStats::connless},
    {"compressed", &DirectionStats::compressed},
    {"compressed_bytes", &DirectionStats::compressed_bytes},
    {"decompressed_bytes", &DirectionStats::decompressed_bytes},
    {"chunks", &DirectionStats::chunks},
    {"messages", &DirectionStats::messages},
    {"vital", &DirectionStats::vital},
    {"resent", &DirectionStats::resent},
    {"duplicates", &DirectionStats::duplicates},
    {"gaps", &DirectionStats::gaps},
    {"recovered", &DirectionStats::recovered},
    {"reordered", &DirectionStats::reordered},
    {"resend_requests", &DirectionStats::resend_requests},
    {"wrong_token", &DirectionStats::wrong_token},
}};

struct CountKey {
    std::string_view name;
    std::uint64_t SessionStats::*count;
};

constexpr std::array<CountKey, 15> kCountKeys{{
    {"snapshots.total", &SessionStats::snapshots},
    {"snapshots.verified", &SessionStats::verified},
    {"snapshots.mismatched", &SessionStats::mismatched},
    {"snapshots.undecodable", &SessionStats::undecodable},
    {"snapshots.unknown_base", &SessionStats::unknown_base},
    {"snapshots.incomplete", &SessionStats::incomplete},
    {"snapshots.repeated", &SessionStats::repeated},
    {"snapshots.full", &SessionStats::full},
    {"snapshots.empty", &SessionStats::empty},
    {"snapshots.parts", &SessionStats::parts},
    {"snapshots.delta_bytes", &SessionStats::delta_bytes},
    {"snapshots.missed", &SessionStats::missed},
    {"snapshots.ticks_skipped", &SessionStats::ticks_skipped},
    {"map_changes", &SessionStats::map_changes},
    {"gap_lost", &SessionStats::gap_lost},
}};

struct SpreadKey {
    std::string_view name;
    Spread SessionStats::*spread;
};

constexpr std::array<SpreadKey, 6> kSpreadKeys{{
    {"snapshots.items", &SessionStats::items},
    {"snapshots.size_bytes", &SessionStats::snapshot_bytes},
    {"snapshots.delta_distance", &SessionStats::delta_distance},
    {"snapshots.interval_us", &SessionStats::snapshot_interval_us},
    {"ack_lag_ticks", &SessionStats::ack_lag_ticks},
    {"input_margin_ms", &SessionStats::input_margin_ms},
}};

struct FateKey {
    std::string_view name;
    std::uint64_t FateStats::*count;
};

constexpr std::array<FateKey, 6> kFateKeys{{
    {"datagrams", &FateStats::datagrams},
    {"lost", &FateStats::lost},
    {"rate_dropped", &FateStats::rate_dropped},
    {"queue_full", &FateStats::queue_full},
    {"duplicated", &FateStats::duplicated},
    {"reordered", &FateStats::reordered},
}};

constexpr std::array<std::string_view, 4> kSpreadParts{"count", "min", "mean", "max"};
constexpr std::array<std::string_view, 2> kDirections{"c2s", "s2c"};

std::vector<std::string> make_names() {
    std::vector<std::string> names{"sessions"};
    for (const std::string_view direction : kDirections) {
        for (const DirectionKey& key : kDirectionKeys) {
            names.push_back(std::string{direction} + '.' + std::string{key.name});
        }
        for (const std::string_view part : kSpreadParts) {
            names.push_back(std::string{direction} + ".jitter_us." + std::string{part});
        }
    }
    for (const CountKey& key : kCountKeys) {
        names.emplace_back(key.name);
    }
    for (const SpreadKey& key : kSpreadKeys) {
        for (const std::string_view part : kSpreadParts) {
            names.push_back(std::string{key.name} + '.' + std::string{part});
        }
    }
    for (const record::FindingInfo& info : record::finding_table()) {
        names.push_back("findings." + std::string{info.name});
    }
    for (const std::string_view direction : kDirections) {
        for (const FateKey& key : kFateKeys) {
            names.push_back("impaired." + std::string{direction} + '.' + std::string{key.name});
        }
    }
    return names;
}

Found read_spread(const Spread& spread, std::size_t part) {
    if (part == 0) {
        return number_value(spread.count);
    }
    if (spread.count == 0) {
        return std::nullopt;
    }
    if (part == 2) {
        return Value::of(spread.mean());
    }
    return Value::of(part == 1 ? spread.min : spread.max);
}

} // namespace

std::span<const std::string> summary_keys() {
    static const std::vector<std::string> kNames = make_names();
    return kNames;
}

Found read_summary(const SummaryRecord& record, std::size_t row) {
    const SessionStats& stats = *record.stats;
    if (row == 0) {
        return record.head.session == 0 ? number_value(record.sessions) : std::nullopt;
    }
    row -= 1;
    for (const DirectionStats& direction : stats.directions) {
        if (row < kDirectionKeys.size()) {
            return number_value(direction.*kDirectionKeys[row].count);
        }
        row -= kDirectionKeys.size();
        if (row < kSpreadParts.size()) {
            return read_spread(direction.jitter_us, row);
        }
        row -= kSpreadParts.size();
    }
    if (row < kCountKeys.size()) {
        return number_value(stats.*kCountKeys[row].count);
    }
    row -= kCountKeys.size();
    if (row < kSpreadKeys.size() * kSpreadParts.size()) {
        return read_spread(stats.*kSpreadKeys[row / kSpreadParts.size()].spread,
                           row % kSpreadParts.size());
    }
    row -= kSpreadKeys.size() * kSpreadParts.size();
    if (row < stats.findings.size()) {
        // Zero is a count, too, though the JSON leaves it out.
        return number_value(stats.findings[row]);
    }
    row -= stats.findings.size();
    if (!record.impaired) {
        return std::nullopt;
    }
    return number_value((*record.impaired)[row / kFateKeys.size()].*
                        kFateKeys[row % kFateKeys.size()].count);
}

} // namespace tw::filter
