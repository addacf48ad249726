#pragma once

#include "proxy/game/difference.h"
#include "proxy/game/merge_rules.h"
#include "proxy/game/view.h"
#include "proxy/record/world.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"
#include "snapshot/snapshot_writer.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace tw::game {

/// An item of one of a tick's views.
struct ItemRef {
    std::uint32_t view = 0; ///< place in the list of views
    std::uint32_t item = 0; ///< its place there (View::at)

    friend bool operator==(const ItemRef&, const ItemRef&) = default;
};

/// An item on its way into a world.
struct MergedItem {
    snapshot::ItemKey key{};
    ItemRef ref{};
    const snapshot::ObjectSpec* object = nullptr; ///< null: nobody knows what it is
    std::uint64_t* seen = nullptr;                ///< words of who saw it
};

/// What views of one tick say differently of an item, and which of it stands in the world.
class ItemMerge {
  public:
    /// `differences`: null: nobody wants to know.
    void begin(std::span<const View> views, const record::TypeNames& types,
               std::vector<Difference>* differences);

    /// Whether two views have an item that is the same, or differs in nothing that counts.
    [[nodiscard]] bool say_same(ItemRef first, ItemRef other);

    /// Two views have an item under one key that is not the same. `first` says more. False: they are
    /// two things.
    [[nodiscard]] bool differ(ItemRef first, ItemRef other);
    /// Fields of an object that are merged as FieldMerge::own or own_first.
    using OwnFields = std::span<const snapshot::FieldSpec* const>;

    /// What the player's own view, or one that watches the player, says of an item.
    void tell_own(ItemRef ref, OwnFields fields, bool own);
    /// No more is to come.
    void finish();

    [[nodiscard]] snapshot::ItemView item(ItemRef ref) const {
        return views_[ref.view].at(ref.item);
    }

    [[nodiscard]] const snapshot::ObjectSpec* object(std::uint16_t type);

    /// Writes all items as they stand in the world. `untold`: of each, bits of the ints that nobody told.
    void write(std::span<const MergedItem> items, snapshot::Snapshot& to,
               std::vector<std::uint32_t>& untold);

    /// The rules of an object; null: of what nobody knows.
    [[nodiscard]] const MergeRules& rules(const snapshot::ObjectSpec* object);

    /// Draggers and beams that differ under one id; each of another view than the one before.
    [[nodiscard]] std::span<const ItemRef> differing_beams() const { return beams_; }

  private:
    /// An int that is another view's.
    struct Patch {
        std::uint32_t key = 0;
        std::uint8_t offset = 0;
        std::uint8_t rank = 0; ///< the lowest counts; of equal ones the first told
        std::int32_t value = 0;
    };

    /// An item that is another view's.
    struct Replacement {
        std::uint32_t key = 0;
        ItemRef ref{};
    };

    /// Whether the one item was taken for the other; then their fields need not agree.
    [[nodiscard]] bool differ_as_whole(const snapshot::ObjectSpec& object, ItemRef first,
                                       ItemRef other);

    /// The same where the switches of who looks decide it (views sheet, section 4).
    [[nodiscard]] bool differ_by_switches(const snapshot::ObjectSpec& object, ItemRef first,
                                          ItemRef other);

    /// What two values of a field that are not the same mean.
    struct Meaning {
        bool others = false;  ///< the other one counts
        bool greater = false; ///< the greater one does
        bool differs = false; ///< they should be the same
    };

    [[nodiscard]] Meaning judge(snapshot::FieldMerge merge, const snapshot::ObjectSpec& object,
                                ItemRef first, ItemRef other, std::int32_t value,
                                std::int32_t others) const;
    void differ_in(const snapshot::FieldSpec& field, const snapshot::ObjectSpec& object,
                   ItemRef first, ItemRef other);
    void report(const snapshot::FieldSpec& field, const snapshot::ObjectSpec& object, ItemRef first,
                ItemRef other, std::size_t offset);
    /// Bits of the ints that a view does not tell of an item.
    [[nodiscard]] std::uint32_t untold(ItemRef ref) const;
    void raise(snapshot::ItemKey key, std::uint8_t offset, std::int32_t first, std::int32_t other);
    void replace(snapshot::ItemKey key, ItemRef by);
    [[nodiscard]] std::size_t count_plain(std::span<const MergedItem> items);
    [[nodiscard]] bool may_be_patched(std::uint32_t key) const;
    std::uint32_t write(const MergedItem& merged, snapshot::SnapshotWriter& to);
    /// The item that stands for this one.
    [[nodiscard]] ItemRef replaced(ItemRef ref) const;
    /// Puts in what other views say better. Returns the bits of those ints.
    std::uint32_t patch(std::uint32_t key, std::span<std::int32_t> ints);

    std::span<const View> views_;
    const record::TypeNames* types_ = nullptr;
    std::vector<Difference>* differences_ = nullptr;
    std::optional<std::uint16_t> type_; ///< of `object_`
    const snapshot::ObjectSpec* object_ = nullptr;
    std::unordered_map<const snapshot::ObjectSpec*, MergeRules> all_rules_;
    const snapshot::ObjectSpec* ruled_ = nullptr;
    const MergeRules* rules_ = nullptr; ///< of `ruled_`
    std::vector<Patch> patches_;
    std::size_t next_patch_ = 0; ///< of the item behind the one written last
    std::unordered_map<std::uint64_t, std::size_t> greatest_; ///< place in patches_
    std::vector<Replacement> replacements_;
    std::vector<ItemRef> beams_;
};

} // namespace tw::game
