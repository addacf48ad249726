#include "proxy/world/item_merge.h"

#include "proxy/world/seven_as_six.h"

#include <algorithm>

namespace tw::world {

using snapshot::FieldMerge;
using snapshot::FieldSpec;
using snapshot::ItemKey;
using snapshot::ItemView;
using snapshot::ObjectFamily;
using snapshot::ObjectSpec;

namespace {

using Ints = std::span<const std::int32_t>;

/// Offsets of ints in a ddnet_laser. The older laser object does not contain the kind.
constexpr std::size_t kLaserOwner = 5;
constexpr std::size_t kKind = 6;

constexpr std::int32_t kDoor = 2;
constexpr std::int32_t kLight = 3;
constexpr std::int32_t kDragger = 4;

/// Number of ints for the two end points of a laser. The old and the new laser object begin with
/// them.
constexpr std::size_t kEnds = 4;

/// The bit "racetime" of gamestateflag: the timer shows the viewer's race time.
constexpr std::uint32_t kRaceBit = 8;

/// The bit "watching" of 0.7's playerflag: the viewer spectates the player.
constexpr std::uint32_t kWatchingBit = 0x20;

/// Ranks of patched values. Of several values for an int, the one with the lowest rank is used.
constexpr std::uint8_t kKnown = 0;
constexpr std::uint8_t kWatched = 1;
constexpr std::uint8_t kGreatest = 2;

/// The number of ints that the mask MergeRules::compared has bits for.
constexpr std::size_t kMaskedInts = 32;

/// Clients from this version on receive switch states. To older clients, the server sends doors and
/// similar items in the state of the viewer's team.
constexpr std::int32_t kKnowsSwitches = 16200;

bool is_of_kind(const ObjectSpec& object, Ints data, std::int32_t kind) {
    return object.merge.family == ObjectFamily::laser && object.merge.form == 0 &&
           data.size() > kKind && data[kKind] == kind;
}

bool is_door(const ObjectSpec& object, Ints data) {
    return is_of_kind(object, data, kDoor);
}

/// Returns whether the item may be switched off in some views and on in others.
bool may_be_switched(const ObjectSpec& object, Ints data) {
    const bool is_old_form = object.merge.family == ObjectFamily::laser && object.merge.form != 0 &&
                             data.size() >= kEnds;
    return is_old_form || is_of_kind(object, data, kLight);
}

/// Returns whether a light or door is switched off for the viewer's team: its two end points are
/// equal.
bool is_dark(Ints laser) {
    return laser[0] == laser[2] && laser[1] == laser[3];
}

/// Returns whether two doors have the same end point.
bool is_same_end(Ints laser, Ints other) {
    return laser[0] == other[0] && laser[1] == other[1];
}

std::int32_t without(std::uint32_t bit, std::int32_t flags) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(flags) & ~bit);
}

bool has_race_bit(std::int32_t flags) {
    return (static_cast<std::uint32_t>(flags) & kRaceBit) != 0;
}

/// Returns whether views may have different values of the field without a report.
bool may_differ(FieldMerge merge) {
    return merge == FieldMerge::varies || merge == FieldMerge::own ||
           merge == FieldMerge::own_first || merge == FieldMerge::viewer ||
           merge == FieldMerge::watched_flag || merge == FieldMerge::per_viewer;
}

/// Returns whether the server sends the field to some viewers only.
bool is_private(FieldMerge merge) {
    return merge == FieldMerge::own || merge == FieldMerge::per_viewer;
}

/// Returns whether the view of the item's player has a better value of the field than other views.
bool is_told_by_owner(const ObjectSpec& object, FieldMerge merge) {
    const bool id_is_client = object.client && !object.client->field;
    return merge == FieldMerge::own || merge == FieldMerge::own_first ||
           (merge == FieldMerge::per_viewer && id_is_client);
}

/// Returns the value of the object's first field with this merge rule; 0 if it has no such field.
std::int32_t value_of(const ObjectSpec& object, FieldMerge how, Ints data) {
    const auto field = std::ranges::find(object.fields, how, &FieldSpec::merge);
    return field != object.fields.end() && field->offset < data.size() ? data[field->offset] : 0;
}

int position_unit(const ObjectSpec& object, Ints data) {
    const auto position = snapshot::position_of(object, data);
    return position ? position->per_unit : 0;
}

