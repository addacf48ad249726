#include "proxy/inspect/snapshots/snapshot_checks.h"

#include "proxy/inspect/diagnosis/diagnosis.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>

namespace tw::inspect {

using snapshot::ItemKey;
using snapshot::SnapshotView;

struct SnapshotLimitCheck::Limit {
    std::size_t index;
    std::string_view name;
    std::int64_t current;
    std::int64_t in_sample; ///< the value in the earlier snapshot `sample_snapshot_`
    std::int64_t limit;
    std::int64_t min_room; ///< if less than this is left to the limit, servers drop items
};

namespace {

/// Returns the number of bytes or items of each item type. `bytes`: whether to count bytes.
std::map<std::uint16_t, std::int64_t> count_per_type(const SnapshotView& items, bool bytes) {
    constexpr std::size_t kItemBytes = 8; // the size of an item without its ints
    std::map<std::uint16_t, std::int64_t> taken;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const snapshot::ItemView item = items[i];
        taken[item.key.type] +=
            bytes ? static_cast<std::int64_t>(kItemBytes + item.data.size_bytes()) : 1;
    }
    return taken;
}

/// Returns the key of the type's last item. It is the newest item, because servers count ids
/// upwards.
ItemKey find_last_key_of_type(const SnapshotView& items, std::uint16_t type) {
    const auto keys = items.keys();
    const auto behind =
        std::lower_bound(keys.begin(), keys.end(), (std::uint32_t{type} + 1) << 16U);
    return ItemKey::from_packed(*(behind - 1));
}

std::string name_or_number_of_type(const record::FindingItem& item) {
    return item.type.empty() ? "type " + std::to_string(item.type_id) : std::string{item.type};
}

} // namespace

void SnapshotLimitCheck::compare_with_limits(const record::SnapshotRecord& record,
                                             Reporter& reporter) {
    const SnapshotView& items = record.items;
    const SnapshotView before = sample_snapshot_.view();
    const snapshot::Tick age = record.tick - sample_tick_;
    if (before.empty() || age < 0 || age > 8 * kTrendTicks) {
        store_trend_sample(record);
        is_growth_reported_ = {};
        was_limit_reached_ = false;
        return;
    }
    const Limit limits[] = {
        {0, "items", static_cast<std::int64_t>(items.size()),
         static_cast<std::int64_t>(before.size()), snapshot::kMaxItems, 2},
        {1, "bytes", static_cast<std::int64_t>(items.size_bytes()),
         static_cast<std::int64_t>(before.size_bytes()), snapshot::kMaxSnapshotBytes, 128},
    };
    bool full = false;
    for (const Limit& limit : limits) {
        if (limit.limit - limit.current < limit.min_room) {
            full = true;
            if (!was_limit_reached_) {
                report_dropped_items(limit, record, reporter);
            }
        } else if (age >= kTrendTicks) {
            warn_of_approaching_limit(limit, record, reporter);
        }
    }
    was_limit_reached_ = full;
    if (age >= 4 * kTrendTicks && !full) {
        store_trend_sample(record);
    }
}

void SnapshotLimitCheck::store_trend_sample(const record::SnapshotRecord& record) {
    sample_tick_ = record.tick;
    snapshot::SnapshotWriter{sample_snapshot_, record.items.size(), record.items.data().size()}
        .copy(record.items);
}

