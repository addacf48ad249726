// Applies a delta. Most items do not change from one snapshot to the next. Therefore all items of
// the base between two removed or new items are copied at once. Then the updates are added to the
// copies.

#include "snapshot/delta.h"
#include "snapshot/history.h"
#include "snapshot/snapshot.h"

#include <algorithm>
#include <array>

namespace tw::snapshot {

namespace {

// The maximum number of updates in a delta. An update has at least three ints: type, id, and a size
// or an int of data.
constexpr std::size_t kMaxUpdates = kMaxDeltaInts / 3;
static_assert(kMaxItems < kNewItem && kMaxUpdates < kNewItem);

/// The effects of a delta on its base. The arrays are not initialised, which saves time, because
/// they are long.
struct DeltaPlan {
    ItemSet deleted;
    std::size_t num_items = 0;
    std::size_t num_ints = 0;
    std::size_t num_updates = 0;
    std::size_t num_added = 0;
    /// True if no item is added or removed and no item is updated twice, as in most deltas.
    bool has_same_keys_as_base = false;
    // For each update, the index of its item in the base; kNewItem if the base does not contain the
    // item.
    std::array<std::uint16_t, kMaxUpdates> base_item_indices;
    // For each new item, key << 32 | index of update; sorted.
    std::array<std::uint64_t, kMaxUpdates> added_items;
};

std::size_t item_size(const SnapshotView& base, std::size_t item) {
    return base.ends()[item] - (item == 0 ? 0 : base.ends()[item - 1]);
}

tl::unexpected<DecodeError> error_at(DecodeErrc code, const DeltaUpdate& update,
                                     int ddnet_code = 0) {
    // The error's position is the int before the update's data: the item's size, if the delta
    // states the size.
    return tl::unexpected{DecodeError{
        .code = code, .offset = update.begin - 1, .key = update.key, .ddnet_code = ddnet_code}};
}

void plan_deletions(const Delta& delta, BaseItemIndex& index, DeltaPlan& plan,
                    DeltaWarnings& warnings) {
    for (std::size_t i = 0; i < delta.deleted.size(); ++i) {
        const auto key = static_cast<std::uint32_t>(delta.deleted[i]);
        const std::size_t item = index.find(key);
        const bool unknown = item == kNewItem;
        if (unknown || plan.deleted.insert(item)) {
            const auto at = static_cast<std::uint32_t>(&delta.deleted[i] - delta.ints.data());
            warnings.add({unknown ? DeltaWarning::unknown_delete : DeltaWarning::duplicate_delete,
                          ItemKey::from_packed(key), at});
        }
    }
}

Result<void> plan_updates(const SnapshotView& base, const Delta& delta, BaseItemIndex& index,
                          DeltaPlan& plan, DeltaWarnings& warnings) {
    ItemSet updated;
    bool sorted = true;
    for (std::size_t i = 0; i < delta.updates.size(); ++i) {
        const DeltaUpdate& update = delta.updates[i];
        const std::uint32_t key = update.key.packed();
        const std::size_t item = index.find(key);
        plan.base_item_indices[i] = static_cast<std::uint16_t>(item);
        if (item == kNewItem) {
            const std::uint64_t entry = std::uint64_t{key} << 32U | i;
            sorted =
                sorted && (plan.num_added == 0 || plan.added_items[plan.num_added - 1] < entry);
            plan.added_items[plan.num_added++] = entry;
            continue;
        }
        if (update.size != item_size(base, item)) {
            // DDNet has a separate error code, -207, for an item that the delta also deletes.
            const bool gone = plan.deleted.erase(item);
            return error_at(DecodeErrc::size_change, update, gone ? -207 : 0);
        }
        if (plan.deleted.erase(item)) {
            warnings.add({DeltaWarning::deleted_and_updated, update.key, update.begin});
        }
        if (updated.insert(item)) {
            warnings.add({DeltaWarning::duplicate_update, update.key, update.begin});
        }
    }
    plan.num_updates = delta.updates.size();
    if (!sorted) {
        std::sort(plan.added_items.begin(),
                  plan.added_items.begin() + static_cast<std::ptrdiff_t>(plan.num_added));
    }
    return {};
}

const DeltaUpdate& update_of(const Delta& delta, std::uint64_t entry) {
    return delta.updates[static_cast<std::uint32_t>(entry)];
}

// A delta may update a new item several times. Only the last of these updates stays in the plan.
Result<void> merge_duplicates(const Delta& delta, DeltaPlan& plan, DeltaWarnings& warnings) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < plan.num_added; ++i) {
        const std::uint64_t entry = plan.added_items[i];
        if (kept > 0 && plan.added_items[kept - 1] >> 32U == entry >> 32U) {
            const DeltaUpdate& update = update_of(delta, entry);
            if (update.size != update_of(delta, plan.added_items[kept - 1]).size) {
                return error_at(DecodeErrc::size_change, update);
            }
            warnings.add({DeltaWarning::duplicate_update, update.key, update.begin});
            --kept;
        }
        plan.added_items[kept++] = entry;
    }
    plan.num_added = kept;
    return {};
}

