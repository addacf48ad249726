#pragma once

#include "snapshot/arena.h"
#include "snapshot/item.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tw::snapshot {

/// A view of a snapshot. It does not own the snapshot's memory. Items are sorted by key; keys are
/// unique.
///
/// Layout:  `keys[i]` is the packed key of item i; its ints are `data[ends[i - 1] .. ends[i])`
///          (from 0 for the first item). A block is an array of ints: keys, then ends, then data.
class SnapshotView {
  public:
    SnapshotView() = default;

    SnapshotView(std::span<const std::uint32_t> keys, std::span<const std::uint32_t> ends,
                 std::span<const std::int32_t> data)
        : keys_{keys}, ends_{ends}, data_{data} {}

    /// Returns a view of a block. Precondition: the block has 2 * num_items + num_ints ints.
    [[nodiscard]] static SnapshotView of_block(std::span<const std::int32_t> block,
                                               std::size_t num_items, std::size_t num_ints);
    /// Copies the snapshot to `block`, which must have block_ints() ints.
    void write_block(std::int32_t* block) const;

    /// Returns the number of ints in a block with this snapshot.
    [[nodiscard]] std::size_t block_ints() const { return 2 * keys_.size() + data_.size(); }

    [[nodiscard]] std::size_t size() const { return keys_.size(); }

    [[nodiscard]] bool empty() const { return keys_.empty(); }

    [[nodiscard]] ItemView operator[](std::size_t index) const {
        const std::uint32_t begin = index == 0 ? 0 : ends_[index - 1];
        return {ItemKey::from_packed(keys_[index]), data_.subspan(begin, ends_[index] - begin)};
    }

    /// Returns the index of the first item whose key is not less than `key`, by a binary search.
    [[nodiscard]] std::size_t lower_bound(ItemKey key) const;
    /// Returns the index of the item with the given key; nullopt if the snapshot has no such item.
    [[nodiscard]] std::optional<std::size_t> find(ItemKey key) const;

    [[nodiscard]] std::span<const std::uint32_t> keys() const { return keys_; }

    [[nodiscard]] std::span<const std::uint32_t> ends() const { return ends_; }

    [[nodiscard]] std::span<const std::int32_t> data() const { return data_; }

    /// Returns the checksum that servers send: the sum of all ints of all items, which wraps
    /// around.
    [[nodiscard]] std::int32_t checksum() const;

    /// Returns the size in bytes as game programs count it: 8, plus 8 for each item and 4 for each
    /// int.
    [[nodiscard]] std::size_t size_bytes() const { return 8 + 8 * keys_.size() + 4 * data_.size(); }

    /// Whether both snapshots have the same keys with equal ints.
    friend bool operator==(const SnapshotView& left, const SnapshotView& right);

  private:
    std::span<const std::uint32_t> keys_;
    std::span<const std::uint32_t> ends_;
    std::span<const std::int32_t> data_;
};

/// Calls `use(item)` for each item of a type, in ascending order of ids.
template <typename Use>
void for_each_item_of_type(const SnapshotView& items, std::uint16_t type, const Use& use) {
    for (std::size_t i = items.lower_bound({.type = type, .id = 0});
         i < items.size() && items[i].key.type == type; ++i) {
        use(items[i]);
    }
}

/// A snapshot that owns its memory. Items are appended in the order of their keys. clear() removes
/// all items but does not free the memory.
class Snapshot {
  public:
    [[nodiscard]] SnapshotView view() const { return {keys_, ends_, data_}; }

    void clear();
    /// Appends an item. Returns its ints in this snapshot, which are valid until the next call of
    /// append.
    /// Precondition: `key` is greater than the keys of all items in the snapshot.
    std::span<std::int32_t> append(ItemKey key, std::span<const std::int32_t> data);

    friend bool operator==(const Snapshot&, const Snapshot&) = default;

  private:
    friend class SnapshotWriter; // writes to the vectors below

    RawVector<std::uint32_t> keys_;
    RawVector<std::uint32_t> ends_;
    RawVector<std::int32_t> data_;
};

/// Writes a snapshot of known size: adds single items or copies sequences of items from a base.
class SnapshotWriter {
  public:
    /// Writes to a snapshot, which is resized to the given numbers of items and ints.
    SnapshotWriter(Snapshot& out, std::size_t num_items, std::size_t num_ints) {
        out.keys_.resize(num_items);
        out.ends_.resize(num_items);
        out.data_.resize(num_ints);
        keys_ = out.keys_.data();
        ends_ = out.ends_.data();
        data_ = out.data_.data();
    }

    /// Writes to a block (see SnapshotView), which must have the right number of ints.
    SnapshotWriter(std::int32_t* block, std::size_t num_items)
        : keys_{reinterpret_cast<std::uint32_t*>(block)}, ends_{keys_ + num_items},
          data_{block + 2 * num_items} {}

    [[nodiscard]] std::size_t num_items() const { return num_items_; }

    /// Copies all items of a base. Precondition: no other items are written, before or after.
    void copy(const SnapshotView& base) {
        std::copy_n(base.keys().data(), base.size(), keys_);
        std::copy_n(base.ends().data(), base.size(), ends_);
        std::copy_n(base.data().data(), base.data().size(), data_);
    }

    [[nodiscard]] std::int32_t* data_of(std::size_t item) {
        return data_ + (item == 0 ? 0 : ends_[item - 1]);
    }

    /// Appends copies of the items [first, last) of the base.
    void copy(const SnapshotView& base, std::size_t first, std::size_t last) {
        if (first == last) {
            return;
        }
        const std::uint32_t begin = first == 0 ? 0 : base.ends()[first - 1];
        const std::size_t size = base.ends()[last - 1] - begin;
        std::copy_n(base.keys().data() + first, last - first, keys_ + num_items_);
        std::copy_n(base.data().data() + begin, size, data_ + num_ints_);
        const auto shift = static_cast<std::uint32_t>(num_ints_) - begin;
        std::uint32_t* const ends = ends_ + num_items_;
        for (std::size_t i = 0; i < last - first; ++i) {
            ends[i] = base.ends()[first + i] + shift;
        }
        num_items_ += last - first;
        num_ints_ += size;
    }

    /// Appends an item. Returns the item's ints in the new snapshot.
    std::span<std::int32_t> add(std::uint32_t key, std::span<const std::int32_t> data) {
        const std::span<std::int32_t> ints{data_ + num_ints_, data.size()};
        std::ranges::copy(data, ints.begin());
        num_ints_ += data.size();
        keys_[num_items_] = key;
        ends_[num_items_] = static_cast<std::uint32_t>(num_ints_);
        ++num_items_;
        return ints;
    }

  private:
    std::uint32_t* keys_ = nullptr;
    std::uint32_t* ends_ = nullptr;
    std::int32_t* data_ = nullptr;
    std::size_t num_items_ = 0;
    std::size_t num_ints_ = 0;
};

} // namespace tw::snapshot
