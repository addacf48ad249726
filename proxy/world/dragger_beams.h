#pragma once

#include "snapshot/item.h"
#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <vector>

namespace tw::world {

struct MergeRules;

/// A reference to an item in one of a tick's views.
struct ItemRef {
    std::uint32_t view = 0; ///< index of the view
    std::uint32_t item = 0; ///< index of the item in the view
};

struct MergedItem {
    std::uint32_t key = 0;                        ///< packed ItemKey, which is faster to compare
    ItemRef source{};                             ///< the item in the first view that contains it
    std::uint32_t session_mask = 0;               ///< index of the item's mask in ItemSessionMasks
    std::span<const std::int32_t> data{};         ///< the item's ints in the view of `source`
    const snapshot::ObjectSpec* object = nullptr; ///< null: unknown type
    const MergeRules* rules = nullptr;

    [[nodiscard]] std::uint16_t id() const { return snapshot::ItemKey::from_packed(key).id; }
};

/// Bit masks, one for each item of a tick. Bit i is set if the session with index i saw the item.
class ItemSessionMasks {
  public:
    /// Removes all masks. Masks added later have `sessions` bits.
    void begin_tick(std::size_t sessions) {
        words_per_mask_ = (sessions + kBitsPerWord - 1) / kBitsPerWord;
        mask_words_.clear();
    }

    /// Adds an empty mask. Returns its index.
    std::uint32_t add_empty_mask() {
        mask_words_.resize(mask_words_.size() + words_per_mask_);
        return static_cast<std::uint32_t>(mask_words_.size() / words_per_mask_ - 1);
    }

    void set_session_bit(std::size_t mask, std::size_t session) {
        mask_words_[mask * words_per_mask_ + session / kBitsPerWord] |= std::uint64_t{1}
                                                                        << (session % kBitsPerWord);
    }

    /// Sets all bits of the mask with index `other` in the mask with index `mask`, too.
    void merge_masks(std::size_t mask, std::size_t other) {
        for (std::size_t i = 0; i < words_per_mask_; ++i) {
            mask_words_[mask * words_per_mask_ + i] |= mask_words_[other * words_per_mask_ + i];
        }
    }

    [[nodiscard]] std::size_t words_per_mask() const { return words_per_mask_; }

    [[nodiscard]] std::span<const std::uint64_t> mask(std::size_t index) const {
        return std::span{mask_words_}.subspan(index * words_per_mask_, words_per_mask_);
    }

  private:
    static constexpr std::size_t kBitsPerWord = 64;

    std::size_t words_per_mask_ = 0; ///< number of words in a mask
    std::vector<std::uint64_t> mask_words_;
};

/// Returns whether the item is a laser of this kind. Returns false for the older laser object,
/// which does not contain the kind.
[[nodiscard]] bool is_laser_of_kind(const snapshot::ObjectSpec& object,
                                    std::span<const std::int32_t> data, std::int32_t kind);

/// Returns whether the item is a dragger (a kind of laser), with or without a beam.
[[nodiscard]] bool is_dragger(const snapshot::ObjectSpec& object,
                              std::span<const std::int32_t> data);

/// Gives each dragger beam the same id in all views. DDNet sends the beam of the viewer's own team
/// with the dragger's id, and other beams with separate ids. Therefore, views may use one id for
/// two beams, or two ids for one beam. A beam is identified by its start point and owner.
class DraggerBeams {
  public:
    /// Forgets the ids that unify_beam_ids() made up. Called when the server restarted or changed
    /// the map.
    void reset() { private_ids_.clear(); }

    /// Replaces the ids of the beams in `items`, which are sorted by key before and after the call.
    /// `differing`: draggers and beams with an id that an earlier view uses for another item.
    /// `seen`: the masks to which MergedItem::session_mask refers.
    void unify_beam_ids(std::vector<MergedItem>& items, const std::vector<MergedItem>& differing,
                        ItemSessionMasks& seen);

  private:
    /// The beam's start x, start y and owner.
    using BeamKey = std::tuple<std::int32_t, std::int32_t, std::int32_t>;

    struct BeamItem {
        MergedItem item{};
        std::set<std::uint16_t> ids{}; ///< the ids that views use for the beam
    };

    void add_beam(const MergedItem& item, ItemSessionMasks& seen);
    [[nodiscard]] std::uint16_t choose_beam_id(const BeamKey& beam, const BeamItem& found,
                                               const std::set<std::uint16_t>& taken);

    std::map<BeamKey, BeamItem> beams_;                     ///< the beams of the current tick
    std::map<std::uint16_t, MergedItem> beamless_draggers_; ///< draggers without a beam, by id
    /// Made-up ids of beams whose own id belongs to another item.
    std::map<BeamKey, std::uint16_t> private_ids_;
    std::set<std::uint16_t> taken_private_ids_; ///< the ids in private_ids_
    std::uint16_t next_private_id_ = 0; ///< the next private id to try; private ids count down
};

} // namespace tw::world