void SnapshotLimitCheck::warn_of_approaching_limit(const Limit& limit,
                                                   const record::SnapshotRecord& record,
                                                   Reporter& reporter) {
    const std::int64_t grown = limit.current - limit.in_sample;
    const std::int64_t age = record.tick - sample_tick_;
    if (2 * limit.current < limit.limit || grown <= 0) {
        is_growth_reported_[limit.index] = false;
        return;
    }
    const std::int64_t left = (limit.limit - limit.current) * age / grown; // ticks to the limit
    if (is_growth_reported_[limit.index] || left > kWarningTicks) {
        return;
    }
    is_growth_reported_[limit.index] = true;
    const bool bytes = limit.index == 1;
    const auto before = count_per_type(sample_snapshot_.view(), bytes);
    std::optional<std::uint16_t> most;
    std::int64_t most_grown = 0;
    for (const auto& [type, taken] : count_per_type(record.items, bytes)) {
        const auto old = before.find(type);
        const std::int64_t more = taken - (old == before.end() ? 0 : old->second);
        if (more > most_grown) {
            most_grown = more;
            most = type;
        }
    }
    constexpr std::int64_t kTicksASecond = record::kNanosecondsPerSecond / record::kTickDuration;
    const std::string detail = std::to_string(grown) + " more in " +
                               std::to_string(age / kTicksASecond) + " s: full in " +
                               std::to_string(left / kTicksASecond) + " s";
    record::FindingRecord finding{.id = record::FindingId::snapshot_budget,
                                  .tick = record.tick,
                                  .value = limit.current,
                                  .limit = limit.limit,
                                  .name = limit.name,
                                  .detail = detail};
    if (most) {
        finding.item = make_finding_item(*record.types, find_last_key_of_type(record.items, *most));
    }
    reporter.report_finding(finding);
}

void SnapshotLimitCheck::report_dropped_items(const Limit& limit,
                                              const record::SnapshotRecord& record,
                                              Reporter& reporter) {
    constexpr std::size_t kListed = 8;
    std::uint64_t gone = 0;
    std::string list;
    record::FindingRecord finding{.id = record::FindingId::snapshot_budget,
                                  .tick = record.tick,
                                  .value = limit.current,
                                  .limit = limit.limit,
                                  .name = limit.name};
    for (const std::uint32_t packed : sample_snapshot_.view().keys()) {
        const ItemKey key = ItemKey::from_packed(packed);
        const snapshot::ObjectSpec* const object = record.types->object(key.type);
        const bool event = object != nullptr && object->kind == snapshot::ObjectKind::event;
        if (event || record.items.find(key)) {
            continue;
        }
        const record::FindingItem item = make_finding_item(*record.types, key);
        if (++gone <= kListed) {
            list += (list.empty() ? "gone: " : ", ") + name_or_number_of_type(item) + ' ' +
                    std::to_string(key.id);
        }
        if (!finding.item) {
            finding.item = item;
        }
    }
    if (gone > kListed) {
        list += ", and " + std::to_string(gone - kListed) + " more";
    }
    if (gone == 0) {
        return;
    }
    finding.lost = gone;
    finding.detail = list;
    reporter.report_finding(finding);
}

namespace {

/// The lowest key that an item of a type with a UUID can have.
constexpr std::uint32_t kFirstKeyOfUuidTypes = std::uint32_t{snapshot::kFirstUuidType} << 16U;

/// Returns whether the snapshot has a descriptor for each type with a UUID. Reports types whose
/// descriptor is missing. `first_extended`: the index of the first item whose type has a UUID.
bool check_descriptors(const record::SnapshotRecord& record, std::size_t first_extended,
                       Reporter& reporter) {
    const auto keys = record.items.keys();
    bool is_complete = true;
    // Clients need the descriptor of a type in the same snapshot. A descriptor is an item of type
    // 0, and its id is the number of the type that it describes. Items are sorted by type and id,
    // so descriptors come first, in the order of the types that they describe.
    auto descriptor = keys.begin();
    for (auto at = keys.begin() + static_cast<std::ptrdiff_t>(first_extended); at != keys.end();) {
        const auto key = snapshot::ItemKey::from_packed(*at);
        while (*descriptor < key.type) {
            ++descriptor;
        }
        if (*descriptor != key.type || record.types->find(key.type) == nullptr) {
            is_complete = false;
            reporter.report_finding_once({.id = record::FindingId::snapshot_missing_descriptor,
                                          .tick = record.tick,
                                          .item = make_finding_item(*record.types, key)});
        }
        at = std::find_if(at, keys.end(),
                          [&](std::uint32_t other) { return other >> 16U != key.type; });
    }
    return is_complete;
}

bool has_keys_of_previous(const record::SnapshotRecord& record) {
    const auto keys = record.items.keys();
    return record.previous && std::equal(keys.begin(), keys.end(), record.previous->keys().begin(),
                                         record.previous->keys().end());
}

} // namespace

