#pragma once

#include "proxy/record/records.h"
#include "proxy/world/difference_log.h"
#include "proxy/world/item_merge.h"
#include "proxy/world/view.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace tw::world {

/// Gives each dragger beam one id in all views. DDNet sends the beam of the viewer's own team with
/// the dragger's id, and other beams with separate ids. So one id can stand for two beams in
/// different views, and one beam can have two ids. Beams are identified by
/// their start point and owner.
class Beams {
  public:
    /// Starts a new run of the server: forgets all ids.
    void reset() { private_ids_.clear(); }

    /// Replaces the ids of beams in `items`, which are sorted by key before and after. `differing`:
    /// draggers and beams whose id is that of another item in the first view. `seen`: the masks of
    /// all these items.
    void resolve(std::vector<MergedItem>& items, const std::vector<MergedItem>& differing,
                 SeenMasks& seen);

  private:
    using Beam = std::tuple<std::int32_t, std::int32_t, std::int32_t>; ///< start x, start y, owner

    struct Found {
        MergedItem item{};
        std::set<std::uint16_t> ids{}; ///< the ids that views use for the beam
    };

    void take(const MergedItem& item, SeenMasks& seen);
    [[nodiscard]] std::uint16_t choose_id(const Beam& beam, const Found& found,
                                          const std::set<std::uint16_t>& taken);

    std::map<Beam, Found> beams_;                 ///< the beams of the current tick
    std::map<std::uint16_t, MergedItem> resting_; ///< draggers without a beam, by id
    std::map<Beam, std::uint16_t> private_ids_;   ///< the ids of beams that have no other id
    std::set<std::uint16_t> private_taken_;       ///< the ids in private_ids_
    std::uint16_t next_private_id_ = 0;           ///< lower private ids are in use
};

/// Merges the views of a tick into one world. The table of objects (snapshot::FieldMerge,
/// snapshot::MergeSpec) says which view an item or field is taken from.
class ViewMerge {
  public:
    /// Merges the views of a tick. `views`: sorted by says_more(). `differences`: receives
    /// contradictions between views; may be null. The result is valid until the next call.
    void merge(std::span<const View> views, const record::TypeNames& types, Beams& beams,
               std::vector<Difference>* differences);

    [[nodiscard]] snapshot::SnapshotView items() const { return result_.view(); }

    /// Exchanges the result for `other`, whose memory the next merge reuses.
    void swap_items(snapshot::Snapshot& other) { std::swap(result_, other); }

    [[nodiscard]] const record::SeenBy& sightings() const { return seen_by_; }

  private:
    void begin(std::span<const View> views, const record::TypeNames& types,
               std::vector<Difference>* differences);
    /// Compares the items of a view with those of the views before it, and adds new ones.
    void add_view(std::uint32_t view);
    [[nodiscard]] MergedItem make_item(ItemRef ref);
    void drop_lesser_forms();
    void resolve_beams(Beams& beams);
    void tell_own();
    void write();

    std::span<const View> views_;
    std::vector<std::uint32_t> sessions_; ///< sessions of the views, ascending
    std::vector<std::size_t> slots_;      ///< the index in sessions_ for each view
    ItemMerge items_;
    SeenMasks seen_;
    std::vector<MergedItem> merged_; ///< the items of the views so far, sorted by key
    snapshot::Snapshot result_;
    std::vector<std::uint64_t> bits_; ///< the masks of the items of the result
    std::vector<std::uint32_t> untold_;
    record::SeenBy seen_by_;
    // Buffers that are members only to reuse their memory:
    std::vector<MergedItem> added_; ///< items that only the current view has
    std::vector<MergedItem> wider_;
    std::vector<MergedItem> differing_; ///< draggers and beams under the same id
};

} // namespace tw::world
