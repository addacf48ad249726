#pragma once

#include <chrono>
#include <cstdint>

namespace tw::relay {

/// Nanoseconds since the Unix epoch, UTC.
using Timestamp = std::int64_t;

/// The time of day.
[[nodiscard]] Timestamp now_utc() noexcept;

/// What intervals are measured with: it never jumps.
using Clock = std::chrono::steady_clock;

} // namespace tw::relay
