#include "proxy/world/difference_log.h"

#include <utility>

namespace tw::world {

using snapshot::ItemKey;
using snapshot::Tick;
using WideInt = std::int64_t; ///< ticks are untrusted: sums must not overflow

namespace {

record::FindingRecord make_difference_finding(const ViewDifference& difference,
                                              record::FindingId id, Tick tick) {
    return {.head = {.session = difference.session},
            .id = id,
            .tick = tick,
            .item = record::FindingItem{.type_id = difference.key.type,
                                        .id = difference.key.id,
                                        .type = difference.object->name},
            .field = difference.field->name,
            .value = difference.value,
            .expected = difference.other_value,
            .other_session = difference.other_session};
}

} // namespace

bool DifferenceLog::views_agreed_on_item(std::uint32_t key, Tick tick) const {
    const auto known = agreed_items_.find(key);
    return known != agreed_items_.end() &&
           WideInt{tick} - known->second.first_tick >= kAgreementTicks &&
           WideInt{tick} - known->second.last_tick <= kForgetTicks;
}

bool DifferenceLog::is_per_viewer_field(const FieldHistory& field) {
    return field.is_lasting ||
           (field.num_differing_ticks >= kPerViewerTicks && field.num_agreeing_ticks == 0);
}

DifferenceLog::FieldHistory& DifferenceLog::history_of_field(const OpenDifference& open) {
    return field_histories_[{open.first_difference.object, open.first_difference.field->offset}];
}

void DifferenceLog::report_difference(OpenDifference& open) {
    open.state = DifferenceState::reported;
    findings_.push_back(make_difference_finding(
        open.first_difference, record::FindingId::world_views_differ, open.first_tick));
}

/// Returns whether a difference can be forgotten. A difference in a per-viewer field is remembered
/// twice as long as an agreed item, so that the item is forgotten first. Otherwise, the next
/// difference in the item would be reported as a fault.
bool DifferenceLog::can_be_forgotten(const OpenDifference& open, Tick tick) {
    const WideInt silence = WideInt{tick} - open.last_tick;
    return open.state == DifferenceState::reported
               ? silence > kForgetTicks
               : open.state == DifferenceState::per_viewer && silence > 2 * WideInt{kForgetTicks};
}

void DifferenceLog::track_difference(const ViewDifference& difference, Tick tick) {
    const DifferenceKey key{difference.key.packed(), difference.field->offset};
    const OpenDifference fresh{
        .first_difference = difference, .first_tick = tick, .last_tick = tick};
    const auto known = differences_.find(key);
    if (known == differences_.end()) {
        if (differences_.size() < kMaxOpenDifferences) {
            OpenDifference& open = differences_.emplace(key, fresh).first->second;
            if (views_agreed_on_item(key.first, tick)) {
                report_difference(open);
            }
        } else if (untracked_keys_.size() < kMaxAgreedItems) {
            untracked_keys_.insert(key.first);
        }
        return;
    }
    OpenDifference& open = known->second;
    if (open.last_tick == tick) {
        return;
    }
    if (open.state != DifferenceState::reported && open.num_agreeing_ticks >= kAgreementTicks) {
        open = fresh;
        // This is a fault, because the views agreed for kAgreementTicks ticks before.
        report_difference(open);
        return;
    }
    open.last_tick = tick;
    open.num_agreeing_ticks = 0;
    ++open.num_differing_ticks;
}

void DifferenceLog::update_tick_counts(const record::SnapshotRecord& shown,
                                       const IsSharedItem& is_shared) {
    for (auto& [key, open] : differences_) {
        if (open.last_tick == shown.tick) {
            if (FieldHistory& field = history_of_field(open);
                open.state != DifferenceState::reported &&
                (field.num_differing_ticks == 0 || field.last_tick != shown.tick)) {
                field.type = open.first_difference.key.type;
                field.last_tick = shown.tick;
                ++field.num_differing_ticks;
            }
        } else if (open.state != DifferenceState::reported) {
            const auto at = shown.items.find(ItemKey::from_packed(key.first));
            open.num_agreeing_ticks += at && is_shared(*at) ? 1U : 0U;
        }
    }
    const auto keys = shown.items.keys();
    for (auto& [place, field] : field_histories_) {
        std::size_t at = field.is_lasting ? keys.size() : shown.items.lower_bound({field.type, 0});
        for (; at < keys.size() && ItemKey::from_packed(keys[at]).type == field.type; ++at) {
            const auto open = differences_.find({keys[at], place.second});
            const bool differs = open != differences_.end() && open->second.last_tick == shown.tick;
            if (!differs && is_shared(at)) {
                ++field.num_agreeing_ticks;
                break;
            }
        }
    }
}

void DifferenceLog::record_agreed_items(const record::SnapshotRecord& shown,
                                        const IsSharedItem& is_shared) {
    last_recorded_ = shown.tick;
    if (untracked_keys_.size() == kMaxAgreedItems) {
        return; // untracked_keys_ is incomplete, so an item with a difference could count as agreed
    }
    std::erase_if(agreed_items_, [&](const auto& each) {
        return WideInt{shown.tick} - each.second.last_tick > kForgetTicks;
    });
    const auto keys = shown.items.keys();
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (!is_shared(i) || untracked_keys_.contains(keys[i])) {
            continue;
        }
        if (const auto known = agreed_items_.find(keys[i]); known != agreed_items_.end()) {
            known->second.last_tick = shown.tick;
        } else if (agreed_items_.size() < kMaxAgreedItems) {
            agreed_items_.emplace(keys[i],
                                  AgreedItem{.first_tick = shown.tick, .last_tick = shown.tick});
        }
    }
}

