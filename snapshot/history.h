#pragma once

#include "snapshot/arena.h"
#include "snapshot/delta.h"
#include "snapshot/item.h"
#include "snapshot/snapshot.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tw::snapshot {

/// Stands for the index of an item that the base does not contain.
inline constexpr std::uint16_t kNewItem = 0xFFFF;

/// A set of items of a delta's base. An item is identified by its index in the base.
class ItemSet {
  public:
    /// Adds an item. Returns whether the set contained the item before.
    bool insert(std::size_t item) {
        std::uint64_t& word = words_[item / 64];
        const std::uint64_t bit = std::uint64_t{1} << item % 64;
        const bool before = (word & bit) != 0;
        word |= bit;
        return before;
    }

    /// Removes an item. Returns whether the set contained the item.
    bool erase(std::size_t item) {
        std::uint64_t& word = words_[item / 64];
        const std::uint64_t bit = std::uint64_t{1} << item % 64;
        const bool before = (word & bit) != 0;
        word &= ~bit;
        return before;
    }

    template <typename F>
    void for_each(F&& visit) const {
        for (std::size_t i = 0; i < words_.size(); ++i) {
            for (std::uint64_t word = words_[i]; word != 0; word &= word - 1) {
                visit(i * 64 + static_cast<std::size_t>(std::countr_zero(word)));
            }
        }
    }

  private:
    std::array<std::uint64_t, kMaxItems / 64> words_{};
};

/// Finds keys of a delta in the base. In a delta, the items of one type are in ascending or
/// descending order, but types are mixed. Therefore the search for a key starts at the index of the
/// previous key of the same type, plus the difference of the two ids.
class BaseItemIndex {
  public:
    explicit BaseItemIndex(std::span<const std::uint32_t> keys) : keys_{keys} {}

    [[nodiscard]] std::size_t find(std::uint32_t key) {
        std::uint16_t& last = last_found_of_type_[(key >> 16U) % last_found_of_type_.size()];
        if (last >= keys_.size()) {
            return kNewItem; // the base is empty
        }
        // The sum wraps around if the key is less than the previous key of its type.
        std::size_t at = last + std::size_t{key} - keys_[last];
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
    static constexpr std::size_t kSearchRadius = 4;

    [[nodiscard]] std::size_t search(std::size_t guess, std::uint32_t key) const {
        auto first = keys_.begin();
        auto last = keys_.end();
        if (guess >= kSearchRadius &&
            guess < keys_.size() - std::min(kSearchRadius, keys_.size()) &&
            keys_[guess - kSearchRadius] < key && key < keys_[guess + kSearchRadius]) {
            first += static_cast<std::ptrdiff_t>(guess - kSearchRadius);
            last = first + 2 * kSearchRadius;
        }
        return static_cast<std::size_t>(std::lower_bound(first, last, key) - keys_.begin());
    }

    std::span<const std::uint32_t> keys_;
    std::array<std::uint16_t, 64> last_found_of_type_{};
    /// The two adjacent keys of the base between which the most recent new item belongs. The next
    /// new item often belongs between the same keys.
    std::pair<std::uint32_t, std::uint32_t> gap_{};
};

/// The number of ticks that a history covers. Servers use snapshots of the last 3 seconds (150
/// ticks) as bases of deltas. The other 100 ticks are for snapshots that arrive late.
inline constexpr Tick kHistoryTicks = 250;

/// The past snapshots of a session, by tick. They are stored as blocks (see SnapshotView) in
/// segments of up to eight blocks. Ticks with the same snapshot share one block. Stored blocks do
/// not move. The memory never exceeds kMaxHistoryBytes, and does not grow once it suffices for
/// kHistoryTicks snapshots.
class History {
  public:
    /// The maximum total size of all segments, which is enough for about 250 of the largest
    /// snapshots (64 KiB). The history removes its oldest snapshots to stay below this size.
    static constexpr std::size_t kMaxHistoryBytes = std::size_t{16} << 20U;

    /// Creates a history that allocates from its own arena.
    History() : own_arena_{std::make_unique<Arena>()}, arena_{own_arena_.get()} {}

    /// Creates a history that allocates from a shared arena. The arena must outlive the history.
    explicit History(Arena& arena) : arena_{&arena} {}

    History(History&&) = default;
    // Move assignment would destroy the arena before the pages allocated from it.
    History& operator=(History&&) = delete;
    History(const History&) = delete;
    History& operator=(const History&) = delete;
    ~History() = default;

    /// Returns the snapshot of the given tick; nullopt if it is not stored. The view is valid until
    /// the next call of `commit`, `store`, `store_unchanged`, `trim` or `clear`.
    [[nodiscard]] std::optional<SnapshotView> find(Tick tick) const {
        const StoredTick* const stored = find_stored(tick);
        return stored == nullptr ? std::nullopt : std::optional{view_of(*stored)};
    }

    [[nodiscard]] bool contains(Tick tick) const { return find_stored(tick) != nullptr; }

    /// Calls `visit(tick, view)` for each snapshot from tick `oldest` on, in ascending order of
    /// ticks.
    template <typename Visit>
    void for_each_from(Tick oldest, Visit&& visit) const {
        for (std::int64_t tick = std::max(oldest, oldest_); size_ != 0 && tick <= newest_; ++tick) {
            if (const StoredTick* const stored = find_stored(static_cast<Tick>(tick))) {
                visit(stored->tick, view_of(*stored));
            }
        }
    }