// Returns the error for the first new item that exceeds the limits, in the order of the delta.
Result<void> find_first_overflow(const Delta& delta, DeltaPlan& plan, std::size_t items,
                                 std::size_t bytes) {
    auto* const end = plan.added_items.begin() + static_cast<std::ptrdiff_t>(plan.num_added);
    std::sort(plan.added_items.begin(), end, [](std::uint64_t a, std::uint64_t b) {
        return static_cast<std::uint32_t>(a) < static_cast<std::uint32_t>(b);
    });
    for (auto* entry = plan.added_items.begin(); entry != end; ++entry) {
        const DeltaUpdate& update = update_of(delta, *entry);
        ++items;
        bytes += 8 + 4 * std::size_t{update.size};
        if (items > kMaxItems) {
            return error_at(DecodeErrc::too_many_items, update);
        }
        if (bytes > kMaxSnapshotBytes) {
            return error_at(DecodeErrc::too_many_bytes, update);
        }
    }
    return {};
}

Result<void> plan_result_size(const SnapshotView& base, const Delta& delta, DeltaPlan& plan) {
    plan.num_items = base.size();
    plan.num_ints = base.data().size();
    plan.deleted.for_each([&](std::size_t item) {
        --plan.num_items;
        plan.num_ints -= item_size(base, item);
    });
    const std::size_t kept_items = plan.num_items;
    const std::size_t kept_bytes = 8 + 8 * plan.num_items + 4 * plan.num_ints;
    for (std::size_t i = 0; i < plan.num_added; ++i) {
        plan.num_ints += update_of(delta, plan.added_items[i]).size;
    }
    plan.num_items += plan.num_added;
    if (plan.num_items > kMaxItems ||
        8 + 8 * plan.num_items + 4 * plan.num_ints > kMaxSnapshotBytes) {
        return find_first_overflow(delta, plan, kept_items, kept_bytes);
    }
    return {};
}

// Copies the items of the base that are not deleted, and inserts the new items. Sets `moved[i]` to
// the new index of the base's item i.
void merge_items(const SnapshotView& base, const Delta& delta, const DeltaPlan& plan,
                 SnapshotWriter& out, std::array<std::uint16_t, kMaxItems>& moved) {
    std::size_t at = 0;
    const auto copy_until = [&](std::size_t item) {
        const std::size_t shift = out.num_items() - at; // wraps around if items were removed
        for (std::size_t i = at; i < item; ++i) {
            moved[i] = static_cast<std::uint16_t>(i + shift);
        }
        out.copy(base, at, item);
        at = item;
    };
    std::size_t next = 0;
    const auto add_before = [&](std::uint64_t key, std::size_t item) {
        for (; next < plan.num_added && plan.added_items[next] >> 32U < key; ++next) {
            const auto added = static_cast<std::uint32_t>(plan.added_items[next] >> 32U);
            if (at < item && base.keys()[at] < added) {
                const auto keys = base.keys().subspan(at, item - at);
                const auto behind = std::lower_bound(keys.begin(), keys.end(), added);
                copy_until(at + static_cast<std::size_t>(behind - keys.begin()));
            }
            const DeltaUpdate& update = update_of(delta, plan.added_items[next]);
            out.add(added, std::span{delta.ints}.subspan(update.begin, update.size));
        }
    };
    plan.deleted.for_each([&](std::size_t item) {
        add_before(base.keys()[item], item);
        copy_until(item);
        at = item + 1;
    });
    add_before(std::uint64_t{1} << 32U, base.size());
    copy_until(base.size());
}

