#include "proxy/world/view_merger.h"

#include "proxy/world/seven_to_six.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

namespace tw::world {

using snapshot::FieldMerge;
using snapshot::FieldSpec;
using snapshot::ItemKey;
using snapshot::ItemView;
using snapshot::ObjectFamily;
using snapshot::ObjectSpec;

namespace {

using Ints = std::span<const std::int32_t>;

constexpr std::int32_t kDoorKind = 2;
constexpr std::int32_t kLightKind = 3;

/// The number of ints at the start of a laser that contain its two end points, in the old and the
/// new laser object.
constexpr std::size_t kEndPointInts = 4;

/// The bit "racetime" of gamestateflag: the timer shows the viewer's race time.
constexpr std::uint32_t kRaceBit = 8;

/// The bit "watching" of 0.7's playerflag: the viewer spectates the player.
constexpr std::uint32_t kWatchingBit = 0x20;

/// Values of ValuePatch::rank. If several patches change an int, the patch with the lowest rank is
/// used.
constexpr std::uint8_t kOwnerRank = 0;
constexpr std::uint8_t kSpectatorRank = 1;
constexpr std::uint8_t kGreatestValueRank = 2;

/// The number of bits in the mask MergeRules::compared_ints.
constexpr std::size_t kMaskBits = 32;

/// Clients from this version on receive switch states. To older clients, the server sends doors and
/// similar items in the state of the viewer's team.
constexpr std::int32_t kFirstVersionWithSwitches = 16200;

bool is_door(const ObjectSpec& object, Ints data) {
    return is_laser_of_kind(object, data, kDoorKind);
}

/// Returns whether the item may be switched off in some views and on in others.
bool may_be_switched(const ObjectSpec& object, Ints data) {
    const bool is_old_form = object.merge.family == ObjectFamily::laser &&
                             object.merge.variant != 0 && data.size() >= kEndPointInts;
    return is_old_form || is_laser_of_kind(object, data, kLightKind);
}

/// Returns whether a light or door is switched off for the viewer's team: its two end points are
/// equal.
bool is_switched_off(Ints laser) {
    return laser[0] == laser[2] && laser[1] == laser[3];
}

/// Returns whether two doors have the same end point.
bool have_same_end(Ints laser, Ints other) {
    return laser[0] == other[0] && laser[1] == other[1];
}

std::int32_t clear_bit(std::uint32_t bit, std::int32_t flags) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(flags) & ~bit);
}

bool has_race_bit(std::int32_t flags) {
    return (static_cast<std::uint32_t>(flags) & kRaceBit) != 0;
}

/// Returns whether differences of the field between views are normal and not reported.
bool may_differ_between_views(FieldMerge merge) {
    return merge == FieldMerge::varies || merge == FieldMerge::own ||
           merge == FieldMerge::own_first || merge == FieldMerge::about_viewer ||
           merge == FieldMerge::watched_flag || merge == FieldMerge::per_viewer;
}

/// Returns whether the field's value is only meant for the client of the item's player.
bool is_sent_to_owner_only(FieldMerge merge) {
    return merge == FieldMerge::own || merge == FieldMerge::per_viewer;
}

/// Returns whether the view of the item's player has a better value of the field than other views.
bool has_best_value_in_owners_view(const ObjectSpec& object, FieldMerge merge) {
    const bool id_is_client = object.client && !object.client->field;
    return merge == FieldMerge::own || merge == FieldMerge::own_first ||
           (merge == FieldMerge::per_viewer && id_is_client);
}

/// Returns the value of the object's first field with this merge rule; 0 if it has no such field.
std::int32_t value_of_field_with_rule(const ObjectSpec& object, FieldMerge how, Ints data) {
    const auto field = std::ranges::find(object.fields, how, &FieldSpec::merge);
    return field != object.fields.end() && field->offset < data.size() ? data[field->offset] : 0;
}

int units_per_position(const ObjectSpec& object, Ints data) {
    const auto position = snapshot::position_of(object, data);
    return position ? position->per_unit : 0;
}

