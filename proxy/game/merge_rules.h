#pragma once

#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tw::game {

/// What an object's rules (snapshot::FieldMerge, snapshot::MergeSpec) say of all its items. Bits are of
/// their ints, as in record::Sightings.
struct MergeRules {
    explicit MergeRules(const snapshot::ObjectSpec& object);

    std::uint32_t own = 0; ///< that only who the item belongs to is told
    /// Two views may have all others differently, and it says nothing.
    std::uint32_t telling = 0;
    bool of_viewer = false; ///< some of it is the viewer's alone, and nobody's in a world
    bool by_fields = false; ///< each field for itself decides what stands in a world
    /// Those that the item's own player's view says better than all others.
    std::vector<const snapshot::FieldSpec*> own_fields{};
};

/// The int of the object's field that is merged in this way; nothing where it has none.
[[nodiscard]] std::optional<std::size_t> find_offset(const snapshot::ObjectSpec& object,
                                                     snapshot::FieldMerge how);

/// Of the flags that say whose timer it is.
[[nodiscard]] bool has_race_bit(std::int32_t flags);
[[nodiscard]] std::int32_t without_race_bit(std::int32_t flags);

/// Takes out of an item what is the viewer's alone.
void clear_viewers_fields(const snapshot::ObjectSpec& object, std::span<std::int32_t> ints);

} // namespace tw::game
