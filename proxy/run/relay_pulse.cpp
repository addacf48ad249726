#include "proxy/run/relay_pulse.h"

#include <algorithm>

namespace tw::run {

void RelayPulse::look(Time now, const relay::Observation& observation, unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) {
        const std::uint64_t turns = observation.counters[i].turns.value();
        if (i >= num_threads_ || turns != threads_[i].turns) {
            threads_[i] = {.turns = turns, .moved = now};
        }
    }
    num_threads_ = threads;
}

bool RelayPulse::beats(Time now) const noexcept {
    return num_threads_ != 0 &&
           std::all_of(threads_.begin(), threads_.begin() + num_threads_,
                       [now](const Thread& thread) { return now - thread.moved <= kPatience; });
}

} // namespace tw::run
