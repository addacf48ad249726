#include "proxy/game/merge.h"

#include "proxy/game/beams.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

namespace tw::game {

using snapshot::Family;
using snapshot::FieldMerge;
using snapshot::ItemKey;
using snapshot::ObjectSpec;
using snapshot::SnapshotView;

namespace {

constexpr std::size_t kBits = 64;

/// The first index at which the two differ; `count` where they do not. Whole blocks are compared as
/// bytes, which is many times faster than int by int.
std::size_t first_difference(const std::int32_t* left, const std::int32_t* right,
                             std::size_t count) {
    constexpr std::size_t kBlock = 64;
    std::size_t at = 0;
    while (at + kBlock <= count && std::memcmp(left + at, right + at, kBlock * sizeof *left) == 0) {
        at += kBlock;
    }
    while (at < count && left[at] == right[at]) {
        ++at;
    }
    return at;
}

/// How many of the items from here on have the same keys and sizes in both. Blocks are looked at as a
/// whole, so that it takes an instruction or two for each item.
std::size_t same_run(const SnapshotView& left, std::size_t at, const SnapshotView& right,
                     std::size_t item, std::uint32_t distance) {
    constexpr std::size_t kBlock = 16;
    const std::size_t most = std::min(left.size() - at, right.size() - item);
    const std::uint32_t* const left_keys = left.keys().data() + at;
    const std::uint32_t* const right_keys = right.keys().data() + item;
    const std::uint32_t* const left_ends = left.ends().data() + at;
    const std::uint32_t* const right_ends = right.ends().data() + item;
    const auto difference = [&](std::size_t i) {
        return (left_keys[i] ^ right_keys[i]) | ((left_ends[i] - right_ends[i]) ^ distance);
    };
    std::size_t count = 0;
    for (; count + kBlock <= most; count += kBlock) {
        std::uint32_t other = 0;
        for (std::size_t i = 0; i < kBlock; ++i) {
            other |= difference(count + i);
        }
        if (other != 0) {
            break;
        }
    }
    while (count < most && difference(count) == 0) {
        ++count;
    }
    return count;
}

/// Where the ints of an item begin.
std::uint32_t begin_of(const SnapshotView& items, std::size_t item) {
    return item == 0 ? 0 : items.ends()[item - 1];
}

bool equal(std::span<const std::int32_t> left, std::span<const std::int32_t> right) {
    return left.size() == right.size() &&
           (left.empty() || std::memcmp(left.data(), right.data(), left.size_bytes()) == 0);
}

ItemRef ref_of(std::uint32_t view, std::size_t item) {
    return {.view = view, .item = static_cast<std::uint32_t>(item)};
}

} // namespace

void ViewMerge::see(std::uint64_t* seen, std::uint32_t view) const {
    seen[slots_[view] / kBits] |= std::uint64_t{1} << (slots_[view] % kBits);
}

void ViewMerge::turn_seen(std::size_t base, std::size_t count, std::uint32_t view) {
    const std::uint64_t bit = std::uint64_t{1} << (slots_[view] % kBits);
    base_seen_[base * words_ + slots_[view] / kBits] ^= bit;
    base_seen_[(base + count) * words_ + slots_[view] / kBits] ^= bit;
}

void ViewMerge::finish_seen() {
    for (std::size_t i = words_; i < base_seen_.size(); ++i) {
        base_seen_[i] ^= base_seen_[i - words_];
    }
}

void ViewMerge::begin(std::span<const View> views, const record::TypeNames& types,
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
    words_ = (views.size() + kBits - 1) / kBits;
    base_seen_.assign((views.front().items.size() + 1) * words_, 0);
    turn_seen(0, views.front().items.size(), 0);
    extras_.clear();
    pending_.clear();
    extra_seen_.clear();
}

void ViewMerge::merge(std::span<const View> views, const record::TypeNames& types, Beams& beams,
                      std::vector<Difference>* differences) {
    begin(views, types, differences);
    for (std::uint32_t view = 1; view < views.size(); ++view) {
        add_view(view);
    }
    finish_seen();
    gather();
    drop_lesser_forms();
    resolve_beams(beams);
    tell_own();
    items_.finish();
    write();
}

void ViewMerge::add_view(std::uint32_t view) {
    const SnapshotView& base = views_.front().items;
    const SnapshotView& items = views_[view].items;
    const auto base_keys = base.keys();
    const auto keys = items.keys();
    std::size_t at = 0; // in the base
    std::size_t cursor = 0;
    for (std::size_t i = 0; i < keys.size();) {
        while (at < base_keys.size() && base_keys[at] < keys[i]) {
            ++at;
        }
        if (at == base_keys.size() || base_keys[at] != keys[i]) {
            add_extra(view, i, cursor);
            ++i;
            continue;
        }
        const std::uint32_t distance = begin_of(base, at) - begin_of(items, i);
        std::size_t count = same_run(base, at, items, i, distance);
        if (count == 0) { // of another size
            if (items_.differ(ref_of(0, at), ref_of(view, i))) {
                turn_seen(at, 1, view);
            }
            count = 1;
        } else {
            turn_seen(at, count, view);
            compare_run(at, view, i, count);
        }
        at += count;
        i += count;
    }
    take_pending();
}

void ViewMerge::compare_run(std::size_t base, std::uint32_t view, std::size_t item,
                            std::size_t count) {
    const SnapshotView& left = views_.front().items;
    const SnapshotView& right = views_[view].items;
    const std::uint32_t begin = begin_of(left, base);
    const std::size_t size = left.ends()[base + count - 1] - begin;
    const std::int32_t* const left_ints = left.data().data() + begin;
    const std::int32_t* const right_ints = right.data().data() + begin_of(right, item);
    std::size_t index = 0; // of the item, in the run
    std::size_t at = 0;
    while (true) {
        at += first_difference(left_ints + at, right_ints + at, size - at);
        if (at == size) {
            return;
        }
        while (left.ends()[base + index] - begin <= at) {
            ++index;
        }
        if (!items_.differ(ref_of(0, base + index), ref_of(view, item + index))) {
            turn_seen(base + index, 1, view);
        }
        at = left.ends()[base + index] - begin;
    }
}

void ViewMerge::add_extra(std::uint32_t view, std::size_t item, std::size_t& cursor) {
    const std::uint32_t key = views_[view].items.keys()[item];
    while (cursor < extras_.size() && extras_[cursor].key < key) {
        ++cursor;
    }
    if (cursor < extras_.size() && extras_[cursor].key == key) {
        const Extra& known = extras_[cursor];
        const ItemRef ref = ref_of(view, item);
        if (equal(items_.item(known.ref).data, items_.item(ref).data) ||
            items_.differ(known.ref, ref)) {
            see(&extra_seen_[known.seen], view);
        }
        return;
    }
    pending_.push_back({.key = key, .ref = ref_of(view, item), .seen = extra_seen_.size()});
    extra_seen_.resize(extra_seen_.size() + words_);
    see(&extra_seen_[pending_.back().seen], view);
}

void ViewMerge::take_pending() {
    if (pending_.empty()) {
        return;
    }
    const auto middle = static_cast<std::ptrdiff_t>(extras_.size());
    extras_.insert(extras_.end(), pending_.begin(), pending_.end());
    std::ranges::inplace_merge(extras_, extras_.begin() + middle, {}, &Extra::key);
    pending_.clear();
}

void ViewMerge::gather() {
    merged_.clear();
    const auto add = [this](ItemRef ref, std::uint64_t* seen) {
        const ItemKey key = items_.item(ref).key;
        const ObjectSpec* const object = items_.object(key.type);
        if (object == nullptr || !object->merge.per_session) {
            merged_.push_back({.key = key, .ref = ref, .object = object, .seen = seen});
        }
    };
    const auto keys = views_.front().items.keys();
    std::size_t extra = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        for (; extra < extras_.size() && extras_[extra].key < keys[i]; ++extra) {
            add(extras_[extra].ref, &extra_seen_[extras_[extra].seen]);
        }
        add(ref_of(0, i), &base_seen_[i * words_]);
    }
    for (; extra < extras_.size(); ++extra) {
        add(extras_[extra].ref, &extra_seen_[extras_[extra].seen]);
    }
}

