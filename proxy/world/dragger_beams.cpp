#include "proxy/world/dragger_beams.h"

#include <algorithm>

namespace tw::world {

using snapshot::ObjectFamily;
using snapshot::ObjectSpec;

namespace {

/// Offsets of ints in a ddnet_laser.
constexpr std::size_t kStartXIndex = 2;
constexpr std::size_t kStartYIndex = 3;
constexpr std::size_t kOwnerIndex = 5;
constexpr std::size_t kLaserKindIndex = 6;
constexpr std::int32_t kDraggerKind = 4;

/// The first private id. Private ids count down; ids that servers assign count up from 0.
constexpr std::uint16_t kFirstPrivateId = 65535;

/// Returns whether the item is a dragger's beam, which may have different ids in different views.
bool is_dragger_beam(const ObjectSpec& object, std::span<const std::int32_t> data) {
    return is_dragger(object, data) && data[kOwnerIndex] >= 0;
}

} // namespace

bool is_laser_of_kind(const ObjectSpec& object, std::span<const std::int32_t> data,
                      std::int32_t kind) {
    return object.merge.family == ObjectFamily::laser && object.merge.variant == 0 &&
           data.size() > kLaserKindIndex && data[kLaserKindIndex] == kind;
}

bool is_dragger(const ObjectSpec& object, std::span<const std::int32_t> data) {
    return is_laser_of_kind(object, data, kDraggerKind);
}

void DraggerBeams::add_beam(const MergedItem& item, ItemSessionMasks& seen) {
    if (!is_dragger_beam(*item.object, item.data)) {
        const auto [at, added] = beamless_draggers_.emplace(item.id(), item);
        if (!added) {
            seen.merge_masks(at->second.session_mask, item.session_mask);
        }
        return;
    }
    const auto [at, added] = beams_.try_emplace(
        BeamKey{item.data[kStartXIndex], item.data[kStartYIndex], item.data[kOwnerIndex]},
        BeamItem{.item = item});
    if (!added) {
        seen.merge_masks(at->second.item.session_mask, item.session_mask);
    }
    at->second.ids.insert(item.id());
}

std::uint16_t DraggerBeams::choose_beam_id(const BeamKey& beam, const BeamItem& found,
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
    // The search continues where the previous one ended. Otherwise, many beams would take quadratic
    // time.
    while (next_private_id_ > 0 &&
           (taken.contains(next_private_id_) || taken_private_ids_.contains(next_private_id_))) {
        --next_private_id_;
    }
    private_ids_[beam] = next_private_id_;
    taken_private_ids_.insert(next_private_id_);
    return next_private_id_;
}

void DraggerBeams::unify_beam_ids(std::vector<MergedItem>& items,
                                  const std::vector<MergedItem>& differing,
                                  ItemSessionMasks& seen) {
    const auto is_any_dragger = [](const MergedItem& item) {
        return item.object != nullptr && is_dragger(*item.object, item.data);
    };
    const auto has_beam = [](const MergedItem& item) {
        return item.object != nullptr && is_dragger_beam(*item.object, item.data);
    };
    if (differing.empty() && std::ranges::none_of(items, has_beam)) {
        private_ids_.clear();
        return;
    }
    std::set<std::uint16_t> taken;
    for (const MergedItem& item : items) {
        if (is_any_dragger(item)) {
            add_beam(item, seen);
        } else if (item.object != nullptr && item.object->merge.family == ObjectFamily::laser) {
            taken.insert(item.id());
        }
    }
    for (const MergedItem& item : differing) {
        if (is_any_dragger(item)) {
            add_beam(item, seen);
        }
    }
    std::erase_if(items, is_any_dragger);
    for (const auto& [id, item] : beamless_draggers_) {
        // If another item of the merged snapshot has this id, the views contradict each other, and
        // the dragger is ignored.
        if (taken.insert(id).second) {
            items.push_back(item);
        }
    }
    std::erase_if(private_ids_, [&](const auto& each) { return !beams_.contains(each.first); });
    next_private_id_ = kFirstPrivateId;
    taken_private_ids_.clear();
    for (const auto& [beam, id] : private_ids_) {
        taken_private_ids_.insert(id);
    }
    for (const auto& [beam, found] : beams_) {
        const std::uint16_t id = choose_beam_id(beam, found, taken);
        taken.insert(id);
        items.push_back(found.item);
        const auto type = snapshot::ItemKey::from_packed(found.item.key).type;
        items.back().key = snapshot::ItemKey{.type = type, .id = id}.packed();
    }
    std::ranges::sort(items, {}, &MergedItem::key);
    beams_.clear();
    beamless_draggers_.clear();
}

} // namespace tw::world
