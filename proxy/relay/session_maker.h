#pragma once

#include "proxy/base/clock.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/handover.h"
#include "proxy/relay/listen_socket.h"
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

/// Numbers that all threads and servers of a relay share.
struct SessionNumbers {
    std::atomic<std::uint32_t> last_session{0}; ///< the last id given to an announced session
    std::atomic<std::uint32_t> last_number{0};  ///< the last value of Session::number
    /// The last number given to a connectionless session.
    std::atomic<std::uint32_t> last_request{0};
    std::atomic<int> session_error{0}; ///< errno of the last session that could not be opened
};

/// What all relay threads share about one server.
struct SharedServer {
    SessionNumbers* numbers;
    UpstreamFactory upstreams;
    std::size_t max_sessions;
    std::chrono::milliseconds idle_timeout;
    ServerIndex index = 0;
    Prove prove = nullptr;
    AnswerFunctions repeating{};
    AdmissionLimits limits{};
    AdmissionPools pools{0, 1};           ///< per thread
    std::atomic<std::size_t> sessions{0}; ///< sessions that count against max_sessions
    /// In a handover, this server's sessions are closed instead of passed on.
    std::atomic<bool> let_go{false};
};

/// The start of the current batch, in each clock that sessions use.
struct BatchTime {
    base::Clock::time_point steady{};
    std::uint32_t ms = 0; ///< milliseconds of the steady clock since the relay thread started
    base::Timestamp utc = 0;
};

/// Creates sessions with their upstream sockets, from a client's first datagram or from another
/// relay's state. SessionTable decides which clients get a session.
class SessionMaker {
  public:
    /// The arguments must outlive the object. `ready_set`: the epoll instance that gets the upstream
    /// sockets.
    SessionMaker(SharedServer& shared, const std::vector<Listener>& listeners, int ready_set)
        : shared_{shared}, listeners_{&listeners}, ready_set_{ready_set} {}

    /// Creates a session and its upstream socket. `header`: the message of the client's first
    /// datagram. Returns null if no socket can be opened; SharedServer::session_error then says
    /// why. Errors: std::bad_alloc.
    [[nodiscard]] std::unique_ptr<Session> make_session(const base::Endpoint& client,
                                                        msghdr& header, ListenerIndex listener,
                                                        const BatchTime& now);
    /// Continues another relay's session. `listener` must exist.
    /// Errors: HandoverError for an unsuitable socket.
    [[nodiscard]] std::unique_ptr<Session> continue_session(const SessionState& state,
                                                            base::UniqueFd socket,
                                                            ListenerIndex listener,
                                                            const BatchTime& now);

    /// The listeners of this thread, for all servers.
    [[nodiscard]] const std::vector<Listener>& listeners() const noexcept { return *listeners_; }

  private:
    [[nodiscard]] std::unique_ptr<Session> open(const base::Endpoint& client);
    [[nodiscard]] bool watch_socket(Session& session) const noexcept;

    SharedServer& shared_;
    const std::vector<Listener>* listeners_;
    int ready_set_;
};

/// The session's state for a handover, without the member `listener`.
[[nodiscard]] SessionState state_of(const Session& session, const BatchTime& now);

/// What the session tables of one thread share: the batch's time, the timers of all sessions, and
/// the closed sessions that are freed after the batch.
class SessionTimers {
  public:
    using Time = base::Clock::time_point;

    /// The most sessions that a sweep checks. Closing a session takes some 20 microseconds, so a
    /// sweep takes less than a millisecond.
    static constexpr std::size_t kChecksPerSweep = 32;

    /// `shortest`: the shortest idle timeout of any session. `started`: no later call may pass an
    /// earlier time.
    explicit SessionTimers(std::chrono::milliseconds shortest, Time started = base::Clock::now());
    /// Must be destroyed after all session tables of the thread.
    ~SessionTimers() = default;
    SessionTimers(const SessionTimers&) = delete;
    SessionTimers& operator=(const SessionTimers&) = delete;

    /// Begins a batch: reads the clock. Returns the UTC time.
    base::Timestamp begin_batch(Time now = base::Clock::now()) noexcept;

    /// Ends a batch: frees closed sessions.
    void end_batch() {
        if (closed_ != nullptr) {
            free_closed(false);
        }
    }

    /// Calls `check_timeout(Session&)` for due sessions, at most kChecksPerSweep of them. Returns
    /// whether no due session is left.
    template <typename CheckTimeout>
    bool sweep(Time now, CheckTimeout&& check_timeout) {
        begin_batch(now);
        const bool all = wheel_.advance(ticks_at(now), kChecksPerSweep, check_timeout);
        end_batch();
        return all;
    }

    /// The interval at which to call sweep() while there are sessions.
    [[nodiscard]] std::chrono::milliseconds tick() const noexcept { return tick_; }

    /// The time of the current batch.
    [[nodiscard]] const BatchTime& now() const noexcept { return now_; }

    /// Schedules the first check of a new session.
    void add(Session& session, std::chrono::milliseconds timeout) noexcept;
    /// Schedules the next check of a session.
    void schedule(Session& session, std::chrono::milliseconds timeout) noexcept;
    /// Takes a closed session. It is freed when none of its datagrams waits any more.
    void add_closed(std::unique_ptr<Session> session) noexcept;
    /// Frees the closed sessions whose datagrams do not wait; with `all`, every closed session.
    void free_closed(bool all) noexcept;

    /// True if there are no sessions, not even closed ones with waiting datagrams.
    [[nodiscard]] bool empty() const noexcept { return sessions_ == 0; }

  private:
    [[nodiscard]] std::uint64_t ticks_at(Time time) const noexcept;

    Time started_;
    std::chrono::milliseconds tick_;
    TimerWheel<Session> wheel_{0};
    /// The closed sessions, linked by Session::next_closed, so that closing does not allocate.
    std::unique_ptr<Session> closed_;
    std::size_t sessions_ = 0; ///< number of sessions, including closed ones
    BatchTime now_{started_};
};

} // namespace tw::relay
