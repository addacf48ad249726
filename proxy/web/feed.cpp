#include "proxy/web/feed.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tw::web {

bool ViewerInterest::wants_session(std::uint32_t number) const noexcept {
    return wants_anything() && std::ranges::any_of(sessions_, [number](const auto& watched) {
               return watched.load(std::memory_order_relaxed) == number;
           });
}

void ViewerInterest::wait_for_world_viewer(std::chrono::milliseconds most) {
    std::unique_lock lock{mutex_};
    changed_.wait_for(lock, most, [this] { return wants(ViewerTopic::world) || is_stopped_; });
}

void ViewerInterest::stop_waiting() {
    {
        const std::lock_guard lock{mutex_};
        is_stopped_ = true;
    }
    changed_.notify_all();
}

void ViewerInterest::set_watched(std::span<const std::uint32_t> sessions, ViewerTopic topics) {
    std::size_t i = 0;
    for (const std::uint32_t number : sessions) {
        if (number == 0) {
            topics = topics | ViewerTopic::world;
        } else if (i < sessions_.size()) {
            sessions_[i++].store(number, std::memory_order_relaxed);
        }
    }
    for (; i < sessions_.size(); ++i) {
        sessions_[i].store(0, std::memory_order_relaxed);
    }
    {
        const std::lock_guard lock{mutex_};
        topics_.store(topics, std::memory_order_relaxed);
    }
    changed_.notify_all();
    any_.store(!sessions.empty() || topics != ViewerTopic::none, std::memory_order_relaxed);
}

void ViewerBatch::clear() {
    snapshots.clear();
    ints.clear();
    lines.clear();
    world_line.clear();
    world_server.reset();
    ledger.clear();
    lost_snapshots = 0;
    lost_lines = 0;
}

void ViewerBatch::add_snapshot(InspectedSnapshot seen, const snapshot::SnapshotView& items) {
    const std::size_t size = items.block_ints();
    if (ints.size() + size > kMaxInts || snapshots.size() > kMaxInts / sizeof(InspectedSnapshot)) {
        ++lost_snapshots;
        return;
    }
    seen.first_int = ints.size();
    seen.num_items = items.size();
    seen.num_ints = items.data().size();
    ints.resize(ints.size() + size);
    items.write_block(ints.data() + seen.first_int);
    snapshots.push_back(seen);
}

void ViewerBatch::add_lines(std::string_view more) {
    if (lines.size() + more.size() > kMaxLineBytes) {
        lost_lines += static_cast<std::uint64_t>(std::ranges::count(more, '\n'));
    } else {
        lines += more;
    }
}

