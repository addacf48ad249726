#pragma once

#include "proxy/record/records.h"
#include "proxy/world/difference_log.h"
#include "proxy/world/dragger_beams.h"
#include "proxy/world/view.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tw::world {

/// The rules for merging items of a type, as bit masks of the item's ints. Bit i stands for int i.
/// The rules come from snapshot::FieldMerge and snapshot::MergeSpec.
struct MergeRules {
    explicit MergeRules(const snapshot::ObjectSpec& object);

    /// Ints that the server sends only to the client of the item's player.
    std::uint32_t owner_only_ints = 0;
    /// Ints that must be equal in all views: differences are reported.
    std::uint32_t compared_ints = 0;
    /// Some ints depend on the viewer and are cleared in the merged item.
    bool has_viewer_dependent_ints = false;
    /// Each field is merged separately. If false, one view's whole item may be chosen instead.
    bool merges_by_field = false;
    /// Fields whose value comes from the view of the player to whom the item belongs.
    std::vector<const snapshot::FieldSpec*> own_fields{};
};

/// Merges the views (sessions' snapshots) of a tick into one snapshot. The table of objects
/// (snapshot::FieldMerge, snapshot::MergeSpec) says which view an item or field is taken from.
class ViewMerger {
  public:
    /// Merges the views of a tick. `views`: sorted by has_more_information(). `differences`:
    /// receives contradictions between views; may be null. items() and sightings() return the
    /// result until the next call.
    void merge_views(std::span<const View> views, const record::ItemTypes& types,
                     DraggerBeams& beams, std::vector<ViewDifference>* differences);

    [[nodiscard]] snapshot::SnapshotView items() const { return result_.view(); }

    /// Swaps the merged snapshot with `other`. The next merge_views() reuses the memory of `other`.
    void swap_items(snapshot::Snapshot& other) { std::swap(result_, other); }

    [[nodiscard]] const record::ItemSightings& sightings() const { return sightings_; }

  private:
    /// The value that an int of the merged item gets instead of the first view's value.
    struct ValuePatch {
        std::uint32_t key = 0; ///< the item's packed key
        std::uint8_t offset = 0;
        std::uint8_t rank = 0; ///< of an int's patches, the first one with the lowest rank is used
        std::int32_t value = 0;
    };

    /// The decision about two different values of a field.
    struct MergeDecision {
        bool takes_other = false;   ///< the second item's value replaces the first item's
        bool takes_greater = false; ///< the greater of the two values is used
        bool differs = false;       ///< the values should be equal, so a difference is reported
    };

    void begin_merge(std::span<const View> views, const record::ItemTypes& types,
                     std::vector<ViewDifference>* differences);
    /// Merges the items of a view with those of the earlier views, and adds new items.
    void add_view(std::uint32_t view);
    [[nodiscard]] MergedItem make_merged_item(ItemRef ref, const snapshot::ObjectSpec* object);

    [[nodiscard]] snapshot::ItemView item_at(ItemRef ref) const {
        return views_[ref.view].items[ref.item];
    }

    /// Returns the merge rules of an object. `object`: null for unknown types.
    [[nodiscard]] const MergeRules& merge_rules_of(const snapshot::ObjectSpec* object);

    /// Merges the item `other` of a later view, which has the same key as `first`. Returns false if
    /// the items are different objects, which cannot be merged.
    [[nodiscard]] bool merge_item(const MergedItem& first, ItemRef other);

    /// Chooses one of the two items as a whole, if a rule for their type says which. Returns true
    /// if it chose one; false if the items have to be merged field by field.
    [[nodiscard]] bool choose_item_by_rule(const MergedItem& first, ItemRef other);

    /// Like choose_item_by_rule(), for items that differ because a switch is on for one viewer's
    /// team and off for the other's.
    [[nodiscard]] bool choose_item_by_switch(const MergedItem& first, ItemRef other);

    void merge_field(const snapshot::FieldSpec& field, const MergedItem& first, ItemRef other);
    [[nodiscard]] MergeDecision decide_field_merge(snapshot::FieldMerge merge,
                                                   const MergedItem& first, ItemRef other,
                                                   std::int32_t value,
                                                   std::int32_t other_value) const;
    void report_difference(const snapshot::FieldSpec& field, const MergedItem& first, ItemRef other,
                           std::size_t offset);
    /// Chooses one of the two items as a whole. Returns true.
    bool choose_whole_item(const MergedItem& first, ItemRef other, bool takes_other);
    /// Returns a bit mask of the item's ints that its view does not contain (View::missing_ints).
    [[nodiscard]] std::uint32_t missing_int_mask(ItemRef ref) const;

    void drop_older_object_forms();
    void copy_own_fields();
    /// Copies the fields in MergeRules::own_fields from a view to the merged item. `own`: true if
    /// the view belongs to the item's player, false if it belongs to a client that spectates the
    /// player.
    void copy_own_fields_from_view(std::uint32_t view, snapshot::ItemKey key,
                                   const MergeRules& rules, bool own);
    void write_items();
    /// Appends the merged item to the result. Returns a bit mask of the ints whose value no view
    /// contains.
    [[nodiscard]] std::uint32_t write_item(const MergedItem& merged);

    std::span<const View> views_;
    const record::ItemTypes* types_ = nullptr;
    std::vector<ViewDifference>* differences_ = nullptr;
    std::unordered_map<const snapshot::ObjectSpec*, MergeRules> merge_rules_;
    std::vector<std::uint32_t> sessions_; ///< sessions of the views, ascending
    /// For each view, the index of its session in sessions_.
    std::vector<std::size_t> session_indices_;
    ItemSessionMasks session_masks_;
    std::vector<MergedItem> merged_items_; ///< the items of the views so far, sorted by key
    /// The items of later views that replace the first view's items, by packed key.
    std::map<std::uint32_t, ItemRef> replacements_;
    std::vector<ValuePatch> patches_;
    /// Draggers and beams with an id that an earlier view uses for another object.
    std::vector<MergedItem> dragger_conflicts_;
    snapshot::Snapshot result_;
    /// For each merged item, the mask of the sessions that saw the item.
    std::vector<std::uint64_t> mask_words_;
    std::vector<std::uint32_t> missing_ints_;
    record::ItemSightings sightings_;
    std::vector<MergedItem> added_items_; ///< items of the current view that no earlier view has
};

} // namespace tw::world
