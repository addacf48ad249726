#pragma once

#include "proxy/relay/clock.h"

#include <atomic>
#include <cstdint>

namespace tw::relay {

/// Lets one thread sleep until another one rings, of the same process or of another that shares the
/// memory. Ringing never waits, and costs no system call while nobody sleeps. Zeros at first.
///
/// Whoever rings first shows what there is to see by a sequentially consistent store, and whoever
/// goes to sleep looks for it by such a load: then one of the two always sees the other.
class Doorbell {
  public:
    void ring() noexcept {
        if (sleeps_.load(std::memory_order_seq_cst) != 0) {
            wake();
        }
    }

    /// Sleeps until somebody rings, or the time has come, or some while before that. Returns at
    /// once when `awake()` says that there is something to do. One thread's at a time.
    template <typename Awake>
    void sleep_until(Clock::time_point time, Awake&& awake) noexcept {
        sleeps_.store(1, std::memory_order_seq_cst);
        if (!awake()) {
            sleep(time);
        }
        sleeps_.store(0, std::memory_order_relaxed);
    }

  private:
    void wake() noexcept;
    void sleep(Clock::time_point time) noexcept;

    std::atomic<std::uint32_t> sleeps_{0};
};

} // namespace tw::relay
