#include "snapshot/snapshot.h"

#include <cassert>
#include <cstring>

namespace tw::snapshot {

SnapshotView SnapshotView::of_block(std::span<const std::int32_t> block, std::size_t num_items,
                                    std::size_t num_ints) {
    const auto* const keys = reinterpret_cast<const std::uint32_t*>(block.data());
    return {std::span{keys, num_items}, std::span{keys + num_items, num_items},
            block.subspan(2 * num_items, num_ints)};
}

void SnapshotView::write_block(std::int32_t* block) const {
    const auto append = [&block](const auto& values) {
        if (!values.empty()) {
            std::memcpy(block, values.data(), values.size_bytes());
            block += values.size();
        }
    };
    append(keys_);
    append(ends_);
    append(data_);
}

std::size_t SnapshotView::lower_bound(ItemKey key) const {
    // This search has no branches, because processors cannot predict the results of its
    // comparisons. std::lower_bound branches on every comparison.
    const std::uint32_t wanted = key.packed();
    std::size_t at = 0;
    for (std::size_t left = keys_.size(); left != 0;) {
        const std::size_t half = (left + 1) / 2;
        at += keys_[at + half - 1] < wanted ? half : 0;
        left -= half;
    }
    return at;
}

std::optional<std::size_t> SnapshotView::find(ItemKey key) const {
    const std::size_t at = lower_bound(key);
    return at < keys_.size() && keys_[at] == key.packed() ? std::optional{at} : std::nullopt;
}

std::int32_t SnapshotView::checksum() const {
    std::uint32_t sum = 0;
    for (const std::int32_t value : data_) {
        sum += static_cast<std::uint32_t>(value);
    }
    return static_cast<std::int32_t>(sum);
}

bool operator==(const SnapshotView& left, const SnapshotView& right) {
    return std::ranges::equal(left.keys_, right.keys_) &&
           std::ranges::equal(left.ends_, right.ends_) &&
           std::ranges::equal(left.data_, right.data_);
}

void Snapshot::clear() {
    keys_.clear();
    ends_.clear();
    data_.clear();
}

std::span<std::int32_t> Snapshot::append(ItemKey key, std::span<const std::int32_t> data) {
    assert(keys_.empty() || keys_.back() < key.packed());
    const std::size_t begin = data_.size();
    data_.resize(begin + data.size());
    keys_.push_back(key.packed());
    ends_.push_back(static_cast<std::uint32_t>(data_.size()));
    const auto own = std::span{data_}.subspan(begin);
    std::ranges::copy(data, own.begin());
    return own;
}

} // namespace tw::snapshot
