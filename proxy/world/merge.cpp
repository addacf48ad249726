#include "proxy/world/merge.h"

#include "proxy/world/item_merge.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace tw::world {

namespace {

constexpr std::size_t kFromX = 2;
constexpr std::size_t kFromY = 3;
constexpr std::size_t kOwner = 5;
/// Private ids count down from here; servers count up from 0.
constexpr std::uint16_t kFirstPrivateId = 65535;

void merge_seen(const MergedItem& into, const MergedItem& from, std::size_t words) {
    for (std::size_t i = 0; i < words; ++i) {
        into.seen[i] |= from.seen[i];
    }
}

} // namespace

void Beams::take(const MergedItem& item, const ItemMerge& merge, std::size_t words) {
    const auto data = merge.item(item.ref).data;
    if (!is_beam(*item.object, data)) {
        const auto [at, added] = resting_.emplace(item.key.id, item);
        if (!added) {
            merge_seen(at->second, item, words);
        }
        return;
    }
    const auto [at, added] =
        beams_.try_emplace(Beam{data[kFromX], data[kFromY], data[kOwner]}, Found{.item = item});
    if (!added) {
        merge_seen(at->second.item, item, words);
    }
    at->second.ids.insert(item.key.id);
}

std::uint16_t Beams::choose_id(const Beam& beam, const Found& found,
                               const std::set<std::uint16_t>& taken) {
    for (const std::uint16_t id : found.ids) {
        if (!taken.contains(id)) {
            return id;
        }
    }
    if (const auto known = private_ids_.find(beam);
        known != private_ids_.end() && !taken.contains(known->second)) {
        return known->second;
    }
    // Lower ids are not checked again, so that many beams do not take quadratic time.
    while (next_private_id_ > 0 &&
           (taken.contains(next_private_id_) || private_taken_.contains(next_private_id_))) {
        --next_private_id_;
    }
    private_ids_[beam] = next_private_id_;
    private_taken_.insert(next_private_id_);
    return next_private_id_;
}

void Beams::resolve(std::vector<MergedItem>& items, const std::vector<MergedItem>& differing,
                    const ItemMerge& merge, std::size_t words) {
    const auto is_one = [&](const MergedItem& item) {
        return item.object != nullptr && is_dragger(*item.object, merge.item(item.ref).data);
    };
    const auto has_beam = [&](const MergedItem& item) {
        return item.object != nullptr && is_beam(*item.object, merge.item(item.ref).data);
    };
    if (differing.empty() && std::ranges::none_of(items, has_beam)) {
        private_ids_.clear();
        return;
    }
    std::set<std::uint16_t> taken;
    for (const MergedItem& item : items) {
        if (is_one(item)) {
            take(item, merge, words);
        } else if (item.object != nullptr && item.object->merge.family == snapshot::Family::laser) {
            taken.insert(item.key.id);
        }
    }
    for (const MergedItem& item : differing) {
        if (is_one(item)) {
            take(item, merge, words);
        }
    }
    std::erase_if(items, is_one);
    for (const auto& [id, item] : resting_) {
        // A first view without a dragger here is contradictory and thus ignored.
        if (taken.insert(id).second) {
            items.push_back(item);
        }
    }
    std::erase_if(private_ids_, [&](const auto& each) { return !beams_.contains(each.first); });
    next_private_id_ = kFirstPrivateId;
    private_taken_.clear();
    for (const auto& [beam, id] : private_ids_) {
        private_taken_.insert(id);
    }
    for (const auto& [beam, found] : beams_) {
        items.push_back(found.item);
        items.back().key.id = choose_id(beam, found, taken);
        taken.insert(items.back().key.id);
    }
    std::ranges::sort(items, {}, &MergedItem::key);
    beams_.clear();
    resting_.clear();
}

using snapshot::Family;
using snapshot::FieldMerge;
using snapshot::ItemKey;
using snapshot::ObjectSpec;
using snapshot::SnapshotView;

namespace {

constexpr std::size_t kBits = 64;

ItemRef ref_of(std::uint32_t view, std::size_t item) {
    return {.view = view, .item = static_cast<std::uint32_t>(item)};
}

} // namespace

void ViewMerge::see(std::uint64_t* seen, std::uint32_t view) const {
    seen[slots_[view] / kBits] |= std::uint64_t{1} << (slots_[view] % kBits);
}

bool ViewMerge::sees(const std::uint64_t* seen, std::uint32_t view) const {
    return (seen[slots_[view] / kBits] >> (slots_[view] % kBits) & 1U) != 0;
}

