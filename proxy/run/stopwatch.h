#pragma once

#include "proxy/relay/clock.h"

#include <chrono>

namespace tw::run {

/// Measures how long something takes, from when it was made.
class Stopwatch {
  public:
    [[nodiscard]] relay::Clock::time_point started() const { return started_; }

    [[nodiscard]] std::chrono::nanoseconds elapsed() const {
        return relay::Clock::now() - started_;
    }

    [[nodiscard]] double seconds() const {
        return std::chrono::duration<double>{elapsed()}.count();
    }

    /// Begins anew; returns the seconds until now.
    double lap() {
        const auto now = relay::Clock::now();
        const std::chrono::duration<double> taken = now - started_;
        started_ = now;
        return taken.count();
    }

  private:
    relay::Clock::time_point started_ = relay::Clock::now();
};

} // namespace tw::run
