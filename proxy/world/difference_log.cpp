#include "proxy/world/difference_log.h"

#include <algorithm>
#include <bit>

namespace tw::world {

using snapshot::ItemKey;
using snapshot::Tick;
using WideInt = std::int64_t; ///< ticks are untrusted: sums must not overflow

DifferenceLog::CommonItems::CommonItems(const record::Sightings& sightings,
                                        std::span<const View> views)
    : seen_by_{&sightings} {
    masks_.begin(sightings.sessions.size());
    std::vector<int> kinds; // classes of views, one for each mask
    for (const View& view : views) {
        const auto at = std::ranges::lower_bound(sightings.sessions, view.session);
        if (view.translated || at == sightings.sessions.end() || *at != view.session) {
            continue;
        }
        const int kind = version_class(view.version);
        const auto place = static_cast<std::size_t>(std::ranges::find(kinds, kind) - kinds.begin());
        if (place == kinds.size()) {
            kinds.push_back(kind);
            masks_.add_mask();
        }
        masks_.mark_seen(place, static_cast<std::size_t>(at - sightings.sessions.begin()));
    }
}

bool DifferenceLog::CommonItems::operator()(std::size_t item) const {
    const auto seen = seen_by_->of(item);
    for (std::size_t mask = 0; mask < masks_.size(); ++mask) {
        int views = 0;
        for (std::size_t i = 0; i < seen.size(); ++i) {
            views += std::popcount(seen[i] & masks_.mask(mask)[i]);
        }
        if (views > 1) {
            return true;
        }
    }
    return false;
}

void DifferenceLog::reset() {
    open_.clear();
    steady_.clear();
    noted_.reset();
    full_.reset();
}

bool DifferenceLog::views_agreed_on(std::uint32_t key, Tick tick) const {
    const auto known = std::ranges::lower_bound(steady_, key, {}, &AgreedItem::key);
    return known != steady_.end() && known->key == key && WideInt{tick} - known->first >= kSteady &&
           WideInt{tick} - known->last <= kOver;
}

bool DifferenceLog::is_per_viewer_field(const FieldHistory& field) {
    return field.lasting || (field.differed >= kOftenShort && field.agreed == 0);
}

DifferenceLog::FieldHistory& DifferenceLog::history_of_field(const OpenDifference& open) {
    return fields_[{open.first.object, open.first.field->offset}];
}

bool DifferenceLog::differs_in_tick(Key key, Tick tick) const {
    const auto open = open_.find(key);
    return open != open_.end() && open->second.last == tick;
}

void DifferenceLog::report_difference(OpenDifference& open) {
    open.state = State::reported;
    told_.push_back({.difference = open.first,
                     .tick = open.since,
                     .since = open.since,
                     .confirmed = open.times});
}

/// Differences in per-viewer fields are remembered twice as long as agreed items. Otherwise the
/// items would count as agreed when the views differ again.
bool DifferenceLog::has_ended(const OpenDifference& open, Tick tick) {
    const WideInt silence = WideInt{tick} - open.last;
    return open.state == State::reported
               ? silence > kOver
               : open.state == State::per_viewer && silence > 2 * WideInt{kOver};
}

DifferenceLog::OpenDifference* DifferenceLog::find_open_difference(Key key, Tick tick) {
    const auto known = open_.find(key);
    if (known == open_.end()) {
        return nullptr;
    }
    if (has_ended(known->second, tick)) {
        open_.erase(known);
        return nullptr;
    }
    return &known->second;
}

bool DifferenceLog::make_room_for_difference(Tick tick) {
    if (open_.size() >= kMaxOpen && full_ != tick) {
        full_ = tick;
        std::erase_if(open_, [&](const auto& each) { return has_ended(each.second, tick); });
    }
    return open_.size() < kMaxOpen;
}

void DifferenceLog::track_difference(const Difference& difference, Tick tick) {
    const Key key{difference.key.packed(), difference.field->offset};
    const OpenDifference fresh{.first = difference, .since = tick, .last = tick};
    OpenDifference* const known = find_open_difference(key, tick);
    if (known == nullptr) {
        if (make_room_for_difference(tick)) {
            OpenDifference& open = open_.emplace(key, fresh).first->second;
            if (views_agreed_on(key.first, tick)) {
                report_difference(open);
            }
        } else if (untracked_.size() < kMaxSteady) {
            untracked_.push_back(key.first);
        }
    } else if (known->last != tick) {
        if (known->state != State::reported && known->agreed >= kSteady) {
            *known = fresh;
            report_difference(*known); // views have agreed since the previous difference
            return;
        }
        known->last = tick;
        known->agreed = 0;
        ++known->times;
    }
}

void DifferenceLog::count_agreement(const record::SnapshotRecord& shown,
                                    const CommonItems& common) {
    for (auto& [key, open] : open_) {
        if (open.last == shown.tick) {
            if (FieldHistory& field = history_of_field(open);
                open.state != State::reported &&
                (field.differed == 0 || field.last != shown.tick)) {
                field.type = open.first.key.type;
                field.last = shown.tick;
                ++field.differed;
            }
        } else if (open.state != State::reported) {
            const auto at = shown.items.find(ItemKey::from_packed(key.first));
            open.agreed += at && common(*at) ? 1U : 0U;
        }
    }
    const auto keys = shown.items.keys();
    for (auto& [place, field] : fields_) {
        std::size_t at = field.lasting ? keys.size() : shown.items.lower_bound({field.type, 0});
        for (; at < keys.size() && ItemKey::from_packed(keys[at]).type == field.type; ++at) {
            if (!differs_in_tick({keys[at], place.second}, shown.tick) && common(at)) {
                ++field.agreed;
                break;
            }
        }
    }
}

void DifferenceLog::record_agreed_items(const record::SnapshotRecord& shown,
                                        const CommonItems& common) {
    noted_ = shown.tick;
    if (untracked_.size() == kMaxSteady) {
        return; // further differences were not tracked, so it is unknown on which items views agree
    }
    std::ranges::sort(untracked_);
    noting_.clear();
    const auto keys = shown.items.keys();
    auto known = steady_.cbegin();
    const auto keep_before = [&](std::uint64_t key) {
        for (; known != steady_.cend() && known->key < key; ++known) {
            if (WideInt{shown.tick} - known->last <= kOver) {
                noting_.push_back(*known);
            }
        }
    };
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (!common(i) || std::ranges::binary_search(untracked_, keys[i])) {
            continue;
        }
        keep_before(keys[i]);
        const bool is_known = known != steady_.cend() && known->key == keys[i] &&
                              WideInt{shown.tick} - known->last <= kOver;
        const Tick first = is_known ? known->first : shown.tick;
        known += known != steady_.cend() && known->key == keys[i] ? 1 : 0;
        if (is_known || noting_.size() < kMaxSteady) {
            noting_.push_back({.key = keys[i], .first = first, .last = shown.tick});
        }
    }
    keep_before(std::uint64_t{1} << 32U);
    noting_.resize(std::min(noting_.size(), kMaxSteady));
    std::swap(steady_, noting_);
}

