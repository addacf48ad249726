#include "proxy/world/merge.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

namespace tw::world {

using snapshot::ItemKey;
using snapshot::ObjectFamily;
using snapshot::ObjectSpec;

namespace {

constexpr std::size_t kFromX = 2;
constexpr std::size_t kFromY = 3;
constexpr std::size_t kOwner = 5;
/// The first private id. Private ids count down, the ids that servers assign count up from 0.
constexpr std::uint16_t kFirstPrivateId = 65535;

} // namespace

void DraggerBeams::add_beam(const MergedItem& item, SeenMasks& seen) {
    if (!is_beam(*item.object, item.data)) {
        const auto [at, added] = resting_.emplace(item.key.id, item);
        if (!added) {
            seen.add_sessions_of(at->second.seen, item.seen);
        }
        return;
    }
    const auto [at, added] = beams_.try_emplace(
        Beam{item.data[kFromX], item.data[kFromY], item.data[kOwner]}, BeamItem{.item = item});
    if (!added) {
        seen.add_sessions_of(at->second.item.seen, item.seen);
    }
    at->second.ids.insert(item.key.id);
}

std::uint16_t DraggerBeams::choose_id(const Beam& beam, const BeamItem& found,
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
    // Ids are never checked twice; otherwise many beams would take quadratic time.
    while (next_private_id_ > 0 &&
           (taken.contains(next_private_id_) || private_taken_.contains(next_private_id_))) {
        --next_private_id_;
    }
    private_ids_[beam] = next_private_id_;
    private_taken_.insert(next_private_id_);
    return next_private_id_;
}

void DraggerBeams::unify_ids(std::vector<MergedItem>& items,
                             const std::vector<MergedItem>& differing, SeenMasks& seen) {
    const auto is_one = [](const MergedItem& item) {
        return item.object != nullptr && is_dragger(*item.object, item.data);
    };
    const auto has_beam = [](const MergedItem& item) {
        return item.object != nullptr && is_beam(*item.object, item.data);
    };
    if (differing.empty() && std::ranges::none_of(items, has_beam)) {
        private_ids_.clear();
        return;
    }
    std::set<std::uint16_t> taken;
    for (const MergedItem& item : items) {
        if (is_one(item)) {
            add_beam(item, seen);
        } else if (item.object != nullptr && item.object->merge.family == ObjectFamily::laser) {
            taken.insert(item.key.id);
        }
    }
    for (const MergedItem& item : differing) {
        if (is_one(item)) {
            add_beam(item, seen);
        }
    }
    std::erase_if(items, is_one);
    for (const auto& [id, item] : resting_) {
        // The first view has another item with this id, which contradicts the other views: the
        // dragger is ignored.
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

void ViewMerger::begin(std::span<const View> views, const record::TypeNames& types,
                       std::vector<Difference>* differences) {
    views_ = views;
    items_.begin(views, types, differences);
    sessions_.clear();
    for (const View& view : views) {
        sessions_.push_back(view.session);
    }
    std::ranges::sort(sessions_);
    slots_.clear();
    for (const View& view : views) {
        slots_.push_back(static_cast<std::size_t>(
            std::ranges::lower_bound(sessions_, view.session) - sessions_.begin()));
    }
    seen_.begin(views.size());
    merged_.clear();
}

void ViewMerger::merge_views(std::span<const View> views, const record::TypeNames& types,
                             DraggerBeams& beams, std::vector<Difference>* differences) {
    begin(views, types, differences);
    for (std::uint32_t view = 0; view < views.size(); ++view) {
        add_view(view);
    }
    drop_lesser_forms();
    unify_beam_ids(beams);
    take_own_fields();
    items_.finish();
    write_items();
}

MergedItem ViewMerger::make_item(ItemRef ref) {
    const snapshot::ItemView item = items_.item(ref);
    const std::size_t seen = seen_.add_mask();
    seen_.mark_seen(seen, slots_[ref.view]);
    return {.key = item.key,
            .ref = ref,
            .data = item.data,
            .object = items_.object_of_type(item.key.type),
            .seen = seen};
}

void ViewMerger::add_view(std::uint32_t view) {
    const snapshot::SnapshotView items = views_[view].items; // a local is faster
    const std::size_t slot = slots_[view];
    added_.clear();
    const MergedItem* at = merged_.data();
    const MergedItem* const end = at + merged_.size();
    std::uint32_t begin = 0; // index of the item's first int
    for (std::uint32_t i = 0; i < items.size(); ++i) {
        const std::uint32_t key = items.keys()[i];
        const auto data = items.data().subspan(begin, items.ends()[i] - begin);
        begin = items.ends()[i];
        while (at != end && at->key.packed() < key) {
            ++at;
        }
        const ItemRef ref{.view = view, .item = i};
        if (at == end || at->key.packed() != key) {
            const ObjectSpec* const object = items_.object_of_type(ItemKey::from_packed(key).type);
            if (object == nullptr || !object->merge.per_session) {
                added_.push_back(make_item(ref));
            }
        } else if (snapshot::same_ints(at->data, data) || items_.merge_items(at->ref, ref)) {
            seen_.mark_seen(at->seen, slot);
        }
    }
    if (!added_.empty()) {
        wider_.clear();
        std::ranges::merge(merged_, added_, std::back_inserter(wider_), {}, &MergedItem::key,
                           &MergedItem::key);
        std::swap(merged_, wider_);
    }
}

void ViewMerger::drop_lesser_forms() {
    const auto is_form = [](const MergedItem& item) {
        return item.object != nullptr && item.object->merge.family != ObjectFamily::none;
    };
    // If all clients have the same version, each family occurs in one form, and nothing is dropped.
    std::array<std::optional<std::uint8_t>, 4> forms; // for each family, the form that is kept
    bool is_mixed = false;
    for (const MergedItem& item : merged_) {
        if (is_form(item)) {
            auto& form = forms.at(static_cast<std::size_t>(item.object->merge.family));
            is_mixed =
                is_mixed || form.value_or(item.object->merge.form) != item.object->merge.form;
            form = item.object->merge.form;
        }
    }
    if (!is_mixed) {
        return;
    }
    std::map<std::pair<ObjectFamily, std::uint16_t>, MergedItem> best;
    const auto key_of = [](const MergedItem& item) {
        return std::pair{item.object->merge.family, item.key.id};
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
        seen_.add_sessions_of(kept.seen, item.seen);
        return kept.object != item.object;
    });
}

void ViewMerger::unify_beam_ids(DraggerBeams& beams) {
    differing_.clear();
    for (const ItemRef ref : items_.differing_beams()) {
        differing_.push_back(make_item(ref));
    }
    beams.unify_ids(merged_, differing_, seen_);
}

/// Takes the private fields of each player's items from the views of the player's client and of
/// clients that spectate the player.
void ViewMerger::take_own_fields() {
    const ObjectSpec* last = nullptr;
    for (const MergedItem& item : merged_) {
        if (item.object == std::exchange(last, item.object) || item.object == nullptr) {
            continue;
        }
        const ItemMerger::OwnFields fields = items_.rules_of(item.object).own_fields;
        for (std::uint32_t view = 0; view < views_.size() && !fields.empty(); ++view) {
            const auto tell = [&](std::optional<std::uint16_t> client, bool own) {
                const auto at =
                    client ? views_[view].items.find({item.key.type, *client}) : std::nullopt;
                if (at) {
                    items_.take_own_fields({.view = view, .item = static_cast<std::uint32_t>(*at)},
                                           fields, own);
                }
            };
            tell(views_[view].own, true);
            tell(views_[view].watched, false);
        }
    }
}

void ViewMerger::write_items() {
    result_.clear();
    untold_.clear();
    bits_.clear();
    for (const MergedItem& item : merged_) {
        untold_.push_back(items_.write_item(item, result_));
        const auto mask = seen_.mask(item.seen);
        bits_.insert(bits_.end(), mask.begin(), mask.end());
    }
    seen_by_ = {
        .sessions = sessions_, .bits = bits_, .words = seen_.words_per_mask(), .untold = untold_};
}

} // namespace tw::world
