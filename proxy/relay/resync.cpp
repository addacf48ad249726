#include "proxy/relay/resync.h"

#include <utility>

namespace tw::relay {

bool ResyncTurn::ask(std::uint32_t now, std::uint32_t heard) noexcept {
    if (ever_ && now - asked_ < kBetweenMs) {
        return false;
    }
    asked_ = since_ = now;
    heard_ = heard;
    known_ = Resync::kNothing;
    stage_ = Stage::asking;
    ever_ = true;
    written_ = false;
    return true;
}

std::optional<std::int32_t> ResyncTurn::turn(std::uint32_t now) noexcept {
    const std::uint32_t silent = now - std::exchange(heard_, now);
    if (wanted() && now - since_ > (stage_ == Stage::asking ? kGiveUpMs : kKnownMs)) {
        stage_ = Stage::none;
    }
    if (!wanted() || (stage_ == Stage::asking && silent > kBusyMs)) {
        return std::nullopt;
    }
    return known_;
}

bool ResyncTurn::on_written() noexcept {
    return !std::exchange(written_, true);
}

void ResyncTurn::on_answer(std::uint32_t now, std::int32_t number) noexcept {
    if (stage_ == Stage::asking) {
        stage_ = Stage::known;
        since_ = now;
        known_ = number;
    }
}

} // namespace tw::relay
