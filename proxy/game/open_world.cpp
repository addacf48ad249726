#include "proxy/game/open_world.h"

#include <algorithm>
#include <span>

namespace tw::game {

void OpenWorld::begin(snapshot::Tick tick, record::Timestamp time) {
    tick_ = tick;
    time_ = time;
    stored_.clear();
    ints_.clear();
}

bool OpenWorld::has(std::uint32_t session) const {
    return std::ranges::find(stored_, session, &Stored::session) != stored_.end();
}

bool OpenWorld::add(const Input& input) {
    if (has(input.session)) {
        return false;
    }
    const Stored stored{.session = input.session,
                        .version = input.client_version,
                        .begin = ints_.size(),
                        .num_items = input.items.size(),
                        .num_ints = input.items.data().size()};
    ints_.resize(ints_.size() + input.items.block_ints());
    input.items.write_block(ints_.data() + stored.begin);
    stored_.push_back(stored);
    return true;
}

void OpenWorld::read(std::vector<View>& views) const {
    views.clear();
    for (const Stored& each : stored_) {
        const auto block = std::span{ints_}.subspan(each.begin, 2 * each.num_items + each.num_ints);
        views.push_back(
            read_view(each.session, each.version,
                      snapshot::SnapshotView::of_block(block, each.num_items, each.num_ints)));
    }
    std::ranges::sort(views, says_more);
}

} // namespace tw::game
