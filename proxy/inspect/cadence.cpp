#include "proxy/inspect/cadence.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

namespace {

constexpr std::int64_t kTickNs = 20'000'000;
/// A second without anything is a pause, not jitter.
constexpr std::int64_t kMaxPauseTicks = 50;

} // namespace

std::optional<std::int64_t> ArrivalJitter::arrived(snapshot::Tick tick, std::int64_t time) {
    if (!last_) {
        last_ = Last{tick, time};
        return std::nullopt;
    }
    const std::int64_t ticks = std::int64_t{tick} - last_->tick;
    if (ticks == 0 || (ticks < 0 && ticks >= -kMaxPauseTicks)) {
        return std::nullopt;
    }
    const std::int64_t passed = time - last_->time;
    last_ = Last{tick, time};
    if (ticks < 0 || ticks > kMaxPauseTicks || passed < 0) {
        return std::nullopt;
    }
    const std::int64_t deviation = passed - ticks * kTickNs;
    return (deviation < 0 ? -deviation : deviation) / 1000;
}

std::uint64_t Cadence::usual_step() const {
    const auto* const most = std::max_element(steps_.begin(), steps_.end());
    return *most == 0 ? 0 : static_cast<std::uint64_t>(most - steps_.begin());
}

Arrival Cadence::arrived(snapshot::Tick tick, std::int64_t time, bool full) {
    Arrival arrival;
    arrival.deviation_us = jitter_.arrived(tick, time);
    if (newest_ && tick < *newest_) {
        arrival.reordered = true;
        arrival.filled = usual_step();
        return arrival;
    }
    const std::int64_t step = newest_ ? std::int64_t{tick} - *newest_ : 0;
    const bool is_own_pace =
        std::exchange(newest_is_full_, full) || full || (newest_ && is_join_step(*newest_, tick));
    newest_ = tick;
    first_ = first_.value_or(tick);
    if (is_own_pace || step <= 0) {
        return arrival;
    }
    const auto ticks = static_cast<std::uint64_t>(step);
    if (const std::uint64_t usual = usual_step(); usual != 0 && ticks > usual) {
        arrival.missed = ticks / usual - 1;
        arrival.skipped = arrival.missed * usual;
    }
    if (ticks <= kMaxStep) {
        ++steps_[ticks];
    }
    return arrival;
}

} // namespace tw::inspect
