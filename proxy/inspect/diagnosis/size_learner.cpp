#include "proxy/inspect/diagnosis/size_learner.h"

#include "proxy/inspect/diagnosis/diagnosis.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tw::inspect {

using snapshot::AgreedSizes;
using snapshot::SnapshotView;
using snapshot::Tick;

namespace {

/// Whether to search for item sizes after `misfits` unexplained snapshots in a row. True for the
/// first kInARow snapshots. Later, true only if `misfits` is a power of two, because searches
/// without success cost time.
bool is_search_due(std::uint32_t misfits) {
    constexpr std::uint32_t kInARow = 8;
    return misfits < kInARow || std::has_single_bit(misfits);
}

/// After this many unexplained snapshots in a row, learned sizes may be wrong, too.
constexpr std::uint32_t kMisfitsBeforeDoubt = 3;

/// Returns the types whose items in a verified snapshot all have the size in `sizes`.
NumberedTypeSet find_confirmed_types(const SnapshotView& right, const AgreedSizes& sizes) {
    NumberedTypeSet settled;
    for (std::size_t i = 0; i < right.size() && right[i].key.type < sizes.size(); ++i) {
        const snapshot::ItemView item = right[i];
        const std::size_t size = sizes[item.key.type];
        settled[item.key.type] = size == 0 || size == item.data.size();
    }
    return settled;
}

/// Sets the sizes to those of the items in a verified snapshot.
void set_sizes_from_items(const SnapshotView& right, AgreedSizes& sizes) {
    for (std::size_t i = 0; i < right.size() && right[i].key.type < sizes.size(); ++i) {
        const snapshot::ItemView item = right[i];
        std::uint8_t& size = sizes[item.key.type];
        if (size != 0 && item.data.size() <= UINT8_MAX) {
            size = static_cast<std::uint8_t>(item.data.size());
        }
    }
}

ItemTypeCounts count_types_in(const snapshot::Delta& delta) {
    ItemTypeCounts seen;
    for (const snapshot::DeltaUpdate& update : delta.updates) {
        seen.count_item(update.key);
    }
    return seen;
}

/// Whether one flipped bit may have changed the key of another type into this key. That is
/// impossible if the snapshot `items`, which contains this key, also contains the other key.
bool may_be_damaged_key(snapshot::ItemKey key, const AgreedSizes& sizes,
                        const SnapshotView& items) {
    for (unsigned bit = 1; bit <= snapshot::kMaxItemType; bit <<= 1U) {
        const auto other = static_cast<std::uint16_t>(key.type ^ bit);
        const std::size_t size = snapshot::agreed_size(other, sizes);
        if (size != 0 && size == sizes[key.type] && !items.find({other, key.id})) {
            return true;
        }
    }
    return false;
}

/// Returns the id of the type's first item; nullopt if the snapshot has no item of the type.
std::optional<std::uint16_t> find_first_id_of_type(const SnapshotView& items, std::uint16_t type) {
    const std::size_t at = items.lower_bound({type, 0});
    return at < items.size() && items[at].key.type == type ? std::optional{items[at].key.id}
                                                           : std::nullopt;
}

} // namespace

bool SizeLearner::drop_contradicted_explanations(const DeltaGetter& delta_of) {
    const auto misfits = [&](const Explanation& each) {
        return !count_types_if_sizes_fit(delta_of(each), each.sizes);
    };
    if (std::ranges::all_of(explanations_, misfits)) {
        return false; // keep the explanations: another type's size may differ, too
    }
    std::erase_if(explanations_, misfits);
    return true;
}

AgreedSizes SizeLearner::sizes_learned_by_others() const {
    AgreedSizes hinted = decoding_sizes();
    for (std::uint16_t type = 0; shared_sizes_ != nullptr && type < kNumberedTypes; ++type) {
        hinted[type] = shared_sizes_->find_size(types_->dialect(), type).value_or(hinted[type]);
    }
    return hinted;
}