bool ViewMerge::has(const Variant& variant, std::uint32_t view) const {
    return variant.seen == nullptr ? view == variant.view : sees(variant.seen, view);
}

std::optional<std::uint32_t> ViewMerge::first_view(const std::uint64_t* seen) const {
    for (std::uint32_t view = 0; view < views_.size(); ++view) {
        if (sees(seen, view)) {
            return view;
        }
    }
    return std::nullopt;
}

bool ViewMerge::is_other_kind(std::uint32_t earlier, std::uint32_t later) const {
    const View& left = views_[earlier];
    const View& right = views_[later];
    return left.translated != right.translated || left.scoreboard != right.scoreboard ||
           left.dialect != right.dialect || !right.untold.empty() ||
           version_class(left.version) != version_class(right.version);
}

void ViewMerge::begin(std::span<const View> views, const record::TypeNames& types,
                      std::vector<Difference>* differences) {
    views_ = views;
    differences_ = differences;
    items_.begin(views, types, differences);
    sessions_.clear();
    for (const View& view : views) {
        sessions_.push_back(view.session);
    }
    std::ranges::sort(sessions_);
    slots_.clear();
    alike_ = views.front().untold.empty();
    for (std::uint32_t view = 0; view < views.size(); ++view) {
        slots_.push_back(static_cast<std::size_t>(
            std::ranges::lower_bound(sessions_, views[view].session) - sessions_.begin()));
        alike_ = alike_ && !is_other_kind(0, view);
    }
    words_ = (views.size() + kBits - 1) / kBits;
    bases_.assign(1, views.front().items);
    if (const auto sharing = std::ranges::find_if(views, &View::shares); sharing != views.end()) {
        bases_.assign(sharing->bases.begin(), sharing->bases.end());
    }
    base_begins_.clear();
    std::size_t begin = 0;
    for (const SnapshotView& base : bases_) {
        base_begins_.push_back(begin);
        begin += (base.size() + 1) * words_;
    }
    base_seen_.assign(begin, 0);
    variants_.clear();
    runs_.resize(std::max(runs_.size(), views.size()));
}

void ViewMerge::merge(std::span<const View> views, const record::TypeNames& types, Beams& beams,
                      std::vector<Difference>* differences) {
    begin(views, types, differences);
    for (std::uint32_t view = 0; view < views.size(); ++view) {
        add_view(view);
    }
    finish_seen();
    add_base_variants();
    std::ranges::sort(variants_, {}, [](const Variant& variant) {
        return std::uint64_t{variant.key} << 32U | variant.view;
    });
    gather();
    order_as_views();
    drop_lesser_forms();
    resolve_beams(beams);
    tell_own();
    items_.finish();
    write();
}

void ViewMerge::add_view(std::uint32_t view) {
    const View& it = views_[view];
    const auto keys = it.items.keys();
    const auto add_variant = [&](std::uint32_t place) {
        variants_.push_back({.key = keys[place], .view = view, .place = place});
    };
    if (it.shares()) {
        for (std::uint32_t place = 0; place < keys.size(); ++place) {
            add_variant(place);
        }
    } else {
        finding_.runs.clear();
        finding_.find(bases_.front(), 0, it.items);
        std::ranges::for_each(finding_.others, add_variant);
        std::swap(runs_[view], finding_.runs);
    }
    const std::uint64_t bit = std::uint64_t{1} << (slots_[view] % kBits);
    for (const SharedRun& run : it.shares() ? it.shared : runs_[view]) {
        std::uint64_t* const turns =
            &base_seen_[base_begins_[BasePlace::base_of(run.base)] + slots_[view] / kBits];
        const std::size_t first = BasePlace::index_of(run.base);
        turns[first * words_] ^= bit;
        turns[(first + run.count) * words_] ^= bit;
    }
}

void ViewMerge::finish_seen() {
    // The sentinel entry of each base ends all shared runs.
    for (std::size_t i = words_; i < base_seen_.size(); ++i) {
        base_seen_[i] ^= base_seen_[i - words_];
    }
}

void ViewMerge::add_base_variants() {
    for (std::size_t base = 1; base < bases_.size(); ++base) {
        const auto keys = bases_[base].keys();
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const std::uint64_t* const seen = &base_seen_[base_begins_[base] + i * words_];
            if (const auto view = first_view(seen)) {
                variants_.push_back({keys[i], *view, BasePlace::make(base, i), seen});
            }
        }
    }
}

