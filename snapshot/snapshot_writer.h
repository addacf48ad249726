#pragma once

#include "snapshot/snapshot.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tw::snapshot {

/// Fills in a snapshot whose size is known: items one after the other, or in long runs.
class SnapshotWriter {
  public:
    /// Writes into a snapshot's own memory, which it sizes.
    SnapshotWriter(Snapshot& out, std::size_t num_items, std::size_t num_ints) {
        out.keys_.resize(num_items);
        out.ends_.resize(num_items);
        out.data_.resize(num_ints);
        keys_ = out.keys_.data();
        ends_ = out.ends_.data();
        data_ = out.data_.data();
    }

    /// Writes a block; see block_ints.
    SnapshotWriter(std::int32_t* block, std::size_t num_items)
        : keys_{reinterpret_cast<std::uint32_t*>(block)}, ends_{keys_ + num_items},
          data_{block + 2 * num_items} {}

    [[nodiscard]] std::size_t num_items() const { return num_items_; }

    /// Copies all of a base, which is all there is.
    void copy(const SnapshotView& base) {
        std::copy_n(base.keys().data(), base.size(), keys_);
        std::copy_n(base.ends().data(), base.size(), ends_);
        std::copy_n(base.data().data(), base.data().size(), data_);
    }

    [[nodiscard]] std::int32_t* data_of(std::size_t item) {
        return data_ + (item == 0 ? 0 : ends_[item - 1]);
    }

    /// Copies the items [first, last) of the base.
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

    /// Returns its ints as they stand here.
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