void ViewMerge::drop_lesser_forms() {
    // Views of one version have one form of each family, and nothing needs to be dropped.
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
    beam_seen_.assign(items_.differing_beams().size() * words_, 0);
    for (const ItemRef ref : items_.differing_beams()) {
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
        if (object == nullptr || (i != 0 && object == merged_[i - 1].object) ||
            std::ranges::none_of(object->fields, [](const auto& field) {
                return field.merge == FieldMerge::own || field.merge == FieldMerge::own_first;
            })) {
            continue;
        }
        const std::uint16_t type = merged_[i].key.type;
        for (std::uint32_t view = 0; view < views_.size(); ++view) {
            tell(*object, type, view, views_[view].own, true);
            tell(*object, type, view, views_[view].watched, false);
        }
    }
}

void ViewMerge::tell(const ObjectSpec& object, std::uint16_t type, std::uint32_t view,
                     std::optional<std::uint16_t> client, bool own) {
    const auto at = client ? views_[view].items.find({type, *client}) : std::nullopt;
    if (at) {
        items_.tell_own(ref_of(view, *at), object, own);
    }
}

void ViewMerge::write() {
    result_.clear();
    seen_.clear();
    untold_.clear();
    for (const MergedItem& item : merged_) {
        untold_.push_back(items_.write(item, ints_));
        result_.append(item.key, ints_);
        seen_.insert(seen_.end(), item.seen, item.seen + words_);
    }
    sightings_ = {.sessions = sessions_, .bits = seen_, .words = words_, .untold = untold_};
}

} // namespace tw::game
