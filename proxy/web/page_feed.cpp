#include "proxy/web/page_feed.h"

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
    topics_changed_.wait_for(lock, most,
                             [this] { return wants_topic(ViewerTopic::world) || is_stopped_; });
}

void ViewerInterest::stop_waiting() {
    {
        const std::lock_guard lock{mutex_};
        is_stopped_ = true;
    }
    topics_changed_.notify_all();
}

void ViewerInterest::set_interest(std::span<const std::uint32_t> sessions, ViewerTopic topics) {
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
    topics_changed_.notify_all();
    wants_anything_.store(!sessions.empty() || topics != ViewerTopic::none,
                          std::memory_order_relaxed);
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

bool PageFeed::try_publish_view(std::size_t worker, StatusView& view) {
    const std::unique_lock lock{views_mutex_, std::try_to_lock};
    if (!lock.owns_lock()) {
        return false;
    }
    std::swap(views_.at(worker), view);
    return true;
}

StatusView PageFeed::read_merged_view() const {
    const std::lock_guard lock{views_mutex_};
    StatusView all;
    for (const StatusView& view : views_) {
        all.merge_with(view);
    }
    return all;
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
    if (has_snapshots && !is_listener_called_.exchange(true)) {
        const std::lock_guard lock{mutex_};
        if (listener_) {
            listener_();
        }
    }
    return true;
}

namespace {

using TextBuffer = fmt::memory_buffer;

constexpr double kNanosecondsPerMs = 1e6;

void append_text(TextBuffer& out, std::string_view text) {
    out.append(text.data(), text.data() + text.size());
}

void append_text(TextBuffer& out, std::int64_t value) {
    const fmt::format_int text{value};
    out.append(text.data(), text.data() + text.size());
}

/// Returns whether the items give a known type number another UUID. This happens after a restart of
/// the server.
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

void append_item(TextBuffer& out, const snapshot::ItemView& item, const record::ItemTypes& types) {
    append_text(out, out.size() != 0 && out[out.size() - 1] == '[' ? "[" : ",[");
    // A known type is sent as its object's index in the list of /api/objects, an unknown type as
    // −1 − type.
    const snapshot::ObjectSpec* const object = types.object(item.key.type);
    append_text(out, object == nullptr
                         ? -1 - std::int64_t{item.key.type}
                         : static_cast<std::int64_t>(types.objects().index_of(*object)));
    append_text(out, ",");
    append_text(out, std::int64_t{item.key.id});
    for (const std::int32_t value : item.data) {
        append_text(out, ",");
        append_text(out, std::int64_t{value});
    }
    append_text(out, "]");
}

/// Appends the snapshot's bar in the timeline to `bars`, a list of elements of a JSON array.
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

/// Appends the items of `now` that are new or differ from `before`. Returns the keys that only
/// `before` has. Both snapshots are sorted by key.
std::vector<snapshot::ItemKey> append_changed_items(TextBuffer& out,
                                                    const snapshot::SnapshotView& now,
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
            !(was && std::ranges::equal(item.data, before[old].data))) {
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
constexpr std::int64_t kMaxEarlyTime = 5'000'000;

} // namespace

void PageFrameMaker::set_frame_rates(const std::vector<int>& frame_rates) {
    std::erase_if(frame_streams_, [&](const FrameStream& stream) {
        return std::ranges::find(frame_rates, stream.frame_rate) == frame_rates.end();
    });
    for (const int frame_rate : frame_rates) {
        const bool known = std::ranges::any_of(
            frame_streams_, [&](const FrameStream& each) { return each.frame_rate == frame_rate; });
        if (!known) {
            frame_streams_.push_back({.frame_rate = frame_rate});
        }
    }
}

void PageFrameMaker::add_snapshot(const InspectedSnapshot& seen,
                                  const snapshot::SnapshotView& items,
                                  const std::function<void(const PageFrame&)>& show) {
    for (FrameStream& stream : frame_streams_) {
        if (stream.num_bars < kMaxTimelineBars) {
            append_bar(stream.bars, seen, items);
            ++stream.num_bars;
        }
    }
    const bool has_only_bars =
        !seen.rebuilt || (latest_snapshot_ && seen.tick == latest_snapshot_->tick);
    if (!has_only_bars) {
        set_latest_items(seen, items);
    }
    for (FrameStream& stream : frame_streams_) {
        if (stream.try_start_frame(seen.time)) {
            show_frame(stream, has_only_bars, show);
            stream.bars.clear();
            stream.num_bars = 0;
        }
    }
}

void PageFrameMaker::set_latest_items(const InspectedSnapshot& seen,
                                      const snapshot::SnapshotView& items) {
    if (has_changed_types(types_, items)) {
        for (FrameStream& stream : frame_streams_) {
            stream.sent.reset(); // the next frame repeats all items, because type numbers changed
        }
    }
    types_.learn_types(items);
    latest_snapshot_ = seen;
    ++snapshot_count_;
    snapshot::SnapshotWriter{latest_items_, items.size(), items.data().size()}.copy(items);
}

bool PageFrameMaker::FrameStream::try_start_frame(std::int64_t time) {
    const std::int64_t period =
        frame_rate >= kEveryTickFrameRate ? 0 : kSecond / std::max(frame_rate, 1);
    const bool again = time < due - 2 * period; // the clock was set back
    if (!again && time < due - kMaxEarlyTime) {
        return false;
    }
    // The period starts at the time at which this frame was due, so that irregular snapshots do not
    // lower the frame rate. If the clock was set back, the period starts now. After a long pause,
    // the next frame is due at once.
    due = again ? time + period : std::max(due + period, time);
    return true;
}

/// Returns a frame with the items that are new or differ from `before`, and the keys that only
/// `before` has. If `before` is null, the frame contains all items. Type descriptors are left out.
std::string PageFrameMaker::frame_json(const FrameStream& stream,
                                       const snapshot::Snapshot* before) const {
    TextBuffer out;
    append_text(
        out,
        fmt::format(R"({{"k":"frame","session":{},"n":{},"full":{},"t":{:.3f},"tick":{},"items":[)",
                    session_, stream.number, before == nullptr,
                    static_cast<double>(latest_snapshot_->time) / kNanosecondsPerMs,
                    latest_snapshot_->tick));
    const auto gone = append_changed_items(
        out, latest_items(), before == nullptr ? snapshot::SnapshotView{} : before->view(), types_);
    append_text(out, "],\"gone\":[");
    for (const snapshot::ItemKey& key : gone) {
        append_item(out, {key, {}}, types_);
    }
    append_text(out, fmt::format("],\"bars\":[{}]}}", stream.bars));
    return {out.data(), out.size()};
}

void PageFrameMaker::show_frame(FrameStream& stream, bool has_only_bars,
                                const std::function<void(const PageFrame&)>& show) {
    if (has_only_bars) {
        const auto text = std::make_shared<const std::string>(
            fmt::format(R"({{"k":"bars","session":{},"bars":[{}]}})", session_, stream.bars));
        return show({.frame_rate = stream.frame_rate,
                     .delta = text,
                     .full = [text] { return text; },
                     .has_only_bars = true});
    }
    ++stream.number;
    std::shared_ptr<const std::string> full;
    PageFrame frame{.frame_rate = stream.frame_rate, .full = [&] {
                        if (full == nullptr) {
                            full = std::make_shared<const std::string>(frame_json(stream, nullptr));
                        }
                        return full;
                    }};
    frame.delta = stream.sent
                      ? std::make_shared<const std::string>(frame_json(stream, &*stream.sent))
                      : frame.full();
    show(frame);
    stream.sent = latest_items_;
}

} // namespace tw::web
