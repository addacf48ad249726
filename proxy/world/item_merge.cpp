#include "proxy/world/item_merge.h"

#include "proxy/record/records.h"
#include "proxy/world/seven_as_six.h"
#include "proxy/world/view.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace tw::world {

using snapshot::Family;
using snapshot::ObjectSpec;

namespace {

using Ints = std::span<const std::int32_t>;

/// Offsets of ints in a ddnet_laser.
constexpr std::size_t kLaserOwner = 5;
constexpr std::size_t kKind = 6;

constexpr std::int32_t kDoor = 2;
constexpr std::int32_t kLight = 3;
constexpr std::int32_t kDragger = 4;

/// Two ends with x and y each, in either form of a laser.
constexpr std::size_t kEnds = 4;

bool is_of_kind(const ObjectSpec& object, Ints data, std::int32_t kind) {
    return object.merge.family == Family::laser && object.merge.form == 0 && data.size() > kKind &&
           data[kKind] == kind;
}

} // namespace

bool is_door(const ObjectSpec& object, Ints data) {
    return is_of_kind(object, data, kDoor);
}

bool is_dragger(const ObjectSpec& object, Ints data) {
    return is_of_kind(object, data, kDragger);
}

bool is_beam(const ObjectSpec& object, Ints data) {
    return is_dragger(object, data) && data[kLaserOwner] >= 0;
}

bool may_be_switched(const ObjectSpec& object, Ints data) {
    const bool is_old_form =
        object.merge.family == Family::laser && object.merge.form != 0 && data.size() >= kEnds;
    return is_old_form || is_of_kind(object, data, kLight);
}

bool is_dark(Ints laser) {
    return laser[0] == laser[2] && laser[1] == laser[3];
}

bool is_same_end(Ints laser, Ints other) {
    return laser[0] == other[0] && laser[1] == other[1];
}

using snapshot::FieldMerge;
using snapshot::FieldSpec;
using snapshot::ObjectSpec;

namespace {

/// "racetime" of gamestateflag: the timer is the viewer's.
constexpr std::uint32_t kRaceBit = 8;

/// "watching" of 0.7's playerflag: the viewer spectates the player.
constexpr std::uint32_t kWatchingBit = 0x20;

std::int32_t without(std::uint32_t bit, std::int32_t flags) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(flags) & ~bit);
}

/// Whether different values of the field in two views are ignored.
bool is_silent(FieldMerge merge) {
    return merge == FieldMerge::varies || merge == FieldMerge::own ||
           merge == FieldMerge::own_first || merge == FieldMerge::viewer ||
           merge == FieldMerge::watched_flag || merge == FieldMerge::per_viewer;
}

/// Whether only some views contain the field.
bool is_private(FieldMerge merge) {
    return merge == FieldMerge::own || merge == FieldMerge::per_viewer;
}

/// Whether the view of the item's own player has the field's best value.
bool is_told_by_owner(const ObjectSpec& object, FieldMerge merge) {
    const bool id_is_client = object.client && !object.client->field;
    return merge == FieldMerge::own || merge == FieldMerge::own_first ||
           (merge == FieldMerge::per_viewer && id_is_client);
}

} // namespace

MergeRules::MergeRules(const ObjectSpec& object)
    : by_fields{object.merge.family == snapshot::Family::none && !object.merge.whole} {
    for (const FieldSpec& field : object.fields) {
        own |= is_private(field.merge) ? record::SeenBy::bit(field.offset) : 0;
        for (std::size_t i = 0; i < field.count && !is_silent(field.merge); ++i) {
            telling |= record::SeenBy::bit(field.offset + i);
        }
        of_viewer = of_viewer || field.merge == FieldMerge::viewer ||
                    field.merge == FieldMerge::watched_flag ||
                    field.merge == FieldMerge::race_flags;
        if (is_told_by_owner(object, field.merge)) {
            own_fields.push_back(&field);
        }
    }
}

std::optional<std::size_t> find_offset(const ObjectSpec& object, FieldMerge how) {
    const auto found = std::ranges::find(object.fields, how, &FieldSpec::merge);
    return found == object.fields.end() ? std::nullopt : std::optional<std::size_t>{found->offset};
}

bool has_race_bit(std::int32_t flags) {
    return (static_cast<std::uint32_t>(flags) & kRaceBit) != 0;
}

std::int32_t without_race_bit(std::int32_t flags) {
    return without(kRaceBit, flags);
}

