#pragma once

#include "proxy/record/findings.h"
#include "proxy/record/totals.h"
#include "snapshot/item.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tw::record {

/// Minimum, mean and maximum of a stream of numbers.
struct Spread {
    std::uint64_t count = 0;
    std::int64_t sum = 0;
    std::int64_t min = 0;
    std::int64_t max = 0;

    void add(std::int64_t value) {
        min = count == 0 ? value : std::min(min, value);
        max = count == 0 ? value : std::max(max, value);
        sum += value;
        ++count;
    }

    void merge(const Spread& other) {
        if (other.count == 0) {
            return;
        }
        min = count == 0 ? other.min : std::min(min, other.min);
        max = count == 0 ? other.max : std::max(max, other.max);
        sum += other.sum;
        count += other.count;
    }

    [[nodiscard]] double mean() const {
        return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
    }
};

// Each line below is all there is to a counter: see totals.h. Their order is that of the records.
// clang-format off

template <typename Cell>
struct DirectionCounters {
    Cell datagrams = counter<Cell>("datagrams", Topic::traffic, "UDP datagrams.");
    Cell bytes = counter<Cell>("bytes", Topic::traffic, "Bytes of UDP payload.");
    Cell malformed = counter<Cell>("malformed", Topic::rejected, "Datagrams that are not packets.", "malformed_datagrams_total");
    Cell control = counter<Cell>("control", Topic::other_packets, "Control packets: handshake, keepalive, close.");
    Cell connless = counter<Cell>("connless", Topic::other_packets, "Packets outside any connection, like server info.");
    Cell compressed = counter<Cell>("compressed", Topic::compression, "Compressed packets.");
    Cell compressed_bytes = counter<Cell>("compressed_bytes", Topic::compression, "Bytes of their payload, as sent.");
    Cell decompressed_bytes = counter<Cell>("decompressed_bytes", Topic::compression, "Bytes of their payload, decompressed.");
    Cell chunks = counter<Cell>("chunks", Topic::chunks, "Chunks in packets.", "chunks_total");
    Cell messages = counter<Cell>("messages", Topic::chunks, "Accepted messages.", "messages_total");
    Cell vital = counter<Cell>("vital", Topic::chunks, "Accepted reliable chunks.", "vital_chunks_total");
    Cell resent = counter<Cell>("resent", Topic::chunks, "Chunks marked as resent.", "resent_chunks_total");
    Cell duplicates = counter<Cell>("duplicates", Topic::dropped_chunks, "Duplicate reliable chunks.", "duplicate_chunks_total");
    Cell gaps = counter<Cell>("gaps", Topic::dropped_chunks, "Reliable chunks after a missing one.", "gap_chunks_total");
    Cell recovered = counter<Cell>("recovered", Topic::chunks, "Reliable chunks recovered by retransmission: lost once.", "recovered_chunks_total");
    Cell reordered = counter<Cell>("reordered", Topic::order, "Reliable chunks and snapshots that arrived after a newer one, duplicates excluded.");
    Cell resend_requests = counter<Cell>("resend_requests", Topic::order, "Packets that request a resend.", "resend_requests_total");
    Cell wrong_token = counter<Cell>("wrong_token", Topic::rejected, "Packets whose token is not the connection's.");
    Cell not_accepted = counter<Cell>("not_accepted", Topic::rejected, "Packets that the receiver drops for another reason, or that were under way when the connection closed.", "not_accepted_packets_total");
};

template <typename Cell>
struct DirectionSpreads {
    // The mean is what RFC 3550 smooths into its jitter.
    Cell jitter_us = cell<Cell>(SpreadRow{"jitter_us", "How much longer or shorter a snapshot (`s2c`) or an input (`c2s`) took than the one before it, by the game's clock; microseconds."});
};

template <typename Cell>
struct SnapshotCounters {
    Cell snapshots = counter<Cell>("total", Topic::outcome, "Complete snapshots, rebuilt or not.");
    Cell verified = snapshot_counter<Cell>("verified", Topic::outcome, "Snapshots whose checksum matched, or that were empty on a known base.", "snapshots_total");
    Cell mismatched = snapshot_counter<Cell>("mismatched", Topic::outcome, "Snapshots whose checksum did not match.", "snapshots_total");
    Cell undecodable = snapshot_counter<Cell>("undecodable", Topic::outcome, "Snapshots with a broken delta.", "snapshots_total");
    Cell unknown_base = snapshot_counter<Cell>("unknown_base", Topic::outcome, "Snapshots on an unknown base.", "snapshots_total");
    Cell incomplete = snapshot_counter<Cell>("incomplete", Topic::outcome, "Snapshots with parts missing.", "snapshots_total");
    Cell repeated = snapshot_counter<Cell>("repeated", Topic::shape, "Snapshots that repeat a tick.", "snapshots_total");
    Cell full = snapshot_counter<Cell>("full", Topic::shape, "Full snapshots, without a base.");
    Cell empty = snapshot_counter<Cell>("empty", Topic::shape, "Snapshots in which nothing changed.");
    Cell parts = counter<Cell>("parts", Topic::shape, "Parts that snapshots arrived in.", "snapshot_parts_total");
    Cell delta_bytes = counter<Cell>("delta_bytes", Topic::shape, "Bytes of the deltas.", "snapshot_delta_bytes_total");
    Cell missed = snapshot_counter<Cell>("missed", Topic::missing, "Snapshots that were due by the usual step and did not come: lost, or never made.", "missed_snapshots_total");
    Cell ticks_skipped = counter<Cell>("ticks_skipped", Topic::missing, "Ticks between snapshots beyond the usual step.");
    Cell frozen_ms = counter<Cell>("frozen_ms", Topic::missing, "Milliseconds during which clients had nothing new to show: their next usable snapshot was overdue.");
};

