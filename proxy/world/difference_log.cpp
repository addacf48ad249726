#include "proxy/world/difference_log.h"

#include <utility>

namespace tw::world {

using snapshot::ItemKey;
using snapshot::Tick;
using WideInt = std::int64_t; ///< ticks are untrusted: sums must not overflow

namespace {

record::FindingRecord make_finding(const ViewDifference& difference, record::FindingId id,
                                   Tick tick) {
    return {.head = {.session = difference.session},
            .id = id,
            .tick = tick,
            .item = record::FindingItem{.type_id = difference.key.type,
                                        .id = difference.key.id,
                                        .type = difference.object->name},
            .field = difference.field->name,
            .value = difference.value,
            .expected = difference.other,
            .other_session = difference.other_session};
}

} // namespace

bool DifferenceLog::views_agreed_on_item(std::uint32_t key, Tick tick) const {
    const auto known = agreed_items_.find(key);
    return known != agreed_items_.end() && WideInt{tick} - known->second.first >= kAgreementTicks &&
           WideInt{tick} - known->second.last <= kForgetTicks;
}

bool DifferenceLog::is_per_viewer_field(const FieldHistory& field) {
    return field.is_lasting || (field.differed >= kPerViewerTicks && field.agreed == 0);
}

DifferenceLog::FieldHistory& DifferenceLog::history_of_field(const OpenDifference& open) {
    return fields_[{open.first.object, open.first.field->offset}];
}

void DifferenceLog::report_difference(OpenDifference& open) {
    open.state = DifferenceState::reported;
    findings_.push_back(
        make_finding(open.first, record::FindingId::world_views_differ, open.since));
}

/// Returns whether a difference can be forgotten. Differences in per-viewer fields are remembered
/// twice as long as items on which views agreed, so that a chance agreement is forgotten first.
bool DifferenceLog::can_be_forgotten(const OpenDifference& open, Tick tick) {
    const WideInt silence = WideInt{tick} - open.last;
    return open.state == DifferenceState::reported
               ? silence > kForgetTicks
               : open.state == DifferenceState::per_viewer && silence > 2 * WideInt{kForgetTicks};
}

void DifferenceLog::track_difference(const ViewDifference& difference, Tick tick) {
    const Key key{difference.key.packed(), difference.field->offset};
    const OpenDifference fresh{.first = difference, .since = tick, .last = tick};
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
    if (open.last == tick) {
        return;
    }
    if (open.state != DifferenceState::reported && open.agreed >= kAgreementTicks) {
        open = fresh;
        report_difference(
            open); // a fault, because the views agreed for kAgreementTicks ticks before
        return;
    }
    open.last = tick;
    open.agreed = 0;
    ++open.times;
}

void DifferenceLog::count_agreement(const record::SnapshotRecord& shown,
                                    const IsSharedItem& is_shared) {
    for (auto& [key, open] : differences_) {
        if (open.last == shown.tick) {
            if (FieldHistory& field = history_of_field(open);
                open.state != DifferenceState::reported &&
                (field.differed == 0 || field.last != shown.tick)) {
                field.type = open.first.key.type;
                field.last = shown.tick;
                ++field.differed;
            }
        } else if (open.state != DifferenceState::reported) {
            const auto at = shown.items.find(ItemKey::from_packed(key.first));
            open.agreed += at && is_shared(*at) ? 1U : 0U;
        }
    }
    const auto keys = shown.items.keys();
    for (auto& [place, field] : fields_) {
        std::size_t at = field.is_lasting ? keys.size() : shown.items.lower_bound({field.type, 0});
        for (; at < keys.size() && ItemKey::from_packed(keys[at]).type == field.type; ++at) {
            const auto open = differences_.find({keys[at], place.second});
            const bool differs = open != differences_.end() && open->second.last == shown.tick;
            if (!differs && is_shared(at)) {
                ++field.agreed;
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
        return WideInt{shown.tick} - each.second.last > kForgetTicks;
    });
    const auto keys = shown.items.keys();
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (!is_shared(i) || untracked_keys_.contains(keys[i])) {
            continue;
        }
        if (const auto known = agreed_items_.find(keys[i]); known != agreed_items_.end()) {
            known->second.last = shown.tick;
        } else if (agreed_items_.size() < kMaxAgreedItems) {
            agreed_items_.emplace(keys[i], AgreedItem{.first = shown.tick, .last = shown.tick});
        }
    }
}

void DifferenceLog::classify_pending_differences(Tick tick, bool is_last) {
    for (auto& [key, open] : differences_) {
        if (open.state != DifferenceState::pending) {
            continue;
        }
        FieldHistory& field = history_of_field(open);
        field.is_lasting = field.is_lasting ||
                           (open.times >= kMinDifferingTicks && open.agreed < kAgreementTicks &&
                            WideInt{open.last} - open.since >= kMinDifferingSpan);
        if (is_per_viewer_field(field)) {
            open.state = DifferenceState::per_viewer;
            if (!std::exchange(field.is_reported, true)) {
                auto& finding = findings_.emplace_back(
                    make_finding(open.first, record::FindingId::world_per_viewer, tick));
                finding.since_tick = open.since;
                finding.confirmed = open.times;
            }
        } else if (is_last || WideInt{tick} - open.since >= kMaxPendingTicks) {
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
            if (!view.translated) {
                classes.emplace(view.session, client_version_class(view.version));
            }
        }
        const IsSharedItem is_shared = [&](std::size_t item) {
            std::uint32_t seen = 0; // a bit for each class of which a session received the item
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
        count_agreement(world.merged, is_shared);
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
