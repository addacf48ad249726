#include "proxy/relay/doorbell.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <tuple>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tw::relay {

namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

} // namespace

void Doorbell::wake() noexcept {
    // Once: a sleeper that never takes note of it must not cost us a call each time.
    if (sleeps_.exchange(0, std::memory_order_seq_cst) != 0) {
        std::ignore = ::syscall(SYS_futex, &sleeps_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
}

void Doorbell::sleep(Clock::time_point time) noexcept {
    const auto left = std::max(time - Clock::now(), Clock::duration::zero());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{
        .tv_sec = static_cast<time_t>(seconds.count()),
        .tv_nsec = std::chrono::duration_cast<std::chrono::nanoseconds>(left - seconds).count()};
    std::ignore = ::syscall(SYS_futex, &sleeps_, FUTEX_WAIT, 1, &timeout, nullptr, 0);
}

} // namespace tw::relay