bool ViewerBatch::append_batch(const ViewerBatch& later) {
    if (ints.size() + later.ints.size() > kMaxInts ||
        lines.size() + later.lines.size() > kMaxLineBytes ||
        snapshots.size() + later.snapshots.size() > kMaxInts / sizeof(InspectedSnapshot)) {
        return false;
    }
    for (InspectedSnapshot seen : later.snapshots) {
        seen.first_int += ints.size();
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

snapshot::SnapshotView ViewerBatch::items_of(const InspectedSnapshot& seen) const {
    return snapshot::SnapshotView::of_block(std::span{ints}.subspan(seen.first_int), seen.num_items,
                                            seen.num_ints);
}

bool Mailbox::try_put_batch(ViewerBatch& batch) {
    const std::unique_lock lock{mutex_, std::try_to_lock};
    if (!lock.owns_lock()) {
        return false;
    }
    if (!batch_.empty()) {
        return batch_.append_batch(batch);
    }
    std::swap(batch_, batch);
    return true;
}

bool Mailbox::take_batch(ViewerBatch& batch) {
    const std::lock_guard lock{mutex_};
    if (batch_.empty()) {
        return false;
    }
    std::swap(batch_, batch);
    return true;
}

void PageFeed::set_listener(std::function<void()> listener) {
    const std::lock_guard lock{mutex_};
    listener_ = std::move(listener);
}

bool PageFeed::try_put_batch(std::size_t box, ViewerBatch& batch) {
    const bool has_snapshots = !batch.snapshots.empty();
    if (!mailboxes[box].try_put_batch(batch)) {
        return false;
    }
    if (has_snapshots && !notified_.exchange(true)) {
        const std::lock_guard lock{mutex_};
        if (listener_) {
            listener_();
        }
    }
    return true;
}

namespace {

using Text = fmt::memory_buffer;

constexpr double kNanosecondsPerMs = 1e6;

void append_text(Text& out, std::string_view text) {
    out.append(text.data(), text.data() + text.size());
}

void append_text(Text& out, std::int64_t value) {
    const fmt::format_int text{value};
    out.append(text.data(), text.data() + text.size());
}

/// Returns the index of a type's object in the list of /api/objects, or −1 − type if it is unknown.
std::int64_t object_index(const record::ItemTypes& types, std::uint16_t type) {
    const snapshot::ObjectSpec* const object = types.object(type);
    return object == nullptr ? -1 - std::int64_t{type}
                             : static_cast<std::int64_t>(types.objects().index_of(*object));
}

/// Returns whether a known type number now has another UUID, as after a restart of the server.
bool has_changed_types(const record::ItemTypes& types, const snapshot::SnapshotView& items) {
    // Items that give a type number its UUID (descriptors) have the lowest keys.
    for (std::size_t i = 0; i < items.size() && items[i].key.type == snapshot::kDescriptorType;
         ++i) {
        const auto* const known = types.find(items[i].key.id);
        const auto uuid = snapshot::descriptor_uuid(items[i].data);
        if (known != nullptr && uuid && *uuid != known->uuid) {
            return true;
        }
    }
    return false;
}

void append_item(Text& out, const snapshot::ItemView& item, const record::ItemTypes& types) {
    append_text(out, out.size() != 0 && out[out.size() - 1] == '[' ? "[" : ",[");
    append_text(out, object_index(types, item.key.type));
    append_text(out, ",");
    append_text(out, std::int64_t{item.key.id});
    for (const std::int32_t value : item.data) {
        append_text(out, ",");
        append_text(out, std::int64_t{value});
    }
    append_text(out, "]");
}

/// Appends the snapshot as a bar of the timeline. `bars`: elements of a JSON array.
void append_bar(std::string& bars, const InspectedSnapshot& seen,
                const snapshot::SnapshotView& items) {
    constexpr int kVerified = 0;
    constexpr int kUnverified = 1;
    constexpr int kMismatched = 2;
    const bool is_wrong = seen.crc_wanted && seen.crc_got && *seen.crc_wanted != *seen.crc_got;
    bars +=
        fmt::format("{}[{},{:.1f},{},{},{},{},{},{}]", bars.empty() ? "" : ",", seen.session,
                    static_cast<double>(seen.time) / kNanosecondsPerMs, seen.tick, seen.delta_tick,
                    seen.bytes, seen.parts, seen.rebuilt ? items.size_bytes() : 0,
                    seen.rebuilt ? kVerified
                    : is_wrong   ? kMismatched
                                 : kUnverified);
}

bool are_equal_items(const snapshot::ItemView& a, const snapshot::ItemView& b) {
    return std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end());
}

/// Appends the new and changed items of `now`. Returns the keys that only `before` has. Both
/// snapshots are sorted by key.
std::vector<snapshot::ItemKey> append_changes(Text& out, const snapshot::SnapshotView& now,
                                              const snapshot::SnapshotView& before,
                                              const record::ItemTypes& types) {
    std::vector<snapshot::ItemKey> gone;
    std::size_t old = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
        const snapshot::ItemView item = now[i];
        for (; old < before.size() && before[old].key < item.key; ++old) {
            gone.push_back(before[old].key);
        }
        const bool was = old < before.size() && before[old].key == item.key;
        if (item.key.type != snapshot::kDescriptorType &&
            !(was && are_equal_items(item, before[old]))) {
            append_item(out, item, types);
        }
        old += was ? 1 : 0;
    }
    for (; old < before.size(); ++old) {
        gone.push_back(before[old].key);
    }
    return gone;
}

constexpr std::int64_t kSecond = 1'000'000'000;

/// A frame may be sent this many nanoseconds early, because snapshots arrive irregularly.
constexpr std::int64_t kEarly = 5'000'000;

std::int64_t period_of(int pace) {
    return pace >= kEveryTickFrameRate ? 0 : kSecond / std::max(pace, 1);
}

} // namespace

