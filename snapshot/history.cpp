#include "snapshot/history.h"

#include <algorithm>

namespace tw::snapshot {

namespace {

// Entries kept at most: every tick of the window once, and as many again that were replaced.
constexpr std::size_t kMaxEntries = 2 * (std::size_t{kHistoryTicks} + 1);
// Beyond this nothing is stored: the largest legal snapshot has fewer ints.
constexpr std::size_t kMaxRingInts = History::kMaxHistoryBytes / sizeof(std::int32_t);

} // namespace

bool History::is_too_old(Tick tick) const {
    return size() > 0 && std::int64_t{newest_} - tick > kHistoryTicks;
}

const History::Entry* History::find_entry(Tick tick) const {
    if (size() == 0 || tick > newest_ || is_too_old(tick)) {
        return nullptr; // as for every snapshot that is new
    }
    // From the newest on: servers build on what was acknowledged a few ticks ago.
    for (std::size_t i = entries_.size(); i > first_; --i) {
        const Entry& entry = entries_[i - 1];
        if (entry.tick == tick && !entry.replaced) {
            return &entry;
        }
    }
    return nullptr;
}

std::optional<SnapshotView> History::find(Tick tick) const {
    const Entry* const entry = find_entry(tick);
    if (entry == nullptr) {
        return std::nullopt;
    }
    return SnapshotView::of_block(ring_.ints().subspan(entry->begin, entry->size()),
                                  entry->num_items, entry->num_ints);
}

std::optional<Tick> History::newest() const {
    return size() == 0 ? std::nullopt : std::optional{newest_};
}

void History::drop_first() {
    ++first_;
    if (first_ == entries_.size() || first_ >= kMaxEntries) {
        entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
    }
}

// Where `size` ints fit without pushing anything out: behind the last entry, or at the start of the
// ring when there is no room behind it.
std::optional<std::size_t> History::find_room(std::size_t size) const {
    if (first_ == entries_.size()) {
        return size <= ring_.size() ? std::optional<std::size_t>{0} : std::nullopt;
    }
    const std::size_t head = entries_[first_].begin;
    const std::size_t tail = entries_.back().begin + entries_.back().size();
    const bool wrapped = entries_.back().begin < head;
    if (wrapped) {
        return tail + size <= head ? std::optional{tail} : std::nullopt;
    }
    if (tail + size <= ring_.size()) {
        return tail;
    }
    return size <= head ? std::optional<std::size_t>{0} : std::nullopt;
}

// A larger ring with the same entries. As long as nothing has gone they stand in order from its
// start, and large blocks grow where they are, or by moving pages rather than bytes; later they are
// copied into order.
void History::grow(std::size_t size) {
    std::size_t kept = 0;
    for (std::size_t i = first_; i < entries_.size(); ++i) {
        kept += entries_[i].size();
    }
    // An eighth more than needed: what is kept varies, and a gap stays at the end of the ring.
    const std::size_t wanted = kept + size;
    const std::size_t ints = std::min(wanted + wanted / 8, kMaxRingInts);
    const bool in_order =
        first_ == entries_.size() ||
        (entries_[first_].begin == 0 && entries_.back().begin + entries_.back().size() == kept);
    if (in_order) {
        ring_.grow(ints);
        return;
    }
    IntBlock ring;
    ring.grow(ints);
    std::size_t at = 0;
    for (std::size_t i = first_; i < entries_.size(); ++i) {
        Entry& entry = entries_[i];
        std::copy_n(ring_.data() + entry.begin, entry.size(), ring.data() + at);
        entry.begin = static_cast<std::uint32_t>(at);
        at += entry.size();
    }
    ring_ = std::move(ring);
}

std::size_t History::make_room(std::size_t size) {
    while (true) {
        if (const auto room = find_room(size)) {
            return *room;
        }
        if (ring_.size() < kMaxRingInts) {
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
        entries_.reserve(2 * kMaxEntries);
    }
    if (const Entry* const old = find_entry(tick)) {
        entries_[static_cast<std::size_t>(old - entries_.data())].replaced = true;
    }
    newest_ = size() == 0 ? tick : std::max(newest_, tick);
    while (size() > 0 && (entries_[first_].replaced || is_too_old(entries_[first_].tick) ||
                          size() >= kMaxEntries)) {
        drop_first();
    }
    entries_.push_back({.tick = tick,
                        .begin = static_cast<std::uint32_t>(reserved_),
                        .num_items = static_cast<std::uint32_t>(block.size()),
                        .num_ints = static_cast<std::uint32_t>(block.data().size())});
    return true;
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
    const auto snapshot = find(base);
    if (!snapshot) {
        return false;
    }
    const auto room = reserve(snapshot->block_ints());
    const auto moved = find(base); // making room can move it, or push it out
    if (!moved) {
        return false;
    }
    moved->write_block(room.data());
    return commit(tick, *moved);
}

void History::clear() {
    entries_.clear();
    first_ = 0;
}

} // namespace tw::snapshot
