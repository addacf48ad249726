#pragma once

#include <cstdint>

namespace tw::test {

/// In nanoseconds.
inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kSecond = 1000 * kMillisecond;

} // namespace tw::test
