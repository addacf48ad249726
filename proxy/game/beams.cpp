#include "proxy/game/beams.h"

#include "proxy/game/lasers.h"

#include <algorithm>

namespace tw::game {

namespace {

constexpr std::size_t kFromX = 2;
constexpr std::size_t kFromY = 3;
constexpr std::size_t kOwner = 5;
/// Ids that servers hardly reach: they count up from 0.
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
    // Ids below are not looked at again: many beams must not take the square of their time.
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
        // What the first view has there instead is no dragger: no honest server says so.
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

} // namespace tw::game
