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

static_assert(std::tuple_size_v<AgreedSizes> <= UINT16_MAX);
constexpr auto kTypes = static_cast<std::uint16_t>(std::tuple_size_v<AgreedSizes>);

/// Whether to search for item sizes that explain the `misfits`-th unexplained snapshot in a row. The first
/// kInARow are searched. Of the later ones, only those at powers of two are, because the searches have
/// not helped so far.
bool is_due(std::uint32_t misfits) {
    constexpr std::uint32_t kInARow = 8;
    return misfits < kInARow || std::has_single_bit(misfits);
}

/// After this many unexplained snapshots in a row, learned sizes may be wrong, too.
constexpr std::uint32_t kDoubtAfter = 3;

/// The types whose items in a verified snapshot all have the size in `sizes`.
NumberedTypes settled_by(const SnapshotView& right, const AgreedSizes& sizes) {
    NumberedTypes settled;
    for (std::size_t i = 0; i < right.size() && right[i].key.type < sizes.size(); ++i) {
        const snapshot::ItemView item = right[i];
        const std::size_t size = sizes[item.key.type];
        settled[item.key.type] = size == 0 || size == item.data.size();
    }
    return settled;
}

/// Sets the sizes to those of the items in a verified snapshot.
void take_sizes_of(const SnapshotView& right, AgreedSizes& sizes) {
    for (std::size_t i = 0; i < right.size() && right[i].key.type < sizes.size(); ++i) {
        const snapshot::ItemView item = right[i];
        std::uint8_t& size = sizes[item.key.type];
        if (size != 0 && item.data.size() <= UINT8_MAX) {
            size = static_cast<std::uint8_t>(item.data.size());
        }
    }
}

TypesSeen types_in(const snapshot::Delta& delta) {
    TypesSeen seen;
    for (const snapshot::DeltaUpdate& update : delta.updates) {
        seen.add(update.key);
    }
    return seen;
}

/// Whether one flipped bit may have turned the key of another type's item into this key. `items`: the
/// snapshot; the original item cannot be in it, too.
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

/// The id of the first item of a type; nullopt if there is none.
std::optional<std::uint16_t> first_of(const SnapshotView& items, std::uint16_t type) {
    const std::size_t at = items.lower_bound({type, 0});
    return at < items.size() && items[at].key.type == type ? std::optional{items[at].key.id}
                                                           : std::nullopt;
}

} // namespace

bool SizeLearner::keep_fitting(const DeltaInts& delta) {
    const auto end =
        std::stable_partition(candidates_.begin(), candidates_.end(), [&](const Candidate& each) {
            return read_strictly(delta, each.sizes).has_value();
        });
    if (end == candidates_.begin()) {
        return false; // yet another type differs, or something else is wrong
    }
    candidates_.erase(end, candidates_.end());
    return true;
}

AgreedSizes SizeLearner::hinted_sizes(snapshot::Dialect dialect) const {
    AgreedSizes hinted = sizes();
    for (std::uint16_t type = 0; shared_ != nullptr && type < kTypes; ++type) {
        hinted[type] = shared_->find(dialect, type).value_or(hinted[type]);
    }
    return hinted;
}

bool SizeLearner::take_hint(const MisfitDelta& misfit) {
    const AgreedSizes before = sizes();
    const auto as_agreed = before != agreed_ ? read_strictly(misfit.delta, agreed_) : std::nullopt;
    if (as_agreed) {
        // The learned sizes of these types are wrong, perhaps from another server's checkpoint.
        AgreedSizes reverted = before;
        for (std::uint16_t type = 0; type < kTypes; ++type) {
            if (as_agreed->count[type] != 0) {
                reverted[type] = agreed_[type];
            }
        }
        if (reverted != before) {
            adopt_explanations({reverted}, before);
            return true;
        }
    }
    AgreedSizes hinted = hinted_sizes(misfit.types->dialect());
    for (const bool of_items : {false, true}) {
        if (of_items) {
            take_sizes_of(misfit.right, hinted);
            take_sizes_of(misfit.delta.base, hinted);
        }
        if (hinted != before && read_strictly(misfit.delta, hinted)) {
            adopt_explanations({hinted}, before);
            return true;
        }
    }
    return false;
}