/// Clears the ints of an item that depend on the viewer.
void clear_viewers_fields(const ObjectSpec& object, std::span<std::int32_t> ints) {
    // The flags say whether the timer is the viewer's own.
    const bool is_race = has_race_bit(value_of(object, FieldMerge::race_flags, ints));
    for (const FieldSpec& field : object.fields) {
        if (field.offset >= ints.size()) {
            break;
        }
        std::int32_t& value = ints[field.offset];
        if (field.merge == FieldMerge::viewer ||
            (field.merge == FieldMerge::race_timer && is_race)) {
            value = 0;
        } else if (field.merge == FieldMerge::watched_flag) {
            value = without(kWatchingBit, value);
        } else if (field.merge == FieldMerge::race_flags) {
            value = without(kRaceBit, value);
        }
    }
}

} // namespace

bool is_dragger(const ObjectSpec& object, Ints data) {
    return is_of_kind(object, data, kDragger);
}

bool is_beam(const ObjectSpec& object, Ints data) {
    return is_dragger(object, data) && data[kLaserOwner] >= 0;
}

MergeRules::MergeRules(const ObjectSpec& object)
    : by_fields{object.merge.family == ObjectFamily::none && !object.merge.whole} {
    for (const FieldSpec& field : object.fields) {
        own |= is_private(field.merge) ? record::Sightings::bit(field.offset) : 0;
        for (std::size_t i = 0; i < field.count && !may_differ(field.merge); ++i) {
            compared |= record::Sightings::bit(field.offset + i);
        }
        of_viewer = of_viewer || field.merge == FieldMerge::viewer ||
                    field.merge == FieldMerge::watched_flag ||
                    field.merge == FieldMerge::race_flags;
        if (is_told_by_owner(object, field.merge)) {
            own_fields.push_back(&field);
        }
    }
}

void ItemMerger::begin(std::span<const View> views, const record::TypeNames& types,
                       std::vector<Difference>* differences) {
    views_ = views;
    types_ = &types;
    differences_ = differences;
    type_.reset();
    patches_.clear();
    greatest_.clear();
    replacements_.clear();
    beams_.clear();
}

const ObjectSpec* ItemMerger::object_of_type(std::uint16_t type) {
    if (type_ != type) {
        type_ = type;
        object_ = types_->object(type);
    }
    return object_;
}

const MergeRules& ItemMerger::rules_of(const ObjectSpec* object) {
    if (rules_ == nullptr || ruled_ != object) {
        static const ObjectSpec unknown{};
        ruled_ = object;
        rules_ =
            &all_rules_.try_emplace(object, object == nullptr ? unknown : *object).first->second;
    }
    return *rules_;
}

void ItemMerger::replace_item(ItemKey key, ItemRef by) {
    replacements_.push_back({.key = key.packed(), .ref = by});
}

bool ItemMerger::merge_by_switches(const ObjectSpec& object, ItemRef first, ItemRef other) {
    const ItemView left = item(first);
    const ItemView right = item(other);
    if (may_be_switched(object, left.data) && may_be_switched(object, right.data) &&
        is_dark(left.data) != is_dark(right.data)) {
        if (is_dark(left.data)) {
            replace_item(left.key, other);
        }
        return true;
    }
    const auto is_old_door = [&](ItemRef ref) {
        return views_[ref.view].version < kKnowsSwitches && is_door(object, item(ref).data);
    };
    return is_old_door(first) && is_old_door(other) && is_same_end(left.data, right.data);
}

bool ItemMerger::merge_as_whole(const ObjectSpec& object, ItemRef first, ItemRef other) {
    const ItemView left = item(first);
    const ItemView right = item(other);
    if (merge_by_switches(object, first, other)) {
        return true;
    }
    if (object.merge.family == ObjectFamily::projectile) {
        const int unit = position_unit(object, left.data);
        const int other_unit = position_unit(object, right.data);
        if (unit != other_unit) {
            if (unit < other_unit) {
                replace_item(left.key, other);
            }
            return true;
        }
    }
    if (object.merge.whole) {
        const bool knows = value_of(object, FieldMerge::client, left.data) >= 0;
        const bool other_knows = value_of(object, FieldMerge::client, right.data) >= 0;
        if (knows != other_knows) {
            if (other_knows) {
                replace_item(left.key, other);
            }
            return true;
        }
    }
    if (left.data.size() < right.data.size()) {
        replace_item(left.key, other); // `other` is from a newer server version, with more fields
    }
    return false;
}