/// Clears the ints of an item that depend on the viewer.
void clear_viewer_dependent_ints(const ObjectSpec& object, std::span<std::int32_t> ints) {
    // The flags say whether the timer is the viewer's own.
    const bool is_race =
        has_race_bit(value_of_field_with_rule(object, FieldMerge::race_flags, ints));
    for (const FieldSpec& field : object.fields) {
        if (field.offset >= ints.size()) {
            break;
        }
        std::int32_t& value = ints[field.offset];
        if (field.merge == FieldMerge::about_viewer ||
            (field.merge == FieldMerge::race_timer && is_race)) {
            value = 0;
        } else if (field.merge == FieldMerge::watched_flag) {
            value = clear_bit(kWatchingBit, value);
        } else if (field.merge == FieldMerge::race_flags) {
            value = clear_bit(kRaceBit, value);
        }
    }
}

/// Compares `first` with another item that has the same key. Returns whether they are equal, apart
/// from ints whose differences are ignored.
bool has_equal_compared_ints(const MergedItem& first, Ints other) {
    const MergeRules& how = *first.rules;
    bool is_same =
        how.merges_by_field && first.data.size() == other.size() && other.size() <= kMaskBits;
    for (std::size_t i = 0; i < other.size() && is_same; ++i) {
        is_same = first.data[i] == other[i] ||
                  (how.compared_ints & record::ItemSightings::int_bit(i)) == 0;
    }
    return is_same;
}

} // namespace

MergeRules::MergeRules(const ObjectSpec& object)
    : merges_by_field{object.merge.family == ObjectFamily::none &&
                      !object.merge.prefer_known_client} {
    for (const FieldSpec& field : object.fields) {
        owner_only_ints |=
            is_sent_to_owner_only(field.merge) ? record::ItemSightings::int_bit(field.offset) : 0;
        for (std::size_t i = 0; i < field.count && !may_differ_between_views(field.merge); ++i) {
            compared_ints |= record::ItemSightings::int_bit(field.offset + i);
        }
        has_viewer_dependent_ints =
            has_viewer_dependent_ints || field.merge == FieldMerge::about_viewer ||
            field.merge == FieldMerge::watched_flag || field.merge == FieldMerge::race_flags;
        if (has_best_value_in_owners_view(object, field.merge)) {
            own_fields.push_back(&field);
        }
    }
}

void ViewMerger::begin_merge(std::span<const View> views, const record::ItemTypes& types,
                             std::vector<ViewDifference>* differences) {
    views_ = views;
    types_ = &types;
    differences_ = differences;
    sessions_.clear();
    for (const View& view : views) {
        sessions_.push_back(view.session);
    }
    std::ranges::sort(sessions_);
    session_indices_.clear();
    for (const View& view : views) {
        session_indices_.push_back(static_cast<std::size_t>(
            std::ranges::lower_bound(sessions_, view.session) - sessions_.begin()));
    }
    session_masks_.begin_tick(views.size());
    merged_items_.clear();
    replacements_.clear();
    patches_.clear();
    dragger_conflicts_.clear();
}

void ViewMerger::merge_views(std::span<const View> views, const record::ItemTypes& types,
                             DraggerBeams& beams, std::vector<ViewDifference>* differences) {
    begin_merge(views, types, differences);
    for (std::uint32_t view = 0; view < views.size(); ++view) {
        add_view(view);
    }
    drop_older_object_forms();
    beams.unify_beam_ids(merged_items_, dragger_conflicts_, session_masks_);
    copy_own_fields();
    write_items();
}

const MergeRules& ViewMerger::merge_rules_of(const ObjectSpec* object) {
    static const ObjectSpec unknown{};
    return merge_rules_.try_emplace(object, object == nullptr ? unknown : *object).first->second;
}

MergedItem ViewMerger::make_merged_item(ItemRef ref, const ObjectSpec* object) {
    const ItemView it = item_at(ref);
    const std::uint32_t seen = session_masks_.add_empty_mask();
    session_masks_.set_session_bit(seen, session_indices_[ref.view]);
    return {.key = it.key.packed(),
            .source = ref,
            .session_mask = seen,
            .data = it.data,
            .object = object,
            .rules = &merge_rules_of(object)};
}