void DifferenceLog::classify_pending(Tick tick, bool is_last) {
    for (auto& [key, open] : open_) {
        if (open.state != State::pending) {
            continue;
        }
        FieldHistory& field = history_of_field(open);
        field.lasting = field.lasting || (open.times >= kOften && open.agreed < kSteady &&
                                          WideInt{open.last} - open.since >= kOftenTicks);
        if (is_per_viewer_field(field)) {
            open.state = State::per_viewer;
            if (!std::exchange(field.told, true)) {
                told_.push_back({.difference = open.first,
                                 .tick = tick,
                                 .since = open.since,
                                 .confirmed = open.times,
                                 .per_viewer = true});
            }
        } else if (is_last || WideInt{tick} - open.since >= kJudge) {
            report_difference(open);
        }
    }
}

std::span<const DifferenceLog::Report>
DifferenceLog::examine(const record::WorldRecord& world, std::span<const View> views,
                       std::span<const Difference> differences) {
    told_.clear();
    const bool is_view_due = !noted_ || WideInt{world.tick} - *noted_ >= kNote;
    if (views.size() > 1 && (is_view_due || !open_.empty() || !differences.empty())) {
        untracked_.clear();
        for (const Difference& difference : differences) {
            track_difference(difference, world.tick);
        }
        const CommonItems common{*world.shown.sightings, views};
        count_agreement(world.shown, common);
        if (is_view_due) {
            record_agreed_items(world.shown, common);
        }
    }
    classify_pending(world.tick, false);
    return told_;
}

std::span<const DifferenceLog::Report> DifferenceLog::finish() {
    told_.clear();
    classify_pending(0, true);
    return told_;
}

} // namespace tw::world
