#pragma once

#include "proxy/base/clock.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/relay/new_client_filter.h"
#include "proxy/relay/session.h"
#include "proxy/relay/upstream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::relay {

/// The highest numbers given to sessions so far. All threads and servers of a relay share them.
struct LastSessionNumbers {
    /// The highest ObservedSession::id. Only sessions that the observer knows have one.
    std::atomic<std::uint32_t> last_observed_id{0};
    /// The highest Session::number of a session with a connection.
    std::atomic<std::uint32_t> last_number{0};
    /// The highest number of a connectionless session, without the bit that marks such numbers.
    std::atomic<std::uint32_t> last_connless_number{0};
    std::atomic<int> last_open_error{0}; ///< errno of the latest failure to open a session
};

/// The data about one server that all relay threads share.
struct SharedServerData {
    using Udp = boost::asio::ip::udp;

    /// `relay_options` and `last_numbers` must outlive the object.
    SharedServerData(const Options& relay_options, LastSessionNumbers& last_numbers,
                     ServerIndex server_index, const Udp::endpoint& server, ClientAddressMode mode)
        : options{relay_options}, numbers{last_numbers}, index{server_index},
          upstreams{server, mode, options.socket_buffer_bytes, options.address_key},
          pools{options.max_sessions, options.threads, options.new_client_limits.max_per_address} {}

    [[nodiscard]] std::size_t num_sockets() const { return num_socket_sets * listen.size(); }

    const Options& options;
    LastSessionNumbers& numbers;
    ServerIndex index;
    UpstreamFactory upstreams;
    SessionPoolSizes pools; ///< the sizes of the session pools of each thread
    /// Number of sessions that count against max_sessions.
    std::atomic<std::size_t> num_sessions{0};
    /// True if a takeover closes this server's sessions instead of passing them on.
    std::atomic<bool> closes_at_takeover{false};

    // The members below are used by the thread that adds and removes servers.
    std::vector<Udp::endpoint> listen{};
    /// Number of socket sets. A set has one socket for each listening address.
    std::size_t num_socket_sets = 0;
    bool is_removed = false;
};

/// The time at which the current batch began, read from each clock that sessions use.
struct BatchTime {
    base::Clock::time_point steady{};
    std::uint32_t ms = 0; ///< milliseconds of the steady clock; wraps
    base::Timestamp utc = 0;
};

/// Creates a session and its upstream socket for the first datagram of a client. `header`: the
/// datagram's message header. `listener`: the socket that received it. `epoll`: an epoll
/// instance to which the upstream socket is added. Returns null if no socket can be opened;
/// LastSessionNumbers::last_open_error then contains the reason. Errors: std::bad_alloc.
[[nodiscard]] std::unique_ptr<Session> make_session(SharedServerData& server, int epoll,
                                                    const base::Endpoint& client, msghdr& header,
                                                    const Listener& listener, const BatchTime& now);

/// Creates a session that continues a session of another relay. `socket`: the upstream socket.
/// `v6`: the listening socket is an IPv6 socket. Errors: TakeoverError for a damaged state or an
/// unsuitable socket.
[[nodiscard]] std::unique_ptr<Session> make_handed_over_session(SharedServerData& server, int epoll,
                                                                const HandedOverSession& state,
                                                                base::UniqueFd socket, bool v6,
                                                                const BatchTime& now);

/// Returns the session's state for a takeover. The caller must set the member `listener`.
[[nodiscard]] HandedOverSession takeover_state_of(const Session& session);

/// The timers of all sessions of one thread, the time of the current batch, and the closed sessions
/// that are not freed yet. The session tables of the thread share this object.
class SessionTimers {
  public:
    using Time = base::Clock::time_point;

    /// The most sessions that one call of check_due_sessions() checks. Closing a session takes some
    /// 20 microseconds, so check_due_sessions() takes less than a millisecond.
    static constexpr std::size_t kChecksPerCall = 32;

    /// `shortest`: the shortest idle timeout of any session. `now`: later calls must not pass
    /// earlier times.
    explicit SessionTimers(std::chrono::milliseconds shortest, Time now = base::Clock::now());
    /// Precondition: all session tables of the thread have been destroyed.
    ~SessionTimers() = default;
    SessionTimers(const SessionTimers&) = delete;
    SessionTimers& operator=(const SessionTimers&) = delete;

    /// Begins a batch: reads the clock. Returns the UTC time.
    base::Timestamp begin_batch(Time now = base::Clock::now()) noexcept;

    /// Ends a batch: frees the closed sessions without waiting datagrams.
    void end_batch() {
        if (closed_ != nullptr) {
            free_closed_sessions(false);
        }
    }

    /// Calls `check_timeout(Session&)` for sessions whose timers are due, at most kChecksPerCall
    /// of them. Returns true if no further timer is due.
    template <typename CheckTimeout>
    bool check_due_sessions(Time now, CheckTimeout&& check_timeout) {
        begin_batch(now);
        const auto is_due = [&] {
            return !open_sessions_.empty() && open_sessions_.front().check_at <= now;
        };
        for (std::size_t checked = 0; is_due() && checked < kChecksPerCall; ++checked) {
            Session& session = open_sessions_.front();
            open_sessions_.pop_front();
            schedule_check(session);
            check_timeout(session);
        }
        end_batch();
        return !is_due();
    }

    /// Returns the interval at which check_due_sessions() must be called while there are sessions.
    [[nodiscard]] std::chrono::milliseconds check_interval() const noexcept {
        return std::min(check_pause_, kLongestSleep);
    }

    [[nodiscard]] const BatchTime& batch_time() const noexcept { return now_; }

    /// Adds a session, which is checked regularly until it is passed to free_after_sending().
    void add_session(Session& session) noexcept {
        ++num_sessions_;
        schedule_check(session);
    }

    /// Takes ownership of a closed session and frees it when none of its datagrams waits any more.
    void free_after_sending(std::unique_ptr<Session> session) noexcept;
    /// Frees the closed sessions without waiting datagrams. `all`: frees all closed sessions.
    void free_closed_sessions(bool all) noexcept;

    /// Returns true if the thread has no sessions, not even closed sessions with waiting datagrams.
    [[nodiscard]] bool has_no_sessions() const noexcept { return num_sessions_ == 0; }

  private:
    static constexpr std::chrono::milliseconds kLongestSleep{100};

    using WaitingSessions = boost::intrusive::list<
        Session,
        boost::intrusive::member_hook<Session, decltype(Session::timer_hook), &Session::timer_hook>,
        boost::intrusive::constant_time_size<false>>;

    void schedule_check(Session& session) noexcept {
        session.check_at = now_.steady + check_pause_;
        open_sessions_.push_back(session);
    }

    std::chrono::milliseconds check_pause_; ///< the time between two checks of a session
    WaitingSessions open_sessions_; ///< the sessions that are not closed, in the order of check_at
    /// The closed sessions, linked by Session::next_closed, so that closing does not allocate.
    std::unique_ptr<Session> closed_;
    std::size_t num_sessions_ = 0; ///< number of sessions, including closed ones
    BatchTime now_;
};

} // namespace tw::relay
