#pragma once

#include "proxy/record/records.h"
#include "proxy/world/difference_log.h"
#include "proxy/world/view.h"
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

/// Returns whether the item is a dragger's beam, which may have different ids in different views.
[[nodiscard]] bool is_beam(const snapshot::ObjectSpec& object, std::span<const std::int32_t> data);

/// The rules for merging items of a type, as bit masks of the item's ints. Bit i stands for int i.
/// The rules come from snapshot::FieldMerge and snapshot::MergeSpec.
struct MergeRules {
    explicit MergeRules(const snapshot::ObjectSpec& object);

    std::uint32_t own = 0; ///< ints that the server sends only to the client of the item's player
    /// Ints that must be equal in all views: differences are reported.
    std::uint32_t compared = 0;
    bool of_viewer = false; ///< some ints depend on the viewer; the merged item contains 0 for them
    /// Each field is merged separately; if false, one view's item is used unchanged.
    bool by_fields = false;
    /// Fields whose value comes from the view of the player to whom the item belongs.
    std::vector<const snapshot::FieldSpec*> own_fields{};
};

/// A reference to an item in one of a tick's views.
struct ItemRef {
    std::uint32_t view = 0; ///< index of the view
    std::uint32_t item = 0; ///< index of the item in the view
};

/// An item of the merged snapshot.
struct MergedItem {
    snapshot::ItemKey key{};
    ItemRef ref{};                                ///< the item in the first view that contains it
    std::span<const std::int32_t> data{};         ///< the item's ints in that view
    const snapshot::ObjectSpec* object = nullptr; ///< null: unknown type
    std::size_t seen = 0;                         ///< index of the item's mask in SeenMasks
};

/// Compares the items with one key in the views of a tick and decides which values the merged
/// snapshot gets.
class ItemMerger {
  public:
    /// Prepares for the views of a tick. Pairs of contradictory values are added to `differences`,
    /// unless it is null.
    void begin(std::span<const View> views, const record::TypeNames& types,
               std::vector<Difference>* differences);

    /// Merges two items with the same key. `first` is from the view with more information. Returns
    /// false if the items are different objects, which cannot be merged.
    [[nodiscard]] bool merge_items(ItemRef first, ItemRef other) {
        return is_same_item(first, other) || merge_different_items(first, other);
    }

    /// The fields of an object with the merge rule FieldMerge::own or own_first.
    using OwnFields = std::span<const snapshot::FieldSpec* const>;

    /// Makes the merged item contain the values of these fields in a view's item. `own`: true if
    /// the view belongs to the item's player, false if to a client that spectates the player.
    void take_own_fields(ItemRef ref, OwnFields fields, bool own);
    /// Ends the comparison of items. write_item() may be called afterwards.
    void finish();

    [[nodiscard]] snapshot::ItemView item(ItemRef ref) const {
        return views_[ref.view].items[ref.item];
    }

    [[nodiscard]] const snapshot::ObjectSpec* object_of_type(std::uint16_t type);

    /// Appends the merged item to the snapshot `to`. Returns a bit mask of the ints whose value no
    /// view contains. Precondition: finish() was called.
    [[nodiscard]] std::uint32_t write_item(const MergedItem& merged, snapshot::Snapshot& to);

    /// Returns the merge rules of an object. `object`: null for unknown types.
    [[nodiscard]] const MergeRules& rules_of(const snapshot::ObjectSpec* object);

    /// Returns the draggers and beams with an id that an earlier view uses for another object.
    [[nodiscard]] std::span<const ItemRef> differing_beams() const { return beams_; }

  private:
    /// The value that an int of the merged item gets instead of the first view's value.
    struct ValuePatch {
        std::uint32_t key = 0;
        std::uint8_t offset = 0;
        std::uint8_t rank = 0; ///< of an int's patches, the first one with the lowest rank is used
        std::int32_t value = 0;
    };

    /// An item of a later view that replaces the first view's item with the same key.
    struct ItemReplacement {
        std::uint32_t key = 0;
        ItemRef ref{};
    };

    /// Returns whether two items differ at most in ints whose differences are ignored.
    [[nodiscard]] bool is_same_item(ItemRef first, ItemRef other);

    /// Does what merge_items() does, for two items with different ints.
    [[nodiscard]] bool merge_different_items(ItemRef first, ItemRef other);

    /// Uses all of `other` in place of `first` if it is better. Returns true if the fields of the
    /// two items need not be compared.
    [[nodiscard]] bool merge_as_whole(const snapshot::ObjectSpec& object, ItemRef first,
                                      ItemRef other);

    /// Does what merge_as_whole() does, for items that depend on whether a switch is on for the
    /// viewer's team.
    [[nodiscard]] bool merge_by_switches(const snapshot::ObjectSpec& object, ItemRef first,
                                         ItemRef other);

    /// The decision about two different values of a field.
    struct MergeDecision {
        bool others = false;  ///< the value in the second item is used
        bool greater = false; ///< the greater value is used
        bool differs = false; ///< the values should be equal, so a difference is reported
    };

    [[nodiscard]] MergeDecision decide_merge(snapshot::FieldMerge merge,
                                             const snapshot::ObjectSpec& object, ItemRef first,
                                             ItemRef other, std::int32_t value,
                                             std::int32_t others) const;
    void merge_field(const snapshot::FieldSpec& field, const snapshot::ObjectSpec& object,
                     ItemRef first, ItemRef other);
    void report_difference(const snapshot::FieldSpec& field, const snapshot::ObjectSpec& object,
                           ItemRef first, ItemRef other, std::size_t offset);
    /// Returns a bit mask of the item's ints whose value the view does not contain.
    [[nodiscard]] std::uint32_t untold_ints(ItemRef ref) const;
    void use_greatest_value(snapshot::ItemKey key, std::uint8_t offset, std::int32_t first,
                            std::int32_t other);
    void replace_item(snapshot::ItemKey key, ItemRef by);
    /// Returns the item that replaces `ref`; `ref` itself if it is not replaced.
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
    /// For each item and int, the index in patches_ of the patch with the greatest value.
    std::unordered_map<std::uint64_t, std::size_t> greatest_;
    std::vector<ItemReplacement> replacements_;
    std::vector<ItemRef> beams_;
};

} // namespace tw::world
