#include "proxy/world/open_world.h"

#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <algorithm>
#include <span>
#include <utility>

namespace tw::world {

using snapshot::ObjectSpec;
using snapshot::SnapshotView;

namespace {

using Places = std::span<const std::uint32_t>;

/// The total number of ints of these items.
std::size_t count_ints(const SnapshotView& items, Places places) {
    std::size_t num_ints = 0;
    for (const std::uint32_t place : places) {
        num_ints += items[place].data.size();
    }
    return num_ints;
}

/// Copies these items to a block.
void pick(const SnapshotView& items, Places places, std::int32_t* block) {
    snapshot::SnapshotWriter writer{block, places.size()};
    for (const std::uint32_t place : places) {
        writer.add(items.keys()[place], items[place].data);
    }
}

bool is_own(const snapshot::FieldSpec& field) {
    return field.merge == snapshot::FieldMerge::own || field.merge == snapshot::FieldMerge::viewer;
}

/// Objects with fields that only the own player's view has. Their id is the client id.
std::span<const ObjectSpec* const> own_objects() {
    static const auto objects_with_own = [] {
        std::vector<const ObjectSpec*> objects;
        for (const ObjectSpec& object : snapshot::object_table()) {
            if (object.type != 0 && object.dialect == snapshot::Dialect::six &&
                std::ranges::any_of(object.fields, is_own)) {
                objects.push_back(&object);
            }
        }
        return objects;
    }();
    return objects_with_own;
}

/// Sets the fields to what other views have.
void hide_own(const ObjectSpec& object, std::span<std::int32_t> ints) {
    for (const snapshot::FieldSpec& field : object.fields) {
        if (is_own(field) && field.offset < ints.size()) {
            ints[field.offset] = 0;
        }
    }
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

/// Makes the first view the first base, except for fields of its own player: other views have these
/// as everyone receives them.
void OpenWorld::begin_bases(const SnapshotView& items, std::optional<std::uint16_t> own) {
    const Block base = keep(items);
    bases_.push_back(base);
    std::int32_t* const ints = ints_.data() + base.begin + 2 * base.num_items;
    for (const ObjectSpec* const object :
         own ? own_objects() : std::span<const ObjectSpec* const>{}) {
        if (const auto at = items.find({object->type, *own})) {
            const std::size_t size = items[*at].data.size();
            hide_own(*object, {ints + items.ends()[*at] - size, size});
        }
    }
}

/// Notes the items that a view shares with the bases, and stores the others.
OpenWorld::Block OpenWorld::share(const SnapshotView& items) {
    SnapshotView rest = items;
    for (std::size_t base = 0;; ++base) {
        shared_.find(items_of(bases_[base]), base, rest);
        const std::size_t num_ints = count_ints(rest, shared_.others);
        const Block block{
            .begin = ints_.size(), .num_items = shared_.others.size(), .num_ints = num_ints};
        if (block.num_items == 0 || base + 1 == bases_.size()) {
            ints_.resize(block.begin + 2 * block.num_items + num_ints);
            pick(rest, shared_.others, ints_.data() + block.begin);
            return block;
        }
        std::swap(rest_, former_rest_); // keeps the items that are examined
        rest_.resize(2 * block.num_items + num_ints);
        pick(rest, shared_.others, rest_.data());
        rest = SnapshotView::of_block(rest_, block.num_items, num_ints);
    }
}

/// The items that were stored last, as a view that is valid until the next call.
SnapshotView OpenWorld::take_back(const Block& block) {
    rest_.assign(ints_.begin() + static_cast<std::ptrdiff_t>(block.begin), ints_.end());
    ints_.resize(block.begin);
    return SnapshotView::of_block(rest_, block.num_items, block.num_ints);
}

bool OpenWorld::is_wide_enough(const SnapshotView& rest) const {
    if (widenings_ == kMostWidenings || rest.size() < kWorthBase) {
        return true;
    }
    const SnapshotView base = items_of(bases_.front());
    const auto is_new = [&](std::uint32_t key) {
        return !std::ranges::binary_search(base.keys(), key);
    };
    return static_cast<std::size_t>(std::ranges::count_if(rest.keys(), is_new)) < kWorthBase;
}

/// Adds new items to the first base, so that later views need to be compared with that one only.
void OpenWorld::widen(const SnapshotView& rest, std::optional<std::uint16_t> own) {
    ++widenings_;
    moved_.clear();
    added_.clear();
    const Block former = bases_.front();
    Block wide{.begin = ints_.size(), .num_items = former.num_items, .num_ints = former.num_ints};
    const SnapshotView narrow = items_of(former); // valid until the new base has room
    for (std::uint32_t i = 0; i < rest.size(); ++i) {
        const std::size_t at = narrow.lower_bound(rest[i].key);
        if (at == narrow.size() || narrow.keys()[at] != rest.keys()[i]) {
            added_.push_back({static_cast<std::uint32_t>(at), i});
            wide.num_ints += rest[i].data.size();
        }
    }
    wide.num_items += added_.size();
    ints_.resize(wide.begin + 2 * wide.num_items + wide.num_ints);
    const SnapshotView base = items_of(former);
    snapshot::SnapshotWriter writer{ints_.data() + wide.begin, wide.num_items};
    const auto copy_to = [&](std::size_t place) {
        const std::size_t begin = moved_.size();
        const std::size_t shift = writer.num_items() - begin;
        for (std::size_t i = begin; i < place; ++i) {
            moved_.push_back(static_cast<std::uint32_t>(i + shift));
        }
        writer.copy(base, begin, place);
    };
    for (const Added& added : added_) {
        copy_to(added.place);
        const snapshot::ItemView item = rest[added.item];
        const std::span<std::int32_t> ints = writer.add(item.key.packed(), item.data);
        if (item.key.id == own) {
            const auto object = std::ranges::find(own_objects(), item.key.type, &ObjectSpec::type);
            if (object != own_objects().end()) {
                hide_own(**object, ints);
            }
        }
    }
    copy_to(base.size());
    bases_.front() = wide;
    move_runs();
}

/// Adjusts the shared runs to the new indices of the first base.
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

/// Makes a new base of a view's own items, while more are allowed: later views will probably
/// contain them.
void OpenWorld::keep_shared(const SnapshotView& items, Stored& stored) {
    stored.shares = true;
    stored.runs = shared_.runs.size();
    if (bases_.empty()) {
        begin_bases(items, stored.view.own);
    }
    Block rest = share(items);
    if (!is_wide_enough(items_of(rest))) {
        shared_.runs.resize(stored.runs);
        widen(take_back(rest), stored.view.own);
        stored.runs = shared_.runs.size();
        rest = share(items);
    }
    if (rest.num_items >= kWorthBase && bases_.size() < BasePlace::kMostBases) {
        shared_.runs.push_back({.base = BasePlace::make(bases_.size(), 0),
                                .count = static_cast<std::uint32_t>(rest.num_items)});
        bases_.push_back(rest);
    } else {
        stored.items = rest;
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
    // Views that are translated share nothing, since their ids or objects change.
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

} // namespace tw::world
