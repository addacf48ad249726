#pragma once

#include "proxy/record/records.h"
#include "proxy/world/difference_log.h"
#include "proxy/world/open_world.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace tw::world {

/// Returns whether the item is a dragger (a kind of laser), with or without a beam.
[[nodiscard]] bool is_dragger(const snapshot::ObjectSpec& object,
                              std::span<const std::int32_t> data);

/// Whether the item is a dragger's beam, which may have different ids in different views.
[[nodiscard]] bool is_beam(const snapshot::ObjectSpec& object, std::span<const std::int32_t> data);

/// An object's merge rules (snapshot::FieldMerge, snapshot::MergeSpec), as bit masks of the item's
/// ints. Bit i stands for int i, as in record::SeenBy.
struct MergeRules {
    explicit MergeRules(const snapshot::ObjectSpec& object);

    std::uint32_t own = 0; ///< ints that the server sends only to the client of the item's player
    /// Ints whose differences between views are reported. All other ints may differ.
    std::uint32_t compared = 0;
    bool of_viewer = false; ///< some ints depend on the viewer; worlds contain 0 for them
    bool by_fields = false; ///< each field is merged separately, instead of the item as a whole
    /// Fields that are taken from the view of the item's own player.
    std::vector<const snapshot::FieldSpec*> own_fields{};
};

/// A reference to an item in one of a tick's views.
struct ItemRef {
    std::uint32_t view = 0; ///< index of the view
    std::uint32_t item = 0; ///< index of the item in the view
};

/// An item that becomes part of a world.
struct MergedItem {
    snapshot::ItemKey key{};
    ItemRef ref{};                                ///< the item in the first view that has it
    std::span<const std::int32_t> data{};         ///< the item's ints in that view
    const snapshot::ObjectSpec* object = nullptr; ///< null: unknown type
    std::size_t seen = 0;                         ///< index of the item's mask in SeenMasks
};

/// Compares the versions of an item in the views of a tick and decides which values the world gets.
class ItemMerge {
  public:
    /// Starts with the views of a tick. `differences`: receives the pairs of values that contradict
    /// each other; may be null.
    void begin(std::span<const View> views, const record::TypeNames& types,
               std::vector<Difference>* differences);

    /// Merges two items with the same key and different ints. `first` is from the view with more
    /// information. Returns false if they are two different objects, so that they cannot be merged.
    [[nodiscard]] bool merge(ItemRef first, ItemRef other) {
        return is_same_item(first, other) || merge_different(first, other);
    }

    /// Fields of an object that are merged as FieldMerge::own or own_first.
    using OwnFields = std::span<const snapshot::FieldSpec* const>;

    /// Takes the values of these fields from a view's item. `own`: the view belongs to the item's
    /// player; if false, to a client that spectates the player.
    void take_own_fields(ItemRef ref, OwnFields fields, bool own);
    /// Ends the comparison of items; write_item() may then be called.
    void finish();

    [[nodiscard]] snapshot::ItemView item(ItemRef ref) const {
        return views_[ref.view].items[ref.item];
    }

    [[nodiscard]] const snapshot::ObjectSpec* object(std::uint16_t type);

    /// Appends an item to the world. Returns a bit mask of the ints whose value no view contains.
    /// Precondition: finish() was called.
    [[nodiscard]] std::uint32_t write_item(const MergedItem& merged, snapshot::Snapshot& to);

    /// The merge rules of an object; null for unknown objects.
    [[nodiscard]] const MergeRules& rules_of(const snapshot::ObjectSpec* object);

    /// Draggers and beams with an id that an earlier view uses for another object.
    [[nodiscard]] std::span<const ItemRef> differing_beams() const { return beams_; }

  private:
    /// A value that replaces the first view's value of an int.
    struct ValuePatch {
        std::uint32_t key = 0;
        std::uint8_t offset = 0;
        std::uint8_t rank = 0; ///< the patch with the lowest rank is used; if equal, the first
        std::int32_t value = 0;
    };

    /// An item that is written in place of the first view's item.
    struct ItemReplacement {
        std::uint32_t key = 0;
        ItemRef ref{};
    };

    /// Whether two items differ only in ints whose differences are ignored.
    [[nodiscard]] bool is_same_item(ItemRef first, ItemRef other);

    /// Merges two items with different ints. Returns the same as merge().
    [[nodiscard]] bool merge_different(ItemRef first, ItemRef other);

    /// Decides whether one of two items replaces the other as a whole. Returns true if it does; then
    /// their fields are not compared.
    [[nodiscard]] bool differ_as_whole(const snapshot::ObjectSpec& object, ItemRef first,
                                       ItemRef other);

    /// Like differ_as_whole(), for items that depend on whether a switch is on for the viewer's
    /// team.
    [[nodiscard]] bool differ_by_switches(const snapshot::ObjectSpec& object, ItemRef first,
                                          ItemRef other);

    /// The decision about two different values of a field.
    struct MergeDecision {
        bool others = false;  ///< the value of the other view is used
        bool greater = false; ///< the greater of the two values is used
        bool differs = false; ///< the values should be equal, so a difference is reported
    };

    [[nodiscard]] MergeDecision decide(snapshot::FieldMerge merge,
                                       const snapshot::ObjectSpec& object, ItemRef first,
                                       ItemRef other, std::int32_t value,
                                       std::int32_t others) const;
    void differ_in(const snapshot::FieldSpec& field, const snapshot::ObjectSpec& object,
                   ItemRef first, ItemRef other);
    void report(const snapshot::FieldSpec& field, const snapshot::ObjectSpec& object, ItemRef first,
                ItemRef other, std::size_t offset);
    /// Returns a bit mask of the item's ints whose value the view does not contain.
    [[nodiscard]] std::uint32_t untold_ints(ItemRef ref) const;
    void use_greatest(snapshot::ItemKey key, std::uint8_t offset, std::int32_t first,
                      std::int32_t other);
    void replace_item(snapshot::ItemKey key, ItemRef by);
    /// Returns the item that replaces this one; the item itself if none replaces it.
    [[nodiscard]] ItemRef replacement_of(ItemRef ref) const;
    /// Applies an item's patches to its ints. Returns the bit mask of the patched ints.
    std::uint32_t apply_patches(std::uint32_t key, std::span<std::int32_t> ints) const;

    std::span<const View> views_;
    const record::TypeNames* types_ = nullptr;
    std::vector<Difference>* differences_ = nullptr;
    std::optional<std::uint16_t> type_; ///< the type of `object_`
    const snapshot::ObjectSpec* object_ = nullptr;
    std::unordered_map<const snapshot::ObjectSpec*, MergeRules> all_rules_;
    const snapshot::ObjectSpec* ruled_ = nullptr;
    const MergeRules* rules_ = nullptr; ///< the merge rules of `ruled_`; a cache
    std::vector<ValuePatch> patches_;
    /// Index in patches_ of the patch with the greatest value, by item and int.
    std::unordered_map<std::uint64_t, std::size_t> greatest_;
    std::vector<ItemReplacement> replacements_;
    std::vector<ItemRef> beams_;
};

} // namespace tw::world