void ViewMerger::add_view(std::uint32_t view) {
    const snapshot::SnapshotView items = views_[view].items; // a copy is faster to access
    const std::size_t slot = session_indices_[view];
    added_items_.clear();
    const MergedItem* at = merged_items_.data();
    const MergedItem* const end = at + merged_items_.size();
    std::uint32_t begin = 0; // index of the item's first int
    for (std::uint32_t i = 0; i < items.size(); ++i) {
        const std::uint32_t key = items.keys()[i];
        const Ints data = items.data().subspan(begin, items.ends()[i] - begin);
        begin = items.ends()[i];
        while (at != end && at->key < key) {
            ++at;
        }
        if (at == end || at->key != key) {
            const ObjectSpec* const object = types_->object(ItemKey::from_packed(key).type);
            if (object == nullptr || !object->merge.per_session) {
                added_items_.push_back(make_merged_item({view, i}, object));
            }
        } else if (snapshot::same_ints(at->data, data) || merge_item(*at, {view, i})) {
            session_masks_.set_session_bit(at->session_mask, slot);
        }
    }
    const auto middle = static_cast<std::ptrdiff_t>(merged_items_.size());
    merged_items_.insert(merged_items_.end(), added_items_.begin(), added_items_.end());
    std::ranges::inplace_merge(merged_items_, merged_items_.begin() + middle, {}, &MergedItem::key);
}

bool ViewMerger::choose_whole_item(const MergedItem& first, ItemRef other, bool takes_other) {
    if (takes_other) {
        // The first of several replacements is kept, because its view has the most information.
        replacements_.emplace(first.key, other);
    }
    return true;
}

bool ViewMerger::choose_item_by_switch(const MergedItem& first, ItemRef other) {
    const ObjectSpec& object = *first.object;
    const Ints left = first.data;
    const Ints right = item_at(other).data;
    if (may_be_switched(object, left) && may_be_switched(object, right) &&
        is_switched_off(left) != is_switched_off(right)) {
        return choose_whole_item(first, other, is_switched_off(left));
    }
    const auto is_old_door = [&](ItemRef ref, Ints data) {
        return views_[ref.view].client_version < kFirstVersionWithSwitches && is_door(object, data);
    };
    return is_old_door(first.source, left) && is_old_door(other, right) &&
           have_same_end(left, right);
}

bool ViewMerger::choose_item_by_rule(const MergedItem& first, ItemRef other) {
    const ObjectSpec& object = *first.object;
    const Ints left = first.data;
    const Ints right = item_at(other).data;
    if (choose_item_by_switch(first, other)) {
        return true;
    }
    if (object.merge.family == ObjectFamily::projectile) {
        const int unit = units_per_position(object, left);
        const int other_unit = units_per_position(object, right);
        if (unit != other_unit) {
            return choose_whole_item(first, other, unit < other_unit);
        }
    }
    if (object.merge.prefer_known_client) {
        const bool knows = value_of_field_with_rule(object, FieldMerge::client_id, left) >= 0;
        const bool other_knows =
            value_of_field_with_rule(object, FieldMerge::client_id, right) >= 0;
        if (knows != other_knows) {
            return choose_whole_item(first, other, other_knows);
        }
    }
    // A longer item has more fields, so it is preferred.
    choose_whole_item(first, other, left.size() < right.size());
    return false;
}

bool ViewMerger::merge_item(const MergedItem& first, ItemRef other) {
    const Ints left = first.data;
    const Ints right = item_at(other).data;
    if (first.object == nullptr || has_equal_compared_ints(first, right)) {
        return true;
    }
    if (is_dragger(*first.object, left) || is_dragger(*first.object, right)) {
        dragger_conflicts_.push_back(make_merged_item(other, first.object));
        return false;
    }
    if (!choose_item_by_rule(first, other)) {
        const std::size_t both = std::min(left.size(), right.size());
        for (const FieldSpec& field : first.object->fields) {
            const bool is_same = field.count == 1 && field.offset < both &&
                                 left[field.offset] == right[field.offset];
            if (!is_same) {
                merge_field(field, first, other);
            }
        }
    }
    return true;
}

void ViewMerger::merge_field(const FieldSpec& field, const MergedItem& first, ItemRef other) {
    const Ints left = first.data;
    const Ints right = item_at(other).data;
    const std::size_t end = std::size_t{field.offset} + field.count;
    if (end > left.size() || end > right.size()) {
        return;
    }
    const auto [at, other_at] =
        std::mismatch(left.begin() + field.offset, left.begin() + static_cast<std::ptrdiff_t>(end),
                      right.begin() + field.offset);
    const auto offset = static_cast<std::size_t>(at - left.begin());
    if (offset == end ||
        (missing_int_mask(other) & record::ItemSightings::int_bit(field.offset)) != 0) {
        return;
    }
    const MergeDecision decision = decide_field_merge(field.merge, first, other, *at, *other_at);
    if (decision.takes_other) {
        patches_.push_back({first.key, field.offset, kOwnerRank, *other_at});
    }
    if (decision.takes_greater && *other_at > *at) {
        patches_.push_back({first.key, field.offset, kGreatestValueRank, *other_at});
    }
    if (decision.differs) {
        report_difference(field, first, other, offset);
    }
}