bool SizeLearner::search(const MisfitDelta& misfit, std::int64_t time, SearchBudget& budget) {
    const AgreedSizes before = sizes();
    SizesKnown known{.sizes = hinted_sizes(misfit.types->dialect()),
                     .settled = reported_,
                     .types = misfit.types};
    known.settled |= settled_by(misfit.right, known.sizes);
    budget.begin(time, left_);
    auto found = find_sizes(misfit.delta, known, budget);
    if (found.empty() && (known.settled != reported_ || known.sizes != before)) {
        // These sizes may be wrong all the same: if the extra ints of a longer item are zero and at the
        // end, the checksum is right without them.
        known.settled = reported_;
        known.sizes = before;
        found = find_sizes(misfit.delta, known, budget);
    }
    if (found.empty() && before != agreed_ && num_unexplained_ > kDoubtAfter) {
        known.settled.reset();
        known.sizes =
            reported_.any() ? before : agreed_; // sizes restored from a checkpoint may be far off
        found = find_sizes(misfit.delta, known, budget);
    }
    left_ -= budget.end();
    if (found.empty()) {
        return false;
    }
    adopt_explanations(std::move(found), before);
    return true;
}

void SizeLearner::adopt_explanations(std::vector<AgreedSizes> found, const AgreedSizes& before) {
    const EvidenceTable known =
        candidates_.empty() ? EvidenceTable{} : candidates_.front().evidence;
    forget_undecided();
    candidates_.clear();
    for (const AgreedSizes& sizes : found) {
        Candidate& each = candidates_.emplace_back(Candidate{.sizes = sizes});
        for (std::uint16_t type = 0; type < kTypes; ++type) {
            each.evidence[type] = sizes[type] == before[type] ? known[type] : Evidence{};
        }
    }
    for (std::uint16_t type = 0; type < kTypes; ++type) {
        if (found.front()[type] != before[type]) {
            reported_.reset(type);
        }
    }
}

bool SizeLearner::on_misfit(const MisfitDelta& misfit, Reporter& reporter, SearchBudget& budget) {
    if (!keep_fitting(misfit.delta) && !take_hint(misfit) &&
        (!is_due(num_unexplained_++) || !search(misfit, reporter.head().time, budget))) {
        return false;
    }
    num_unexplained_ = 0;
    const auto delta_of = [&misfit](const Candidate&) { return misfit.delta; };
    count_evidence(delta_of);
    if (const auto seen = read_strictly(misfit.delta, candidates_.front().sizes)) {
        report_confirmed(*seen, {}, misfit.tick, *misfit.types, reporter);
    }
    return candidates_.size() == 1 || keep_undecided(misfit.tick, delta_of);
}

void SizeLearner::on_fit(const snapshot::Delta& delta, const SnapshotView& made, Tick tick,
                         const record::TypeNames& types, Reporter& reporter) {
    num_unexplained_ = 0;
    if (candidates_.size() != 1 || unreported_types().none()) {
        return;
    }
    const TypesSeen seen = types_in(delta);
    Candidate& known = candidates_.front();
    for (std::uint16_t type = 0; type < kTypes; ++type) {
        if (known.sizes[type] != agreed_[type] && (seen.count[type] != 0 || first_of(made, type))) {
            known.evidence[type].items += seen.count[type];
            ++known.evidence[type].snapshots;
        }
    }
    report_confirmed(seen, made, tick, types, reporter);
}

bool SizeLearner::is_undecided(Tick tick) const {
    return !candidates_.empty() &&
           std::ranges::find(candidates_.front().undecided, original_of(tick),
                             &UndecidedSnapshot::tick) != candidates_.front().undecided.end();
}

Tick SizeLearner::original_of(Tick tick) const {
    const auto found = std::ranges::find(repeats_, tick, &RepeatedSnapshot::tick);
    return found == repeats_.end() ? tick : found->original;
}

void SizeLearner::on_empty(Tick base, Tick tick) {
    if (is_undecided(base) && !is_undecided(tick) && repeats_.size() < kMaxRepeats) {
        repeats_.push_back({.tick = tick, .base = base, .original = original_of(base)});
    }
}

bool SizeLearner::keep_undecided(Tick tick, const DeltaOf& delta_of) {
    if (candidates_.front().undecided.size() == kMaxUndecided ||
        undecided_ints_ > kMaxUndecidedInts) {
        candidates_.resize(1);
        return true;
    }
    for (Candidate& each : candidates_) {
        snapshot::Snapshot made = snapshot_of(delta_of(each), each.sizes);
        undecided_ints_ += made.view().block_ints();
        each.undecided.push_back({.tick = tick, .items = std::move(made)});
    }
    return false;
}

bool SizeLearner::on_undecided(std::span<const std::int32_t> ints, Tick base, Tick tick,
                               std::int32_t crc) {
    const Tick original = original_of(base);
    const auto delta_of = [&](const Candidate& candidate) {
        const auto found =
            std::ranges::find(candidate.undecided, original, &UndecidedSnapshot::tick);
        return DeltaInts{.ints = ints,
                         .base = found == candidate.undecided.end() ? SnapshotView{}
                                                                    : found->items.view(),
                         .crc = crc};
    };
    const auto misfits = [&](const Candidate& each) {
        return !read_strictly(delta_of(each), each.sizes);
    };
    if (std::ranges::all_of(candidates_, misfits)) {
        return false; // yet another type differs, or something else is wrong
    }
    std::erase_if(candidates_, misfits);
    count_evidence(delta_of);
    return candidates_.size() == 1 || keep_undecided(tick, delta_of);
}