bool SizeLearner::try_likely_sizes(const MisfitDelta& misfit) {
    const AgreedSizes before = decoding_sizes();
    const auto as_agreed = before != agreed_sizes_
                               ? count_types_if_sizes_fit(misfit.delta, agreed_sizes_)
                               : std::nullopt;
    if (as_agreed) {
        // The delta fits the agreed sizes, so the learned sizes of its types are wrong. They may
        // come from another server's checkpoint.
        AgreedSizes reverted = before;
        for (std::uint16_t type = 0; type < kNumberedTypes; ++type) {
            if (as_agreed->counts[type] != 0) {
                reverted[type] = agreed_sizes_[type];
            }
        }
        if (reverted != before) {
            adopt_explanations({reverted}, before);
            return true;
        }
    }
    AgreedSizes hinted = sizes_learned_by_others();
    for (const bool of_items : {false, true}) {
        if (of_items) {
            set_sizes_from_items(misfit.newest_verified, hinted);
            set_sizes_from_items(misfit.delta.base, hinted);
        }
        if (hinted != before && count_types_if_sizes_fit(misfit.delta, hinted)) {
            adopt_explanations({hinted}, before);
            return true;
        }
    }
    return false;
}

bool SizeLearner::search_explanations(const MisfitDelta& misfit, std::int64_t time,
                                      SearchBudget& budget) {
    const AgreedSizes before = decoding_sizes();
    KnownSizes known{
        .sizes = sizes_learned_by_others(), .certain_types = reported_types_, .item_types = types_};
    known.certain_types |= find_confirmed_types(misfit.newest_verified, known.sizes);
    budget.begin_search(time, search_items_left_);
    auto found = find_item_sizes(misfit.delta, known, budget);
    if (found.empty() && (known.certain_types != reported_types_ || known.sizes != before)) {
        // Searches again for all types without a reported size, because a verified snapshot does
        // not prove a size: surplus zeros at the end of the delta do not change the checksum.
        known.certain_types = reported_types_;
        known.sizes = before;
        found = find_item_sizes(misfit.delta, known, budget);
    }
    if (found.empty() && before != agreed_sizes_ && num_unexplained_deltas_ > kMisfitsBeforeDoubt) {
        known.certain_types.reset();
        known.sizes = reported_types_.any()
                          ? before
                          : agreed_sizes_; // restored but unreported sizes may be wrong
        found = find_item_sizes(misfit.delta, known, budget);
    }
    search_items_left_ -= budget.end_search();
    if (found.empty()) {
        return false;
    }
    adopt_explanations(std::move(found), before);
    return true;
}

void SizeLearner::adopt_explanations(std::vector<AgreedSizes> found, const AgreedSizes& before) {
    const SizeEvidenceTable known =
        explanations_.empty() ? SizeEvidenceTable{} : explanations_.front().evidence;
    forget_undecided_snapshots();
    explanations_.clear();
    for (const AgreedSizes& sizes : found) {
        Explanation& each = explanations_.emplace_back(Explanation{.sizes = sizes});
        for (std::uint16_t type = 0; type < kNumberedTypes; ++type) {
            each.evidence[type] = sizes[type] == before[type] ? known[type] : SizeEvidence{};
        }
    }
    for (std::uint16_t type = 0; type < kNumberedTypes; ++type) {
        if (found.front()[type] != before[type]) {
            reported_types_.reset(type);
        }
    }
}

bool SizeLearner::on_misfit_delta(const MisfitDelta& misfit, Reporter& reporter,
                                  SearchBudget& budget) {
    const auto delta_of = [&misfit](const Explanation&) { return misfit.delta; };
    if (!drop_contradicted_explanations(delta_of) && !try_likely_sizes(misfit) &&
        (!is_search_due(num_unexplained_deltas_++) ||
         !search_explanations(misfit, reporter.head().time, budget))) {
        return false;
    }
    num_unexplained_deltas_ = 0;
    count_delta_as_evidence(delta_of, misfit.tick);
    if (const auto seen = count_types_if_sizes_fit(misfit.delta, explanations_.front().sizes)) {
        report_learned_sizes(*seen, {}, misfit.tick, reporter);
    }
    return explanations_.size() == 1 || store_undecided_snapshot(misfit.tick, delta_of);
}