bool ItemMerger::is_same_item(ItemRef first, ItemRef other) {
    const ItemView left = item(first);
    const Ints right = item(other).data;
    const ObjectSpec* const spec = object_of_type(left.key.type);
    if (spec == nullptr || left.data.size() != right.size() || right.size() > kMaskedInts) {
        return false;
    }
    const MergeRules& how = rules_of(spec);
    bool is_same = how.by_fields;
    for (std::size_t i = 0; i < right.size() && is_same; ++i) {
        is_same = left.data[i] == right[i] || (how.compared & record::Sightings::bit(i)) == 0;
    }
    return is_same;
}

bool ItemMerger::merge_different_items(ItemRef first, ItemRef other) {
    const ItemKey key = item(first).key;
    const ObjectSpec* const spec = object_of_type(key.type);
    if (spec == nullptr || spec->merge.per_session) {
        return true;
    }
    if (is_dragger(*spec, item(first).data) || is_dragger(*spec, item(other).data)) {
        beams_.push_back(other);
        return false;
    }
    if (!merge_as_whole(*spec, first, other)) {
        const Ints left = item(first).data;
        const Ints right = item(other).data;
        const std::size_t both = std::min(left.size(), right.size());
        for (const FieldSpec& field : spec->fields) {
            const bool is_same = field.count == 1 && field.offset < both &&
                                 left[field.offset] == right[field.offset];
            if (!is_same) {
                merge_field(field, *spec, first, other);
            }
        }
    }
    return true;
}

void ItemMerger::merge_field(const FieldSpec& field, const ObjectSpec& object, ItemRef first,
                             ItemRef other) {
    const ItemView left = item(first);
    const ItemView right = item(other);
    const std::size_t end = std::size_t{field.offset} + field.count;
    if (end > left.data.size() || end > right.data.size()) {
        return;
    }
    const auto [at, other_at] = std::mismatch(left.data.begin() + field.offset,
                                              left.data.begin() + static_cast<std::ptrdiff_t>(end),
                                              right.data.begin() + field.offset);
    const auto offset = static_cast<std::size_t>(at - left.data.begin());
    if (offset == end || (untold_ints(other) & record::Sightings::bit(field.offset)) != 0) {
        return;
    }
    const MergeDecision meaning = decide_merge(field.merge, object, first, other, *at, *other_at);
    if (meaning.others) {
        patches_.push_back({left.key.packed(), field.offset, kKnown, *other_at});
    }
    if (meaning.greater) {
        use_greatest_value(left.key, field.offset, *at, *other_at);
    }
    if (meaning.differs) {
        report_difference(field, object, first, other, offset);
    }
}

ItemMerger::MergeDecision ItemMerger::decide_merge(FieldMerge merge, const ObjectSpec& object,
                                                   ItemRef first, ItemRef other, std::int32_t value,
                                                   std::int32_t others) const {
    const View& view = views_[first.view];
    const View& other_view = views_[other.view];
    switch (merge) {
    case FieldMerge::any:
        return {.differs = true};
    case FieldMerge::client: {
        const bool nobody_is_unknown = view.knows_all_players() && other_view.knows_all_players();
        return {.others = value < 0, .differs = nobody_is_unknown || (value >= 0 && others >= 0)};
    }
    case FieldMerge::greatest:
        return {.greater = !other_view.translated};
    case FieldMerge::scoreboard:
        return {.others = other_view.scoreboard && !view.scoreboard,
                .greater = !other_view.scoreboard && !view.scoreboard};
    case FieldMerge::race_flags:
        return {.others = has_race_bit(value) && !has_race_bit(others),
                .differs = without(kRaceBit, value) != without(kRaceBit, others)};
    case FieldMerge::race_timer: {
        const auto is_racing = [&](ItemRef ref) {
            return has_race_bit(value_of(object, FieldMerge::race_flags, item(ref).data));
        };
        const bool racing = is_racing(first);
        const bool other_racing = is_racing(other);
        return {.others = racing && !other_racing, .differs = !racing && !other_racing};
    }
    case FieldMerge::untranslated:
        return {.others = view.translated && !other_view.translated};
    case FieldMerge::varies:
    case FieldMerge::own:
    case FieldMerge::own_first:
    case FieldMerge::viewer:
    case FieldMerge::watched_flag:
    case FieldMerge::per_viewer:
        break;
    }
    return {};
}

