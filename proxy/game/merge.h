#pragma once

#include "proxy/game/difference.h"
#include "proxy/game/item_merge.h"
#include "proxy/game/view.h"
#include "proxy/record/records.h"
#include "proxy/record/world.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tw::game {

class Beams;

/// Makes one world of the views of a tick. Which view an item is of, and what of it another view
/// says better, stands in the table of objects (snapshot::FieldMerge, snapshot::MergeSpec).
///
/// Most views of a tick show the same items: the first one is compared with each other as a whole,
/// and only what differs is looked at.
class ViewMerge {
  public:
    /// `views`: the one that says most first (says_more). `differences`: what must be the same and
    /// is not; null: nobody wants to know. The result lives until the next call.
    void merge(std::span<const View> views, const record::TypeNames& types, Beams& beams,
               std::vector<Difference>* differences);

    [[nodiscard]] snapshot::SnapshotView items() const { return result_.view(); }

    /// Hands over the result, and takes the memory of another.
    void swap_items(snapshot::Snapshot& other) { std::swap(result_, other); }

    [[nodiscard]] const record::Sightings& sightings() const { return sightings_; }

  private:
    /// An item that the first view does not have.
    struct Extra {
        std::uint32_t key = 0;
        ItemRef ref{};
        std::size_t seen = 0; ///< place in extra_seen_
    };

    void begin(std::span<const View> views, const record::TypeNames& types,
               std::vector<Difference>* differences);
    void add_view(std::uint32_t view);
    /// Compares `count` items that have the same keys and sizes.
    void compare_run(std::size_t base, std::uint32_t view, std::size_t item, std::size_t count);
    void add_extra(std::uint32_t view, std::size_t item, std::size_t& cursor);
    void take_pending();
    void see(std::uint64_t* seen, std::uint32_t view) const;
    /// A view has these items of the base, or the other way round.
    void turn_seen(std::size_t base, std::size_t count, std::uint32_t view);
    void finish_seen();
    void gather();
    void drop_lesser_forms();
    void resolve_beams(Beams& beams);
    void tell_own();
    void tell(const snapshot::ObjectSpec& object, std::uint16_t type, std::uint32_t view,
              std::optional<std::uint16_t> client, bool own);
    void write();

    std::span<const View> views_;
    std::size_t words_ = 0;
    ItemMerge items_;
    /// Of each item of the base, and one behind: before finish_seen what turns there.
    std::vector<std::uint64_t> base_seen_;
    std::vector<Extra> extras_;  ///< by key
    std::vector<Extra> pending_; ///< of the view at hand, by key
    std::vector<std::uint64_t> extra_seen_;
    std::vector<MergedItem> merged_;
    std::vector<MergedItem> differing_; ///< draggers and beams under one id
    std::vector<std::uint64_t> beam_seen_;
    std::vector<std::int32_t> ints_; ///< of the item being written
    snapshot::Snapshot result_;
    std::vector<std::uint32_t> sessions_; ///< of the views, rising
    std::vector<std::size_t> slots_;      ///< of each view: its place in sessions_
    std::vector<std::uint64_t> seen_;
    std::vector<std::uint32_t> untold_;
    record::Sightings sightings_;
};

} // namespace tw::game
