#pragma once

#include "proxy/relay/clock.h"
#include "proxy/relay/session.h"
#include "proxy/relay/session_maker.h"
#include "proxy/relay/timer_wheel.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tw::relay {

/// What the doors of one relay thread have in common: the batch's time, when each session is to be
/// looked after, and those that left while a batch is at hand.
class Rounds {
  public:
    using Time = Clock::time_point;

    /// Closing a session takes some 20 microseconds, so a sweep takes less than a millisecond.
    static constexpr std::size_t kLooksPerSweep = 32;

    /// `shortest`: the shortest time after which a session is closed. `started`: no later than any
    /// time it is told.
    explicit Rounds(std::chrono::milliseconds shortest, Time started = Clock::now());
    /// After all doors.
    ~Rounds() = default;
    Rounds(const Rounds&) = delete;
    Rounds& operator=(const Rounds&) = delete;
    Rounds(Rounds&&) = delete;
    Rounds& operator=(Rounds&&) = delete;

    /// Begins a batch: reads the clock. Returns the time of day.
    Timestamp begin_batch(Time now = Clock::now()) noexcept;

    /// Ends a batch: frees what has left.
    void end_batch() {
        if (left_ != nullptr) {
            free_left(false);
        }
    }

    /// Shows sessions whose time has come to `look_after(Session&)`, so many at once. Returns whether
    /// all were seen.
    template <typename LookAfter>
    bool sweep(Time now, LookAfter&& look_after) {
        begin_batch(now);
        const bool all = wheel_.advance(ticks_at(now), kLooksPerSweep, look_after);
        end_batch();
        return all;
    }

    /// How often sweep() is to be called while there are sessions.
    [[nodiscard]] std::chrono::milliseconds tick() const noexcept { return tick_; }

    /// The batch's time.
    [[nodiscard]] const BatchTime& now() const noexcept { return now_; }

    /// Of a session that began: it is to be looked after.
    void enter(Session& session, std::chrono::milliseconds timeout) noexcept;
    /// The same, once it was looked after.
    void look_again(Session& session, std::chrono::milliseconds timeout) noexcept;
    /// It lives until nothing points at it.
    void leave(std::unique_ptr<Session> session) noexcept;
    /// Frees those that left and that no datagram waits for, or all.
    void free_left(bool all) noexcept;

    /// There is no session, and none whose datagrams still wait.
    [[nodiscard]] bool empty() const noexcept { return sessions_ == 0; }

  private:
    [[nodiscard]] std::uint64_t ticks_at(Time time) const noexcept;

    Time started_;
    std::chrono::milliseconds tick_;
    TimerWheel<Session> wheel_{0};
    std::unique_ptr<Session> left_; ///< a list within, so that leaving takes no memory
    std::size_t sessions_ = 0;      ///< those that left, too
    BatchTime now_{started_};
};

} // namespace tw::relay
