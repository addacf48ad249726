#include "proxy/admin/feed.h"

#include <algorithm>
#include <utility>

namespace tw::admin {

bool Watch::session(std::uint32_t number) const noexcept {
    return any() && std::any_of(sessions_.begin(), sessions_.end(), [number](const auto& watched) {
               return watched.load(std::memory_order_relaxed) == number;
           });
}

void Watch::await_world(std::chrono::milliseconds most) {
    std::unique_lock lock{mutex_};
    told_.wait_for(lock, most, [this] { return world() || hurried_; });
}

void Watch::hurry() {
    {
        const std::lock_guard lock{mutex_};
        hurried_ = true;
    }
    told_.notify_all();
}

void Watch::set(std::span<const std::uint32_t> sessions, bool log, bool bytes, bool world_line) {
    const bool world = std::find(sessions.begin(), sessions.end(), 0U) != sessions.end();
    std::size_t i = 0;
    for (const std::uint32_t number : sessions) {
        if (number != 0 && i < sessions_.size()) {
            sessions_[i].store(number, std::memory_order_relaxed);
            ++i;
        }
    }
    for (; i < sessions_.size(); ++i) {
        sessions_[i].store(0, std::memory_order_relaxed);
    }
    world_line_.store(world_line, std::memory_order_relaxed);
    if (world != world_.load(std::memory_order_relaxed)) {
        const std::lock_guard lock{mutex_};
        world_.store(world, std::memory_order_relaxed);
        told_.notify_all();
    }
    log_.store(log, std::memory_order_relaxed);
    bytes_.store(bytes, std::memory_order_relaxed);
    any_.store(!sessions.empty() || log || bytes, std::memory_order_relaxed);
}

void Batch::clear() {
    snapshots.clear();
    ints.clear();
    lines.clear();
    world_line.clear();
    world_server.reset();
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

bool Batch::append(const Batch& later) {
    if (ints.size() + later.ints.size() > kMaxInts ||
        lines.size() + later.lines.size() > kMaxLineBytes ||
        snapshots.size() + later.snapshots.size() > kMaxInts / sizeof(SeenSnapshot)) {
        return false;
    }
    for (SeenSnapshot seen : later.snapshots) {
        seen.block += ints.size();
        snapshots.push_back(seen);
    }
    ints.insert(ints.end(), later.ints.begin(), later.ints.end());
    lines += later.lines;
    if (!later.world_line.empty()) {
        world_line = later.world_line;
    }
    if (later.world_server) {
        world_server = later.world_server;
    }
    if (!later.ledger.empty()) {
        ledger = later.ledger;
    }
    lost_snapshots += later.lost_snapshots;
    lost_lines += later.lost_lines;
    return true;
}

snapshot::SnapshotView Batch::items(const SeenSnapshot& seen) const {
    return snapshot::SnapshotView::of_block(std::span{ints}.subspan(seen.block), seen.num_items,
                                            seen.num_ints);
}

bool FeedBox::try_put(Batch& batch) {
    const std::unique_lock lock{mutex_, std::try_to_lock};
    if (!lock.owns_lock()) {
        return false;
    }
    if (!batch_.empty()) {
        return batch_.append(batch);
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

void Bell::set_listener(std::function<void()> listener) {
    const std::lock_guard lock{mutex_};
    listener_ = std::move(listener);
}

void Bell::ring() {
    if (!rung_.exchange(true)) {
        const std::lock_guard lock{mutex_};
        if (listener_) {
            listener_();
        }
    }
}

bool Feed::try_put(std::size_t box, Batch& batch) {
    const bool has_snapshots = !batch.snapshots.empty();
    if (!boxes[box].try_put(batch)) {
        return false;
    }
    if (has_snapshots) {
        bell.ring();
    }
    return true;
}

} // namespace tw::admin
