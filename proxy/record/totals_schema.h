#pragma once

#include "proxy/record/record_schema.h"
#include "proxy/record/stats.h"

/// The keys of the records that count: summaries, and what an impairment is set to. The counters
/// themselves are lines of stats.h.
namespace tw::record {

inline constexpr auto kDirectionSchema =
    schema(TotalsRow<DirectionCounters, std::uint64_t, CounterRow>{},
           TotalsRow<DirectionSpreads, Spread, SpreadRow>{});

inline constexpr auto kSnapshotTotalsSchema =
    schema(TotalsRow<SnapshotCounters, std::uint64_t, CounterRow>{},
           TotalsRow<SnapshotSpreads, Spread, SpreadRow>{});

inline constexpr auto kFateSchema = schema(TotalsRow<FateCounters, std::uint64_t, CounterRow>{});

inline constexpr auto kWorldTotalsSchema =
    schema(TotalsRow<WorldCounters, std::uint64_t, CounterRow>{});

/// Of a run whose lines were impaired.
inline constexpr auto kImpairedSchema =
    schema(object(
               "c2s", [](const std::array<FateStats, 2>& r) { return r.data(); },
               "From client to server.", kFateSchema),
           object(
               "s2c", [](const std::array<FateStats, 2>& r) { return &r[1]; },
               "From server to client.", kFateSchema));

/// Of what `SummaryRecord::stats` points at.
inline constexpr auto kStatsSchema =
    schema(object(
               "c2s", [](const SessionStats& r) { return r.directions.data(); },
               "From client to server.", kDirectionSchema),
           object(
               "s2c", [](const SessionStats& r) { return &r.directions[1]; },
               "From server to client.", kDirectionSchema),
           object(
               "snapshots", [](const SessionStats& r) { return &r; }, "Totals of snapshots.",
               kSnapshotTotalsSchema),
           TotalsRow<SessionSpreads, Spread, SpreadRow>{},
           TotalsRow<SessionCounters, std::uint64_t, CounterRow>{},
           key(
               "findings", [](const SessionStats& r) { return FindingTotals{&r.findings}; },
               "How often each finding occurred; those that did not are absent."));

inline constexpr auto kSummarySchema = schema(
    key(
        "sessions", [](const SummaryRecord& r) { return only_if(r.head.session == 0, r.sessions); },
        "Number of sessions; only for the run."),
    merged([](const SummaryRecord& r) { return r.stats; }, kStatsSchema),
    object(
        "impaired", [](const SummaryRecord& r) { return r.impaired ? &*r.impaired : nullptr; },
        "What became of datagrams on impaired lines; only for a run that had some.",
        kImpairedSchema),
    object(
        "worlds", [](const SummaryRecord& r) { return r.worlds ? &*r.worlds : nullptr; },
        "Totals of worlds; only for a run that made some.", kWorldTotalsSchema));

inline constexpr auto kImpairedDirectionSchema = schema(
    key("delay_us", &ImpairedDirection::delay_us, "Delay of every datagram, in microseconds."),
    key("jitter_us", &ImpairedDirection::jitter_us,
        "Random variation of the delay, in microseconds."),
    key("loss_ppm", &ImpairedDirection::loss_ppm, "Share that is lost, in millionths."),
    key("dup_ppm", &ImpairedDirection::dup_ppm, "Share that is sent twice, in millionths."),
    key("reorder_ppm", &ImpairedDirection::reorder_ppm,
        "Share that is overtaken by later ones, in millionths."),
    key("burst", &ImpairedDirection::burst,
        "Mean length of a loss, in datagrams; absent if not set."),
    key("rate_bps", &ImpairedDirection::rate_bps, "Bits per second that pass; absent if not set."));

inline constexpr auto kImpairmentSchema =
    schema(key("settings", &ImpairmentRecord::settings, "As `--impair` takes them, or `none`."),
           key("seed", &ImpairmentRecord::seed,
               "From `--impair-seed`: the same seed and traffic give the same impairment."),
           object(
               "c2s", [](const ImpairmentRecord& r) { return r.directions.data(); },
               "From client to server.", kImpairedDirectionSchema),
           object(
               "s2c", [](const ImpairmentRecord& r) { return &r.directions[1]; },
               "From server to client.", kImpairedDirectionSchema),
           key(
               "again", [](const ImpairmentRecord& r) { return only_if(r.again, true); },
               "True if it repeats, at the beginning of a segment, what was in force before."));

constexpr const auto& schema_of(const SummaryRecord& /*unused*/) {
    return kSummarySchema;
}

constexpr const auto& schema_of(const ImpairmentRecord& /*unused*/) {
    return kImpairmentSchema;
}

} // namespace tw::record