void PageFrameMaker::set_frame_rates(const std::vector<int>& paces) {
    std::erase_if(streams_, [&](const FrameStream& stream) {
        return std::ranges::find(paces, stream.pace) == paces.end();
    });
    for (const int pace : paces) {
        const bool known = std::ranges::any_of(
            streams_, [&](const FrameStream& each) { return each.pace == pace; });
        if (!known) {
            streams_.push_back({.pace = pace});
        }
    }
}

void PageFrameMaker::add_snapshot(const InspectedSnapshot& seen,
                                  const snapshot::SnapshotView& items,
                                  const std::function<void(const PageFrame&)>& show) {
    for (FrameStream& stream : streams_) {
        if (stream.num_bars < kMaxTimelineBars) {
            append_bar(stream.bars, seen, items);
            ++stream.num_bars;
        }
    }
    const bool bars_only = !seen.rebuilt || (latest_ && seen.tick == latest_->tick);
    if (!bars_only) {
        set_latest_items(seen, items);
    }
    for (FrameStream& stream : streams_) {
        if (stream.start_frame(seen.time)) {
            show_frame(stream, bars_only, show);
            stream.bars.clear();
            stream.num_bars = 0;
        }
    }
}

void PageFrameMaker::set_latest_items(const InspectedSnapshot& seen,
                                      const snapshot::SnapshotView& items) {
    if (has_changed_types(types_, items)) {
        for (FrameStream& stream : streams_) {
            stream.sent.reset(); // the next frame repeats all items, because type numbers changed
        }
    }
    types_.learn_types(items);
    latest_ = seen;
    ++decoded_count_;
    snapshot::SnapshotWriter{now_, items.size(), items.data().size()}.copy(items);
}

bool PageFrameMaker::FrameStream::start_frame(std::int64_t time) {
    const std::int64_t period = period_of(pace);
    const bool again = time < due - 2 * period; // the clock was set back
    if (!again && time < due - kEarly) {
        return false;
    }
    // `due` grows by whole periods, so that irregular snapshots do not lower the average pace.
    due = again ? time + period : std::max(due + period, time);
    return true;
}

/// Returns a frame: the items that differ from `before`, and the keys of items that only `before`
/// has; all items if `before` is null. Type descriptors are left out.
std::string PageFrameMaker::frame_json(const FrameStream& stream,
                                       const snapshot::Snapshot* before) const {
    Text out;
    append_text(
        out,
        fmt::format(R"({{"k":"frame","session":{},"n":{},"full":{},"t":{:.3f},"tick":{},"items":[)",
                    session_, stream.number, before == nullptr,
                    static_cast<double>(latest_->time) / kNanosecondsPerMs, latest_->tick));
    const auto gone = append_changes(
        out, latest_items(), before == nullptr ? snapshot::SnapshotView{} : before->view(), types_);
    append_text(out, "],\"gone\":[");
    for (const snapshot::ItemKey& key : gone) {
        append_item(out, {key, {}}, types_);
    }
    append_text(out, fmt::format("],\"bars\":[{}]}}", stream.bars));
    return {out.data(), out.size()};
}

void PageFrameMaker::show_frame(FrameStream& stream, bool bars_only,
                                const std::function<void(const PageFrame&)>& show) {
    if (bars_only) {
        const auto text = std::make_shared<const std::string>(
            fmt::format(R"({{"k":"bars","session":{},"bars":[{}]}})", session_, stream.bars));
        return show({.pace = stream.pace,
                     .delta = text,
                     .full = [text] { return text; },
                     .bars_only = true});
    }
    ++stream.number;
    std::shared_ptr<const std::string> full;
    PageFrame frame{.pace = stream.pace, .full = [&] {
                        if (full == nullptr) {
                            full = std::make_shared<const std::string>(frame_json(stream, nullptr));
                        }
                        return full;
                    }};
    frame.delta = stream.sent
                      ? std::make_shared<const std::string>(frame_json(stream, &*stream.sent))
                      : frame.full();
    show(frame);
    stream.sent = now_;
}

} // namespace tw::web