void SizeLearner::on_verified_delta(const snapshot::Delta& delta, const SnapshotView& made,
                                    Tick tick, Reporter& reporter) {
    num_unexplained_deltas_ = 0;
    if (explanations_.size() != 1 || unreported_types().none()) {
        return;
    }
    const ItemTypeCounts seen = count_types_in(delta);
    Explanation& known = explanations_.front();
    for (std::uint16_t type = 0; type < kNumberedTypes; ++type) {
        if (known.sizes[type] != agreed_sizes_[type] &&
            (seen.counts[type] != 0 || find_first_id_of_type(made, type))) {
            known.evidence[type].add_snapshot(tick, seen.counts[type]);
        }
    }
    report_learned_sizes(seen, made, tick, reporter);
}

bool SizeLearner::is_snapshot_undecided(Tick tick) const {
    return !explanations_.empty() &&
           std::ranges::find(explanations_.front().undecided_snapshots,
                             original_tick_of_repeat(tick), &UndecidedSnapshot::tick) !=
               explanations_.front().undecided_snapshots.end();
}

Tick SizeLearner::original_tick_of_repeat(Tick tick) const {
    const auto found = std::ranges::find(repeated_snapshots_, tick, &RepeatedSnapshot::tick);
    return found == repeated_snapshots_.end() ? tick : found->original;
}

void SizeLearner::on_empty_snapshot(Tick base, Tick tick) {
    if (is_snapshot_undecided(base) && !is_snapshot_undecided(tick) &&
        repeated_snapshots_.size() < kMaxRepeatedSnapshots) {
        repeated_snapshots_.push_back(
            {.tick = tick, .base = base, .original = original_tick_of_repeat(base)});
    }
}

bool SizeLearner::store_undecided_snapshot(Tick tick, const DeltaGetter& delta_of) {
    if (explanations_.front().undecided_snapshots.size() == kMaxUndecidedSnapshots ||
        undecided_ints_ > kMaxUndecidedInts) {
        explanations_.resize(1);
        return true;
    }
    for (Explanation& each : explanations_) {
        snapshot::Snapshot made = apply_delta_with_sizes(delta_of(each), each.sizes);
        undecided_ints_ += made.view().block_ints();
        each.undecided_snapshots.push_back({.tick = tick, .items = std::move(made)});
    }
    return false;
}

bool SizeLearner::on_delta_with_undecided_base(std::span<const std::int32_t> ints, Tick base,
                                               Tick tick, std::int32_t crc) {
    const Tick original = original_tick_of_repeat(base);
    const auto delta_of = [&](const Explanation& candidate) {
        const auto found =
            std::ranges::find(candidate.undecided_snapshots, original, &UndecidedSnapshot::tick);
        return DeltaWithUnknownSizes{.ints = ints,
                                     .base = found == candidate.undecided_snapshots.end()
                                                 ? SnapshotView{}
                                                 : found->items.view(),
                                     .crc = crc};
    };
    if (!drop_contradicted_explanations(delta_of)) {
        return false;
    }
    count_delta_as_evidence(delta_of, tick);
    return explanations_.size() == 1 || store_undecided_snapshot(tick, delta_of);
}

void SizeLearner::add_undecided_snapshots_to(snapshot::History& history) {
    for (const UndecidedSnapshot& each : explanations_.front().undecided_snapshots) {
        history.store(each.tick, each.items.view());
    }
    for (const RepeatedSnapshot& each : repeated_snapshots_) {
        history.store_unchanged(each.base, each.tick);
    }
    forget_undecided_snapshots();
}

std::vector<LearnedSize> SizeLearner::learned_sizes() const {
    const AgreedSizes& known = decoding_sizes();
    std::vector<LearnedSize> learned;
    for (std::uint16_t type = 0; type < kNumberedTypes; ++type) {
        const auto elsewhere = shared_sizes_ == nullptr
                                   ? std::nullopt
                                   : shared_sizes_->find_size(types_->dialect(), type);
        if (known[type] != agreed_sizes_[type]) {
            const SizeEvidence& evidence = explanations_.front().evidence[type];
            learned.push_back(
                {.type = type,
                 .size = known[type],
                 .is_confirmed = reported_types_.test(type) || elsewhere == known[type],
                 .num_items = evidence.num_items,
                 .num_snapshots = evidence.num_snapshots});
        } else if (elsewhere.value_or(agreed_sizes_[type]) != agreed_sizes_[type]) {
            learned.push_back({.type = type, .size = *elsewhere, .is_confirmed = true});
        }
    }
    return learned;
}