// Sets each int of `out` to the sum of `base` and `difference`. Sums wrap around.
void add_ints(const std::int32_t* base, const std::int32_t* difference, std::int32_t* out,
              std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
        out[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(base[i]) +
                                           static_cast<std::uint32_t>(difference[i]));
    }
}

// Adds each int of `difference` to the int at the same index of `out`. The two must not overlap.
// Sums wrap around.
void add_ints_in_place(std::int32_t* __restrict out, const std::int32_t* __restrict difference,
                       std::size_t size) {
    add_ints(out, difference, out, size);
}

// Computes the effects of a delta and finds its errors before anything is written.
Result<void> plan_delta(const SnapshotView& base, const Delta& delta, DeltaPlan& plan,
                        DeltaWarnings& warnings) {
    if (base.size() > kMaxItems || delta.updates.size() > kMaxUpdates) {
        return tl::unexpected{DecodeError{.code = DecodeErrc::too_many_items}};
    }
    BaseItemIndex index{base.keys()};
    const std::size_t warnings_before = warnings.count;
    plan_deletions(delta, index, plan, warnings);
    if (auto planned = plan_updates(base, delta, index, plan, warnings); !planned) {
        return planned;
    }
    if (delta.deleted.empty() && plan.num_added == 0 && warnings.count == warnings_before) {
        plan.has_same_keys_as_base = true;
        plan.num_items = base.size();
        plan.num_ints = base.data().size();
        return {};
    }
    if (auto merged = merge_duplicates(delta, plan, warnings); !merged) {
        return merged;
    }
    return plan_result_size(base, delta, plan);
}

void apply_plan(const SnapshotView& base, const Delta& delta, const DeltaPlan& plan,
                SnapshotWriter writer) {
    if (plan.has_same_keys_as_base) {
        writer.copy(base);
        for (std::size_t i = 0; i < plan.num_updates; ++i) {
            const DeltaUpdate& update = delta.updates[i];
            add_ints_in_place(writer.data_of(plan.base_item_indices[i]),
                              delta.ints.data() + update.begin, update.size);
        }
        return;
    }
    std::array<std::uint16_t, kMaxItems> moved; // not initialised: merge_items() sets what is read
    merge_items(base, delta, plan, writer, moved);
    for (std::size_t i = 0; i < plan.num_updates; ++i) {
        const std::size_t item = plan.base_item_indices[i];
        if (item == kNewItem) {
            continue;
        }
        const DeltaUpdate& update = delta.updates[i];
        const std::int32_t* const old =
            base.data().data() + (item == 0 ? 0 : base.ends()[item - 1]);
        add_ints(old, delta.ints.data() + update.begin, writer.data_of(moved[item]), update.size);
    }
}

} // namespace

Result<SnapshotView> apply_delta(const SnapshotView& base, const Delta& delta, History& history,
                                 DeltaWarnings& warnings) {
    DeltaPlan plan; // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
    if (auto planned = plan_delta(base, delta, plan, warnings); !planned) {
        return tl::unexpected{planned.error()};
    }
    const auto room = history.reserve(2 * plan.num_items + plan.num_ints);
    apply_plan(base, delta, plan, SnapshotWriter{room.data(), plan.num_items});
    return SnapshotView::of_block(room, plan.num_items, plan.num_ints);
}

Result<void> apply_delta(const SnapshotView& base, const Delta& delta, Snapshot& out,
                         DeltaWarnings& warnings) {
    DeltaPlan plan; // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
    if (auto planned = plan_delta(base, delta, plan, warnings); !planned) {
        return planned;
    }
    apply_plan(base, delta, plan, SnapshotWriter{out, plan.num_items, plan.num_ints});
    return {};
}

} // namespace tw::snapshot
