#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace tw::relay {

/// How a ring's consumer waits: it looks again a few times, then sleeps, longer each time up to a
/// millisecond. The relay never makes a wake-up call, so this bounds how late a record may be.
class IdleStrategy {
  public:
    static constexpr std::chrono::microseconds kShortest{200};
    static constexpr std::chrono::microseconds kLongest{1000};
    static constexpr int kSpins = 4; ///< yields before the first sleep

    /// Call after a round that found something.
    void reset() noexcept {
        spins_ = 0;
        sleep_ = kShortest;
    }

    /// Call after a round that found nothing.
    void idle() {
        if (spins_ < kSpins) {
            ++spins_;
            std::this_thread::yield();
            return;
        }
        std::this_thread::sleep_for(sleep_);
        sleep_ = std::min(sleep_ * 2, kLongest);
    }

  private:
    int spins_ = 0;
    std::chrono::microseconds sleep_ = kShortest;
};

} // namespace tw::relay
