#pragma once

#include <chrono>
#include <cstdint>

namespace tw::base {

/// Nanoseconds since the Unix epoch, UTC.
using Timestamp = std::int64_t;

/// The time of day.
[[nodiscard]] Timestamp now_utc() noexcept;

/// What intervals are measured with: it never jumps.
using Clock = std::chrono::steady_clock;

/// Measures how long something takes, from when it was made.
class Stopwatch {
  public:
    [[nodiscard]] Clock::time_point started() const { return started_; }

    [[nodiscard]] std::chrono::nanoseconds elapsed() const { return Clock::now() - started_; }

    [[nodiscard]] double seconds() const {
        return std::chrono::duration<double>{elapsed()}.count();
    }

    /// Begins anew; returns the seconds until now.
    double lap() {
        const auto now = Clock::now();
        const std::chrono::duration<double> taken = now - started_;
        started_ = now;
        return taken.count();
    }

  private:
    Clock::time_point started_ = Clock::now();
};

} // namespace tw::base
