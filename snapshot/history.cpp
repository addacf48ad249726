#include "snapshot/history.h"

#include <iterator>

namespace tw::snapshot {

namespace {

// The number of snapshots per segment. A smaller number wastes more space at the ends of segments.
// With a larger number, old snapshots are freed later. The waste is smallest at the square root of
// half the number of snapshots in the history.
constexpr std::size_t kBlocksPerSegment = 8;
constexpr std::size_t kMaxSegmentBytes = kBlocksPerSegment * kMaxSnapshotBytes;
static_assert(kMaxSegmentBytes <= Arena::kRegionBytes);

} // namespace

// Selects the segment for the next blocks: an unused segment, or a new one.
void History::select_segment(std::size_t ints) {
    const auto fits = [ints](const Segment& segment) {
        return segment.num_ticks == 0 && segment.pages.ints().size() >= ints;
    };
    auto found = std::ranges::find_if(segments_, fits);
    if (found == segments_.end()) {
        free_unused_memory();
        // The segment gets space for as many blocks as the history has ticks, at most eight. The
        // size of these blocks is the average size of the history's blocks.
        const std::size_t usual = size_ == 0 ? ints : kept_ints_ / size_;
        const std::size_t blocks = std::clamp<std::size_t>(size_, 1, kBlocksPerSegment);
        const std::size_t bytes = std::min(sizeof(std::int32_t) * blocks * usual, kMaxSegmentBytes);
        auto pages = arena_->allocate(std::max(sizeof(std::int32_t) * ints, bytes));
        segment_bytes_ += pages.bytes();
        found = std::ranges::find_if(segments_, [](const Segment& segment) {
            return segment.num_ticks == 0; // an unused segment without pages
        });
        if (found == segments_.end()) {
            found = segments_.emplace(segments_.end());
        }
        found->pages = std::move(pages);
    }
    found->used = 0;
    last_ = static_cast<std::uint32_t>(std::distance(segments_.begin(), found));
}

void History::free_unused_memory() {
    for (Segment& segment : segments_) {
        if (segment.num_ticks == 0) {
            segment_bytes_ -= segment.pages.bytes();
            segment = {};
        }
    }
}

// Removes a stored tick. If its segment has no other tick, frees or empties the segment.
void History::remove_stored(StoredTick& stored) {
    Segment& segment = segments_[stored.segment];
    kept_ints_ -= 2 * std::size_t{stored.num_items} + stored.num_ints;
    --size_;
    if (--segment.num_ticks == 0) {
        if (stored.segment == last_) {
            segment.used = 0;
        } else {
            segment_bytes_ -= segment.pages.bytes();
            segment = {};
        }
    }
    stored.segment = kUnusedEntry;
}

void History::remove_before(std::int64_t tick) {
    for (; size_ != 0 && oldest_ < tick; ++oldest_) {
        StoredTick& stored = ticks_[table_index(oldest_)];
        if (stored.segment != kUnusedEntry && stored.tick == oldest_) {
            remove_stored(stored);
        }
    }
}

// Stores a tick. Precondition: the tick is not too old, and its segment is in use.
void History::add_stored(const StoredTick& stored) {
    // The new tick is counted first. Otherwise, if remove_before() removes the last other tick that
    // uses the segment, the segment would be freed.
    ++segments_[stored.segment].num_ticks;
    if (size_ != 0 && stored.tick > newest_) {
        remove_before(std::int64_t{stored.tick} - kHistoryTicks);
    }
    newest_ = size_ == 0 ? stored.tick : std::max(newest_, stored.tick);
    oldest_ = size_ == 0 ? stored.tick : std::min(oldest_, stored.tick);
    StoredTick& place = ticks_[table_index(stored.tick)];
    if (place.segment != kUnusedEntry) {
        remove_stored(place); // the entry can only contain an earlier snapshot of the same tick
    }
    place = stored;
    kept_ints_ += 2 * std::size_t{stored.num_items} + stored.num_ints;
    ++size_;
    // The memory limit must leave space for the next segment.
    while (segment_bytes_ > kMaxHistoryBytes - kMaxSegmentBytes && size_ > 1) {
        remove_before(std::int64_t{oldest_} + 1);
    }
}

bool History::commit(Tick tick, const SnapshotView& block) {
    if (is_too_old(tick)) {
        return false;
    }
    if (ticks_.empty()) {
        ticks_.resize(kTableSize);
    }
    Segment& segment = segments_[last_];
    const std::int32_t* const begin = segment.pages.ints().data() + segment.used;
    segment.used += block.block_ints();
    add_stored({.tick = tick,
                .segment = last_,
                .block = begin,
                .num_items = static_cast<std::uint32_t>(block.size()),
                .num_ints = static_cast<std::uint32_t>(block.data().size())});
    return true;
}

void History::store(Tick tick, const SnapshotView& snapshot) {
    if (is_too_old(tick) || snapshot.size_bytes() > kMaxSnapshotBytes) {
        return;
    }
    snapshot.write_block(reserve(snapshot.block_ints()).data());
    commit(tick, snapshot);
}

bool History::store_unchanged(Tick base, Tick tick) {
    const StoredTick* const found = find_stored(base);
    if (found == nullptr || is_too_old(tick)) {
        return false;
    }
    StoredTick stored = *found;
    stored.tick = tick;
    add_stored(stored);
    return true;
}

void History::trim(Tick oldest) {
    remove_before(oldest);
    free_unused_memory();
    if (size_ == 0) {
        segments_ = std::vector<Segment>{};
        ticks_ = std::vector<StoredTick>{};
    }
}

void History::clear() {
    for (StoredTick& stored : ticks_) {
        stored.segment = kUnusedEntry;
    }
    for (Segment& segment : segments_) {
        segment.num_ticks = 0;
        segment.used = 0;
    }
    size_ = 0;
    kept_ints_ = 0;
}

} // namespace tw::snapshot
