#include "proxy/record/stats.h"

namespace tw::record {

void DirectionStats::merge(const DirectionStats& other) {
    merge_cells<DirectionCounters>(*this, other);
    merge_cells<DirectionSpreads>(*this, other);
}

void SessionStats::merge(const SessionStats& other) {
    merge_cells<SnapshotCounters>(*this, other);
    merge_cells<SnapshotSpreads>(*this, other);
    merge_cells<SessionSpreads>(*this, other);
    merge_cells<SessionCounters>(*this, other);
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
constexpr std::string_view kRecords = "Records sent to the bus, again where a connection broke "
                                      "(published), acknowledged by it, and given up (dropped).";

constexpr BusRow kRows[]{
    {"bus_records_total", "published", kCounter, kRecords, &BusTotals::published},
    {"bus_records_total", "acknowledged", kCounter, kRecords, &BusTotals::acknowledged},
    {"bus_records_total", "dropped", kCounter, kRecords, &BusTotals::dropped},
    {"bus_waiting_records", "", kGauge,
     "Records in memory or in the spool, until two seconds after they were acknowledged.",
     &BusTotals::waiting},
    {"bus_waiting_bytes", "", kGauge, "Size of those records.", &BusTotals::waiting_bytes},
    {"bus_reconnects_total", "", kCounter, "Connections to the bus after the first one.",
     &BusTotals::reconnects},
    {"bus_connected", "", kGauge, "1 while connected to the bus.", &BusTotals::connected},
};

} // namespace

std::span<const BusRow> bus_rows() noexcept {
    return kRows;
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

ByteLedger::RecentRows::CachedRow& ByteLedger::RecentRows::cached_row(const KeyView& key) {
    // The length and the last characters distinguish most names.
    std::size_t hash = key.name.size();
    if (!key.name.empty()) {
        const auto letter = [&](std::size_t i) {
            return static_cast<std::size_t>(static_cast<unsigned char>(key.name[i]));
        };
        hash += 3 * letter(0) + 7 * letter(key.name.size() / 2) + 13 * letter(key.name.size() - 1);
    }
    hash = 31 * hash + 8 * static_cast<std::size_t>(key.group) +
           2 * static_cast<std::size_t>(key.part) + static_cast<std::size_t>(key.direction);
    return places_[hash % places_.size()];
}

ByteCount& ByteLedger::row(const KeyView& key) {
    RecentRows::CachedRow& place = recent_.cached_row(key);
    if (place.key != nullptr && place.key->view() == key) {
        return *place.row;
    }
    const auto found = rows_.find(key);
    if (found == rows_.end()) {
        return add_row(key);
    }
    place = {.key = &found->first, .row = &found->second};
    return found->second;
}

/// Adds a row. If the ledger is full, adds a row of kOthers instead, of which each group and part
/// has at most one.
ByteCount& ByteLedger::add_row(KeyView key) {
    if (rows_.size() >= kMaxRows) {
        key.name = kOthers;
    }
    return rows_[Key{key.direction, key.group, key.part, std::string{key.name}}];
}

void ByteLedger::charge(wire::Direction direction, ByteGroup group, BytePart part,
                        std::string_view name, const ByteCount& what) {
    if (what.bytes != 0 || what.bits != 0) {
        row({direction, group, part, name}).add(what);
    }
}

void ByteLedger::subtract(wire::Direction direction, ByteGroup group, BytePart part,
                          std::string_view name, const ByteCount& what) {
    if (what.bytes != 0 || what.bits != 0) {
        row({direction, group, part, name}).subtract(what);
    }
}

void ByteLedger::merge(const ByteLedger& other) {
    for (const auto& [key, count] : other.rows_) {
        charge(key.direction, key.group, key.part, key.name, count);
    }
}

std::vector<LedgerRow> ByteLedger::rows(wire::Direction direction) const {
    std::vector<LedgerRow> rows;
    for (const auto& [key, count] : rows_) {
        if (key.direction == direction && count != ByteCount{}) {
            rows.push_back({key.direction, key.group, key.part, key.name, count});
        }
    }
    std::ranges::stable_sort(
        rows, [](const LedgerRow& a, const LedgerRow& b) { return a.total.bits > b.total.bits; });
    return rows;
}

ByteCount ByteLedger::total(wire::Direction direction) const {
    ByteCount total;
    for (const auto& [key, count] : rows_) {
        if (key.direction == direction) {
            total.add(count);
        }
    }
    return total;
}

} // namespace tw::record
