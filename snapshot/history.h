#pragma once

#include "snapshot/item.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace tw::snapshot {

/// Servers keep 3 seconds (150 ticks) of snapshots to build on; clients in menus acknowledge once a
/// second. 250 ticks leaves room for ticks that arrive late.
inline constexpr Tick kHistoryTicks = 250;

/// Past snapshots by tick, in one ring of ints: no allocation once it has grown to what a session
/// needs (kHistoryTicks of its snapshots), and never more than kMaxHistoryBytes.
class History {
  public:
    /// Hard bound of one session's ring: 250 snapshots of the maximal 64 KiB would be 16 MiB.
    static constexpr std::size_t kMaxHistoryBytes = std::size_t{16} << 20U;

    /// The snapshot of this tick; the view is valid until the next `store` or `clear`.
    [[nodiscard]] std::optional<SnapshotView> find(Tick tick) const;
    [[nodiscard]] bool contains(Tick tick) const;
    /// The view of the newest tick stored, if any.
    [[nodiscard]] std::optional<Tick> newest() const;

    /// Stores a copy, forgets what is older than kHistoryTicks behind the newest. A tick already
    /// there is replaced.
    void store(Tick tick, const SnapshotView& snapshot);
    void clear();

    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] std::size_t capacity_bytes() const { return ring_.capacity() * sizeof(std::int32_t); }

  private:
    struct Entry {
        Tick tick = 0;
        std::uint32_t begin = 0;  ///< index into ring_
        std::uint32_t num_items = 0;
        std::uint32_t num_ints = 0;
    };

    std::vector<std::int32_t> ring_;
    std::vector<Entry> entries_;
    Tick newest_ = -1;
};

} // namespace tw::snapshot
