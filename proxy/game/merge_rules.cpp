#include "proxy/game/merge_rules.h"

#include "proxy/record/records.h"

#include <algorithm>

namespace tw::game {

using snapshot::FieldMerge;
using snapshot::FieldSpec;
using snapshot::ObjectSpec;

namespace {

/// "racetime" of gamestateflag: the timer is the viewer's.
constexpr std::uint32_t kRaceBit = 8;

/// "watching" of 0.7's playerflag: the viewer watches the player.
constexpr std::uint32_t kWatchingBit = 0x20;

std::int32_t without(std::uint32_t bit, std::int32_t flags) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(flags) & ~bit);
}

/// Whether two views may have the field differently, and it says nothing.
bool is_silent(FieldMerge merge) {
    return merge == FieldMerge::varies || merge == FieldMerge::own ||
           merge == FieldMerge::own_first || merge == FieldMerge::viewer ||
           merge == FieldMerge::watched_flag || merge == FieldMerge::per_viewer;
}

/// Whether only some views tell the field, and nobody tells it of all items.
bool is_private(FieldMerge merge) {
    return merge == FieldMerge::own || merge == FieldMerge::per_viewer;
}

/// Whether the view of the item's own player says the field better than all others.
bool is_told_by_owner(const ObjectSpec& object, FieldMerge merge) {
    const bool id_is_client = object.client && !object.client->field;
    return merge == FieldMerge::own || merge == FieldMerge::own_first ||
           (merge == FieldMerge::per_viewer && id_is_client);
}

} // namespace

MergeRules::MergeRules(const ObjectSpec& object)
    : by_fields{object.merge.family == snapshot::Family::none && !object.merge.whole} {
    for (const FieldSpec& field : object.fields) {
        own |= is_private(field.merge) ? record::Sightings::bit(field.offset) : 0;
        for (std::size_t i = 0; i < field.count && !is_silent(field.merge); ++i) {
            telling |= record::Sightings::bit(field.offset + i);
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

} // namespace tw::game
