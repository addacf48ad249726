#include "proxy/admin/feed.h"

#include <algorithm>
#include <utility>

namespace tw::admin {

bool Watch::session(std::uint32_t number) const noexcept {
    return any() && std::any_of(sessions_.begin(), sessions_.end(), [number](const auto& watched) {
               return watched.load(std::memory_order_relaxed) == number;
           });
}

void Watch::set(std::span<const std::uint32_t> sessions, bool log, bool bytes) noexcept {
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
        sessions_[i].store(i < sessions.size() ? sessions[i] : 0, std::memory_order_relaxed);
    }
    log_.store(log, std::memory_order_relaxed);
    bytes_.store(bytes, std::memory_order_relaxed);
    any_.store(!sessions.empty() || log || bytes, std::memory_order_relaxed);
}

void Batch::clear() {
    snapshots.clear();
    ints.clear();
    lines.clear();
    ledger.clear();
    lost_snapshots = 0;
    lost_lines = 0;
}

void Batch::add(SeenSnapshot seen, const snapshot::SnapshotView& items) {
    const std::size_t size = items.block_ints();
    if (ints.size() + size > kMaxInts || snapshots.size() > kMaxInts / sizeof(SeenSnapshot)) {
        ++lost_snapshots;
        return;
    }
    seen.block = ints.size();
    seen.num_items = items.size();
    seen.num_ints = items.data().size();
    ints.resize(ints.size() + size);
    items.write_block(ints.data() + seen.block);
    snapshots.push_back(seen);
}

snapshot::SnapshotView Batch::items(const SeenSnapshot& seen) const {
    return snapshot::SnapshotView::of_block(std::span{ints}.subspan(seen.block), seen.num_items,
                                            seen.num_ints);
}

bool FeedBox::try_put(Batch& batch) {
    const std::unique_lock lock{mutex_, std::try_to_lock};
    if (!lock.owns_lock() || !batch_.empty()) {
        return false;
    }
    std::swap(batch_, batch);
    return true;
}

bool FeedBox::take(Batch& batch) {
    const std::lock_guard lock{mutex_};
    if (batch_.empty()) {
        return false;
    }
    std::swap(batch_, batch);
    return true;
}

} // namespace tw::admin
