#include "proxy/admin/scene.h"

#include <algorithm>

namespace tw::admin {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// Snapshots come a little early and a little late.
constexpr std::int64_t kEarly = 5'000'000;

std::int64_t period_of(int pace) {
    return pace >= kEveryTick ? 0 : kSecond / std::max(pace, 1);
}

Bar bar_of(const SeenSnapshot& seen, const snapshot::SnapshotView& items) {
    const bool wrong = seen.crc_wanted && seen.crc_got && *seen.crc_wanted != *seen.crc_got;
    return {.session = seen.session,
            .time = seen.time,
            .tick = seen.tick,
            .delta_tick = seen.delta_tick,
            .bytes = seen.bytes,
            .parts = seen.parts,
            .size = seen.rebuilt ? items.size_bytes() : 0,
            .fate = seen.rebuilt ? Bar::Fate::verified
                    : wrong      ? Bar::Fate::mismatched
                                 : Bar::Fate::unverified};
}

} // namespace

void Scene::set_paces(const std::vector<int>& paces) {
    std::erase_if(channels_, [&](const Channel& channel) {
        return std::find(paces.begin(), paces.end(), channel.pace) == paces.end();
    });
    for (const int pace : paces) {
        const bool known = std::any_of(channels_.begin(), channels_.end(),
                                       [&](const Channel& each) { return each.pace == pace; });
        if (!known) {
            channels_.push_back({.pace = pace});
        }
    }
}

void Scene::take(const SeenSnapshot& seen, const snapshot::SnapshotView& items,
                 const std::function<void(const Frame&)>& show) {
    for (Channel& channel : channels_) {
        if (channel.bars.size() < kMaxBars) {
            channel.bars.push_back(bar_of(seen, items));
        }
    }
    if (!seen.rebuilt || (latest_ && seen.tick == latest_->tick)) {
        for (Channel& channel : channels_) {
            if (channel.take_turn(seen.time)) {
                show_bars(channel, show);
            }
        }
        return;
    }
    if (places_.learn(items)) {
        for (Channel& channel : channels_) {
            channel.sent.reset(); // what was sent is named by what the numbers meant
        }
    }
    latest_ = seen;
    ++taken_;
    now_.ints.resize(items.block_ints());
    items.write_block(now_.ints.data());
    now_.num_items = items.size();
    now_.num_ints = items.data().size();
    for (Channel& channel : channels_) {
        if (channel.take_turn(seen.time)) {
            show_frame(channel, show);
        }
    }
}

bool Scene::Channel::take_turn(std::int64_t time) {
    const std::int64_t period = period_of(pace);
    const bool again = time < due - 2 * period; // time went back
    if (!again && time < due - kEarly) {
        return false;
    }
    // On average as many as asked for, however snapshots fall.
    due = again ? time + period : std::max(due + period, time);
    return true;
}

void Scene::show_bars(Channel& channel, const std::function<void(const Frame&)>& show) const {
    auto text = std::make_shared<const std::string>(bars_json(session_, channel.bars));
    show({.pace = channel.pace, .delta = text, .full = [text] { return text; }, .bars_only = true});
    channel.bars.clear();
}

void Scene::show_frame(Channel& channel, const std::function<void(const Frame&)>& show) {
    ++channel.number;
    const FrameHead head{.session = session_,
                         .number = channel.number,
                         .time = latest_->time,
                         .tick = latest_->tick};
    std::shared_ptr<const std::string> full;
    Frame frame{.pace = channel.pace, .full = [&] {
                    if (full == nullptr) {
                        full = std::make_shared<const std::string>(
                            frame_json(head, items(), std::nullopt, channel.bars, places_));
                    }
                    return full;
                }};
    frame.delta = channel.sent ? std::make_shared<const std::string>(frame_json(
                                     head, items(), view_of(*channel.sent), channel.bars, places_))
                               : frame.full();
    show(frame);
    if (!channel.sent) {
        channel.sent.emplace();
    }
    *channel.sent = now_; // keeps its memory
    channel.bars.clear();
}

} // namespace tw::admin
