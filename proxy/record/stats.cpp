#include "proxy/record/stats.h"

#include <functional>
#include <iterator>
#include <tuple>

namespace tw::record {

void DirectionStats::merge(const DirectionStats& other) {
    merge_totals<DirectionCounters>(*this, other);
    merge_totals<PerDirectionDistributions>(*this, other);
}

void SessionStats::merge(const SessionStats& other) {
    merge_totals<SnapshotCounters>(*this, other);
    merge_totals<SnapshotDistributions>(*this, other);
    merge_totals<SessionDistributions>(*this, other);
    merge_totals<SessionCounters>(*this, other);
    for (std::size_t i = 0; i < directions.size(); ++i) {
        directions[i].merge(other.directions[i]);
    }
    for (std::size_t i = 0; i < findings.size(); ++i) {
        findings[i] += other.findings[i];
    }
}

namespace {

constexpr auto kCounter = MetricKind::counter;
constexpr auto kGauge = MetricKind::gauge;
constexpr std::string_view kRecordsSentence =
    "Records sent to the bus, again where a connection broke "
    "(published), acknowledged by it, and given up (dropped).";

constexpr BusMetricRow kBusMetricRows[]{
    {"bus_records_total", "published", kCounter, kRecordsSentence, &BusTotals::published},
    {"bus_records_total", "acknowledged", kCounter, kRecordsSentence, &BusTotals::acknowledged},
    {"bus_records_total", "dropped", kCounter, kRecordsSentence, &BusTotals::dropped},
    {"bus_waiting_records", "", kGauge,
     "Records in memory or in the spool, until two seconds after they were acknowledged.",
     &BusTotals::waiting},
    {"bus_waiting_bytes", "", kGauge, "Size of those records.", &BusTotals::waiting_bytes},
    {"bus_reconnects_total", "", kCounter, "Connections to the bus after the first one.",
     &BusTotals::reconnects},
    {"bus_connected", "", kGauge, "1 while connected to the bus.", &BusTotals::connected},
};

} // namespace

std::span<const BusMetricRow> bus_metric_rows() noexcept {
    return kBusMetricRows;
}

std::string_view byte_group_name(ByteGroup group) {
    static constexpr std::array<std::string_view, kByteGroups> kNames{
        "packet",   "control", "connless",  "chunk",      "message", "delta",
        "deletion", "item",    "duplicate", "behind_gap", "unused"};
    return kNames[static_cast<std::size_t>(group)];
}

std::string_view byte_part_name(BytePart part) {
    static constexpr std::array<std::string_view, 4> kNames{"", "head", "fields", "trailing"};
    return kNames[static_cast<std::size_t>(part)];
}

ByteCount& ByteLedger::total_of(wire::Direction direction, ByteGroup group, BytePart part,
                                std::string_view name) {
    constexpr std::size_t kSlots = 2 * kMaxRows;
    slots_.resize(kSlots);
    const std::size_t hash =
        std::hash<std::string_view>{}(name) + 16 * static_cast<std::size_t>(group) +
        2 * static_cast<std::size_t>(part) + static_cast<std::size_t>(direction);
    for (std::size_t slot = hash % kSlots;; slot = (slot + 1) % kSlots) {
        if (slots_[slot] == 0) {
            if (rows_.size() >= kMaxRows && name != kOthers) {
                return total_of(direction, group, part, kOthers);
            }
            rows_.push_back({direction, group, part, std::string{name}, {}});
            slots_[slot] = static_cast<std::uint16_t>(rows_.size());
            return rows_.back().total;
        }
        ByteLedgerRow& row = rows_[slots_[slot] - std::size_t{1}];
        if (row.name == name && row.group == group && row.part == part &&
            row.direction == direction) {
            return row.total;
        }
    }
}

void ByteLedger::add_bytes(wire::Direction direction, ByteGroup group, BytePart part,
                           std::string_view name, const ByteCount& what) {
    if (what.bytes != 0 || what.bits != 0) {
        total_of(direction, group, part, name).add(what);
    }
}

void ByteLedger::subtract_bytes(wire::Direction direction, ByteGroup group, BytePart part,
                                std::string_view name, const ByteCount& what) {
    if (what.bytes != 0 || what.bits != 0) {
        total_of(direction, group, part, name).subtract(what);
    }
}

void ByteLedger::merge(const ByteLedger& other) {
    for (const ByteLedgerRow& row : other.rows_) {
        add_bytes(row.direction, row.group, row.part, row.name, row.total);
    }
}

std::vector<ByteLedgerRow> ByteLedger::rows(wire::Direction direction) const {
    std::vector<ByteLedgerRow> rows;
    std::ranges::copy_if(rows_, std::back_inserter(rows), [direction](const ByteLedgerRow& row) {
        return row.direction == direction && row.total != ByteCount{};
    });
    std::ranges::sort(rows, [](const ByteLedgerRow& a, const ByteLedgerRow& b) {
        return std::tie(b.total.bits, a.group, a.part, a.name) <
               std::tie(a.total.bits, b.group, b.part, b.name);
    });
    return rows;
}

ByteCount ByteLedger::total(wire::Direction direction) const {
    ByteCount total;
    for (const ByteLedgerRow& row : rows_) {
        if (row.direction == direction) {
            total.add(row.total);
        }
    }
    return total;
}

} // namespace tw::record
