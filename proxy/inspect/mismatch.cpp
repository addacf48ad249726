#include "proxy/inspect/mismatch.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

namespace {

using snapshot::DeltaUpdate;
using snapshot::DeltaWarningAt;
using snapshot::ItemKey;

/// Sum of an item as this update alone would make it, wrapping.
std::uint32_t update_sum(const Mismatch& mismatch, const DeltaUpdate& update) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < update.size; ++i) {
        sum += static_cast<std::uint32_t>(mismatch.delta->ints[update.begin + i]);
    }
    if (const auto index = mismatch.base.find(update.key)) {
        for (const std::int32_t value : mismatch.base[*index].data) {
            sum += static_cast<std::uint32_t>(value);
        }
    }
    return sum;
}

/// The update of an item that the delta updates twice, if it is the difference.
const DeltaUpdate* lost_update(const Mismatch& mismatch, ItemKey key) {
    const auto missing =
        static_cast<std::uint32_t>(mismatch.wanted) - static_cast<std::uint32_t>(mismatch.got);
    const auto& updates = mismatch.delta->updates;
    const auto found = std::find_if(updates.begin(), updates.end(), [&](const DeltaUpdate& each) {
        return each.key == key && update_sum(mismatch, each) == missing;
    });
    return found == updates.end() ? nullptr : &*found;
}

void add_once(ItemKey key, std::vector<ItemKey>& keys) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        keys.push_back(key);
    }
}

MismatchCause odd_items(const Mismatch& mismatch) {
    std::vector<ItemKey> lost;
    std::vector<ItemKey> odd;
    for (const DeltaWarningAt& warning : mismatch.warnings->list()) {
        add_once(warning.key, odd);
        if (warning.kind == snapshot::DeltaWarning::duplicate_update &&
            lost_update(mismatch, warning.key) != nullptr) {
            add_once(warning.key, lost);
        }
    }
    const bool all_are_listed = mismatch.warnings->count == mismatch.warnings->list().size();
    if (lost.size() == 1 && all_are_listed) {
        return {.name = "duplicate_update",
                .sentence = "the server's snapshot contained this item twice; the sum of the lost "
                            "one is exactly the difference",
                .key = lost.front(),
                .int_index = lost_update(mismatch, lost.front())->begin};
    }
    if (!lost.empty()) {
        return {.name = "duplicate_update",
                .sentence = "the server's snapshot contained items twice; the sum of any of these, "
                            "lost, is exactly the difference",
                .odd_items = lost};
    }
    return {.name = "odd_delta",
            .sentence = "the delta treats these items oddly, which may be the cause; see the "
                        "earlier findings",
            .odd_items = odd};
}

} // namespace

MismatchCause explain_mismatch(const Mismatch& mismatch, std::vector<Suspects::Suspect> suspects) {
    using Suspect = Suspects::Suspect;
    if (mismatch.warnings->count != 0) {
        return odd_items(mismatch);
    }
    if (suspects.empty()) {
        return {.name = "unknown",
                .sentence = "there is no value to suspect, or there are too many to look at"};
    }
    std::erase_if(suspects, [](const Suspect& each) { return !each.fits_a_bit; });
    if (suspects.empty()) {
        return {.name = "unknown",
                .sentence = "no single flipped bit in a value explains the difference: more is "
                            "damaged, or an item was added, lost or changed where the delta says "
                            "nothing"};
    }
    const Suspect& likeliest = suspects.front();
    constexpr double kLikely = 0.5;
    if ((suspects.size() == 1 || likeliest.is_overlong) && likeliest.probability > kLikely) {
        return {.name = "damaged_value",
                .sentence = likeliest.is_overlong
                                ? "this value takes more bytes than any server writes, and one "
                                  "flipped bit in it explains the difference"
                                : "one flipped bit in this value explains the difference, and in "
                                  "no other value it does",
                .key = likeliest.key,
                .int_index = likeliest.int_index,
                .field = field_name(mismatch.types->object(likeliest.key.type), likeliest.index)};
    }
    return {.name = "ambiguous",
            .sentence = "one flipped bit in any of the candidates explains the difference",
            .damaged = std::move(suspects)};
}

} // namespace tw::inspect
