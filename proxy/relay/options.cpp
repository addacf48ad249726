#include "proxy/relay/options.h"

#include <tuple>
#include <utility>

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tw::relay {

namespace {

/// The first members of the kernel's struct sched_attr, for sched_setattr(2). The kernel's header
/// that declares the struct conflicts with Debian 12's libc.
struct SchedulingAttributes {
    std::uint32_t size = sizeof(SchedulingAttributes);
    std::uint32_t policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 0;
    std::uint64_t deadline_ns = 0;
    std::uint64_t period_ns = 0;
};

static_assert(sizeof(SchedulingAttributes) == 48);

/// The time slice of a forwarding thread in nanoseconds. It is the shortest that the kernel allows,
/// and is enough for a batch of datagrams.
constexpr std::uint64_t kTimeSliceNs = 100'000;

/// The number that is added to the niceness of an analysing thread. The thread then gets a third of
/// a forwarding thread's share of the processor.
constexpr int kNicenessStep = 5;

int niceness() {
    return ::getpriority(PRIO_PROCESS, 0); // Linux returns the calling thread's niceness
}

} // namespace

void raise_thread_priority() {
    if (::sched_getscheduler(0) != SCHED_OTHER) {
        return; // the user has chosen a scheduling policy
    }
    const SchedulingAttributes wanted{.nice = niceness(), .runtime_ns = kTimeSliceNs};
    std::ignore = ::syscall(SYS_sched_setattr, 0, &wanted, 0);
}

void lower_thread_priority() {
    std::ignore = ::setpriority(PRIO_PROCESS, 0, niceness() + kNicenessStep);
}

bool ResyncState::begin_resync(std::uint32_t now, std::uint32_t last_datagram) noexcept {
    if (has_requested_ && now - request_began_ < kMinRequestIntervalMs) {
        return false;
    }
    request_began_ = stage_began_ = now;
    last_datagram_ = last_datagram;
    acknowledged_ = ResyncFunctions::kNoSnapshot;
    stage_ = Stage::requested;
    has_requested_ = true;
    has_rewritten_ = false;
    return true;
}

std::optional<std::int32_t> ResyncState::next_acknowledgement(std::uint32_t now) noexcept {
    const std::uint32_t pause = now - std::exchange(last_datagram_, now);
    if (is_in_progress() &&
        now - stage_began_ > (stage_ == Stage::requested ? kSnapshotTimeoutMs : kRewriteTimeMs)) {
        stage_ = Stage::none;
    }
    if (!is_in_progress() || (stage_ == Stage::requested && pause > kMaxPauseMs)) {
        return std::nullopt;
    }
    return acknowledged_;
}

bool ResyncState::on_datagram_rewritten() noexcept {
    return !std::exchange(has_rewritten_, true);
}

void ResyncState::on_full_snapshot(std::uint32_t now, std::int32_t tick) noexcept {
    if (stage_ == Stage::requested) {
        stage_ = Stage::answered;
        stage_began_ = now;
        acknowledged_ = tick;
    }
}

} // namespace tw::relay
