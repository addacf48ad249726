#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>

namespace tw::base {

/// A UTC time in nanoseconds since the Unix epoch.
using Timestamp = std::int64_t;

[[nodiscard]] inline Timestamp now_utc() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

/// Returns a time in milliseconds since the Unix epoch.
[[nodiscard]] constexpr std::int64_t to_unix_ms(Timestamp time) noexcept {
    return time / 1'000'000;
}

// Formats for format_utc(). Records append the fraction of the second and "Z" to kRecordTimeFormat.
inline constexpr char kRecordTimeFormat[] = "%Y-%m-%dT%H:%M:%S";
inline constexpr char kFileNameTimeFormat[] = "%Y%m%dT%H%M%SZ";

/// Returns a time as text. `format`: a format of strftime().
[[nodiscard]] std::string format_time(const std::tm& time, const char* format);

/// Returns a UTC time as text. `seconds`: since the Unix epoch.
[[nodiscard]] std::string format_utc(std::int64_t seconds, const char* format);

[[nodiscard]] std::tm local_time(Timestamp time);

/// The clock for measuring intervals. It does not change when the system time is set.
using Clock = std::chrono::steady_clock;

/// Measures the time since its construction or the last call of lap().
class Stopwatch {
  public:
    [[nodiscard]] std::chrono::nanoseconds elapsed() const { return Clock::now() - started_; }

    [[nodiscard]] double seconds() const {
        return std::chrono::duration<double>{elapsed()}.count();
    }

    /// Returns the measured time in seconds and restarts the measurement.
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
