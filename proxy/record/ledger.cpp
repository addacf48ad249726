#include "proxy/record/ledger.h"

#include <algorithm>

namespace tw::record {

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

ByteCount& Ledger::row(KeyView key) {
    auto found = rows_.find(key);
    if (found == rows_.end()) {
        // The rows of the others are few, one for each group and part.
        if (rows_.size() >= kMaxRows) {
            key.name = kOthers;
        }
        found =
            rows_.try_emplace(Key{key.direction, key.group, key.part, std::string{key.name}}).first;
    }
    return found->second;
}

void Ledger::charge(wire::Direction direction, ByteGroup group, BytePart part,
                    std::string_view name, const ByteCount& what) {
    if (what.bytes != 0 || what.bits != 0) {
        row({direction, group, part, name}).add(what);
    }
}

void Ledger::take_back(wire::Direction direction, ByteGroup group, BytePart part,
                       std::string_view name, const ByteCount& what) {
    if (what.bytes != 0 || what.bits != 0) {
        row({direction, group, part, name}).subtract(what);
    }
}

void Ledger::merge(const Ledger& other) {
    for (const auto& [key, count] : other.rows_) {
        charge(key.direction, key.group, key.part, key.name, count);
    }
}

std::vector<LedgerRow> Ledger::rows(wire::Direction direction) const {
    std::vector<LedgerRow> rows;
    for (const auto& [key, count] : rows_) {
        if (key.direction == direction && count != ByteCount{}) {
            rows.push_back({key.direction, key.group, key.part, key.name, count});
        }
    }
    std::stable_sort(rows.begin(), rows.end(), [](const LedgerRow& a, const LedgerRow& b) {
        return a.total.bits > b.total.bits;
    });
    return rows;
}

ByteCount Ledger::total(wire::Direction direction) const {
    ByteCount total;
    for (const auto& [key, count] : rows_) {
        if (key.direction == direction) {
            total.add(count);
        }
    }
    return total;
}

} // namespace tw::record
