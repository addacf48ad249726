#include "snapshot/history.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace tw::snapshot {

namespace {

// Entries kept at most: every tick of the window once, and as many again that were replaced.
constexpr std::size_t kMaxEntries = 2 * (std::size_t{kHistoryTicks} + 1);
// Beyond this nothing is stored: the largest legal snapshot has fewer ints.
constexpr std::size_t kMaxRingInts = History::kMaxHistoryBytes / sizeof(std::int32_t);

std::span<const std::uint32_t> as_unsigned(std::span<const std::int32_t> ints) {
    return {reinterpret_cast<const std::uint32_t*>(ints.data()), ints.size()};
}

// A snapshot lies in the ring as its keys, its ends, its ints.
SnapshotView view(std::span<const std::int32_t> ints, std::size_t num_items) {
    return {as_unsigned(ints.first(num_items)), as_unsigned(ints.subspan(num_items, num_items)),
            ints.subspan(2 * num_items)};
}

void write(const SnapshotView& snapshot, std::int32_t* out) {
    const auto append = [&out](const auto& values) {
        if (!values.empty()) {
            std::memcpy(out, values.data(), values.size_bytes());
            out += values.size();
        }
    };
    append(snapshot.keys());
    append(snapshot.ends());
    append(snapshot.data());
}

bool is_inside(std::span<const std::int32_t> ring, const SnapshotView& snapshot) {
    const void* const keys = snapshot.keys().data();
    return !snapshot.empty() &&
           std::greater_equal<>{}(keys, static_cast<const void*>(ring.data())) &&
           std::less<>{}(keys, static_cast<const void*>(ring.data() + ring.size()));
}

} // namespace

bool History::is_too_old(Tick tick) const {
    return size() > 0 && std::int64_t{newest_} - tick > kHistoryTicks;
}

const History::Entry* History::find_entry(Tick tick) const {
    if (is_too_old(tick)) {
        return nullptr;
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
    return view(std::span{ring_}.subspan(entry->begin, entry->size()), entry->num_items);
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

// A larger ring with the same entries, in order from its start.
void History::grow(std::size_t size) {
    std::size_t kept = 0;
    for (std::size_t i = first_; i < entries_.size(); ++i) {
        kept += entries_[i].size();
    }
    // An eighth more than needed: what is kept varies, and a gap stays at the end of the ring.
    const std::size_t wanted = kept + size;
    RawVector<std::int32_t> ring(std::min(wanted + wanted / 8, kMaxRingInts));
    std::size_t at = 0;
    for (std::size_t i = first_; i < entries_.size(); ++i) {
        Entry& entry = entries_[i];
        std::copy_n(ring_.data() + entry.begin, entry.size(), ring.data() + at);
        entry.begin = static_cast<std::uint32_t>(at);
        at += entry.size();
    }
    ring_.swap(ring);
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

void History::store(Tick tick, const SnapshotView& snapshot) {
    SnapshotView source = snapshot;
    const std::size_t size = 2 * source.size() + source.data().size();
    if (is_too_old(tick) || source.size_bytes() > kMaxSnapshotBytes) {
        return;
    }
    if (entries_.capacity() == 0) {
        entries_.reserve(2 * kMaxEntries);
    }
    newest_ = this->size() == 0 ? tick : std::max(newest_, tick);

    if (is_inside(ring_, source)) {
        spare_.resize(size);
        write(source, spare_.data());
        source = view(spare_, source.size());
    }
    if (const Entry* const old = find_entry(tick)) {
        entries_[static_cast<std::size_t>(old - entries_.data())].replaced = true;
    }
    while (this->size() > 0 && (entries_[first_].replaced || is_too_old(entries_[first_].tick) ||
                                this->size() >= kMaxEntries)) {
        drop_first();
    }
    const std::size_t begin = make_room(size);
    write(source, ring_.data() + begin);
    entries_.push_back({.tick = tick,
                        .begin = static_cast<std::uint32_t>(begin),
                        .num_items = static_cast<std::uint32_t>(source.size()),
                        .num_ints = static_cast<std::uint32_t>(source.data().size())});
}

void History::clear() {
    entries_.clear();
    first_ = 0;
}

} // namespace tw::snapshot
