#include "proxy/run/world_queue.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace tw::run {

using game::Input;

void WorldQueue::Batch::clear() {
    entries_.clear();
    ints_.clear();
    next_ = 0;
}

void WorldQueue::Batch::pass_on(game::InputSink& to) {
    const Entry& entry = entries_[next_];
    ++next_;
    Input input = entry.input;
    input.payload = std::as_bytes(std::span{ints_}.subspan(entry.begin)).first(entry.num_bytes);
    input.items = snapshot::SnapshotView::of_block(
        std::span{ints_}.subspan(entry.begin, 2 * entry.num_items + entry.num_ints),
        entry.num_items, entry.num_ints);
    input.world = entry.world.get();
    input.roster = entry.roster.get();
    if (entry.named) {
        input.server = entry.named->server;
        input.map = input.kind == Input::Kind::map ? &entry.named->map : nullptr;
    }
    to.on_input(input);
}

void WorldQueue::keep(const Input& input, Batch::Entry& entry) {
    Kept& kept = kept_[input.session];
    if (kept.seen != input.world) {
        kept.seen = input.world;
        kept.world =
            input.world == nullptr ? nullptr : std::make_shared<const record::World>(*input.world);
    }
    if (input.roster == nullptr) {
        kept.roster.reset();
    } else if (kept.roster == nullptr || *kept.roster != *input.roster) {
        kept.roster = std::make_shared<const record::Roster>(*input.roster);
    }
    entry.world = kept.world;
    entry.roster = kept.roster;
}

void WorldQueue::on_input(const Input& input) {
    Batch::Entry entry{.input = input};
    if (input.kind == Input::Kind::snapshot) {
        keep(input, entry);
        entry.num_items = input.items.size();
        entry.num_ints = input.items.data().size();
    } else if (input.kind == Input::Kind::message) {
        entry.num_bytes = input.payload.size();
    } else {
        kept_.erase(input.session); // its address may be another map's from now on
    }
    if (input.kind == Input::Kind::open || input.kind == Input::Kind::map) {
        auto named = std::make_shared<Batch::Named>();
        named->server = input.server;
        if (input.map != nullptr) {
            named->map = *input.map;
            named->name = input.map->name;
            named->map.name = named->name;
        }
        entry.named = std::move(named);
    }
    const std::lock_guard lock{mutex_};
    filling_.until_ = std::max(filling_.until_, input.time);
    if (input.kind == Input::Kind::time_passed) {
        return;
    }
    const bool snapshot = input.kind == Input::Kind::snapshot;
    const bool message = input.kind == Input::Kind::message;
    const std::size_t ints =
        message ? (entry.num_bytes + sizeof(std::int32_t) - 1) / sizeof(std::int32_t)
                : input.items.block_ints();
    if (filling_.entries_.size() >= (snapshot || message ? kMaxInputs : 2 * kMaxInputs) ||
        (ints != 0 && filling_.bytes() + ints * sizeof(std::int32_t) > kMaxBytes)) {
        ++dropped_;
        return;
    }
    entry.begin = filling_.ints_.size();
    filling_.ints_.resize(entry.begin + ints);
    if (message) {
        std::memcpy(filling_.ints_.data() + entry.begin, input.payload.data(), entry.num_bytes);
    } else {
        input.items.write_block(filling_.ints_.data() + entry.begin);
    }
    filling_.entries_.push_back(std::move(entry));
}

record::Timestamp WorldQueue::take(Batch& batch) {
    batch.clear();
    const std::lock_guard lock{mutex_};
    std::swap(batch.entries_, filling_.entries_);
    std::swap(batch.ints_, filling_.ints_);
    return filling_.until_;
}

std::uint64_t WorldQueue::dropped() const {
    const std::lock_guard lock{mutex_};
    return dropped_;
}

} // namespace tw::run