void SnapshotChecks::check_snapshot(const record::SnapshotRecord& record, Reporter& reporter) {
    check_limits(record, reporter);
    limit_check_.check_snapshot(record, reporter);
    const std::size_t first_extended =
        record.items.lower_bound(ItemKey::from_packed(kFirstKeyOfUuidTypes));
    had_all_descriptors_ = (had_all_descriptors_ && has_keys_of_previous(record)) ||
                           check_descriptors(record, first_extended, reporter);
    check_unknown_types(record, record.items.keys().first(first_extended), reporter);
    check_character_positions(record, reporter);
}

void SnapshotChecks::forget_reported_problems() {
    misplaced_characters_.reset();
    was_near_limit_ = false;
    limit_check_ = {};
}

// Reports unknown types without a UUID. Clients remove items whose type their version does not know
// (ValidateObj).
void SnapshotChecks::check_unknown_types(const record::SnapshotRecord& record,
                                         std::span<const std::uint32_t> keys, Reporter& reporter) {
    constexpr std::uint32_t kFirst = 21; // all lower types are known in 0.6 and 0.7
    if (keys.empty() || keys.back() >> 16U < kFirst) {
        return;
    }
    auto at = std::lower_bound(keys.begin(), keys.end(), kFirst << 16U);
    while (at != keys.end()) {
        const auto key = snapshot::ItemKey::from_packed(*at);
        const auto end = std::lower_bound(at, keys.end(), (std::uint32_t{key.type} + 1) << 16U);
        if (record.types->object(key.type) == nullptr) {
            const bool is_new = std::ranges::find(unknown_types_, key.type) == unknown_types_.end();
            if (is_new && unknown_types_.size() < kMaxUnknownTypes) {
                unknown_types_.push_back(key.type);
                reporter.report_finding({.id = record::FindingId::snapshot_unknown_type,
                                         .tick = record.tick,
                                         .item = make_finding_item(*record.types, key),
                                         .value = end - at});
            } else {
                reporter.count_finding(record::FindingId::snapshot_unknown_type);
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
    const Limit* const near = std::ranges::find_if(limits, [](const Limit& limit) {
        return limit.value >= limit.limit - limit.limit / 10; // 90 %
    });
    if (near != std::end(limits) && !was_near_limit_) {
        reporter.report_finding({.id = record::FindingId::snapshot_item_cap,
                                 .tick = record.tick,
                                 .value = near->value,
                                 .limit = near->limit,
                                 .name = near->name});
    }
    was_near_limit_ = near != std::end(limits);
}

void SnapshotChecks::check_character_positions(const record::SnapshotRecord& record,
                                               Reporter& reporter) {
    if (record.tile_map == nullptr) {
        return;
    }
    const snapshot::Dialect dialect = record.types->dialect();
    const std::uint16_t type = snapshot::character_type(dialect);
    const snapshot::ObjectSpec* character = record.types->object(type);
    for_each_item_of_type(record.items, type, [&](const snapshot::ItemView& item) {
        const auto position =
            character == nullptr ? std::nullopt : snapshot::position_of(*character, item.data);
        if (item.key.id >= kMaxClients || !position) {
            return;
        }
        const std::int32_t x = item.data[position->x];
        const std::int32_t y = item.data[position->y];
        const record::PositionFault where = record.tile_map->check_position(x, y);
        if (where != record::PositionFault::none && !misplaced_characters_.test(item.key.id)) {
            reporter.report_finding({.id = where == record::PositionFault::inside_solid
                                               ? record::FindingId::world_inside_solid
                                               : record::FindingId::world_outside_map,
                                     .tick = record.tick,
                                     .item = make_finding_item(*record.types, item.key),
                                     .place = record.tile_map->tiles_at_impossible_position(x, y)});
        }
        misplaced_characters_.set(item.key.id, where != record::PositionFault::none);
    });
}

} // namespace tw::inspect
