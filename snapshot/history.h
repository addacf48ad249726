#pragma once

#include "snapshot/int_block.h"
#include "snapshot/item.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tw::snapshot {

/// Servers keep 3 seconds (150 ticks) of snapshots to build on; clients in menus acknowledge once a
/// second. 250 ticks leaves room for ticks that arrive late.
inline constexpr Tick kHistoryTicks = 250;

/// Past snapshots by tick, in one ring of ints: no allocation once it has grown to what a session
/// needs (kHistoryTicks of its snapshots), and never more than kMaxHistoryBytes. Ticks that show the
/// same share one block.
class History {
  public:
    /// Hard bound of one session's ring: 250 snapshots of the maximal 64 KiB would be 16 MiB. What
    /// does not fit pushes out the oldest.
    static constexpr std::size_t kMaxHistoryBytes = std::size_t{16} << 20U;

    /// The snapshot of this tick; the view is valid until the next `reserve`, `store`, `trim` or
    /// `clear`.
    [[nodiscard]] std::optional<SnapshotView> find(Tick tick) const;

    [[nodiscard]] bool contains(Tick tick) const { return find_entry(tick) != nullptr; }

    /// `use(tick, view)` for all from that tick on, in the order of storing.
    template <typename Use>
    void for_each_from(Tick oldest, Use&& use) const {
        for (std::size_t i = first_; i < entries_.size(); ++i) {
            if (entries_[i].block != Entry::kReplaced && entries_[i].tick >= oldest) {
                use(entries_[i].tick, view_of(entries_[i]));
            }
        }
    }

    /// The newest tick stored, if any.
    [[nodiscard]] std::optional<Tick> newest() const;

    /// Room to build a snapshot in, as a block of up to `ints` ints; valid until the next
    /// `reserve`, `store`, `trim` or `clear`. Empty when it would exceed kMaxHistoryBytes alone. At
    /// kMaxHistoryBytes the oldest snapshots make way.
    [[nodiscard]] std::span<std::int32_t> reserve(std::size_t ints);
    /// Keeps the block at the start of the reserved room as this tick's snapshot, in the place of
    /// the one that was there, and forgets what is older than kHistoryTicks behind the newest.
    /// False: the tick itself is.
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

    /// Snapshots that can be found, and replaced ones that did not go yet.
    [[nodiscard]] std::size_t size() const { return entries_.size() - first_; }

    [[nodiscard]] std::size_t capacity_bytes() const { return ring_.size() * sizeof(std::int32_t); }

    /// All memory it takes, its tables included.
    [[nodiscard]] std::size_t memory_bytes() const {
        return capacity_bytes() + entries_.capacity() * sizeof(Entry) +
               blocks_.capacity() * sizeof(Block);
    }

  private:
    /// A snapshot in the ring: its keys, its ends, its ints.
    struct Block {
        std::uint32_t begin = 0; ///< index into ring_
        std::uint32_t num_items = 0;
        std::uint32_t num_ints = 0;
        std::uint32_t ticks = 0; ///< entries that show it; 0: its room is free

        [[nodiscard]] std::size_t size() const { return 2 * std::size_t{num_items} + num_ints; }

        [[nodiscard]] std::size_t end() const { return begin + size(); }
    };

    struct Entry {
        static constexpr std::uint32_t kReplaced = 0xFFFFFFFF;

        Tick tick = 0;
        std::uint32_t block = kReplaced; ///< index into blocks_; kReplaced: a later entry has it
    };

    [[nodiscard]] bool is_too_old(Tick tick) const;
    [[nodiscard]] const Entry* find_entry(Tick tick) const;
    [[nodiscard]] SnapshotView view_of(const Entry& entry) const;
    [[nodiscard]] std::optional<std::size_t> find_room(std::size_t size) const;
    [[nodiscard]] std::size_t make_room(std::size_t size);
    [[nodiscard]] std::size_t with_headroom(std::size_t ints) const;
    void grow(std::size_t size);
    void move_to(std::size_t ints);
    void add(Tick tick, std::uint32_t block);
    void drop_first();
    void release(std::uint32_t block);

    IntBlock ring_;
    std::vector<Block> blocks_; ///< in the order of their room; those before first_block_ are free
    std::size_t first_block_ = 0;
    std::size_t used_ints_ = 0;  ///< of blocks that are shown
    std::vector<Entry> entries_; ///< in the order of storing; those before first_ are gone
    std::size_t first_ = 0;
    std::size_t reserved_ = 0; ///< index into ring_
    Tick newest_ = 0;          ///< of the entries, if there are any
};

} // namespace tw::snapshot
