#pragma once

#include "proxy/base/clock.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/handover.h"
#include "proxy/relay/listener.h"
#include "proxy/relay/session.h"
#include "proxy/relay/stranger_filter.h"
#include "proxy/relay/upstream.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tw::relay {

/// What is known of sessions over all threads and servers.
struct SessionNumbers {
    std::atomic<std::uint32_t> last_session{0}; ///< that the observer hears of
    std::atomic<std::uint32_t> last_number{0};
    std::atomic<std::uint32_t> last_request{0}; ///< the same, of who asks without a connection
    std::atomic<int> session_error{0}; ///< errno of the last session that could not be opened
};

/// What all relay threads share of one server.
struct Shared {
    SessionNumbers* numbers;
    UpstreamFactory upstreams;
    std::size_t max_sessions;
    std::chrono::milliseconds idle_timeout;
    ServerIndex index = 0;
    Prove prove = nullptr;
    Repeating repeating{};
    AdmissionLimits limits{};
    AdmissionPools pools{0, 1}; ///< of each thread
    std::atomic<std::size_t> sessions{0};
    std::atomic<bool> let_go{false}; ///< it does not go on where others are handed over to
};

/// When a batch began, on the clocks that sessions note.
struct BatchTime {
    base::Clock::time_point steady{};
    std::uint32_t ms = 0; ///< of the steady one, from when the relay thread started
    base::Timestamp utc = 0;
};

/// Makes sessions, each with its socket in the epoll instance, from a client's first datagram or
/// from what another relay handed over. Who gets one is the door's business.
class SessionMaker {
  public:
    /// All have to outlive it. `ready_set`: the epoll instance that upstream sockets are added to.
    SessionMaker(Shared& shared, const std::vector<Listener>& listeners, int ready_set)
        : shared_{shared}, listeners_{&listeners}, ready_set_{ready_set} {}

    /// `header` is the message its first datagram came in. Null where no socket is to be had:
    /// Shared::session_error says why. Errors: std::bad_alloc.
    [[nodiscard]] std::unique_ptr<Session> make(const base::Endpoint& client, msghdr& header,
                                                ListenerIndex listener, const BatchTime& now);
    /// Needs a listener that is there.
    /// Errors: HandoverError for a socket that is not as it has to be.
    [[nodiscard]] std::unique_ptr<Session> make_from(const SessionState& state,
                                                     base::UniqueFd socket, ListenerIndex listener,
                                                     const BatchTime& now);

    /// All of the thread.
    [[nodiscard]] const std::vector<Listener>& listeners() const noexcept { return *listeners_; }

  private:
    [[nodiscard]] std::unique_ptr<Session> open(const base::Endpoint& client);
    [[nodiscard]] bool await(Session& session) const noexcept;

    Shared& shared_;
    const std::vector<Listener>* listeners_;
    int ready_set_;
};

/// All of a session that makes it go on in another relay, but its `listener`.
[[nodiscard]] SessionState state_of(const Session& session, const BatchTime& now);

/// What the doors of one relay thread have in common: the batch's time, when each session is to be
/// looked after, and those that left while a batch is at hand.
class SessionTimers {
  public:
    using Time = base::Clock::time_point;

    /// Closing a session takes some 20 microseconds, so a sweep takes less than a millisecond.
    static constexpr std::size_t kLooksPerSweep = 32;

    /// `shortest`: the shortest time after which a session is closed. `started`: no later than any
    /// time it is told.
    explicit SessionTimers(std::chrono::milliseconds shortest, Time started = base::Clock::now());
    /// After all doors.
    ~SessionTimers() = default;
    SessionTimers(const SessionTimers&) = delete;
    SessionTimers& operator=(const SessionTimers&) = delete;
    SessionTimers(SessionTimers&&) = delete;
    SessionTimers& operator=(SessionTimers&&) = delete;

    /// Begins a batch: reads the clock. Returns the time of day.
    base::Timestamp begin_batch(Time now = base::Clock::now()) noexcept;

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
