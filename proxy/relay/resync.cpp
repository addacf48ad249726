#include "proxy/relay/resync.h"

#include <utility>

namespace tw::relay {

bool ResyncTurn::ask(std::uint32_t now, std::uint32_t heard) noexcept {
    if (ever_ && now - asked_ < kBetweenMs) {
        return false;
    }
    asked_ = since_ = now;
    heard_ = heard;
    tries_ = 0;
    ever_ = wanted_ = true;
    return true;
}

bool ResyncTurn::is_turn(std::uint32_t now, std::uint32_t answered) noexcept {
    const std::uint32_t silent = now - std::exchange(heard_, now);
    if (now - asked_ > kGiveUpMs) {
        wanted_ = false;
    }
    if (!wanted_ || silent > kBusyMs || (tries_ != 0 && now - since_ < kAnswerMs)) {
        return false;
    }
    const std::uint32_t waited = now - since_ - (tries_ != 0 ? kAnswerMs : 0);
    return now - answered >= kQuietMs || waited >= kImpatientMs;
}

void ResyncTurn::on_written(std::uint32_t now) noexcept {
    since_ = now;
    ++tries_;
    // Whether the last one has an effect makes no difference any more.
    wanted_ = tries_ < kTries;
}

} // namespace tw::relay
