#pragma once

#include <cstdint>

namespace tw::test {

// Durations in nanoseconds, as in records.
inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kSecond = 1000 * kMillisecond;

} // namespace tw::test
