#include "proxy/game/name_ids.h"

#include <algorithm>
#include <iterator>

namespace tw::game {

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

NameIds::Place NameIds::add(const std::string& name, std::uint16_t id) {
    known_.push_back({.name = name, .id = id, .seen = tick_});
    const auto added = std::prev(known_.end());
    by_name_.emplace(name, added);
    by_id_.emplace(id, added);
    return added;
}

void NameIds::learn(const std::string& name, std::uint16_t id) {
    if (const auto holder = by_id_.find(id); holder != by_id_.end()) {
        if (holder->second->name == name) {
            see(holder->second);
            holder->second->told = tick_;
            return;
        }
        forget(holder->second);
    }
    if (const auto before = by_name_.find(name); before != by_name_.end()) {
        forget(before->second);
    }
    if (make_room()) {
        add(name, id)->told = tick_;
    }
}

bool NameIds::knows(const std::string& name) const {
    const auto known = by_name_.find(name);
    return known != by_name_.end() && known->second->told == tick_;
}

bool NameIds::knows(std::uint16_t id) const {
    const auto known = by_id_.find(id);
    return known != by_id_.end() && known->second->told == tick_;
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

std::optional<std::uint16_t> NameIds::id_of(const std::string& name) {
    if (const auto known = by_name_.find(name); known != by_name_.end()) {
        see(known->second);
        return known->second->id;
    }
    if (!make_room()) {
        return std::nullopt;
    }
    return add(name, make_up())->id;
}

} // namespace tw::game
