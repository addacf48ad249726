#include "proxy/game/name_ids.h"

#include <algorithm>
#include <iterator>

namespace tw::game {

using record::IdKind;

void NameIds::reset() {
    by_name_.clear();
    by_id_.clear();
    known_.clear();
}

void NameIds::forget(Place known) {
    by_name_.erase(known->name);
    by_id_.erase(known->id);
    known_.erase(known);
}

void NameIds::see(Place known) {
    known->seen = tick_;
    known_.splice(known_.end(), known_, known);
}

bool NameIds::make_room() {
    if (known_.size() < kMaxNames) {
        return true;
    }
    if (known_.front().seen == tick_) {
        return false;
    }
    forget(known_.begin());
    return true;
}

NameIds::Place NameIds::add(const std::string& name, std::uint16_t id, IdKind kind) {
    known_.push_back({.name = name, .id = id, .kind = kind, .seen = tick_});
    const auto added = std::prev(known_.end());
    by_name_.emplace(name, added);
    by_id_.emplace(id, added);
    return added;
}

void NameIds::learn(const std::string& name, std::uint16_t id) {
    if (const auto holder = by_id_.find(id); holder != by_id_.end()) {
        if (holder->second->name == name) {
            see(holder->second);
            holder->second->kind = IdKind::server;
            holder->second->learned = tick_;
            return;
        }
        forget(holder->second);
    }
    if (const auto before = by_name_.find(name); before != by_name_.end()) {
        forget(before->second);
    }
    if (make_room()) {
        add(name, id, IdKind::server)->learned = tick_;
    }
}

bool NameIds::knows(const std::string& name) const {
    const auto known = by_name_.find(name);
    return known != by_name_.end() && known->second->learned == tick_;
}

bool NameIds::knows(std::uint16_t id) const {
    const auto known = by_id_.find(id);
    return known != by_id_.end() && known->second->learned == tick_;
}

std::optional<std::uint16_t> NameIds::learned(const std::string& name) const {
    const auto known = by_name_.find(name);
    return known != by_name_.end() && known->second->kind == IdKind::server
               ? std::optional{known->second->id}
               : std::nullopt;
}

void NameIds::keep_learned(const std::string& name) {
    if (learned(name)) {
        see(by_name_.find(name)->second);
    }
}

void NameIds::offer(const std::string& name, std::uint16_t id) {
    const auto known = by_name_.find(name);
    const auto holder = by_id_.find(id);
    const auto is_settled = [this](const auto& place) { return place->second->seen == tick_; };
    if ((known != by_name_.end() && is_settled(known)) ||
        (holder != by_id_.end() && is_settled(holder))) {
        return;
    }
    if (holder != by_id_.end()) {
        forget(holder->second);
    }
    if (const auto before = by_name_.find(name); before != by_name_.end()) {
        forget(before->second);
    }
    if (make_room()) {
        add(name, id, IdKind::views);
    }
}

std::uint16_t NameIds::make_up() {
    std::uint16_t id = kFirstMadeUp;
    for (auto at = by_id_.lower_bound(id); at != by_id_.end() && at->first == id; ++at) {
        ++id;
    }
    if (id < kFewMadeUp) {
        return id;
    }
    const auto stale = std::ranges::find_if(known_, [&](const Known& known) {
        return known.seen != tick_ && known.id >= kFirstMadeUp && known.id < kFewMadeUp;
    });
    if (stale != known_.end()) {
        id = stale->id;
        forget(stale);
    }
    return id;
}

std::optional<NameIds::Id> NameIds::id_of(const std::string& name) {
    auto known = by_name_.find(name);
    if (known == by_name_.end()) {
        if (!make_room()) {
            return std::nullopt;
        }
        known = by_name_.find(add(name, make_up(), IdKind::twscope)->name);
    }
    see(known->second);
    return Id{.id = known->second->id, .kind = known->second->kind};
}

} // namespace tw::game
