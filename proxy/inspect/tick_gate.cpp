#include "proxy/inspect/tick_gate.h"

#include <algorithm>

namespace tw::inspect {

bool TickGate::fits(const Seen& before, snapshot::Tick tick, std::int64_t time) {
    constexpr std::int64_t kTickNs = 20'000'000;
    const std::int64_t passed = std::max<std::int64_t>(time - before.time, 0) / kTickNs;
    const std::int64_t ahead = std::int64_t{tick} - before.tick;
    return ahead >= -kSlack && ahead - kSlack <= passed;
}

TickClass TickGate::take(snapshot::Tick tick, std::int64_t time) {
    constexpr std::int64_t kDoubtNs = 5'000'000'000; // snapshots under way are there by then
    if (!last_ || fits(*last_, tick, time)) {
        if (doubted_ && time - *doubted_ > kDoubtNs) {
            doubted_.reset();
        }
        if (!last_ || tick > last_->tick) {
            last_ = Seen{tick, time};
        }
        stray_.reset();
        strays_ = 0;
        return TickClass::follows;
    }
    if (stray_ && stray_->tick == tick) {
        return TickClass::stray; // another part of the same one
    }
    if (doubted_) {
        return restart({tick, time});
    }
    strays_ = stray_ && fits(*stray_, tick, time) ? strays_ + 1 : 1;
    stray_ = Seen{tick, time};
    if (strays_ < kAgreeing) {
        return TickClass::stray;
    }
    return restart({tick, time});
}

TickClass TickGate::restart(const Seen& seen) {
    *this = {};
    last_ = seen;
    return TickClass::restarted;
}

} // namespace tw::inspect
