#include "proxy/game/phantoms.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace tw::game {

using snapshot::Family;
using snapshot::ItemView;
using snapshot::ObjectSpec;

namespace {

constexpr std::string_view kCharacter = "character"; // of 0.6 and of 0.7
constexpr std::size_t kLaserFrom = 2;                // x; behind it y

/// Newer forms of a pickup say themselves what they are.
bool may_be_one(const ObjectSpec& object) {
    const auto& merge = object.merge;
    return merge.form != 0 && (merge.family == Family::pickup || merge.family == Family::laser);
}

/// Where a tee would be that is drawn so.
std::size_t place_in(const ObjectSpec& object) {
    return object.merge.family == Family::laser ? kLaserFrom : 0;
}

} // namespace

void Phantoms::learn(const snapshot::SnapshotView& items, bool translated,
                     const record::TypeNames& types) {
    for (std::size_t i = 0; i < items.size(); ++i) {
        const ItemView item = items[i];
        const ObjectSpec* const object = types.object(item.key.type);
        if (object == nullptr) {
            continue;
        }
        if (object->name == kCharacter) {
            const auto at = snapshot::position_of(*object, item.data);
            if (at) {
                tees_.emplace_back(item.data[at->x], item.data[at->y]);
            }
        } else if (!translated && object->merge.family != Family::none) {
            known_.emplace_back(object->merge.family, item.key.id);
        }
    }
}

void Phantoms::gather(std::span<const View> views, const record::TypeNames& types) {
    tees_.clear();
    known_.clear();
    // Bases are the same for all that share them, and no translated view does.
    if (const auto sharing = std::ranges::find_if(views, &View::shares); sharing != views.end()) {
        for (const snapshot::SnapshotView& base : sharing->bases) {
            learn(base, false, types);
        }
    }
    for (const View& view : views) {
        learn(view.items, view.translated, types);
    }
    std::ranges::sort(tees_);
    std::ranges::sort(known_);
}

bool Phantoms::has(const ObjectSpec& object, const ItemView& item) const {
    const std::size_t at = may_be_one(object) ? place_in(object) : item.data.size();
    return at + 1 < item.data.size() &&
           std::ranges::binary_search(tees_, Place{item.data[at], item.data[at + 1]}) &&
           !std::ranges::binary_search(known_, Entity{object.merge.family, item.key.id});
}

} // namespace tw::game