template <typename Cell>
struct SnapshotSpreads {
    Cell items = cell<Cell>(SpreadRow{.key = "items", .sentence = "Items in a rebuilt snapshot.", .limit = snapshot::kMaxItems});
    Cell snapshot_bytes = cell<Cell>(SpreadRow{"size_bytes", "Size of rebuilt snapshots.", "snapshot_size_bytes", 1, snapshot::kMaxSnapshotBytes});
    Cell delta_distance = cell<Cell>(SpreadRow{"delta_distance", "Ticks between a snapshot and its base."});
    Cell snapshot_interval_us = cell<Cell>(SpreadRow{"interval_us", "Time between two snapshots of a session.", "snapshot_interval_seconds", 1e-6});
    Cell freeze_us = cell<Cell>(SpreadRow{"freeze_us", "How long clients had nothing new to show, each time.", "client_freeze_seconds", 1e-6});
};

template <typename Cell>
struct SessionSpreads {
    Cell ack_lag_ticks = cell<Cell>(SpreadRow{"ack_lag_ticks", "How far clients' acknowledgements lag behind, in game time.", "ack_lag_seconds", 0.02});
    Cell input_margin_ms = cell<Cell>(SpreadRow{"input_margin_ms", "How early inputs reach the server, as it reports; values beyond 10 s are excluded."});
};

template <typename Cell>
struct SessionCounters {
    Cell map_changes = counter<Cell>("map_changes", Topic::session, "Map changes.");
    Cell gap_lost = counter<Cell>("gap_lost", Topic::live, "Copies of datagrams that were never inspected.");
};

/// What became of one direction's datagrams on an impaired line.
template <typename Cell>
struct FateCounters {
    Cell datagrams = counter<Cell>("datagrams", Topic::live, "Datagrams that arrived while the line was impaired.");
    Cell lost = counter<Cell>("lost", Topic::live, "Datagrams lost on purpose.");
    Cell rate_dropped = counter<Cell>("rate_dropped", Topic::live, "Datagrams dropped because too much was queued ahead of them.");
    Cell queue_full = counter<Cell>("queue_full", Topic::live, "Datagrams dropped because more were waiting than the relay allows.");
    Cell duplicated = counter<Cell>("duplicated", Topic::live, "Datagrams sent twice.");
    Cell reordered = counter<Cell>("reordered", Topic::live, "Datagrams overtaken by later ones.");
};

/// What became of the snapshots of all sessions of a server that were merged into worlds.
template <typename Cell>
struct WorldCounters {
    Cell total = counter<Cell>("total", Topic::outcome, "Worlds: one for each tick that was sent to any session.");
    Cell complete = counter<Cell>("complete", Topic::outcome, "Worlds that include every session that was due.");
    Cell views = counter<Cell>("views", Topic::outcome, "Snapshots that arrived to be merged.");
    Cell late = counter<Cell>("late", Topic::missing, "Snapshots that arrived after the world of their tick.");
    Cell stray = counter<Cell>("stray", Topic::missing, "Snapshots whose ticks do not match those of the server's other sessions.");
    Cell dropped = counter<Cell>("dropped", Topic::live, "Snapshots dropped because too many were waiting to be merged.");
    Cell shed = counter<Cell>("shed", Topic::missing, "Worlds closed early because memory ran out.");
};

// clang-format on

using WorldStats = WorldCounters<std::uint64_t>;
using FateStats = FateCounters<std::uint64_t>;

/// Totals of one direction.
struct DirectionStats : DirectionCounters<std::uint64_t>, DirectionSpreads<Spread> {
    void merge(const DirectionStats& other);
};

using FindingCounts = std::array<std::uint64_t, kFindingCount>;

/// Totals of a session, or of the run.
struct SessionStats : SnapshotCounters<std::uint64_t>,
                      SnapshotSpreads<Spread>,
                      SessionSpreads<Spread>,
                      SessionCounters<std::uint64_t> {
    std::array<DirectionStats, 2> directions; ///< c2s, s2c
    FindingCounts findings{};

    void merge(const SessionStats& other);
};

} // namespace tw::record
