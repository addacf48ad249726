#include "proxy/base/clock.h"

#include <ctime>

namespace tw::base {

Timestamp now_utc() noexcept {
    constexpr Timestamp kNanoseconds = 1'000'000'000;
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<Timestamp>(now.tv_sec) * kNanoseconds + now.tv_nsec;
}

} // namespace tw::base