ViewMerger::MergeDecision ViewMerger::decide_field_merge(FieldMerge merge, const MergedItem& first,
                                                         ItemRef other, std::int32_t value,
                                                         std::int32_t other_value) const {
    const View& view = views_[first.source.view];
    const View& other_view = views_[other.view];
    switch (merge) {
    case FieldMerge::same_for_all:
        return {.differs = true};
    case FieldMerge::client_id: {
        const bool nobody_is_unknown =
            view.has_ids_of_all_players() && other_view.has_ids_of_all_players();
        return {.takes_other = value < 0,
                .differs = nobody_is_unknown || (value >= 0 && other_value >= 0)};
    }
    case FieldMerge::greatest:
        return {.takes_greater = !other_view.has_translated_ids};
    case FieldMerge::scoreboard:
        return {.takes_other = other_view.shows_scoreboard && !view.shows_scoreboard,
                .takes_greater = !other_view.shows_scoreboard && !view.shows_scoreboard};
    case FieldMerge::race_flags:
        return {.takes_other = has_race_bit(value) && !has_race_bit(other_value),
                .differs = clear_bit(kRaceBit, value) != clear_bit(kRaceBit, other_value)};
    case FieldMerge::race_timer: {
        const auto is_racing = [&](Ints data) {
            return has_race_bit(
                value_of_field_with_rule(*first.object, FieldMerge::race_flags, data));
        };
        const bool racing = is_racing(first.data);
        const bool other_racing = is_racing(item_at(other).data);
        return {.takes_other = racing && !other_racing, .differs = !racing && !other_racing};
    }
    case FieldMerge::untranslated:
        return {.takes_other = view.has_translated_ids && !other_view.has_translated_ids};
    case FieldMerge::varies:
    case FieldMerge::own:
    case FieldMerge::own_first:
    case FieldMerge::about_viewer:
    case FieldMerge::watched_flag:
    case FieldMerge::per_viewer:
        break;
    }
    return {};
}

std::uint32_t ViewMerger::missing_int_mask(ItemRef ref) const {
    const auto& bits = views_[ref.view].missing_ints;
    return bits.empty() ? 0 : bits[ref.item];
}

void ViewMerger::report_difference(const FieldSpec& field, const MergedItem& first, ItemRef other,
                                   std::size_t offset) {
    const View& left = views_[first.source.view];
    const View& right = views_[other.view];
    if (differences_ == nullptr || left.has_translated_ids || right.has_translated_ids ||
        client_version_class(left.client_version) != client_version_class(right.client_version)) {
        return;
    }
    const auto bit = record::ItemSightings::int_bit(field.offset);
    const bool across = left.dialect != right.dialect;
    if ((missing_int_mask(first.source) & bit) != 0 ||
        (across &&
         (SevenToSixTranslator::comparable_int_mask(ItemKey::from_packed(first.key).type) & bit) ==
             0)) {
        return;
    }
    differences_->push_back({.key = ItemKey::from_packed(first.key),
                             .object = first.object,
                             .field = &field,
                             .value = item_at(other).data[offset],
                             .other_value = first.data[offset],
                             .session = right.session,
                             .other_session = left.session});
}

void ViewMerger::drop_older_object_forms() {
    const auto is_form = [](const MergedItem& item) {
        return item.object != nullptr && item.object->merge.family != ObjectFamily::none;
    };
    // Servers send the objects of a family (such as lasers) in the form that the client's version
    // knows. If all clients have the same version, no family has two forms.
    std::array<std::optional<std::uint8_t>, 4> forms; // for each family, the form seen last
    bool is_mixed = false;
    for (const MergedItem& item : merged_items_) {
        if (is_form(item)) {
            auto& form = forms.at(static_cast<std::size_t>(item.object->merge.family));
            is_mixed =
                is_mixed || form.value_or(item.object->merge.variant) != item.object->merge.variant;
            form = item.object->merge.variant;
        }
    }
    if (!is_mixed) {
        return;
    }
    std::map<std::pair<ObjectFamily, std::uint16_t>, MergedItem> best;
    const auto key_of = [](const MergedItem& item) {
        return std::pair{item.object->merge.family, item.id()};
    };
    for (const MergedItem& item : merged_items_) {
        if (!is_form(item)) {
            continue;
        }
        const auto [known, added] = best.try_emplace(key_of(item), item);
        if (!added && item.object->merge.variant < known->second.object->merge.variant) {
            known->second = item;
        }
    }
    std::erase_if(merged_items_, [&](const MergedItem& item) {
        if (!is_form(item)) {
            return false;
        }
        const MergedItem& kept = best.at(key_of(item));
        session_masks_.merge_masks(kept.session_mask, item.session_mask);
        return kept.object != item.object;
    });
}