std::uint32_t ItemMerger::untold_ints(ItemRef ref) const {
    const auto& bits = views_[ref.view].untold;
    return bits.empty() ? 0 : bits[ref.item];
}

void ItemMerger::use_greatest_value(ItemKey key, std::uint8_t offset, std::int32_t first,
                                    std::int32_t other) {
    if (other <= first) {
        return;
    }
    const auto [found, added] =
        greatest_.try_emplace(std::uint64_t{key.packed()} << 8U | offset, patches_.size());
    if (added) {
        patches_.push_back({key.packed(), offset, kGreatest, other});
    } else {
        ValuePatch& patch = patches_[found->second];
        patch.value = std::max(patch.value, other);
    }
}

void ItemMerger::report_difference(const FieldSpec& field, const ObjectSpec& object, ItemRef first,
                                   ItemRef other, std::size_t offset) {
    const View& left = views_[first.view];
    const View& right = views_[other.view];
    if (differences_ == nullptr || left.translated || right.translated ||
        version_class(left.version) != version_class(right.version)) {
        return;
    }
    const auto bit = record::Sightings::bit(field.offset);
    const bool across = left.dialect != right.dialect;
    if ((untold_ints(first) & bit) != 0 ||
        (across && (SevenToSixTranslator::comparable_ints(item(first).key.type) & bit) == 0)) {
        return;
    }
    differences_->push_back({.key = item(first).key,
                             .object = &object,
                             .field = &field,
                             .value = item(other).data[offset],
                             .other = item(first).data[offset],
                             .session = right.session,
                             .other_session = left.session});
}

void ItemMerger::take_own_fields(ItemRef ref, OwnFields fields, bool own) {
    const ItemView told = item(ref);
    const std::uint32_t unknown = untold_ints(ref);
    for (const FieldSpec* const field : fields) {
        const bool is_told = (unknown & record::Sightings::bit(field->offset)) == 0;
        if ((own || field->merge == FieldMerge::own) && is_told &&
            field->offset < told.data.size()) {
            patches_.push_back({told.key.packed(), field->offset, own ? kKnown : kWatched,
                                told.data[field->offset]});
        }
    }
}

void ItemMerger::finish() {
    const auto order = [](const ValuePatch& patch) {
        return std::uint64_t{patch.key} << 16U | std::uint64_t{patch.offset} << 8U | patch.rank;
    };
    if (!std::ranges::is_sorted(patches_, {}, order)) {
        std::ranges::stable_sort(patches_, {}, order);
    }
    std::ranges::stable_sort(replacements_, {}, &ItemReplacement::key);
}

ItemRef ItemMerger::replacement_of(ItemRef ref) const {
    if (replacements_.empty()) {
        return ref;
    }
    const std::uint32_t key = item(ref).key.packed();
    // If several items replace this one, the first comes from the view with the most information.
    const auto by = std::ranges::lower_bound(replacements_, key, {}, &ItemReplacement::key);
    return by != replacements_.end() && by->key == key ? by->ref : ref;
}

std::uint32_t ItemMerger::apply_patches(std::uint32_t key, std::span<std::int32_t> ints) const {
    std::uint32_t patched = 0;
    std::optional<std::uint8_t> last;
    auto at = std::ranges::lower_bound(patches_, key, {}, &ValuePatch::key);
    for (; at != patches_.end() && at->key == key; ++at) {
        if (at->offset != last && at->offset < ints.size()) {
            ints[at->offset] = at->value;
            patched |= record::Sightings::bit(at->offset);
        }
        last = at->offset;
    }
    return patched;
}

std::uint32_t ItemMerger::write_item(const MergedItem& merged, snapshot::Snapshot& to) {
    const ItemRef ref = replacement_of(merged.ref);
    const std::span<std::int32_t> ints = to.append(merged.key, item(ref).data);
    const std::uint32_t patched = apply_patches(item(merged.ref).key.packed(), ints);
    const MergeRules& how = rules_of(merged.object);
    if (how.of_viewer) {
        clear_viewers_fields(*merged.object, ints);
    }
    return (untold_ints(ref) | how.own) & ~patched;
}

} // namespace tw::world