    /// Returns the newest stored tick; nullopt if the history is empty.
    [[nodiscard]] std::optional<Tick> newest() const {
        return size_ == 0 ? std::nullopt : std::optional{newest_};
    }

    /// Returns memory for a block of `ints` ints. The caller writes a snapshot there and stores it
    /// with `commit`. The memory is valid until the next call of a non-const function. Removes no
    /// stored snapshot. Throws std::bad_alloc if the system has no memory or if the block is larger
    /// than Arena::kRegionBytes.
    [[nodiscard]] std::span<std::int32_t> reserve(std::size_t ints) {
        if (segments_.empty() || segments_[last_].ints_left() < ints) {
            select_segment(ints);
        }
        return segments_[last_].pages.ints().subspan(segments_[last_].used, ints);
    }

    /// Stores the block at the start of the reserved memory as the snapshot of `tick`. Replaces an
    /// earlier snapshot of the tick. Removes snapshots that are too old (kHistoryTicks) or exceed
    /// the memory limit. Returns false if `tick` is too old.
    bool commit(Tick tick, const SnapshotView& block);
    /// Stores a copy of a snapshot, which need not be in memory from reserve(). Ignores a snapshot
    /// that is larger than the protocol allows.
    void store(Tick tick, const SnapshotView& snapshot);
    /// Stores the snapshot of tick `base` also as the snapshot of `tick`, without copying it.
    /// Returns false if `base` is not stored or `tick` is too old.
    bool store_unchanged(Tick base, Tick tick);
    /// Removes all snapshots before tick `oldest`, and frees unused memory.
    void trim(Tick oldest);
    /// Removes all snapshots, but does not free the memory.
    void clear();

    /// Returns the number of stored ticks.
    [[nodiscard]] std::size_t size() const { return size_; }

    [[nodiscard]] std::size_t segment_bytes() const { return segment_bytes_; }

    /// Returns the size of the allocated memory in bytes, including the tables.
    [[nodiscard]] std::size_t memory_bytes() const {
        return segment_bytes_ + ticks_.capacity() * sizeof(StoredTick) +
               segments_.capacity() * sizeof(Segment);
    }

  private:
    static constexpr std::uint32_t kUnusedEntry = 0xFFFFFFFF;

    /// A stored tick and the block of its snapshot.
    struct StoredTick {
        Tick tick = 0;
        std::uint32_t segment = kUnusedEntry; ///< index in segments_, or kUnusedEntry
        const std::int32_t* block = nullptr;
        std::uint32_t num_items = 0;
        std::uint32_t num_ints = 0;
    };

    struct Segment {
        Arena::AllocatedPages pages;
        std::size_t used = 0; ///< number of ints at the start of the pages that are in use
        /// Number of ticks with a block in this segment. 0: the segment is unused.
        std::uint32_t num_ticks = 0;

        [[nodiscard]] std::size_t ints_left() const { return pages.ints().size() - used; }
    };

    /// Size of the table of ticks. A tick's index is its low bits, so all ticks of a history have
    /// different indices.
    static constexpr std::size_t kTableSize = 256;
    static_assert(kTableSize > kHistoryTicks);

    [[nodiscard]] static std::size_t table_index(Tick tick) {
        return static_cast<std::uint32_t>(tick) % kTableSize;
    }

    [[nodiscard]] const StoredTick* find_stored(Tick tick) const {
        if (ticks_.empty()) {
            return nullptr;
        }
        const StoredTick& stored = ticks_[table_index(tick)];
        return stored.tick == tick && stored.segment != kUnusedEntry ? &stored : nullptr;
    }

    [[nodiscard]] static SnapshotView view_of(const StoredTick& stored) {
        return SnapshotView::of_block(
            {stored.block, 2 * std::size_t{stored.num_items} + stored.num_ints}, stored.num_items,
            stored.num_ints);
    }

    [[nodiscard]] bool is_too_old(Tick tick) const {
        return size_ != 0 && std::int64_t{newest_} - tick > kHistoryTicks;
    }

    void select_segment(std::size_t ints);
    void free_unused_memory();
    void add_stored(const StoredTick& stored);
    void remove_before(std::int64_t tick);
    void remove_stored(StoredTick& stored);

    std::unique_ptr<Arena> own_arena_;
    Arena* arena_;
    /// Has kTableSize entries. Empty until the first snapshot is stored.
    std::vector<StoredTick> ticks_;
    std::vector<Segment> segments_; ///< segments without pages can be reused
    std::uint32_t last_ = 0;        ///< index of the segment that is being filled
    std::size_t segment_bytes_ = 0;
    std::size_t size_ = 0;
    /// Number of ints of all stored ticks. A shared block counts for each tick.
    std::size_t kept_ints_ = 0;
    Tick oldest_ = 0; ///< no tick before this tick is stored
    Tick newest_ = 0; ///< the newest stored tick; undefined if no tick is stored
};

/// Builds a snapshot like apply_delta in delta.h, but in memory from History::reserve. The caller
/// stores the snapshot with History::commit.
[[nodiscard]] Result<SnapshotView> apply_delta(const SnapshotView& base, const Delta& delta,
                                               History& history, DeltaWarnings& warnings);

} // namespace tw::snapshot