ItemRef ViewMerge::ref(const Variant& variant, std::uint32_t view) const {
    if (variant.seen == nullptr) {
        return ref_of(view, variant.place);
    }
    if (views_[view].shares()) {
        return ref_of(view, variant.place | View::kOfBase);
    }
    const auto run = std::ranges::upper_bound(runs_[view], variant.place, {}, &SharedRun::base) - 1;
    return ref_of(view, run->item + variant.place - run->base);
}

void ViewMerge::add(ItemRef ref, std::uint64_t* seen) {
    const ItemKey key = items_.item(ref).key;
    merged_.push_back({.key = key, .ref = ref, .object = items_.object(key.type), .seen = seen});
}

template <typename Use>
void ViewMerge::each_meant(const Question& question, const Use& use) const {
    std::uint32_t last = question.view;
    use(last);
    if (question.variant->seen == nullptr) {
        return; // only that view has it
    }
    for (std::uint32_t view = last + 1; view < views_.size(); ++view) {
        if (has(*question.variant, view)) {
            if (!alike_ && is_other_kind(last, view)) {
                return; // another question covers this
            }
            use(view);
            last = view;
        }
    }
}

/// Most deviating views have the same other version, which is examined once.
void ViewMerge::ask(const Variant& variant) {
    questions_.push_back({variant.view, &variant});
    if (alike_ || variant.seen == nullptr) {
        return;
    }
    for (std::uint32_t view = variant.view + 1, last = variant.view; view < views_.size(); ++view) {
        if (has(variant, view)) {
            if (is_other_kind(last, view)) {
                questions_.push_back({view, &variant});
            }
            last = view;
        }
    }
}

void ViewMerge::answer(ItemRef first, const Question& question) {
    const auto told = [this] { return differences_ == nullptr ? 0 : differences_->size(); };
    const ItemRef asked = ref(*question.variant, question.view);
    bool is_it = asked == first || items_.is_same_item(first, asked);
    bool is_clear = is_it;
    if (!is_it) {
        const std::size_t before = told();
        is_it = items_.differ(first, asked);
        is_clear = is_it && told() == before; // differences are reported for each session
    }
    if (is_clear && alike_ && question.variant->seen != nullptr) {
        for (std::size_t i = 0; i < words_; ++i) { // applies to all views that have it
            answers_[i] |= question.variant->seen[i];
        }
        return;
    }
    each_meant(question, [&](std::uint32_t view) {
        const bool is_asked = view == question.view;
        if (is_clear || (is_asked ? is_it : items_.differ(first, ref(*question.variant, view)))) {
            see(answers_.data(), view);
        }
    });
}

void ViewMerge::contest(std::uint64_t* seen) {
    questions_.clear();
    for (const Variant& variant : contested_) {
        ask(variant);
    }
    if (!std::ranges::is_sorted(questions_, {}, &Question::view)) {
        std::ranges::sort(questions_, {}, &Question::view);
    }
    const Question& best = questions_.front();
    const ItemRef first = ref(*best.variant, best.view);
    answers_.assign(words_, 0);
    for (const Question& question : questions_) {
        answer(first, question);
    }
    std::ranges::copy(answers_, seen);
    add(first, seen);
}

void ViewMerge::gather() {
    merged_.clear();
    more_seen_.clear();
    more_seen_.reserve(variants_.size() * words_); // pointers into it must stay valid
    const auto is_private = [this](std::uint32_t key) {
        const ObjectSpec* const object = items_.object(ItemKey::from_packed(key).type);
        return object != nullptr && object->merge.per_session;
    };
    const auto keys = bases_.front().keys();
    std::size_t at = 0; // index in the first base
    for (auto next = variants_.cbegin(); next != variants_.cend() || at < keys.size();) {
        const bool is_base =
            at < keys.size() && (next == variants_.cend() || keys[at] <= next->key);
        const std::uint32_t key = is_base ? keys[at] : next->key;
        std::uint64_t* seen = is_base ? &base_seen_[at * words_] : nullptr;
        contested_.clear();
        if (const auto view = is_base ? first_view(seen) : std::nullopt) {
            contested_.push_back({key, *view, BasePlace::make(0, at), seen});
        }
        at += is_base ? 1 : 0;
        for (; next != variants_.cend() && next->key == key; ++next) {
            contested_.push_back(*next);
        }
        if (contested_.empty() || is_private(key)) {
            continue;
        }
        if (seen == nullptr) {
            seen = &*more_seen_.insert(more_seen_.end(), words_, 0);
        }
        if (contested_.size() > 1 || contested_.front().seen != seen) {
            contest(seen);
        } else {
            add(ref(contested_.front(), contested_.front().view), seen);
        }
    }
}

