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

/// What a laser is, in either form of its object (views sheet, sections 4 and 5). The older form does not
/// say its kind.
namespace tw::world {

[[nodiscard]] bool is_door(const snapshot::ObjectSpec& object, std::span<const std::int32_t> data);

/// A dragger, with a beam or without.
[[nodiscard]] bool is_dragger(const snapshot::ObjectSpec& object,
                              std::span<const std::int32_t> data);

/// A beam of a dragger, whose id may be another in each view.
[[nodiscard]] bool is_beam(const snapshot::ObjectSpec& object, std::span<const std::int32_t> data);

/// Whether one view may show it dark and another one not.
[[nodiscard]] bool may_be_switched(const snapshot::ObjectSpec& object,
                                   std::span<const std::int32_t> data);

/// Lights and doors that a team has switched off end where they begin. Precondition: may_be_switched.
[[nodiscard]] bool is_dark(std::span<const std::int32_t> laser);

/// Precondition: both are doors.
[[nodiscard]] bool is_same_end(std::span<const std::int32_t> laser,
                               std::span<const std::int32_t> other);

/// What an object's rules (snapshot::FieldMerge, snapshot::MergeSpec) say of all its items. Bits are of
/// their ints, as in record::SeenBy.
struct MergeRules {
    explicit MergeRules(const snapshot::ObjectSpec& object);

    std::uint32_t own = 0; ///< that only who the item belongs to is told
    /// Two views may have all others differently, and it says nothing.
    std::uint32_t telling = 0;
    bool of_viewer = false; ///< some of it is the viewer's alone, and nobody's in a world
    bool by_fields = false; ///< each field for itself decides what stands in a world
    /// Those that the item's own player's view says better than all others.
    std::vector<const snapshot::FieldSpec*> own_fields{};
};

/// The int of the object's field that is merged in this way; nothing where it has none.
[[nodiscard]] std::optional<std::size_t> find_offset(const snapshot::ObjectSpec& object,
                                                     snapshot::FieldMerge how);

/// Of the flags that say whose timer it is.
[[nodiscard]] bool has_race_bit(std::int32_t flags);
[[nodiscard]] std::int32_t without_race_bit(std::int32_t flags);

/// Takes out of an item what is the viewer's alone.
void clear_viewers_fields(const snapshot::ObjectSpec& object, std::span<std::int32_t> ints);

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

} // namespace tw::world
