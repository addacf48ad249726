#pragma once

#include "proxy/record/records.h"
#include "proxy/world/difference_log.h"
#include "proxy/world/item_merge.h"
#include "proxy/world/view.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace tw::world {

/// Gives each dragger beam one id in all views. DDNet sends the beam of the viewer's own team with
/// the dragger's id, and other beams with separate ids. So one id can stand for two beams in
/// different views, and one beam can have two ids (views sheet, section 5). Beams are identified by
/// their start point and owner.
class Beams {
  public:
    /// Starts a new run of the server: forgets all ids.
    void reset() { private_ids_.clear(); }

    /// Replaces the ids of beams in `items`, which are sorted by key before and after. `differing`:
    /// draggers and beams whose id is that of another item in the first view. `words`: the number
    /// of words in MergedItem::seen.
    void resolve(std::vector<MergedItem>& items, const std::vector<MergedItem>& differing,
                 const ItemMerge& merge, std::size_t words);

  private:
    using Beam = std::tuple<std::int32_t, std::int32_t, std::int32_t>; ///< start x, start y, owner

    struct Found {
        MergedItem item{};
        std::set<std::uint16_t> ids{}; ///< the ids that views use for the beam
    };

    void take(const MergedItem& item, const ItemMerge& merge, std::size_t words);
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
///
/// Most items of a tick are the same in most views. OpenWorld or this class finds the items that a
/// view shares with base snapshots, so that only the other items have to be compared.
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
    /// One version of an item that some views have, while others may have another version.
    struct Variant {
        std::uint32_t key = 0;
        std::uint32_t view = 0;  ///< the first view that has this variant
        std::uint32_t place = 0; ///< place of the item in that view (View::at)
        /// Bit mask of the views that have it; null: only `view`.
        const std::uint64_t* seen = nullptr;
    };

    /// The question whether views with index `view` or higher that have this variant agree with the
    /// first view's item.
    struct Question {
        std::uint32_t view = 0;
        const Variant* variant = nullptr;
    };

    void begin(std::span<const View> views, const record::TypeNames& types,
               std::vector<Difference>* differences);
    /// Notes which items a view shares with the bases, and collects its other items.
    void add_view(std::uint32_t view);
    void add_base_variants();
    void finish_seen();
    void see(std::uint64_t* seen, std::uint32_t view) const;
    [[nodiscard]] bool sees(const std::uint64_t* seen, std::uint32_t view) const;
    [[nodiscard]] bool has(const Variant& variant, std::uint32_t view) const;
    /// The first view in a bit mask of views that have an item of a base; nullopt if no view has
    /// it.
    [[nodiscard]] std::optional<std::uint32_t> first_view(const std::uint64_t* seen) const;
    [[nodiscard]] ItemRef ref(const Variant& variant, std::uint32_t view) const;
    void gather();
    void add(ItemRef ref, std::uint64_t* seen);
    /// Compares the variants of one key; the views that have the item are written to `seen`.
    void contest(std::uint64_t* seen);
    /// Whether the same key may mean different objects in these two views.
    [[nodiscard]] bool is_other_kind(std::uint32_t earlier, std::uint32_t later) const;
    void ask(const Variant& variant);
    void answer(ItemRef first, const Question& question);
    /// Calls `use(view)` for each view that the question is about.
    template <typename Use>
    void each_meant(const Question& question, const Use& use) const;
    void order_as_views();
    void drop_lesser_forms();
    void resolve_beams(Beams& beams);
    void tell_own();
    /// Takes the own_fields_ of the items of one type from a view. `client`: the player whose items
    /// are handled. `own`: the view is that of the player's own client.
    void tell(std::uint16_t type, std::uint32_t view, std::optional<std::uint16_t> client,
              bool own);
    void write();

    std::span<const View> views_;
    std::vector<snapshot::SnapshotView> bases_;
    std::vector<std::size_t> base_begins_; ///< where each base starts in base_seen_, in words
    std::size_t words_ = 0;
    bool alike_ = false; ///< all views are of the same version class
    ItemMerge items_;
    std::vector<Difference>* differences_ = nullptr;
    /// For each item of the bases, a bit mask of the views that have it; one more entry per base.
    /// Before finish_seen(), a bit says that the view's shared range begins or ends at the item.
    std::vector<std::uint64_t> base_seen_;
    std::vector<Variant> variants_; ///< variants not in the first base, sorted by key, then view
    /// Runs found here, for views that came without runs.
    std::vector<std::vector<SharedRun>> runs_;
    SharedItems finding_;
    std::vector<Variant> contested_; ///< variants of one key
    std::vector<Question> questions_;
    std::vector<std::uint64_t> answers_; ///< bit mask of the views that have the item
    /// Bit masks of views, for items that the first base lacks.
    std::vector<std::uint64_t> more_seen_;
    std::vector<MergedItem> merged_;
    std::vector<ItemRef> beams_;        ///< dragger beams, by view
    std::vector<MergedItem> differing_; ///< draggers and beams under the same id
    std::vector<std::uint64_t> beam_seen_;
    ItemMerge::OwnFields own_fields_; ///< own fields of the object being handled
    snapshot::Snapshot result_;
    std::vector<std::uint32_t> sessions_; ///< sessions of the views, ascending
    std::vector<std::size_t> slots_;      ///< the index in sessions_ for each view
    std::vector<std::uint64_t> seen_;
    std::vector<std::uint32_t> untold_;
    record::SeenBy seen_by_;
};

} // namespace tw::world