void ViewMerger::copy_own_fields_from_view(std::uint32_t view, ItemKey key, const MergeRules& rules,
                                           bool own) {
    const auto at = views_[view].items.find(key);
    if (!at) {
        return;
    }
    const Ints data = views_[view].items[*at].data;
    const std::uint32_t missing_ints = missing_int_mask({view, static_cast<std::uint32_t>(*at)});
    for (const FieldSpec* const field : rules.own_fields) {
        const bool is_told = (missing_ints & record::ItemSightings::int_bit(field->offset)) == 0;
        if ((own || field->merge == FieldMerge::own) && is_told && field->offset < data.size()) {
            patches_.push_back({key.packed(), field->offset, own ? kOwnerRank : kSpectatorRank,
                                data[field->offset]});
        }
    }
}

/// Takes the fields in MergeRules::own_fields of each player's items from the views of the player's
/// client and of clients that spectate the player.
void ViewMerger::copy_own_fields() {
    const ObjectSpec* last = nullptr;
    for (const MergedItem& merged : merged_items_) {
        if (merged.object == std::exchange(last, merged.object) ||
            merged.rules->own_fields.empty()) {
            continue;
        }
        const std::uint16_t type = ItemKey::from_packed(merged.key).type;
        for (std::uint32_t view = 0; view < views_.size(); ++view) {
            if (const auto client = views_[view].own_client_id) {
                copy_own_fields_from_view(view, {type, *client}, *merged.rules, true);
            }
            if (const auto client = views_[view].spectated_client_id) {
                copy_own_fields_from_view(view, {type, *client}, *merged.rules, false);
            }
        }
    }
}

std::uint32_t ViewMerger::write_item(const MergedItem& merged) {
    // Replacements and patches are stored by the item's original key, because unify_beam_ids() may
    // change the id of a beam.
    const std::uint32_t key = item_at(merged.source).key.packed();
    const auto by = replacements_.find(key);
    const ItemRef ref = by == replacements_.end() ? merged.source : by->second;
    const std::span<std::int32_t> ints =
        result_.append(ItemKey::from_packed(merged.key), item_at(ref).data);
    std::uint32_t missing_ints = missing_int_mask(ref) | merged.rules->owner_only_ints;
    std::optional<std::uint8_t> last;
    for (auto at = std::ranges::lower_bound(patches_, key, {}, &ValuePatch::key);
         at != patches_.end() && at->key == key; ++at) {
        if (std::exchange(last, at->offset) != at->offset && at->offset < ints.size()) {
            ints[at->offset] = at->value;
            missing_ints &= ~record::ItemSightings::int_bit(at->offset);
        }
    }
    if (merged.rules->has_viewer_dependent_ints) {
        clear_viewer_dependent_ints(*merged.object, ints);
    }
    return missing_ints;
}

void ViewMerger::write_items() {
    // write_item() uses the first patch of each int. Patches with the rank kGreatestValueRank are
    // sorted by value, the greatest first. Other patches with equal ranks keep their order.
    std::ranges::stable_sort(patches_, [](const ValuePatch& left, const ValuePatch& right) {
        const auto order = [](const ValuePatch& patch) {
            return std::tuple{patch.key, patch.offset, patch.rank,
                              patch.rank == kGreatestValueRank ? -std::int64_t{patch.value} : 0};
        };
        return order(left) < order(right);
    });
    result_.clear();
    missing_ints_.clear();
    mask_words_.clear();
    for (const MergedItem& item : merged_items_) {
        missing_ints_.push_back(write_item(item));
        const auto mask = session_masks_.mask(item.session_mask);
        mask_words_.insert(mask_words_.end(), mask.begin(), mask.end());
    }
    sightings_ = {.sessions = sessions_,
                  .bits = mask_words_,
                  .words_per_item = session_masks_.words_per_mask(),
                  .missing_ints = missing_ints_};
}

} // namespace tw::world