/// Sorts differences that were found by item into the order of views.
void ViewMerge::order_as_views() {
    if (differences_ != nullptr) {
        std::vector<std::uint32_t> ranks(views_.size()); // by index in sessions_
        for (std::uint32_t view = 0; view < views_.size(); ++view) {
            ranks[slots_[view]] = view;
        }
        std::ranges::stable_sort(*differences_, {}, [&](const Difference& difference) {
            const auto at = std::ranges::lower_bound(sessions_, difference.session);
            return ranks[static_cast<std::size_t>(at - sessions_.begin())];
        });
    }
    const auto beams = items_.differing_beams();
    beams_.assign(beams.begin(), beams.end());
    std::ranges::stable_sort(beams_, {}, &ItemRef::view);
}

void ViewMerge::drop_lesser_forms() {
    // With a single version there is one form of each family, so nothing is dropped.
    std::array<std::set<std::uint8_t>, 4> forms;
    for (std::size_t i = 0; i < merged_.size(); ++i) {
        const ObjectSpec* const object = merged_[i].object;
        if (object != nullptr && object->merge.family != Family::none &&
            (i == 0 || object != merged_[i - 1].object)) {
            forms.at(static_cast<std::size_t>(object->merge.family)).insert(object->merge.form);
        }
    }
    if (std::ranges::all_of(forms, [](const auto& each) { return each.size() < 2; })) {
        return;
    }
    std::map<std::pair<Family, std::uint16_t>, MergedItem> best;
    const auto key_of = [](const MergedItem& item) {
        return std::pair{item.object->merge.family, item.key.id};
    };
    const auto is_form = [](const MergedItem& item) {
        return item.object != nullptr && item.object->merge.family != Family::none;
    };
    for (const MergedItem& item : merged_) {
        if (!is_form(item)) {
            continue;
        }
        const auto [known, added] = best.try_emplace(key_of(item), item);
        if (!added && item.object->merge.form < known->second.object->merge.form) {
            known->second = item;
        }
    }
    std::erase_if(merged_, [&](const MergedItem& item) {
        if (!is_form(item)) {
            return false;
        }
        const MergedItem& kept = best.at(key_of(item));
        for (std::size_t i = 0; i < words_; ++i) {
            kept.seen[i] |= item.seen[i];
        }
        return kept.object != item.object;
    });
}

void ViewMerge::resolve_beams(Beams& beams) {
    differing_.clear();
    beam_seen_.assign(beams_.size() * words_, 0);
    for (const ItemRef ref : beams_) {
        std::uint64_t* const seen = &beam_seen_[differing_.size() * words_];
        see(seen, ref.view);
        const ItemKey key = items_.item(ref).key;
        differing_.push_back(
            {.key = key, .ref = ref, .object = items_.object(key.type), .seen = seen});
    }
    beams.resolve(merged_, differing_, items_, words_);
}

void ViewMerge::tell_own() {
    for (std::size_t i = 0; i < merged_.size(); ++i) {
        const ObjectSpec* const object = merged_[i].object;
        if (object == nullptr || (i != 0 && object == merged_[i - 1].object)) {
            continue;
        }
        own_fields_ = items_.rules(object).own_fields;
        if (own_fields_.empty()) {
            continue;
        }
        const std::uint16_t type = merged_[i].key.type;
        for (std::uint32_t view = 0; view < views_.size(); ++view) {
            tell(type, view, views_[view].own, true);
            tell(type, view, views_[view].watched, false);
        }
    }
}

void ViewMerge::tell(std::uint16_t type, std::uint32_t view, std::optional<std::uint16_t> client,
                     bool own) {
    const auto at = client ? views_[view].find({type, *client}) : std::nullopt;
    if (at) {
        items_.tell_own(ref_of(view, *at), own_fields_, own);
    }
}

void ViewMerge::write() {
    items_.write(merged_, result_, untold_);
    seen_.clear();
    for (const MergedItem& item : merged_) {
        seen_.insert(seen_.end(), item.seen, item.seen + words_);
    }
    seen_by_ = {.sessions = sessions_, .bits = seen_, .words = words_, .untold = untold_};
}

} // namespace tw::world
