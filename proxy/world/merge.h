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

/// Gives the beams of draggers ids that hold in all views. DDNet shows the beam of the viewer's own
/// team under the dragger's id, and others under their own, so that one id is two things and one
/// thing has two ids (views sheet, section 5). A beam is told by where it begins and whose it is.
class Beams {
  public:
    /// Another run of the server: ids begin anew.
    void reset() { private_ids_.clear(); }

    /// `items`: by key, and so they are left. `differing`: draggers and beams under ids that stand for
    /// another thing in the first view. `words`: of who saw an item.
    void resolve(std::vector<MergedItem>& items, const std::vector<MergedItem>& differing,
                 const ItemMerge& merge, std::size_t words);

  private:
    using Beam = std::tuple<std::int32_t, std::int32_t, std::int32_t>; ///< from x, y; owner

    struct Found {
        MergedItem item{};
        std::set<std::uint16_t> ids{}; ///< that views have it under
    };

    void take(const MergedItem& item, const ItemMerge& merge, std::size_t words);
    [[nodiscard]] std::uint16_t choose_id(const Beam& beam, const Found& found,
                                          const std::set<std::uint16_t>& taken);

    std::map<Beam, Found> beams_;                 ///< of the tick at hand
    std::map<std::uint16_t, MergedItem> resting_; ///< draggers without one, by id
    std::map<Beam, std::uint16_t> private_ids_;   ///< of beams that have no other
    std::set<std::uint16_t> private_taken_;       ///< the same ids
    std::uint16_t next_private_id_ = 0;           ///< those above are taken
};

class Beams;

/// Makes one world of the views of a tick. Which view an item is of, and what of it another view
/// says better, stands in the table of objects (snapshot::FieldMerge, snapshot::MergeSpec).
///
/// Most views of a tick show the same items: what each has in common with a base is known from when it
/// came (OpenWorld), or else found here, and only what differs is looked at.
class ViewMerge {
  public:
    /// `views`: the one that says most first (says_more). `differences`: what must be the same and
    /// is not; null: nobody wants to know. The result lives until the next call.
    void merge(std::span<const View> views, const record::TypeNames& types, Beams& beams,
               std::vector<Difference>* differences);

    [[nodiscard]] snapshot::SnapshotView items() const { return result_.view(); }

    /// Hands over the result, and takes the memory of another.
    void swap_items(snapshot::Snapshot& other) { std::swap(result_, other); }

    [[nodiscard]] const record::SeenBy& sightings() const { return sightings_; }

  private:
    /// An item as some views have it, and others may have it otherwise.
    struct Variant {
        std::uint32_t key = 0;
        std::uint32_t view = 0;              ///< the first that has it
        std::uint32_t place = 0;             ///< View::at
        const std::uint64_t* seen = nullptr; ///< who has it; null: that view alone
    };

    /// A variant is asked about for the views from this one on that are of its kind.
    struct Question {
        std::uint32_t view = 0;
        const Variant* variant = nullptr;
    };

    void begin(std::span<const View> views, const record::TypeNames& types,
               std::vector<Difference>* differences);
    /// What it has in common with the bases, and what not.
    void add_view(std::uint32_t view);
    void add_base_variants();
    void finish_seen();
    void see(std::uint64_t* seen, std::uint32_t view) const;
    [[nodiscard]] bool sees(const std::uint64_t* seen, std::uint32_t view) const;
    [[nodiscard]] bool has(const Variant& variant, std::uint32_t view) const;
    /// The first view that has an item of the bases; nothing where all have it otherwise.
    [[nodiscard]] std::optional<std::uint32_t> first_view(const std::uint64_t* seen) const;
    [[nodiscard]] ItemRef ref(const Variant& variant, std::uint32_t view) const;
    void gather();
    void add(ItemRef ref, std::uint64_t* seen);
    /// `seen`: who has the item is left there.
    void contest(std::uint64_t* seen);
    /// Whether what the later one says differently of an item may mean something else.
    [[nodiscard]] bool is_other_kind(std::uint32_t earlier, std::uint32_t later) const;
    void ask(const Variant& variant);
    void answer(ItemRef first, const Question& question);
    /// `use(view)` for each that a question is about.
    template <typename Use>
    void each_meant(const Question& question, const Use& use) const;
    void order_as_views();
    void drop_lesser_forms();
    void resolve_beams(Beams& beams);
    void tell_own();
    /// Of an object with own_fields_.
    void tell(std::uint16_t type, std::uint32_t view, std::optional<std::uint16_t> client,
              bool own);
    void write();

    std::span<const View> views_;
    std::vector<snapshot::SnapshotView> bases_;
    std::vector<std::size_t> base_begins_; ///< of each, in words of base_seen_
    std::size_t words_ = 0;
    bool alike_ = false; ///< all views are of one kind
    ItemMerge items_;
    std::vector<Difference>* differences_ = nullptr;
    /// Of each item of the bases, and one behind each: before finish_seen what turns there.
    std::vector<std::uint64_t> base_seen_;
    std::vector<Variant> variants_;            ///< of the first base none; by key, then view
    std::vector<std::vector<SharedRun>> runs_; ///< of views that did not share anything
    SharedItems finding_;
    std::vector<Variant> contested_; ///< of one key
    std::vector<Question> questions_;
    std::vector<std::uint64_t> answers_;   ///< who has the item
    std::vector<std::uint64_t> more_seen_; ///< of items that the first base does not have
    std::vector<MergedItem> merged_;
    std::vector<ItemRef> beams_;        ///< those, by view
    std::vector<MergedItem> differing_; ///< draggers and beams under one id
    std::vector<std::uint64_t> beam_seen_;
    ItemMerge::OwnFields own_fields_; ///< of one object
    snapshot::Snapshot result_;
    std::vector<std::uint32_t> sessions_; ///< of the views, rising
    std::vector<std::size_t> slots_;      ///< of each view: its place in sessions_
    std::vector<std::uint64_t> seen_;
    std::vector<std::uint32_t> untold_;
    record::SeenBy sightings_;
};

} // namespace tw::world
