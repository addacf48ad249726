#include "snapshot/history.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tw::snapshot {

namespace {

// Entries kept at most: every tick of the window once, and as many again that were replaced.
constexpr std::size_t kMaxEntries = 2 * (std::size_t{kHistoryTicks} + 1);
// What has gone is taken out of the tables so many at a time.
constexpr std::size_t kSpare = 128;
// Blocks that nothing shows stay where an older one is still shown; so many in all.
constexpr std::size_t kMaxBlocks = kMaxEntries + kSpare;
// Beyond this nothing is stored: the largest legal snapshot has fewer ints.
constexpr std::size_t kMaxRingInts = History::kMaxHistoryBytes / sizeof(std::int32_t);
// With fewer it would only grow more often: what most games need.
constexpr std::size_t kMinRingInts = 4096;

// An eighth more than needed: what is kept varies, and a gap stays at the end of the ring.
constexpr std::size_t with_slack(std::size_t ints) {
    return ints + ints / 8;
}

} // namespace

bool History::is_too_old(Tick tick) const {
    return size() > 0 && std::int64_t{newest_} - tick > kHistoryTicks;
}

const History::Entry* History::find_entry(Tick tick) const {
    if (size() == 0 || tick > newest_ || is_too_old(tick)) {
        return nullptr; // as for every snapshot that is new
    }
    // From the newest on: servers build on what was acknowledged a few ticks ago.
    const Entry* const first = entries_.data() + first_;
    for (const Entry* entry = entries_.data() + entries_.size(); entry-- != first;) {
        if (entry->tick == tick && entry->block != Entry::kReplaced) {
            return entry;
        }
    }
    return nullptr;
}

std::optional<SnapshotView> History::find(Tick tick) const {
    const Entry* const entry = find_entry(tick);
    return entry == nullptr ? std::nullopt : std::optional{view_of(*entry)};
}

SnapshotView History::view_of(const Entry& entry) const {
    const Block& block = blocks_[entry.block];
    return SnapshotView::of_block(ring_.ints().subspan(block.begin, block.size()), block.num_items,
                                  block.num_ints);
}

std::optional<Tick> History::newest() const {
    return size() == 0 ? std::nullopt : std::optional{newest_};
}

// One entry less shows this block. Room becomes free in order: behind one that is still shown it
// waits.
void History::release(std::uint32_t block) {
    if (--blocks_[block].ticks != 0) {
        return;
    }
    used_ints_ -= blocks_[block].size();
    while (first_block_ < blocks_.size() && blocks_[first_block_].ticks == 0) {
        ++first_block_;
    }
    if (first_block_ < kSpare && first_block_ < blocks_.size()) {
        return;
    }
    const auto gone = static_cast<std::uint32_t>(first_block_);
    blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(gone));
    first_block_ = 0;
    for (std::size_t i = first_; i < entries_.size(); ++i) {
        entries_[i].block -= entries_[i].block == Entry::kReplaced ? 0 : gone;
    }
}

void History::drop_first() {
    const std::uint32_t block = entries_[first_].block;
    ++first_;
    if (first_ == entries_.size() || first_ >= kSpare) {
        entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
    }
    if (block != Entry::kReplaced) {
        release(block);
    }
}

// Where `size` ints fit without pushing anything out: behind the last block, or at the start of the
// ring when there is no room behind it.
std::optional<std::size_t> History::find_room(std::size_t size) const {
    if (first_block_ == blocks_.size()) {
        return size <= ring_.size() ? std::optional<std::size_t>{0} : std::nullopt;
    }
    const std::size_t head = blocks_[first_block_].begin;
    const std::size_t tail = blocks_.back().end();
    const bool wrapped = blocks_.back().begin < head;
    if (wrapped) { // and stays so: where tail is head, nothing would tell full from empty
        return tail + size < head ? std::optional{tail} : std::nullopt;
    }
    if (tail + size <= ring_.size()) {
        return tail;
    }
    return size < head ? std::optional<std::size_t>{0} : std::nullopt;
}

// Puts what is shown into a ring of that size, side by side.
void History::move_to(std::size_t ints) {
    IntBlock ring;
    if (ints != 0) {
        ring.grow(ints);
    }
    std::array<std::uint32_t, kMaxBlocks>
        places; // of each block that stays; written as far as read
    std::size_t at = 0;
    std::uint32_t kept = 0;
    for (std::size_t i = first_block_; i < blocks_.size(); ++i) {
        Block block = blocks_[i];
        if (block.ticks == 0) {
            continue;
        }
        std::copy_n(ring_.data() + block.begin, block.size(), ring.data() + at);
        block.begin = static_cast<std::uint32_t>(at);
        at += block.size();
        places[i] = kept;
        blocks_[kept++] = block;
    }
    for (std::size_t i = first_; i < entries_.size(); ++i) {
        std::uint32_t& block = entries_[i].block;
        block = block == Entry::kReplaced ? block : places[block];
    }
    blocks_.resize(kept);
    first_block_ = 0;
    ring_ = std::move(ring);
}

