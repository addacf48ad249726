#include "proxy/world/open_world.h"

#include <algorithm>
#include <span>
#include <utility>

namespace tw::world {

void OpenWorld::begin(snapshot::Tick tick, record::Timestamp time) {
    tick_ = tick;
    time_ = time;
    rosters_ = 0;
    stored_.clear();
    ints_.clear();
}

bool OpenWorld::has(std::uint32_t session) const {
    return std::ranges::any_of(
        stored_, [session](const StoredView& each) { return each.view.session == session; });
}

bool OpenWorld::add_view(const WorldInput& input, std::shared_ptr<const record::Roster> roster) {
    if (has(input.session)) {
        return false;
    }
    time_ = std::min(time_, input.time);
    rosters_ += roster != nullptr ? 1U : 0U;
    const std::size_t begin = ints_.size();
    ints_.resize(begin + input.items.block_ints());
    input.items.write_block(ints_.data() + begin);
    View view =
        input.dialect == snapshot::Dialect::six
            ? read_view(input.session, input.client_version, input.items)
            : read_seven_view(input.session, input.client_version, input.items, roster.get());
    stored_.push_back({.view = view,
                       .roster = std::move(roster),
                       .begin = begin,
                       .num_items = input.items.size(),
                       .num_ints = input.items.data().size()});
    return true;
}

void OpenWorld::read(std::vector<View>& views) const {
    views.clear();
    for (const StoredView& each : stored_) {
        views.push_back(each.view);
        views.back().items = snapshot::SnapshotView::of_block(
            std::span{ints_}.subspan(each.begin, 2 * each.num_items + each.num_ints),
            each.num_items, each.num_ints);
    }
    std::ranges::sort(views, has_more_information);
}

std::unique_ptr<OpenWorld> OpenWorldPool::take_empty(snapshot::Tick tick, record::Timestamp time) {
    if (spare_.empty()) {
        spare_.push_back(std::make_unique<OpenWorld>());
    }
    std::unique_ptr<OpenWorld> world = std::move(spare_.back());
    spare_.pop_back();
    world->begin(tick, time);
    return world;
}

void OpenWorldPool::recycle(std::unique_ptr<OpenWorld> world) {
    if (spare_.size() < kMaxSpare && world->allocated_bytes() <= kMaxSpareRoom) {
        spare_.push_back(std::move(world));
    }
}

} // namespace tw::world
