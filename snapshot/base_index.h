#pragma once

#include "snapshot/item.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

namespace tw::snapshot {

/// In the place of an item's index: the base does not have it.
inline constexpr std::uint16_t kNewItem = 0xFFFF;

/// One bit per item of the base.
class ItemMarks {
  public:
    /// Returns whether the mark was there already.
    bool set(std::size_t item) {
        std::uint64_t& word = words_[item / 64];
        const std::uint64_t bit = std::uint64_t{1} << item % 64;
        const bool before = (word & bit) != 0;
        word |= bit;
        return before;
    }

    bool take(std::size_t item) {
        std::uint64_t& word = words_[item / 64];
        const std::uint64_t bit = std::uint64_t{1} << item % 64;
        const bool before = (word & bit) != 0;
        word &= ~bit;
        return before;
    }

    template <typename F>
    void each(F&& visit) const {
        for (std::size_t i = 0; i < words_.size(); ++i) {
            for (std::uint64_t word = words_[i]; word != 0; word &= word - 1) {
                visit(i * 64 + static_cast<std::size_t>(std::countr_zero(word)));
            }
        }
    }

  private:
    std::array<std::uint64_t, kMaxItems / 64> words_{};
};

/// Finds keys in the base. Writers list the items of one type in ascending or descending order, the
/// types mixed. So a key stands about as far from the last one of its type as their ids differ.
class BaseIndex {
  public:
    explicit BaseIndex(std::span<const std::uint32_t> keys) : keys_{keys} {}

    [[nodiscard]] std::size_t find(std::uint32_t key) {
        std::uint16_t& last = last_of_type_[(key >> 16U) % last_of_type_.size()];
        if (last >= keys_.size()) {
            return kNewItem; // an empty base
        }
        std::size_t at = last + std::size_t{key} - keys_[last]; // wraps when it lies before
        if (at >= keys_.size() || keys_[at] != key) {
            if (gap_.first < key && key < gap_.second) {
                return kNewItem;
            }
            at = search(at, key);
            if (at == keys_.size() || keys_[at] != key) {
                gap_ = {at == 0 ? 0 : keys_[at - 1],
                        at == keys_.size() ? std::numeric_limits<std::uint32_t>::max() : keys_[at]};
                return kNewItem;
            }
        }
        last = static_cast<std::uint16_t>(at);
        return at;
    }

  private:
    static constexpr std::size_t kNear = 4;

    [[nodiscard]] std::size_t search(std::size_t guess, std::uint32_t key) const {
        auto first = keys_.begin();
        auto last = keys_.end();
        if (guess >= kNear && guess < keys_.size() - std::min(kNear, keys_.size()) &&
            keys_[guess - kNear] < key && key < keys_[guess + kNear]) {
            first += static_cast<std::ptrdiff_t>(guess - kNear);
            last = first + 2 * kNear;
        }
        return static_cast<std::size_t>(std::lower_bound(first, last, key) - keys_.begin());
    }

    std::span<const std::uint32_t> keys_;
    std::array<std::uint16_t, 64> last_of_type_{};
    /// Two keys with nothing between them in the base: new items come in groups, too.
    std::pair<std::uint32_t, std::uint32_t> gap_{};
};

} // namespace tw::snapshot
