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
    const std::uint32_t waited = now - since_;
    if (now - asked_ > kGiveUpMs || (tries_ == kTries && waited >= kAnswerMs)) {
        wanted_ = false;
    }
    if (!wanted_ || silent > kBusyMs) {
        return false;
    }
    if (tries_ == 0) {
        return now - answered >= kQuietMs || waited >= kImpatientMs;
    }
    return waited >= kAnswerMs || (tries_ > 1 && waited < kRunMs);
}

void ResyncTurn::on_written(std::uint32_t now) noexcept {
    if (tries_ == 0 || now - since_ >= kAnswerMs) {
        since_ = now;
        ++tries_;
    }
}

} // namespace tw::relay
