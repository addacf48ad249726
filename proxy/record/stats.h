#pragma once

#include "proxy/record/findings.h"
#include "proxy/wire/message.h"
#include "snapshot/item.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// Counters and distributions, with their descriptions. A struct of totals is a template over the
/// type of its members, which are called cells. If the cells are numbers, the struct holds the
/// totals. If the cells are rows, the struct holds the descriptions. One line therefore declares a
/// counter's member, key and description. Merging, JSON, filters, reports, metrics and the check of
/// RECORDS.md iterate over cells.
namespace tw::record {

/// The topic of a counter. In reports, counters are grouped by topic, in this order.
enum class CounterTopic : std::uint8_t {
    traffic,
    rejected,
    other_packets, ///< packets without chunks
    chunks,
    dropped_chunks,
    vital_order,
    compression,
    snapshot_outcome,    ///< whether received snapshots could be rebuilt and verified
    missing_snapshots,   ///< snapshots that were not received
    snapshot_properties, ///< without a base, without changes, number of parts
    session,
    live_only, ///< counted only in live runs, not for capture files
};

/// The description of a counter.
struct CounterRow {
    std::string_view key{};
    CounterTopic topic = CounterTopic::traffic;
    std::string_view sentence{};
    /// Name of the counter's metric without "twscope_"; empty if the counter has no metric.
    std::string_view metric{};
    /// True for a counter of snapshots that reports also show as a share of all snapshots.
    bool has_share = false;
};

/// The description of a distribution, which is the minimum, mean and maximum of a quantity.
struct DistributionRow {
    std::string_view key{};
    std::string_view sentence{};
    std::string_view metric{};
    double metric_unit = 1;  ///< factor to the metric's unit: 1e-6 for µs to seconds
    std::uint64_t limit = 0; ///< the largest value that the protocol allows; 0 if unlimited
};

/// Returns the initial value of a cell: `row` if the cell is a row, zero if the cell is a number.
template <typename Cell, typename Row>
constexpr Cell initial_cell(const Row& row) {
    if constexpr (std::is_same_v<Cell, Row>) {
        return row;
    } else {
        return Cell{};
    }
}

template <typename Cell>
constexpr Cell counter(std::string_view key, CounterTopic topic, std::string_view sentence,
                       std::string_view metric = {}) {
    return initial_cell<Cell>(CounterRow{key, topic, sentence, metric});
}

template <typename Cell>
constexpr Cell snapshot_counter(std::string_view key, CounterTopic topic, std::string_view sentence,
                                std::string_view metric = {}) {
    return initial_cell<Cell>(CounterRow{key, topic, sentence, metric, true});
}

/// Returns the members of a struct of totals as an array, in the order of declaration.
template <template <typename> class Totals, typename Cell>
[[nodiscard]] constexpr auto members_as_array(const Totals<Cell>& totals) {
    return std::bit_cast<std::array<Cell, sizeof totals / sizeof(Cell)>>(totals);
}

/// Returns the rows that describe the cells of `Totals`, in the order of the cells.
template <template <typename> class Totals, typename Row>
[[nodiscard]] const auto& rows_describing() {
    static const auto rows = members_as_array<Totals, Row>(Totals<Row>{});
    return rows;
}

template <template <typename> class Totals>
[[nodiscard]] const auto& counter_rows() {
    return rows_describing<Totals, CounterRow>();
}

template <template <typename> class Totals>
[[nodiscard]] const auto& distribution_rows() {
    return rows_describing<Totals, DistributionRow>();
}

struct CounterValue {
    const CounterRow* row;
    std::uint64_t value;
};

/// Returns all counters of `totals` with their values, sorted by topic, for reports.
template <template <typename> class Totals>
[[nodiscard]] std::vector<CounterValue> counts_by_topic(const Totals<std::uint64_t>& totals) {
    const auto cells = members_as_array<Totals>(totals);
    std::vector<CounterValue> counts;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        counts.push_back({&counter_rows<Totals>()[i], cells[i]});
    }
    std::ranges::stable_sort(counts, [](const CounterValue& a, const CounterValue& b) {
        return a.row->topic < b.row->topic;
    });
    return counts;
}

