#include "proxy/inspect/size_learner.h"

#include "proxy/inspect/delta_findings.h"

#include <algorithm>
#include <bit>

namespace tw::inspect {

using snapshot::AgreedSizes;

namespace {

/// Snapshots that nothing explains are searched one by one at first, then every second, fourth,
/// eighth … time: what is wrong with them is something else.
bool is_due(std::uint32_t misfits) {
    constexpr std::uint32_t kInARow = 8;
    return misfits < kInARow || std::has_single_bit(misfits);
}

/// The types that a right snapshot holds with the size in `sizes`.
NumberedTypes settled_by(const snapshot::SnapshotView& right, const AgreedSizes& sizes) {
    NumberedTypes settled;
    for (std::size_t i = 0; i < right.size() && right[i].key.type < sizes.size(); ++i) {
        const snapshot::ItemView item = right[i];
        const std::size_t size = sizes[item.key.type];
        settled[item.key.type] = size == 0 || size == item.data.size();
    }
    return settled;
}

TypesSeen types_in(const snapshot::Delta& delta) {
    TypesSeen seen;
    for (const snapshot::DeltaUpdate& update : delta.updates) {
        const snapshot::ItemKey key = update.key;
        if (key.type < seen.types.size() && !seen.types.test(key.type)) {
            seen.types.set(key.type);
            seen.first_id[key.type] = key.id;
        }
    }
    return seen;
}

} // namespace

bool SizeLearner::keep_fitting(const DeltaInts& delta) {
    const auto end = std::stable_partition(
        candidates_.begin(), candidates_.end(),
        [&](const AgreedSizes& sizes) { return read_strictly(delta, sizes).has_value(); });
    if (end == candidates_.begin()) {
        return false; // yet another type differs, or something else is wrong
    }
    candidates_.erase(end, candidates_.end());
    return true;
}

bool SizeLearner::search(const Misfit& misfit, std::int64_t time, SearchBudget& budget) {
    SizesKnown known{.sizes = sizes(), .settled = told_, .types = misfit.types};
    known.settled |= settled_by(misfit.right, known.sizes);
    budget.begin(time);
    auto found = find_sizes(misfit.delta, known, budget);
    if (found.empty() && known.settled != told_) {
        // Where a longer item ends a snapshot and the rest of it is zero, the checksum is right.
        known.settled = told_;
        found = find_sizes(misfit.delta, known, budget);
    }
    budget.end();
    if (found.empty()) {
        return false;
    }
    for (std::size_t type = 0; type < confirmed_.size(); ++type) {
        if (found.front()[type] != known.sizes[type]) {
            confirmed_[type] = 0;
        }
    }
    candidates_ = std::move(found);
    return true;
}

bool SizeLearner::on_misfit(const Misfit& misfit, Reporter& reporter, SearchBudget& budget) {
    if (!keep_fitting(misfit.delta) &&
        (!is_due(misfits_++) || !search(misfit, reporter.head().time, budget))) {
        return false;
    }
    misfits_ = 0;
    if (const auto seen = read_strictly(misfit.delta, candidates_.front())) {
        confirm(*seen, misfit.tick, *misfit.types, reporter);
    }
    return candidates_.size() == 1;
}

void SizeLearner::on_fit(const snapshot::Delta& delta, snapshot::Tick tick,
                         const record::TypeNames& types, Reporter& reporter) {
    if (candidates_.size() == 1) {
        confirm(types_in(delta), tick, types, reporter);
    }
}

void SizeLearner::confirm(const TypesSeen& seen, snapshot::Tick tick,
                          const record::TypeNames& types, Reporter& reporter) {
    const AgreedSizes& sizes = candidates_.front();
    static_assert(std::tuple_size_v<AgreedSizes> <= UINT16_MAX);
    constexpr auto kTypes = static_cast<std::uint16_t>(std::tuple_size_v<AgreedSizes>);
    for (std::uint16_t type = 0; type < kTypes; ++type) {
        const bool sure =
            std::all_of(candidates_.begin(), candidates_.end(),
                        [&](const AgreedSizes& each) { return each[type] == sizes[type]; });
        if (!seen.types.test(type) || sizes[type] == agreed_[type] || !sure) {
            continue;
        }
        if (++confirmed_[type] < kConfirmed || told_.test(type)) {
            continue;
        }
        told_.set(type);
        reporter.finding({.id = record::FindingId::snapshot_size_differs,
                          .tick = tick,
                          .item = name_item(types, {type, seen.first_id[type]}),
                          .value = sizes[type],
                          .limit = agreed_[type],
                          .confirmed = confirmed_[type],
                          .name = sizes[type] == 0 ? "written" : std::string_view{}});
    }
}

} // namespace tw::inspect
