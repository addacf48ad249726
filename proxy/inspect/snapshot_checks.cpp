#include "proxy/inspect/snapshot_checks.h"

#include "proxy/inspect/delta_findings.h"

#include <algorithm>

namespace tw::inspect {

namespace {

/// From here on a limit counts as near: 90 % of it.
constexpr std::int64_t near_limit(std::int64_t limit) {
    return limit - limit / 10;
}

void check_descriptors(const record::SnapshotRecord& record, Reporter& reporter) {
    const auto keys = record.items.keys();
    const auto first_of = [&](std::uint32_t type, auto from) {
        return std::lower_bound(from, keys.end(), type << 16U);
    };
    for (auto at = first_of(snapshot::kFirstUuidType, keys.begin()); at != keys.end();) {
        const auto key = snapshot::ItemKey::from_packed(*at);
        // Clients look it up in the snapshot itself, whatever earlier ones said.
        if (!record.items.find({snapshot::kDescriptorType, key.type}) ||
            record.types->find(key.type) == nullptr) {
            reporter.finding_once({.id = record::FindingId::snapshot_missing_descriptor,
                                   .tick = record.tick,
                                   .item = name_item(*record.types, key)});
        }
        at = first_of(std::uint32_t{key.type} + 1, at + 1);
    }
}

} // namespace

void SnapshotChecks::look_at(const record::SnapshotRecord& record, Reporter& reporter) {
    check_limits(record, reporter);
    budget_.look_at(record, reporter);
    check_descriptors(record, reporter);
    check_types(record, reporter);
    check_world(record, reporter);
}

void SnapshotChecks::begin_anew() {
    misplaced_.reset();
    near_cap_ = false;
    budget_ = {};
}

// Clients look a numbered item up in the table of their own version (ValidateObj), and take out what
// is not there.
void SnapshotChecks::check_types(const record::SnapshotRecord& record, Reporter& reporter) {
    constexpr std::uint32_t kFirst = 21; // the types before it are known in 0.6 and in 0.7
    const auto keys = record.items.keys();
    auto at = std::lower_bound(keys.begin(), keys.end(), kFirst << 16U);
    while (at != keys.end() && *at >> 16U < snapshot::kFirstUuidType) {
        const auto key = snapshot::ItemKey::from_packed(*at);
        const auto end = std::lower_bound(at, keys.end(), (std::uint32_t{key.type} + 1) << 16U);
        if (record.types->object(key.type) == nullptr) {
            const bool is_new = std::ranges::find(unknown_types_, key.type) == unknown_types_.end();
            if (is_new && unknown_types_.size() < kMaxUnknownTypes) {
                unknown_types_.push_back(key.type);
                reporter.finding({.id = record::FindingId::snapshot_unknown_type,
                                  .tick = record.tick,
                                  .item = name_item(*record.types, key),
                                  .value = end - at});
            } else {
                reporter.count(record::FindingId::snapshot_unknown_type);
            }
        }
        at = end;
    }
}

void SnapshotChecks::check_limits(const record::SnapshotRecord& record, Reporter& reporter) {
    struct Limit {
        std::int64_t value;
        std::int64_t limit;
        std::string_view name;
    };

    const Limit limits[] = {
        {static_cast<std::int64_t>(record.items.size()), snapshot::kMaxItems, "items"},
        {static_cast<std::int64_t>(record.items.size_bytes()), snapshot::kMaxSnapshotBytes,
         "bytes"},
        {record.parts, snapshot::kMaxParts, "parts"},
    };
    bool near = false;
    for (const Limit& limit : limits) {
        if (limit.value < near_limit(limit.limit)) {
            continue;
        }
        if (!near_cap_ && !near) {
            reporter.finding({.id = record::FindingId::snapshot_item_cap,
                              .tick = record.tick,
                              .value = limit.value,
                              .limit = limit.limit,
                              .name = limit.name});
        }
        near = true;
    }
    near_cap_ = near;
}

void SnapshotChecks::check_world(const record::SnapshotRecord& record, Reporter& reporter) {
    if (record.world == nullptr) {
        return;
    }
    const snapshot::Dialect dialect = record.types->dialect();
    const std::uint16_t type = snapshot::character_type(dialect);
    const snapshot::ObjectSpec* character = record.types->object(type);
    const auto keys = record.items.keys();
    const auto first = std::lower_bound(keys.begin(), keys.end(), std::uint32_t{type} << 16U);
    for (auto at = first; at != keys.end() && *at >> 16U == type; ++at) {
        const auto item = record.items[static_cast<std::size_t>(at - keys.begin())];
        const auto position =
            character == nullptr ? std::nullopt : snapshot::position_of(*character, item.data);
        if (item.key.id >= kMaxClients || !position) {
            continue;
        }
        const std::int32_t x = item.data[position->x];
        const std::int32_t y = item.data[position->y];
        const record::Misplaced where = record.world->misplaced(x, y);
        if (where != record::Misplaced::no && !misplaced_.test(item.key.id)) {
            reporter.finding({.id = where == record::Misplaced::inside_solid
                                        ? record::FindingId::world_inside_solid
                                        : record::FindingId::world_outside_map,
                              .tick = record.tick,
                              .item = name_item(*record.types, item.key),
                              .place = record.world->misplaced_at(x, y)});
        }
        misplaced_.set(item.key.id, where != record::Misplaced::no);
    }
}

} // namespace tw::inspect