void clear_viewers_fields(const ObjectSpec& object, std::span<std::int32_t> ints) {
    for (const FieldSpec& field : object.fields) {
        if (field.offset >= ints.size()) {
            break;
        }
        std::int32_t& value = ints[field.offset];
        if (field.merge == FieldMerge::viewer) {
            value = 0;
        } else if (field.merge == FieldMerge::watched_flag) {
            value = without(kWatchingBit, value);
        } else if (field.merge == FieldMerge::race_flags && has_race_bit(value)) {
            value = without_race_bit(value);
            if (const auto timer = find_offset(object, FieldMerge::race_timer);
                timer && *timer < ints.size()) {
                ints[*timer] = 0;
            }
        }
    }
}

using snapshot::Family;
using snapshot::FieldMerge;
using snapshot::FieldSpec;
using snapshot::ItemKey;
using snapshot::ItemView;
using snapshot::ObjectSpec;

namespace {

using Ints = std::span<const std::int32_t>;

/// Ranks of patched values; the lowest is used.
constexpr std::uint8_t kKnown = 0;
constexpr std::uint8_t kWatched = 1;
constexpr std::uint8_t kGreatest = 2;

/// Older clients do not receive switch states: the server sends them doors and similar items in the
/// state of the viewer's team.
constexpr std::int32_t kKnowsSwitches = 16200;

int position_unit(const ObjectSpec& object, Ints data) {
    const auto position = snapshot::position_of(object, data);
    return position ? position->per_unit : 0;
}

std::int32_t value_at(Ints data, std::optional<std::size_t> offset) {
    return offset && *offset < data.size() ? data[*offset] : 0;
}

} // namespace