void DifferenceLog::classify_pending_differences(Tick tick, bool is_last) {
    for (auto& [key, open] : differences_) {
        if (open.state != DifferenceState::pending) {
            continue;
        }
        FieldHistory& field = history_of_field(open);
        field.is_lasting =
            field.is_lasting || (open.num_differing_ticks >= kMinDifferingTicks &&
                                 open.num_agreeing_ticks < kAgreementTicks &&
                                 WideInt{open.last_tick} - open.first_tick >= kMinDifferingSpan);
        if (is_per_viewer_field(field)) {
            open.state = DifferenceState::per_viewer;
            if (!std::exchange(field.is_reported, true)) {
                auto& finding = findings_.emplace_back(make_difference_finding(
                    open.first_difference, record::FindingId::world_per_viewer, tick));
                finding.since_tick = open.first_tick;
                finding.confirmed = open.num_differing_ticks;
            }
        } else if (is_last || WideInt{tick} - open.first_tick >= kMaxPendingTicks) {
            report_difference(open);
        }
    }
}

std::vector<record::FindingRecord>
DifferenceLog::track_differences(const record::WorldRecord& world, std::span<const View> views,
                                 std::span<const ViewDifference> differences) {
    std::erase_if(differences_,
                  [&](const auto& each) { return can_be_forgotten(each.second, world.tick); });
    const bool is_recording_due =
        !last_recorded_ || WideInt{world.tick} - *last_recorded_ >= kAgreementInterval;
    if (views.size() > 1 && (is_recording_due || !differences_.empty() || !differences.empty())) {
        untracked_keys_.clear();
        for (const ViewDifference& difference : differences) {
            track_difference(difference, world.tick);
        }
        std::map<std::uint32_t, unsigned> classes; // version class of each session's client
        for (const View& view : views) {
            if (!view.has_translated_ids) {
                classes.emplace(view.session, client_version_class(view.client_version));
            }
        }
        const IsSharedItem is_shared = [&](std::size_t item) {
            std::uint32_t seen = 0; // bit i: a session of version class i received the item
            bool is_second = false;
            world.merged.sightings->for_each_session(item, [&](std::uint32_t session) {
                const auto known = classes.find(session);
                const std::uint32_t bit = known == classes.end() ? 0 : 1U << known->second;
                is_second = (seen & bit) != 0;
                seen |= bit;
                return is_second;
            });
            return is_second;
        };
        update_tick_counts(world.merged, is_shared);
        if (is_recording_due) {
            record_agreed_items(world.merged, is_shared);
        }
    }
    classify_pending_differences(world.tick, false);
    return std::exchange(findings_, {});
}

std::vector<record::FindingRecord> DifferenceLog::flush_pending_differences() {
    classify_pending_differences(0, true);
    differences_.clear();
    agreed_items_.clear();
    last_recorded_.reset();
    return std::exchange(findings_, {});
}

} // namespace tw::world