/// Adds each cell of `other` to the same cell of `totals`.
template <template <typename> class Totals, typename Cell>
constexpr void merge_totals(Totals<Cell>& totals, const Totals<Cell>& other) {
    auto cells = members_as_array<Totals>(totals);
    const auto more = members_as_array<Totals>(other);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if constexpr (std::is_integral_v<Cell>) {
            cells[i] += more[i];
        } else {
            cells[i].merge(more[i]);
        }
    }
    totals = std::bit_cast<Totals<Cell>>(cells);
}

/// The minimum, mean and maximum of a stream of numbers.
struct Distribution {
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

    void merge(const Distribution& other) {
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

// Each line declares a counter or distribution completely: member, key and description. Records
// contain the keys in this order.

// clang-format off

/// The counters of one direction of a session's traffic.
template <typename Cell>
struct DirectionCounters {
    Cell datagrams = counter<Cell>("datagrams", CounterTopic::traffic, "UDP datagrams.");
    Cell bytes = counter<Cell>("bytes", CounterTopic::traffic, "Bytes of UDP payload.");
    Cell malformed = counter<Cell>("malformed", CounterTopic::rejected, "Datagrams that are not packets.", "malformed_datagrams_total");
    Cell control = counter<Cell>("control", CounterTopic::other_packets, "Control packets: handshake, keepalive, close.");
    Cell connless = counter<Cell>("connless", CounterTopic::other_packets, "Packets outside any connection, like server info.");
    Cell compressed = counter<Cell>("compressed", CounterTopic::compression, "Compressed packets.");
    Cell compressed_bytes = counter<Cell>("compressed_bytes", CounterTopic::compression, "Bytes of their payload, as sent.");
    Cell decompressed_bytes = counter<Cell>("decompressed_bytes", CounterTopic::compression, "Bytes of their payload, decompressed.");
    Cell chunks = counter<Cell>("chunks", CounterTopic::chunks, "Chunks in packets.", "chunks_total");
    Cell messages = counter<Cell>("messages", CounterTopic::chunks, "Accepted messages.", "messages_total");
    Cell vital = counter<Cell>("vital", CounterTopic::chunks, "Accepted reliable chunks.", "vital_chunks_total");
    Cell resent = counter<Cell>("resent", CounterTopic::chunks, "Chunks marked as resent.", "resent_chunks_total");
    Cell duplicates = counter<Cell>("duplicates", CounterTopic::dropped_chunks, "Duplicate reliable chunks.", "duplicate_chunks_total");
    Cell gaps = counter<Cell>("gaps", CounterTopic::dropped_chunks, "Reliable chunks after a missing one.", "gap_chunks_total");
    Cell recovered = counter<Cell>("recovered", CounterTopic::chunks, "Reliable chunks recovered by retransmission: lost once.", "recovered_chunks_total");
    Cell reordered = counter<Cell>("reordered", CounterTopic::vital_order, "Reliable chunks and snapshots that arrived after a newer one, duplicates excluded.");
    Cell resend_requests = counter<Cell>("resend_requests", CounterTopic::vital_order, "Packets that request a resend.", "resend_requests_total");
    Cell wrong_token = counter<Cell>("wrong_token", CounterTopic::rejected, "Packets whose token is not the connection's.");
    Cell not_accepted = counter<Cell>("not_accepted", CounterTopic::rejected, "Packets that the receiver drops for another reason, or that were under way when the connection closed.", "not_accepted_packets_total");
};

/// The distributions that are measured separately for each direction of a session's traffic.
template <typename Cell>
struct PerDirectionDistributions {
    // The mean of these values is not smoothed, unlike the jitter of RFC 3550.
    Cell jitter_us = initial_cell<Cell>(DistributionRow{"jitter_us", "How much longer or shorter a snapshot (`s2c`) or an input (`c2s`) took than the one before it, by the game's clock; microseconds."});
};

/// The counters of a session's snapshots.
template <typename Cell>
struct SnapshotCounters {
    Cell snapshots = counter<Cell>("total", CounterTopic::snapshot_outcome, "Complete snapshots, rebuilt or not.");
    Cell verified = snapshot_counter<Cell>("verified", CounterTopic::snapshot_outcome, "Snapshots whose checksum matched, or that were empty on a known base.", "snapshots_total");
    Cell mismatched = snapshot_counter<Cell>("mismatched", CounterTopic::snapshot_outcome, "Snapshots whose checksum did not match.", "snapshots_total");
    Cell undecodable = snapshot_counter<Cell>("undecodable", CounterTopic::snapshot_outcome, "Snapshots with a broken delta.", "snapshots_total");
    Cell unknown_base = snapshot_counter<Cell>("unknown_base", CounterTopic::snapshot_outcome, "Snapshots on an unknown base.", "snapshots_total");
    Cell incomplete = snapshot_counter<Cell>("incomplete", CounterTopic::snapshot_outcome, "Snapshots with parts missing.", "snapshots_total");
    Cell repeated = snapshot_counter<Cell>("repeated", CounterTopic::snapshot_properties, "Snapshots that repeat a tick.", "snapshots_total");
    Cell full = snapshot_counter<Cell>("full", CounterTopic::snapshot_properties, "Full snapshots, without a base.");
    Cell empty = snapshot_counter<Cell>("empty", CounterTopic::snapshot_properties, "Snapshots in which nothing changed.");
    Cell parts = counter<Cell>("parts", CounterTopic::snapshot_properties, "Parts that snapshots arrived in.", "snapshot_parts_total");
    Cell delta_bytes = counter<Cell>("delta_bytes", CounterTopic::snapshot_properties, "Bytes of the deltas.", "snapshot_delta_bytes_total");
    Cell missed = snapshot_counter<Cell>("missed", CounterTopic::missing_snapshots, "Snapshots that were due by the usual step and did not come: lost, or never made.", "missed_snapshots_total");
    Cell ticks_skipped = counter<Cell>("ticks_skipped", CounterTopic::missing_snapshots, "Ticks between snapshots beyond the usual step.");
    Cell frozen_ms = counter<Cell>("frozen_ms", CounterTopic::missing_snapshots, "Milliseconds during which clients had nothing new to show: their next usable snapshot was overdue.");
};

/// The distributions of properties of a session's snapshots.
template <typename Cell>
struct SnapshotDistributions {
    Cell items = initial_cell<Cell>(DistributionRow{.key = "items", .sentence = "Items in a rebuilt snapshot.", .limit = snapshot::kMaxItems});
    Cell snapshot_bytes = initial_cell<Cell>(DistributionRow{"size_bytes", "Size of rebuilt snapshots.", "snapshot_size_bytes", 1, snapshot::kMaxSnapshotBytes});
    Cell delta_distance = initial_cell<Cell>(DistributionRow{"delta_distance", "Ticks between a snapshot and its base."});
    Cell snapshot_interval_us = initial_cell<Cell>(DistributionRow{"interval_us", "Time between two snapshots of a session.", "snapshot_interval_seconds", 1e-6});
    Cell freeze_us = initial_cell<Cell>(DistributionRow{"freeze_us", "How long clients had nothing new to show, each time.", "client_freeze_seconds", 1e-6});
};

template <typename Cell>
struct SessionDistributions {
    Cell ack_lag_ticks = initial_cell<Cell>(DistributionRow{"ack_lag_ticks", "How far clients' acknowledgements lag behind, in game time.", "ack_lag_seconds", 0.02});
    Cell input_margin_ms = initial_cell<Cell>(DistributionRow{"input_margin_ms", "How early inputs reach the server, as it reports; values beyond 10 s are excluded."});
};

template <typename Cell>
struct SessionCounters {
    Cell map_changes = counter<Cell>("map_changes", CounterTopic::session, "Map changes.");
    Cell gap_lost = counter<Cell>("gap_lost", CounterTopic::live_only, "Copies of datagrams that were never inspected.");
};

/// Counts of the datagrams that the simulated impairment lost, duplicated or reordered in one
/// direction.
template <typename Cell>
struct ImpairmentCounters {
    Cell datagrams = counter<Cell>("datagrams", CounterTopic::live_only, "Datagrams that arrived while the network was impaired.");
    Cell lost = counter<Cell>("lost", CounterTopic::live_only, "Datagrams lost on purpose.");
    Cell rate_dropped = counter<Cell>("rate_dropped", CounterTopic::live_only, "Datagrams dropped because too much was queued ahead of them.");
    Cell queue_full = counter<Cell>("queue_full", CounterTopic::live_only, "Datagrams dropped because more were waiting than the relay allows.");
    Cell duplicated = counter<Cell>("duplicated", CounterTopic::live_only, "Datagrams sent twice.");
    Cell reordered = counter<Cell>("reordered", CounterTopic::live_only, "Datagrams overtaken by later ones.");
};

/// Counts of worlds, and of snapshots that were merged into worlds or left out.
template <typename Cell>
struct WorldCounters {
    Cell total = counter<Cell>("total", CounterTopic::snapshot_outcome, "Worlds: one for each tick that was sent to any session.");
    Cell complete = counter<Cell>("complete", CounterTopic::snapshot_outcome, "Worlds that include every session that was due.");
    Cell views = counter<Cell>("views", CounterTopic::snapshot_outcome, "Snapshots that arrived to be merged.");
    Cell late = counter<Cell>("late", CounterTopic::missing_snapshots, "Snapshots that arrived after the world of their tick.");
    Cell stray = counter<Cell>("stray", CounterTopic::missing_snapshots, "Snapshots whose ticks do not match those of the server's other sessions.");
    Cell dropped = counter<Cell>("dropped", CounterTopic::live_only, "Snapshots dropped because too many were waiting to be merged.");
    Cell shed = counter<Cell>("shed", CounterTopic::missing_snapshots, "Worlds closed early because memory ran out.");
};

// clang-format on

using WorldStats = WorldCounters<std::uint64_t>;
using ImpairmentStats = ImpairmentCounters<std::uint64_t>;

struct DirectionStats : DirectionCounters<std::uint64_t>, PerDirectionDistributions<Distribution> {
    void merge(const DirectionStats& other);
};

using FindingCounts = std::array<std::uint64_t, kFindingCount>;

/// The totals of one session or of the whole run.
struct SessionStats : SnapshotCounters<std::uint64_t>,
                      SnapshotDistributions<Distribution>,
                      SessionDistributions<Distribution>,
                      SessionCounters<std::uint64_t> {
    std::array<DirectionStats, 2> directions; ///< c2s, s2c
    FindingCounts findings{};

    void merge(const SessionStats& other);
};

/// How many records of a run were sent to the message bus, were lost, or are waiting to be sent.
/// bus_metric_rows() describes each number.
struct BusTotals {
    std::uint64_t published = 0;
    std::uint64_t acknowledged = 0;
    std::uint64_t dropped = 0;
    std::uint64_t waiting = 0;
    std::uint64_t waiting_bytes = 0;
    std::uint64_t reconnects = 0;
    std::uint64_t connected = 0;
};

/// The kind of a metric: a counter never decreases; a gauge may also decrease.
enum class MetricKind : bool { counter, gauge };

struct BusMetricRow {
    std::string_view metric; ///< name of the metric without "twscope_"
    std::string_view result; ///< value of the metric's label `result`; empty without this label
    MetricKind kind;
    std::string_view sentence; ///< description of the metric; the same in all rows of the metric
    std::uint64_t BusTotals::*value;
};

/// Returns a row for each number in BusTotals. Rows of the same metric are adjacent.
[[nodiscard]] std::span<const BusMetricRow> bus_metric_rows() noexcept;

/// The purpose of bytes in datagrams. ByteLedger subdivides most groups by name.
enum class ByteGroup : std::uint8_t {
    packet,     ///< header, token, end of the compressed stream
    control,    ///< control packets, by kind
    connless,   ///< connless packets, by name
    chunk,      ///< chunk headers, and payload bytes that cannot be decoded as chunks
    message,    ///< messages, by name; without the deltas in snapshot messages
    delta,      ///< the counts at the start of deltas, and other bytes of deltas outside items
    deletion,   ///< deleted items in deltas, by item type
    item,       ///< updated items in deltas, by item type
    duplicate,  ///< duplicate chunks and their headers, by type of message
    behind_gap, ///< chunks that receivers drop because an earlier chunk is missing, by message
    unused,     ///< bytes that were not decoded, by reason: malformed, rejected, incomplete, ...
};

inline constexpr std::size_t kByteGroups = static_cast<std::size_t>(ByteGroup::unused) + 1;

/// A part of a message or item whose bytes are counted separately.
enum class BytePart : std::uint8_t {
    whole,
    head,     ///< the id or UUID of a message; the type, id and size of an item
    fields,   ///< the fields of a message; the ints of an item
    trailing, ///< the bytes after the last field of a message
};

[[nodiscard]] std::string_view byte_group_name(ByteGroup group);
/// Returns the name of the part; empty for `whole`.
[[nodiscard]] std::string_view byte_part_name(BytePart part);

/// The bytes that one row of the ledger counts.
struct ByteCount {
    /// Number of messages, items, packets or other parts of traffic to which the bytes belong.
    std::uint64_t count = 0;
    std::uint64_t bytes = 0; ///< number of bytes after decompression
    /// Number of bits on the wire: 8 per byte; in compressed packets, the lengths of the Huffman
    /// codes.
    std::uint64_t bits = 0;

    void add(const ByteCount& other) {
        count += other.count;
        bytes += other.bytes;
        bits += other.bits;
    }

    void subtract(const ByteCount& other) {
        count -= other.count;
        bytes -= other.bytes;
        bits -= other.bits;
    }

    friend bool operator==(const ByteCount&, const ByteCount&) = default;
};

/// A row of a ByteLedger: the purpose of bytes, and their number.
struct ByteLedgerRow {
    wire::Direction direction = wire::Direction::c2s;
    ByteGroup group = ByteGroup::packet;
    BytePart part = BytePart::whole;
    std::string name;
    ByteCount total;
};

/// Counts every byte of one or more sessions by ByteGroup, part and name. The bits of all rows of a
/// direction add up to eight times the bytes of UDP payload in that direction.
class ByteLedger {
  public:
    /// The maximum number of rows. If the ledger is full, bytes with a new name are counted in a
    /// row kOthers. The limit is needed because clients and servers can invent names (unknown
    /// UUIDs).
    static constexpr std::size_t kMaxRows = 4096;
    static constexpr std::string_view kOthers = "others";

    void add_bytes(wire::Direction direction, ByteGroup group, BytePart part, std::string_view name,
                   const ByteCount& what);
    /// Subtracts bytes from a row, for bytes that turned out to belong to another row.
    /// Precondition: add_bytes() added these bytes to the row.
    void subtract_bytes(wire::Direction direction, ByteGroup group, BytePart part,
                        std::string_view name, const ByteCount& what);
    void merge(const ByteLedger& other);

    /// Returns the rows of a direction, sorted by falling number of bits.
    [[nodiscard]] std::vector<ByteLedgerRow> rows(wire::Direction direction) const;
    [[nodiscard]] ByteCount total(wire::Direction direction) const;

  private:
    /// Returns the total of a row. Adds the row if it is missing. If the ledger is full, returns
    /// the total of the row kOthers of the same direction, group and part instead.
    ByteCount& total_of(wire::Direction direction, ByteGroup group, BytePart part,
                        std::string_view name);

    std::vector<ByteLedgerRow> rows_;
    /// A hash table of indices in `rows_`, each plus 1; 0 in unused slots.
    std::vector<std::uint16_t> slots_;
};

} // namespace tw::record