void SizeLearner::restore_learned_sizes(std::span<const LearnedSize> learned) {
    Explanation restored{.sizes = agreed_sizes_};
    for (const LearnedSize& each : learned) {
        restored.sizes[each.type] = each.size;
        restored.evidence[each.type] = {.num_items = each.num_items,
                                        .num_snapshots = each.num_snapshots};
        if (each.is_confirmed && shared_sizes_ != nullptr) {
            shared_sizes_->set_size(types_->dialect(), each.type, each.size);
        }
    }
    reported_types_.reset();
    forget_undecided_snapshots();
    explanations_.clear();
    explanations_.push_back(std::move(restored));
}

void SizeLearner::forget_snapshots() {
    for (Explanation& explanation : explanations_) {
        for (SizeEvidence& each : explanation.evidence) {
            each.first_tick.reset();
        }
    }
    forget_undecided_snapshots();
}

void SizeLearner::forget_undecided_snapshots() {
    for (Explanation& each : explanations_) {
        each.undecided_snapshots.clear();
    }
    repeated_snapshots_.clear();
    undecided_ints_ = 0;
}

NumberedTypeSet SizeLearner::unreported_types() const {
    NumberedTypeSet types;
    const AgreedSizes& sizes = explanations_.front().sizes;
    for (std::uint16_t type = 0; type < kNumberedTypes; ++type) {
        types[type] = sizes[type] != agreed_sizes_[type] && !reported_types_.test(type) &&
                      std::ranges::all_of(explanations_, [&](const Explanation& each) {
                          return each.sizes[type] == sizes[type];
                      });
    }
    return types;
}

void SizeLearner::count_delta_as_evidence(const DeltaGetter& delta_of, Tick tick) {
    for (Explanation& each : explanations_) {
        const auto seen = count_types_if_sizes_fit(delta_of(each), each.sizes);
        for (std::uint16_t type = 0; seen && type < kNumberedTypes; ++type) {
            if (seen->counts[type] != 0) {
                each.evidence[type].add_snapshot(tick, seen->counts[type]);
            }
        }
    }
}

void SizeLearner::report_learned_sizes(const ItemTypeCounts& seen, const SnapshotView& made,
                                       Tick tick, Reporter& reporter) {
    const AgreedSizes& sizes = explanations_.front().sizes;
    const SizeEvidenceTable& known = explanations_.front().evidence;
    const NumberedTypeSet open = unreported_types();
    for (std::uint16_t type = 0; type < kNumberedTypes; ++type) {
        if (!open.test(type)) {
            continue;
        }
        const auto id = seen.counts[type] != 0 ? std::optional{seen.first_ids[type]}
                                               : find_first_id_of_type(made, type);
        if (!id) {
            continue;
        }
        const SizeEvidence& evidence = known[type];
        if (evidence.num_items == 0 ||
            evidence.num_snapshots <
                (evidence.num_items < kConfirmingItems ? kConfirmingSnapshots : kConfirmingItems) ||
            (evidence.num_items == 1 && may_be_damaged_key({type, *id}, sizes, made))) {
            continue;
        }
        reported_types_.set(type);
        if (shared_sizes_ != nullptr) {
            shared_sizes_->set_size(types_->dialect(), type, sizes[type]);
        }
        const std::size_t protocol_size = snapshot::agreed_sizes(types_->dialect())[type];
        reporter.report_finding(
            {.id = record::FindingId::snapshot_size_differs,
             .tick = tick,
             .item = make_finding_item(*types_, {type, *id}),
             .since_tick = evidence.first_tick,
             .value = sizes[type],
             .limit = agreed_sizes_[type],
             .confirmed = evidence.num_snapshots,
             .name = sizes[type] == 0 ? "written" : std::string_view{},
             .detail = agreed_sizes_[type] == protocol_size ? std::string_view{}
                       : sizes[type] == protocol_size
                           ? "the objects file is wrong: the server sends the agreed size, which "
                             "clients can read"
                           : "the expected size is that of the objects file"});
    }
}

} // namespace tw::inspect
