#include "proxy/game/open_world.h"

#include <algorithm>
#include <span>
#include <utility>

namespace tw::game {

using snapshot::SnapshotView;

namespace {

/// A snapshot of these items of another one, in `block`.
SnapshotView pick(const SnapshotView& items, std::span<const std::uint32_t> places,
                  snapshot::RawVector<std::int32_t>& block) {
    std::size_t num_ints = 0;
    for (const std::uint32_t place : places) {
        num_ints += items[place].data.size();
    }
    block.resize(2 * places.size() + num_ints);
    std::int32_t* key = block.data();
    std::int32_t* end = key + places.size();
    std::int32_t* const ints = end + places.size();
    std::int32_t* to = ints;
    for (const std::uint32_t place : places) {
        to = std::ranges::copy(items[place].data, to).out;
        *key++ = static_cast<std::int32_t>(items.keys()[place]);
        *end++ = static_cast<std::int32_t>(to - ints);
    }
    return SnapshotView::of_block(block, places.size(), num_ints);
}

} // namespace

void OpenWorld::begin(snapshot::Tick tick, record::Timestamp time) {
    tick_ = tick;
    time_ = time;
    stored_.clear();
    sessions_.clear();
    ints_.clear();
    shared_.runs.clear();
    bases_.clear();
    widenings_ = 0;
    rosters_ = 0;
}

bool OpenWorld::has(std::uint32_t session) const {
    return std::ranges::find(sessions_, session) != sessions_.end();
}

SnapshotView OpenWorld::items_of(const Block& block) const {
    return SnapshotView::of_block(
        std::span{ints_}.subspan(block.begin, 2 * block.num_items + block.num_ints),
        block.num_items, block.num_ints);
}

OpenWorld::Block OpenWorld::keep(const SnapshotView& items) {
    const std::size_t begin = ints_.size();
    ints_.resize(begin + items.block_ints());
    items.write_block(ints_.data() + begin);
    return {.begin = begin, .num_items = items.size(), .num_ints = items.data().size()};
}

void OpenWorld::add_base(const SnapshotView& items) {
    shared_.runs.push_back({.base = BasePlace::make(bases_.size(), 0),
                            .count = static_cast<std::uint32_t>(items.size())});
    bases_.push_back(keep(items));
}

SnapshotView OpenWorld::share(const SnapshotView& items) {
    SnapshotView rest = items;
    for (std::size_t base = 0; base < bases_.size() && !rest.empty(); ++base) {
        shared_.find(items_of(bases_[base]), base, rest);
        std::swap(rest_, former_rest_); // what is looked at stays
        rest = pick(rest, shared_.others, rest_);
    }
    return rest;
}

bool OpenWorld::is_wide_enough(const SnapshotView& rest) const {
    if (bases_.empty() || widenings_ == kMostWidenings || rest.size() < kWorthBase) {
        return true;
    }
    const SnapshotView base = items_of(bases_.front());
    const auto is_new = [&](std::uint32_t key) {
        return !std::ranges::binary_search(base.keys(), key);
    };
    return static_cast<std::size_t>(std::ranges::count_if(rest.keys(), is_new)) < kWorthBase;
}

/// What is there under another key is put into the first base, so that the next views need to be
/// compared with that one only.
void OpenWorld::widen(const SnapshotView& rest) {
    ++widenings_;
    wide_.clear();
    moved_.clear();
    const SnapshotView base = items_of(bases_.front());
    std::size_t next = 0; // of the rest
    const auto append = [this](const snapshot::ItemView& item) {
        wide_.append(item.key, item.data);
    };
    for (std::size_t i = 0; i < base.size(); ++i) {
        for (; next < rest.size() && rest.keys()[next] < base.keys()[i]; ++next) {
            append(rest[next]);
        }
        next += next < rest.size() && rest.keys()[next] == base.keys()[i] ? 1U : 0U;
        moved_.push_back(static_cast<std::uint32_t>(wide_.view().size()));
        append(base[i]);
    }
    for (; next < rest.size(); ++next) {
        append(rest[next]);
    }
    bases_.front() = keep(wide_.view());
    move_runs();
}

/// To where the items of the first base are now.
void OpenWorld::move_runs() {
    std::vector<SharedRun> moved;
    for (Stored& stored : stored_) {
        const std::size_t first = moved.size();
        for (std::size_t i = stored.runs; i < stored.runs + stored.num_runs; ++i) {
            const SharedRun& run = shared_.runs[i];
            if (BasePlace::base_of(run.base) != 0) {
                moved.push_back(run);
                continue;
            }
            for (std::uint32_t place = run.base; place < run.base + run.count; ++place) {
                const std::uint32_t now = moved_[place];
                if (moved.size() > first && moved.back().base + moved.back().count == now) {
                    ++moved.back().count;
                } else {
                    moved.push_back({.base = now, .count = 1});
                }
            }
        }
        stored.runs = first;
        stored.num_runs = moved.size() - first;
    }
    shared_.runs = std::move(moved);
}

/// What the bases do not have is the next base, while there may be more: what one view saw before the
/// others is what they will see.
void OpenWorld::keep_shared(const SnapshotView& items, Stored& stored) {
    stored.shares = true;
    stored.runs = shared_.runs.size();
    SnapshotView rest = share(items);
    if (!is_wide_enough(rest)) {
        shared_.runs.resize(stored.runs);
        widen(rest);
        stored.runs = shared_.runs.size();
        rest = share(items);
    }
    if (rest.size() >= kWorthBase && bases_.size() < BasePlace::kMostBases) {
        add_base(rest);
    } else {
        stored.items = keep(rest);
    }
    stored.num_runs = shared_.runs.size() - stored.runs;
}

bool OpenWorld::add(const Input& input, std::shared_ptr<const record::Roster> roster) {
    if (has(input.session)) {
        return false;
    }
    Stored stored{.view = input.dialect == snapshot::Dialect::six
                              ? read_view(input.session, input.client_version, input.items)
                              : read_seven_view(input.session, input.client_version, input.items,
                                                roster.get()),
                  .roster = std::move(roster)};
    stored.view.items = {};
    time_ = std::min(time_, input.time);
    rosters_ += stored.roster != nullptr ? 1U : 0U;
    // What is told anew, in other ids or objects, is another's in nothing.
    const bool retold = stored.view.translated || stored.view.dialect != snapshot::Dialect::six;
    if (retold || input.items.empty()) {
        stored.items = keep(input.items);
    } else {
        keep_shared(input.items, stored);
    }
    stored_.push_back(std::move(stored));
    sessions_.push_back(input.session);
    return true;
}

void OpenWorld::read(std::vector<View>& views) const {
    views.clear();
    read_bases_.clear();
    for (const Block& base : bases_) {
        read_bases_.push_back(items_of(base));
    }
    for (const Stored& each : stored_) {
        View& view = views.emplace_back(each.view);
        view.items = items_of(each.items);
        if (each.shares) {
            view.bases = read_bases_;
            view.shared = std::span{shared_.runs}.subspan(each.runs, each.num_runs);
        }
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