// What a ring should have for so many ints: while it fills for the first time it is about to need
// more, and is copied less often when it doubles.
std::size_t History::with_headroom(std::size_t ints) const {
    const bool fills =
        size() > 0 && std::int64_t{newest_} - entries_[first_].tick < kHistoryTicks / 2;
    return std::clamp(fills ? 2 * ints : with_slack(ints), kMinRingInts, kMaxRingInts);
}

// A ring that has room. As long as nothing has gone the blocks stand in order from its start, and
// it grows where it is, or by moving pages rather than bytes; later they are copied into order.
void History::grow(std::size_t size) {
    const std::size_t ints = with_headroom(used_ints_ + size);
    const bool in_order = first_block_ == blocks_.size() ||
                          (blocks_[first_block_].begin == 0 && blocks_.back().end() == used_ints_);
    if (in_order && ints > ring_.size()) {
        ring_.grow(ints);
    } else {
        move_to(ints);
    }
}

std::size_t History::make_room(std::size_t size) {
    if (blocks_.size() >= kMaxBlocks) {
        move_to(ring_.size());
    }
    while (true) {
        if (const auto room = find_room(size)) {
            return *room;
        }
        // A full ring has room again once enough of it is free, wherever that is.
        if (ring_.size() < kMaxRingInts || with_slack(used_ints_ + size) <= kMaxRingInts) {
            grow(size);
        } else {
            drop_first();
        }
    }
}

std::span<std::int32_t> History::reserve(std::size_t ints) {
    if (ints > kMaxRingInts) {
        return {};
    }
    reserved_ = make_room(ints);
    return ring_.ints().subspan(reserved_, ints);
}

bool History::commit(Tick tick, const SnapshotView& block) {
    if (is_too_old(tick)) {
        return false;
    }
    if (entries_.capacity() == 0) {
        entries_.reserve(kMaxEntries + kSpare + 1);
        blocks_.reserve(kMaxBlocks);
    }
    blocks_.push_back({.begin = static_cast<std::uint32_t>(reserved_),
                       .num_items = static_cast<std::uint32_t>(block.size()),
                       .num_ints = static_cast<std::uint32_t>(block.data().size())});
    used_ints_ += blocks_.back().size();
    add(tick, static_cast<std::uint32_t>(blocks_.size() - 1));
    return true;
}

// One entry more shows this block, which may be one that is shown already.
void History::add(Tick tick, std::uint32_t block) {
    ++blocks_[block].ticks;
    const Entry* const old = find_entry(tick);
    const std::ptrdiff_t replaced = old == nullptr ? 0 : old - entries_.data();
    newest_ = size() == 0 ? tick : std::max(newest_, tick);
    entries_.push_back({.tick = tick, .block = block});
    if (old != nullptr) {
        release(
            std::exchange(entries_[static_cast<std::size_t>(replaced)].block, Entry::kReplaced));
    }
    while (entries_[first_].block == Entry::kReplaced || is_too_old(entries_[first_].tick) ||
           size() > kMaxEntries) {
        drop_first();
    }
}

void History::store(Tick tick, const SnapshotView& snapshot) {
    if (is_too_old(tick) || snapshot.size_bytes() > kMaxSnapshotBytes) {
        return;
    }
    const auto room = reserve(snapshot.block_ints());
    snapshot.write_block(room.data());
    commit(tick, snapshot);
}

bool History::repeat(Tick base, Tick tick) {
    const Entry* const entry = find_entry(base);
    if (entry == nullptr || is_too_old(tick)) {
        return false;
    }
    add(tick, entry->block);
    return true;
}

void History::trim(Tick oldest) {
    while (size() > 0 &&
           (entries_[first_].block == Entry::kReplaced || entries_[first_].tick < oldest)) {
        drop_first();
    }
    if (size() == 0) {
        *this = {};
    } else if (with_slack(used_ints_) < ring_.size()) {
        move_to(used_ints_);
    }
}

void History::clear() {
    entries_.clear();
    first_ = 0;
    blocks_.clear();
    first_block_ = 0;
    used_ints_ = 0;
}

} // namespace tw::snapshot
