#include "proxy/inspect/snapshot_budget.h"

#include "proxy/inspect/delta_findings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace tw::inspect {

using snapshot::ItemKey;
using snapshot::SnapshotView;

struct SnapshotBudget::Limit {
    std::size_t index;
    std::string_view name;
    std::int64_t value;
    std::int64_t before; ///< in the sample
    std::int64_t limit;
    std::int64_t room; ///< less than this is left when servers drop what comes
};

namespace {

constexpr std::int64_t kItemBytes = 8; ///< that an item takes beside its ints

std::int64_t bytes_of(std::size_t items, std::size_t ints) {
    return 8 + kItemBytes * static_cast<std::int64_t>(items) + 4 * static_cast<std::int64_t>(ints);
}

/// What each type takes of a limit.
std::map<std::uint16_t, std::int64_t> by_type(std::span<const std::uint32_t> keys,
                                              std::span<const std::uint32_t> ends, bool bytes) {
    std::map<std::uint16_t, std::int64_t> taken;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::uint32_t ints = ends[i] - (i == 0 ? 0 : ends[i - 1]);
        taken[ItemKey::from_packed(keys[i]).type] +=
            bytes ? kItemBytes + 4 * std::int64_t{ints} : 1;
    }
    return taken;
}

/// The last item of a type: the newest, as servers count ids up.
ItemKey last_of(const SnapshotView& items, std::uint16_t type) {
    const auto keys = items.keys();
    const auto behind =
        std::lower_bound(keys.begin(), keys.end(), (std::uint32_t{type} + 1) << 16U);
    return ItemKey::from_packed(*(behind - 1));
}

std::string name_of(const record::FindingItem& item) {
    return item.type.empty() ? "type " + std::to_string(item.type_id) : std::string{item.type};
}

} // namespace

void SnapshotBudget::examine(const record::SnapshotRecord& record, Reporter& reporter) {
    const SnapshotView& items = record.items;
    const snapshot::Tick age = record.tick - sample_.tick;
    if (sample_.keys.empty() || age < 0 || age > 8 * kTrend) {
        take_sample(record);
        told_ = {};
        full_ = false;
        return;
    }
    const Limit limits[] = {
        {0, "items", static_cast<std::int64_t>(items.size()),
         static_cast<std::int64_t>(sample_.keys.size()), snapshot::kMaxItems, 2},
        {1, "bytes", static_cast<std::int64_t>(items.size_bytes()),
         bytes_of(sample_.keys.size(), sample_.ends.back()), snapshot::kMaxSnapshotBytes, 128},
    };
    bool full = false;
    for (const Limit& limit : limits) {
        if (limit.limit - limit.value < limit.room) {
            full = true;
            if (!full_) {
                tell_gone(limit, record, reporter);
            }
        } else if (age >= kTrend) {
            foretell(limit, record, reporter);
        }
    }
    full_ = full;
    if (age >= 4 * kTrend && !full) {
        take_sample(record);
    }
}

void SnapshotBudget::take_sample(const record::SnapshotRecord& record) {
    sample_.tick = record.tick;
    sample_.keys.assign(record.items.keys().begin(), record.items.keys().end());
    sample_.ends.assign(record.items.ends().begin(), record.items.ends().end());
}

void SnapshotBudget::foretell(const Limit& limit, const record::SnapshotRecord& record,
                              Reporter& reporter) {
    const std::int64_t grown = limit.value - limit.before;
    const std::int64_t age = record.tick - sample_.tick;
    if (2 * limit.value < limit.limit || grown <= 0) {
        told_[limit.index] = false;
        return;
    }
    const std::int64_t left = (limit.limit - limit.value) * age / grown; // ticks
    if (told_[limit.index] || left > kSoon) {
        return;
    }
    told_[limit.index] = true;
    const bool bytes = limit.index == 1;
    const auto before = by_type(sample_.keys, sample_.ends, bytes);
    std::optional<std::uint16_t> most;
    std::int64_t most_grown = 0;
    for (const auto& [type, taken] : by_type(record.items.keys(), record.items.ends(), bytes)) {
        const auto old = before.find(type);
        const std::int64_t more = taken - (old == before.end() ? 0 : old->second);
        if (more > most_grown) {
            most_grown = more;
            most = type;
        }
    }
    constexpr std::int64_t kTicksASecond = 50;
    const std::string detail = std::to_string(grown) + " more in " +
                               std::to_string(age / kTicksASecond) + " s: full in " +
                               std::to_string(left / kTicksASecond) + " s";
    record::FindingRecord finding{.id = record::FindingId::snapshot_budget,
                                  .tick = record.tick,
                                  .value = limit.value,
                                  .limit = limit.limit,
                                  .name = limit.name,
                                  .detail = detail};
    if (most) {
        finding.item = name_item(*record.types, last_of(record.items, *most));
    }
    reporter.finding(finding);
}

void SnapshotBudget::tell_gone(const Limit& limit, const record::SnapshotRecord& record,
                               Reporter& reporter) {
    constexpr std::size_t kListed = 8;
    std::uint64_t gone = 0;
    std::string list;
    record::FindingRecord finding{.id = record::FindingId::snapshot_budget,
                                  .tick = record.tick,
                                  .value = limit.value,
                                  .limit = limit.limit,
                                  .name = limit.name};
    for (const std::uint32_t packed : sample_.keys) {
        const ItemKey key = ItemKey::from_packed(packed);
        const snapshot::ObjectSpec* const object = record.types->object(key.type);
        const bool event = object != nullptr && object->kind == snapshot::ObjectKind::event;
        if (event || record.items.find(key)) {
            continue;
        }
        const record::FindingItem item = name_item(*record.types, key);
        if (++gone <= kListed) {
            list += (list.empty() ? "gone: " : ", ") + name_of(item) + ' ' + std::to_string(key.id);
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
    reporter.finding(finding);
}

} // namespace tw::inspect