void SizeLearner::add_undecided_to(snapshot::History& history) {
    for (const UndecidedSnapshot& each : candidates_.front().undecided) {
        history.store(each.tick, each.items.view());
    }
    for (const RepeatedSnapshot& each : repeats_) {
        history.store_again(each.base, each.tick);
    }
    forget_undecided();
}

std::vector<LearnedSize> SizeLearner::save(snapshot::Dialect dialect) const {
    const AgreedSizes& known = sizes();
    std::vector<LearnedSize> learned;
    for (std::uint16_t type = 0; type < kTypes; ++type) {
        const auto elsewhere = shared_ == nullptr ? std::nullopt : shared_->find(dialect, type);
        if (known[type] != agreed_[type]) {
            const Evidence& evidence = candidates_.front().evidence[type];
            learned.push_back({.type = type,
                               .size = known[type],
                               .confirmed = reported_.test(type) || elsewhere == known[type],
                               .items = evidence.items,
                               .snapshots = evidence.snapshots});
        } else if (elsewhere.value_or(agreed_[type]) != agreed_[type]) {
            learned.push_back({.type = type, .size = *elsewhere, .confirmed = true});
        }
    }
    return learned;
}

void SizeLearner::restore(std::span<const LearnedSize> learned, snapshot::Dialect dialect) {
    Candidate restored{.sizes = agreed_};
    for (const LearnedSize& each : learned) {
        restored.sizes[each.type] = each.size;
        restored.evidence[each.type] = {.items = each.items, .snapshots = each.snapshots};
        if (each.confirmed && shared_ != nullptr) {
            shared_->set(dialect, each.type, each.size);
        }
    }
    reported_.reset();
    forget_undecided();
    candidates_.clear();
    candidates_.push_back(std::move(restored));
}

void SizeLearner::forget_undecided() {
    for (Candidate& each : candidates_) {
        each.undecided.clear();
    }
    repeats_.clear();
    undecided_ints_ = 0;
}

NumberedTypes SizeLearner::unreported_types() const {
    NumberedTypes types;
    const AgreedSizes& sizes = candidates_.front().sizes;
    for (std::uint16_t type = 0; type < kTypes; ++type) {
        types[type] = sizes[type] != agreed_[type] && !reported_.test(type) &&
                      std::ranges::all_of(candidates_, [&](const Candidate& each) {
                          return each.sizes[type] == sizes[type];
                      });
    }
    return types;
}

void SizeLearner::count_evidence(const DeltaOf& delta_of) {
    for (Candidate& each : candidates_) {
        const auto seen = read_strictly(delta_of(each), each.sizes);
        for (std::uint16_t type = 0; seen && type < kTypes; ++type) {
            if (seen->count[type] != 0) {
                each.evidence[type].items += seen->count[type];
                ++each.evidence[type].snapshots;
            }
        }
    }
}

void SizeLearner::report_confirmed(const TypesSeen& seen, const SnapshotView& made, Tick tick,
                                   const record::TypeNames& types, Reporter& reporter) {
    const AgreedSizes& sizes = candidates_.front().sizes;
    const EvidenceTable& known = candidates_.front().evidence;
    const NumberedTypes open = unreported_types();
    for (std::uint16_t type = 0; type < kTypes; ++type) {
        if (!open.test(type)) {
            continue;
        }
        const auto id =
            seen.count[type] != 0 ? std::optional{seen.first_id[type]} : first_of(made, type);
        if (!id) {
            continue;
        }
        const Evidence& evidence = known[type];
        if (evidence.items == 0 ||
            evidence.snapshots <
                (evidence.items < kConfirmingItems ? kConfirmingSnapshots : kConfirmingItems) ||
            (evidence.items == 1 && may_be_damaged_key({type, *id}, sizes, made))) {
            continue;
        }
        reported_.set(type);
        if (shared_ != nullptr) {
            shared_->set(types.dialect(), type, sizes[type]);
        }
        reporter.finding({.id = record::FindingId::snapshot_size_differs,
                          .tick = tick,
                          .item = name_item(types, {type, *id}),
                          .value = sizes[type],
                          .limit = agreed_[type],
                          .confirmed = evidence.snapshots,
                          .name = sizes[type] == 0 ? "written" : std::string_view{},
                          .detail = agreed_[type] == snapshot::agreed_sizes(types.dialect())[type]
                                        ? std::string_view{}
                                        : "the expected size is that of the objects file"});
    }
}

} // namespace tw::inspect
