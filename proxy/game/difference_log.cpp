#include "proxy/game/difference_log.h"

namespace tw::game {

bool DifferenceLog::begins(const Difference& difference, snapshot::Tick tick) {
    const auto is_over = [tick](snapshot::Tick last) { return std::int64_t{tick} - last > kOver; };
    const std::pair key{difference.key.packed(), difference.field->offset};
    if (const auto known = open_.find(key); known != open_.end()) {
        const bool again = is_over(known->second);
        known->second = tick;
        return again;
    }
    if (open_.size() >= kMaxOpen) {
        std::erase_if(open_, [&](const auto& each) { return is_over(each.second); });
    }
    if (open_.size() >= kMaxOpen) {
        return false;
    }
    open_.emplace(key, tick);
    return true;
}

} // namespace tw::game