void ItemMerge::begin(std::span<const View> views, const record::TypeNames& types,
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

const ObjectSpec* ItemMerge::object(std::uint16_t type) {
    if (type_ != type) {
        type_ = type;
        object_ = types_->object(type);
    }
    return object_;
}

const MergeRules& ItemMerge::rules(const ObjectSpec* object) {
    if (rules_ == nullptr || ruled_ != object) {
        static const ObjectSpec unknown{};
        ruled_ = object;
        rules_ =
            &all_rules_.try_emplace(object, object == nullptr ? unknown : *object).first->second;
    }
    return *rules_;
}

void ItemMerge::replace(ItemKey key, ItemRef by) {
    replacements_.push_back({.key = key.packed(), .ref = by});
}

bool ItemMerge::differ_by_switches(const ObjectSpec& object, ItemRef first, ItemRef other) {
    const ItemView left = item(first);
    const ItemView right = item(other);
    if (may_be_switched(object, left.data) && may_be_switched(object, right.data) &&
        is_dark(left.data) != is_dark(right.data)) {
        if (is_dark(left.data)) {
            replace(left.key, other);
        }
        return true;
    }
    const auto is_old_door = [&](ItemRef ref) {
        return views_[ref.view].version < kKnowsSwitches && is_door(object, item(ref).data);
    };
    return is_old_door(first) && is_old_door(other) && is_same_end(left.data, right.data);
}

bool ItemMerge::differ_as_whole(const ObjectSpec& object, ItemRef first, ItemRef other) {
    const ItemView left = item(first);
    const ItemView right = item(other);
    if (differ_by_switches(object, first, other)) {
        return true;
    }
    if (object.merge.family == Family::projectile) {
        const int unit = position_unit(object, left.data);
        const int other_unit = position_unit(object, right.data);
        if (unit != other_unit) {
            if (unit < other_unit) {
                replace(left.key, other);
            }
            return true;
        }
    }
    if (object.merge.whole) {
        const auto client = find_offset(object, FieldMerge::client);
        const bool knows = value_at(left.data, client) >= 0;
        const bool other_knows = value_at(right.data, client) >= 0;
        if (knows != other_knows) {
            if (other_knows) {
                replace(left.key, other);
            }
            return true;
        }
    }
    if (left.data.size() < right.data.size()) {
        replace(left.key, other); // sent by a newer server version, with more fields
    }
    return false;
}

bool ItemMerge::is_same_item(ItemRef first, ItemRef other) {
    const ItemView it = item(first);
    const Ints right = item(other).data;
    const ObjectSpec* const spec = object(it.key.type);
    if (spec != nullptr && it.data.size() == right.size() && right.size() <= kMaskedInts) {
        if (const MergeRules& how = rules(spec); how.by_fields) {
            return (differing_ints(it.data, right) & how.telling) == 0;
        }
    }
    return snapshot::same_ints(it.data, right);
}

bool ItemMerge::differ(ItemRef first, ItemRef other) {
    const ItemKey key = item(first).key;
    const ObjectSpec* const spec = object(key.type);
    if (spec == nullptr || spec->merge.per_session) {
        return true;
    }
    if (is_dragger(*spec, item(first).data) || is_dragger(*spec, item(other).data)) {
        beams_.push_back(other);
        return false;
    }
    if (!differ_as_whole(*spec, first, other)) {
        const Ints left = item(first).data;
        const Ints right = item(other).data;
        const std::size_t both = std::min(left.size(), right.size());
        for (const FieldSpec& field : spec->fields) {
            const bool is_same = field.count == 1 && field.offset < both &&
                                 left[field.offset] == right[field.offset];
            if (!is_same) {
                differ_in(field, *spec, first, other);
            }
        }
    }
    return true;
}

void ItemMerge::differ_in(const FieldSpec& field, const ObjectSpec& object, ItemRef first,
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
    if (offset == end || (untold(other) & record::SeenBy::bit(field.offset)) != 0) {
        return;
    }
    const Meaning meaning = judge(field.merge, object, first, other, *at, *other_at);
    if (meaning.others) {
        patches_.push_back({left.key.packed(), field.offset, kKnown, *other_at});
    }
    if (meaning.greater) {
        raise(left.key, field.offset, *at, *other_at);
    }
    if (meaning.differs) {
        report(field, object, first, other, offset);
    }
}

ItemMerge::Meaning ItemMerge::judge(FieldMerge merge, const ObjectSpec& object, ItemRef first,
                                    ItemRef other, std::int32_t value, std::int32_t others) const {
    const View& view = views_[first.view];
    const View& other_view = views_[other.view];
    switch (merge) {
    case FieldMerge::any:
        return {.differs = true};
    case FieldMerge::client: {
        const bool nobody_is_unknown = view.knows_all() && other_view.knows_all();
        return {.others = value < 0, .differs = nobody_is_unknown || (value >= 0 && others >= 0)};
    }
    case FieldMerge::greatest:
        return {.greater = !other_view.translated};
    case FieldMerge::scoreboard:
        return {.others = other_view.scoreboard && !view.scoreboard,
                .greater = !other_view.scoreboard && !view.scoreboard};
    case FieldMerge::race_flags:
        return {.others = has_race_bit(value) && !has_race_bit(others),
                .differs = without_race_bit(value) != without_race_bit(others)};
    case FieldMerge::race_timer: {
        const auto flags = find_offset(object, FieldMerge::race_flags);
        const bool racing = has_race_bit(value_at(item(first).data, flags));
        const bool other_racing = has_race_bit(value_at(item(other).data, flags));
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

std::uint32_t ItemMerge::untold(ItemRef ref) const {
    const auto& bits = views_[ref.view].untold;
    return bits.empty() ? 0 : bits[ref.item];
}

void ItemMerge::raise(ItemKey key, std::uint8_t offset, std::int32_t first, std::int32_t other) {
    if (other <= first) {
        return;
    }
    const auto [found, added] =
        greatest_.try_emplace(std::uint64_t{key.packed()} << 8U | offset, patches_.size());
    if (added) {
        patches_.push_back({key.packed(), offset, kGreatest, other});
    } else {
        Patch& patch = patches_[found->second];
        patch.value = std::max(patch.value, other);
    }
}

void ItemMerge::report(const FieldSpec& field, const ObjectSpec& object, ItemRef first,
                       ItemRef other, std::size_t offset) {
    const View& left = views_[first.view];
    const View& right = views_[other.view];
    if (differences_ == nullptr || left.translated || right.translated ||
        version_class(left.version) != version_class(right.version)) {
        return;
    }
    const auto bit = record::SeenBy::bit(field.offset);
    const bool across = left.dialect != right.dialect;
    if ((untold(first) & bit) != 0 ||
        (across && (SevenAsSix::comparable(item(first).key.type) & bit) == 0)) {
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

void ItemMerge::tell_own(ItemRef ref, OwnFields fields, bool own) {
    const ItemView told = item(ref);
    const std::uint32_t unknown = untold(ref);
    for (const FieldSpec* const field : fields) {
        const bool is_told = (unknown & record::SeenBy::bit(field->offset)) == 0;
        if ((own || field->merge == FieldMerge::own) && is_told &&
            field->offset < told.data.size()) {
            patches_.push_back({told.key.packed(), field->offset, own ? kKnown : kWatched,
                                told.data[field->offset]});
        }
    }
}

void ItemMerge::finish() {
    const auto order = [](const Patch& patch) {
        return std::uint64_t{patch.key} << 16U | std::uint64_t{patch.offset} << 8U | patch.rank;
    };
    if (!std::ranges::is_sorted(patches_, {}, order)) {
        std::ranges::stable_sort(patches_, {}, order);
    }
    std::ranges::stable_sort(replacements_, {}, &Replacement::key);
    next_patch_ = 0;
}

ItemRef ItemMerge::replaced(ItemRef ref) const {
    if (replacements_.empty()) {
        return ref;
    }
    const std::uint32_t key = item(ref).key.packed();
    // Of several, the first is from the view with the most information.
    const auto by = std::ranges::lower_bound(replacements_, key, {}, &Replacement::key);
    return by != replacements_.end() && by->key == key ? by->ref : ref;
}

std::uint32_t ItemMerge::patch(std::uint32_t key, std::span<std::int32_t> ints) {
    // Items are written by ascending key, except beams with changed ids.
    const bool goes_on = next_patch_ != 0 && patches_[next_patch_ - 1].key < key;
    if (!goes_on || next_patch_ == patches_.size() || patches_[next_patch_].key < key) {
        const auto from = patches_.begin() + static_cast<std::ptrdiff_t>(goes_on ? next_patch_ : 0);
        const auto at = std::ranges::lower_bound(from, patches_.end(), key, {}, &Patch::key);
        next_patch_ = static_cast<std::size_t>(at - patches_.begin());
    }
    std::uint32_t patched = 0;
    std::optional<std::uint8_t> last;
    for (; next_patch_ < patches_.size() && patches_[next_patch_].key == key; ++next_patch_) {
        const Patch& patch = patches_[next_patch_];
        if (patch.offset != last && patch.offset < ints.size()) {
            ints[patch.offset] = patch.value;
            patched |= record::SeenBy::bit(patch.offset);
        }
        last = patch.offset;
    }
    return patched;
}

/// How many of these items are consecutive in a base, as in the world.
std::size_t ItemMerge::count_plain(std::span<const MergedItem> items) {
    const ItemRef first = items.front().ref;
    if ((first.item & View::kOfBase) == 0 || !replacements_.empty()) {
        return 0;
    }
    std::size_t count = 0;
    for (; count < items.size() && items[count].ref.item == first.item + count; ++count) {
        const MergedItem& it = items[count];
        const MergeRules& how = rules(it.object);
        const bool is_as_told = how.own == 0 && !how.of_viewer && how.by_fields;
        if (!is_as_told || !views_[it.ref.view].untold.empty() || may_be_patched(it.key.packed())) {
            break;
        }
    }
    return count;
}

/// Whether the item may have patches. Precondition: items are written by ascending key.
bool ItemMerge::may_be_patched(std::uint32_t key) const {
    const bool is_behind_last = next_patch_ == 0 || patches_[next_patch_ - 1].key < key;
    const bool is_before_next = next_patch_ == patches_.size() || patches_[next_patch_].key > key;
    return !is_behind_last || !is_before_next;
}

std::uint32_t ItemMerge::write(const MergedItem& merged, snapshot::SnapshotWriter& to) {
    const ItemRef ref = replaced(merged.ref);
    const std::span<std::int32_t> ints = to.add(merged.key.packed(), item(ref).data);
    const std::uint32_t patched = patch(item(merged.ref).key.packed(), ints);
    const MergeRules& how = rules(merged.object);
    if (how.of_viewer) {
        clear_viewers_fields(*merged.object, ints);
    }
    return (untold(ref) | how.own) & ~patched;
}

void ItemMerge::write(std::span<const MergedItem> items, snapshot::Snapshot& to,
                      std::vector<std::uint32_t>& untold) {
    std::size_t num_ints = 0;
    for (const MergedItem& merged : items) {
        num_ints += item(replaced(merged.ref)).data.size();
    }
    snapshot::SnapshotWriter writer{to, items.size(), num_ints};
    untold.clear();
    while (!items.empty()) {
        if (const std::size_t count = count_plain(items); count != 0) {
            const ItemRef ref = items.front().ref;
            const std::uint32_t place = ref.item & ~View::kOfBase;
            const std::size_t begin = BasePlace::index_of(place);
            writer.copy(views_[ref.view].bases[BasePlace::base_of(place)], begin, begin + count);
            untold.insert(untold.end(), count, 0);
            items = items.subspan(count);
        } else {
            untold.push_back(write(items.front(), writer));
            items = items.subspan(1);
        }
    }
}

} // namespace tw::world
