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

/// Servers keep 3 seconds (150 ticks) of snapshots to build on; clients in menus acknowledge once a
/// second. 250 ticks leaves room for ticks that arrive late.
inline constexpr Tick kHistoryTicks = 250;

/// Past snapshots by tick, side by side in segments of some ten: no allocation once an arena has
/// what a session needs (kHistoryTicks of its snapshots), and never more than kMaxHistoryBytes.
/// Ticks that show the same share one block. What is there never moves.
class History {
  public:
    /// Hard bound of one session's segments: 250 snapshots of the maximal 64 KiB would be 16 MiB.
    /// What does not fit pushes out the oldest.
    static constexpr std::size_t kMaxHistoryBytes = std::size_t{16} << 20U;

    /// Memory of its own.
    History() : own_{std::make_unique<Arena>()}, arena_{own_.get()} {}

    /// Out of an arena, which outlives it.
    explicit History(Arena& arena) : arena_{&arena} {}

    History(History&&) = default;
    History& operator=(History&&) = delete; // its arena would go before what is out of it
    History(const History&) = delete;
    History& operator=(const History&) = delete;
    ~History() = default;

    /// The snapshot of this tick; the view is valid until the next `commit`, `store`, `repeat`,
    /// `trim` or `clear`.
    [[nodiscard]] std::optional<SnapshotView> find(Tick tick) const {
        const Shown* const shown = find_shown(tick);
        return shown == nullptr ? std::nullopt : std::optional{view_of(*shown)};
    }

    [[nodiscard]] bool contains(Tick tick) const { return find_shown(tick) != nullptr; }

    /// `use(tick, view)` for all from that tick on, the oldest first.
    template <typename Use>
    void for_each_from(Tick oldest, Use&& use) const {
        for (std::int64_t tick = std::max(oldest, oldest_); size_ != 0 && tick <= newest_; ++tick) {
            if (const Shown* const shown = find_shown(static_cast<Tick>(tick))) {
                use(shown->tick, view_of(*shown));
            }
        }
    }

    /// The newest tick stored, if any.
    [[nodiscard]] std::optional<Tick> newest() const {
        return size_ == 0 ? std::nullopt : std::optional{newest_};
    }

    /// Room to build a snapshot in, as a block of so many ints; valid until the next call of any
    /// other function that is not const. Nothing that is there makes way for it. Throws
    /// std::bad_alloc, also for more than Arena::kRegionBytes.
    [[nodiscard]] std::span<std::int32_t> reserve(std::size_t ints) {
        if (segments_.empty() || segments_[last_].left() < ints) {
            open_segment(ints);
        }
        return segments_[last_].run.ints().subspan(segments_[last_].used, ints);
    }

    /// Keeps the block at the start of the reserved room as this tick's snapshot, in the place of
    /// the one that was there, and forgets what is older than kHistoryTicks behind the newest, or
    /// too much. False: the tick itself is too old.
    bool commit(Tick tick, const SnapshotView& block);
    /// Stores a copy of a snapshot that is not of this history. What is too large for a legal one
    /// is not stored.
    void store(Tick tick, const SnapshotView& snapshot);
    /// The snapshot of one tick is that of another, too; takes no copy. False: it is not there, or
    /// `tick` is too old.
    bool repeat(Tick base, Tick tick);
    /// Forgets what is older than a tick, and gives back the memory that leaves over.
    void trim(Tick oldest);
    /// Forgets all; keeps the memory.
    void clear();

    /// Ticks that can be found.
    [[nodiscard]] std::size_t size() const { return size_; }

    [[nodiscard]] std::size_t capacity_bytes() const { return segment_bytes_; }

    /// All memory it takes, its tables included.
    [[nodiscard]] std::size_t memory_bytes() const {
        return segment_bytes_ + ticks_.capacity() * sizeof(Shown) +
               segments_.capacity() * sizeof(Segment);
    }

  private:
    static constexpr std::uint32_t kNowhere = 0xFFFFFFFF;

    /// A tick and its snapshot: a block of its keys, its ends, its ints.
    struct Shown {
        Tick tick = 0;
        std::uint32_t segment = kNowhere; ///< index into segments_; kNowhere: the place is free
        const std::int32_t* block = nullptr;
        std::uint32_t num_items = 0;
        std::uint32_t num_ints = 0;
    };

    struct Segment {
        Arena::Run run;
        std::size_t used = 0;    ///< ints, from the start
        std::uint32_t shown = 0; ///< ticks that show a block of it; 0: it can go

        [[nodiscard]] std::size_t left() const { return run.ints().size() - used; }
    };

    /// All ticks of the window have a place of their own: their low bits.
    static constexpr std::size_t kPlaces = 256;
    static_assert(kPlaces > kHistoryTicks);

    [[nodiscard]] static std::size_t place_of(Tick tick) {
        return static_cast<std::uint32_t>(tick) % kPlaces;
    }

    [[nodiscard]] const Shown* find_shown(Tick tick) const {
        if (ticks_.empty()) {
            return nullptr;
        }
        const Shown& shown = ticks_[place_of(tick)];
        return shown.tick == tick && shown.segment != kNowhere ? &shown : nullptr;
    }

    [[nodiscard]] static SnapshotView view_of(const Shown& shown) {
        return SnapshotView::of_block(
            {shown.block, 2 * std::size_t{shown.num_items} + shown.num_ints}, shown.num_items,
            shown.num_ints);
    }

    [[nodiscard]] bool is_too_old(Tick tick) const {
        return size_ != 0 && std::int64_t{newest_} - tick > kHistoryTicks;
    }

    void open_segment(std::size_t ints);
    void give_back_unused();
    void show(const Shown& shown);
    void drop_before(std::int64_t tick);
    void drop(Shown& shown);

    std::unique_ptr<Arena> own_;
    Arena* arena_;
    std::vector<Shown> ticks_;      ///< kPlaces, once anything was stored
    std::vector<Segment> segments_; ///< with empty ones between them, whose places are free
    std::uint32_t last_ = 0;        ///< the segment that is filled
    std::size_t segment_bytes_ = 0;
    std::size_t size_ = 0;
    std::size_t kept_ints_ = 0; ///< of all that is shown, each tick counted
    Tick oldest_ = 0;           ///< no tick before it is shown
    Tick newest_ = 0;           ///< of those shown, if there are any
};

/// Rebuilds a snapshot from its base and a decoded delta, as apply_delta of delta.h does, in room that
/// the history has behind those it keeps. Keeping it, too, is for the caller (History::commit).
[[nodiscard]] Result<SnapshotView> apply_delta(const SnapshotView& base, const Delta& delta,
                                               History& history, DeltaWarnings& warnings);

} // namespace tw::snapshot
