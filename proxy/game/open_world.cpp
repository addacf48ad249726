#include "proxy/game/open_world.h"

#include <algorithm>
#include <span>
#include <utility>

namespace tw::game {

void OpenWorld::begin(snapshot::Tick tick, record::Timestamp time) {
    tick_ = tick;
    time_ = time;
    stored_.clear();
    ints_.clear();
    rosters_ = 0;
}

bool OpenWorld::has(std::uint32_t session) const {
    return std::ranges::find(stored_, session, &Stored::session) != stored_.end();
}

bool OpenWorld::add(const Input& input, std::shared_ptr<const record::Roster> roster) {
    if (has(input.session)) {
        return false;
    }
    const std::size_t begin = ints_.size();
    ints_.resize(begin + input.items.block_ints());
    input.items.write_block(ints_.data() + begin);
    rosters_ += roster != nullptr ? 1U : 0U;
    stored_.push_back({.session = input.session,
                       .version = input.client_version,
                       .dialect = input.dialect,
                       .roster = std::move(roster),
                       .begin = begin,
                       .num_items = input.items.size(),
                       .num_ints = input.items.data().size()});
    return true;
}

void OpenWorld::read(std::vector<View>& views) const {
    views.clear();
    for (const Stored& each : stored_) {
        const auto block = std::span{ints_}.subspan(each.begin, 2 * each.num_items + each.num_ints);
        const auto items = snapshot::SnapshotView::of_block(block, each.num_items, each.num_ints);
        views.push_back(
            each.dialect == snapshot::Dialect::six
                ? read_view(each.session, each.version, items)
                : read_seven_view(each.session, each.version, items, each.roster.get()));
    }
    std::ranges::sort(views, says_more);
}

std::unique_ptr<OpenWorld> OpenWorlds::begin(snapshot::Tick tick, record::Timestamp time) {
    if (spare_.empty()) {
        spare_.push_back(std::make_unique<OpenWorld>());
    }
    std::unique_ptr<OpenWorld> world = std::move(spare_.back());
    spare_.pop_back();
    world->begin(tick, time);
    return world;
}

void OpenWorlds::give_back(std::unique_ptr<OpenWorld> world) {
    if (spare_.size() < kMaxSpare && world->room() <= kMaxSpareRoom) {
        spare_.push_back(std::move(world));
    }
}

} // namespace tw::game
