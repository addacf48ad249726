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

/// Bit masks, one for each item of a tick. Bit i is set if the session with index i saw the item.
class SeenMasks {
  public:
    /// Removes all masks. Masks added later have `sessions` bits.
    void begin(std::size_t sessions) {
        words_ = (sessions + kBits - 1) / kBits;
        bits_.clear();
    }

    /// Adds an empty mask. Returns its index.
    std::size_t add_mask() {
        bits_.resize(bits_.size() + words_);
        return size() - 1;
    }

    void mark_seen(std::size_t mask, std::size_t session) {
        bits_[mask * words_ + session / kBits] |= std::uint64_t{1} << (session % kBits);
    }

    /// Sets in `mask` all bits that are set in the mask `other`.
    void add_sessions_of(std::size_t mask, std::size_t other) {
        for (std::size_t i = 0; i < words_; ++i) {
            bits_[mask * words_ + i] |= bits_[other * words_ + i];
        }
    }

    [[nodiscard]] std::size_t size() const { return words_ == 0 ? 0 : bits_.size() / words_; }

    [[nodiscard]] std::size_t words_per_mask() const { return words_; }

    [[nodiscard]] std::span<const std::uint64_t> mask(std::size_t index) const {
        return std::span{bits_}.subspan(index * words_, words_);
    }

  private:
    static constexpr std::size_t kBits = 64;

    std::size_t words_ = 0; ///< number of words in a mask
    std::vector<std::uint64_t> bits_;
};

/// Gives each dragger beam the same id in all views. DDNet sends the beam of the viewer's own team
/// with the dragger's id, and other beams with separate ids. Therefore, views may use one id for
/// two beams, or two ids for one beam. A beam is identified by its start point and owner.
class DraggerBeams {
  public:
    /// Forgets all ids, for a new run of the server.
    void reset() { private_ids_.clear(); }

    /// Replaces the ids of the beams in `items`, which are sorted by key before and after the call.
    /// `differing`: draggers and beams with an id that the first view uses for another item.
    /// `seen`: the masks to which MergedItem::seen refers.
    void unify_ids(std::vector<MergedItem>& items, const std::vector<MergedItem>& differing,
                   SeenMasks& seen);

  private:
    using Beam = std::tuple<std::int32_t, std::int32_t, std::int32_t>; ///< start x, start y, owner

    struct BeamItem {
        MergedItem item{};
        std::set<std::uint16_t> ids{}; ///< the ids that views use for the beam
    };

    void add_beam(const MergedItem& item, SeenMasks& seen);
    [[nodiscard]] std::uint16_t choose_id(const Beam& beam, const BeamItem& found,
                                          const std::set<std::uint16_t>& taken);

    std::map<Beam, BeamItem> beams_;              ///< the beams of the current tick
    std::map<std::uint16_t, MergedItem> resting_; ///< draggers without a beam, by id
    /// Made-up ids of beams whose own id belongs to another item.
    std::map<Beam, std::uint16_t> private_ids_;
    std::set<std::uint16_t> private_taken_; ///< the ids in private_ids_
    std::uint16_t next_private_id_ = 0;     ///< the next private id to try; private ids count down
};

/// Merges the views (sessions' snapshots) of a tick into one snapshot. The table of objects
/// (snapshot::FieldMerge, snapshot::MergeSpec) says which view an item or field is taken from.
class ViewMerger {
  public:
    /// Merges the views of a tick. `views`: sorted by has_more_information(). `differences`:
    /// receives contradictions between views; may be null. items() and sightings() return the
    /// result until the next call.
    void merge_views(std::span<const View> views, const record::TypeNames& types,
                     DraggerBeams& beams, std::vector<Difference>* differences);

    [[nodiscard]] snapshot::SnapshotView items() const { return result_.view(); }

    /// Swaps the merged snapshot with `other`. The next merge_views() reuses the memory of `other`.
    void swap_items(snapshot::Snapshot& other) { std::swap(result_, other); }

    [[nodiscard]] const record::Sightings& sightings() const { return seen_by_; }

  private:
    void begin(std::span<const View> views, const record::TypeNames& types,
               std::vector<Difference>* differences);
    /// Merges the items of a view with those of the earlier views, and adds new items.
    void add_view(std::uint32_t view);
    [[nodiscard]] MergedItem make_item(ItemRef ref);
    void drop_lesser_forms();
    void unify_beam_ids(DraggerBeams& beams);
    void take_own_fields();
    void write_items();

    std::span<const View> views_;
    std::vector<std::uint32_t> sessions_; ///< sessions of the views, ascending
    std::vector<std::size_t> slots_;      ///< for each view, the index of its session in sessions_
    ItemMerger items_;
    SeenMasks seen_;
    std::vector<MergedItem> merged_; ///< the items of the views so far, sorted by key
    snapshot::Snapshot result_;
    /// For each merged item, the mask of the sessions that saw the item.
    std::vector<std::uint64_t> bits_;
    std::vector<std::uint32_t> untold_;
    record::Sightings seen_by_;
    // Buffers that are members only to reuse their memory:
    std::vector<MergedItem> added_; ///< items that only the current view has
    std::vector<MergedItem> wider_;
    /// Draggers and beams with an id that an earlier view uses for another object.
    std::vector<MergedItem> differing_;
};

} // namespace tw::world
