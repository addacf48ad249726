#pragma once

#include "proxy/relay/forwarder.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::relay {

/// A pause of all relay threads, which another thread begins and ends.
class ThreadPause {
  public:
    /// Begins a pause. Afterwards, each relay thread must call wait_for_end().
    void begin_pause();
    /// Waits on a relay thread until the pause ends. Returns at once if it has ended.
    void wait_for_end();
    /// Waits until this many threads have paused. Returns false if they have not by the deadline.
    [[nodiscard]] bool await_threads(std::size_t threads, base::Clock::time_point deadline);
    void end_pause();

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t num_ended_pauses_ = 0; ///< number of pauses that have ended
    std::size_t num_paused_threads_ = 0; ///< number of threads that have paused
    bool is_wanted_ = false;
};

/// A relay thread: waits for ready sockets, timers and other threads' calls, and runs its
/// forwarder.
class RelayThread {
  public:
    using Udp = boost::asio::ip::udp;

    /// Creates the thread's epoll instance, timer and forwarder. Errors: throws std::system_error.
    RelayThread(const Options& options, unsigned thread, ObserverSharedMemory& observation,
                Ring* ring);

    // Adding and removing servers. Call these functions before start(), or through run_on_thread().

    /// Adds a server. `sockets`: sets of sockets bound to `shared.listen`, one set after the other;
    /// empty if this thread does not listen. Errors: throws std::system_error.
    void add_server(SharedServerData& shared, std::vector<base::UniqueFd> sockets);
    /// Closes some of the server's sessions and, after the last one, its listening sockets. Returns
    /// whether the server is removed; if not, remove_server() must be called again.
    [[nodiscard]] bool remove_server(const SharedServerData& shared);

    void start();
    /// Makes the thread end. It forwards the datagrams that have arrived, and closes the sessions.
    /// `handed_over`: it receives nothing further, and reports that another relay continues the
    /// sessions. Callable from any thread; returns at once.
    void stop(bool handed_over = false);
    void join();

    /// Queues `job`, which this thread then runs. Callable from any thread.
    void run_later(std::function<void()> job);
    /// Runs `job` on this thread, or here if the thread has not started, and waits until `job` has
    /// returned. Errors: the exceptions of `job`; StartError if `job` does not start in time.
    void run_on_thread(std::function<void()> job);

    /// The thread's forwarder. Use it on this thread, while the thread is paused, or before
    /// start().
    [[nodiscard]] Forwarder& forwarder() noexcept { return forwarder_; }

  private:
    /// Waits for a ready socket or timer, and forwards arrived datagrams. Returns their number.
    std::size_t wait_and_forward();
    void poll_without_sleep();
    void run_due_work();
    void run_queued_jobs();
    [[nodiscard]] std::function<void()> take_next_job();
    [[nodiscard]] bool set_timer();
    void run();
    void wake() noexcept;

    /// This thread's listening sockets for each server.
    std::map<const SharedServerData*, std::vector<base::UniqueFd>> sockets_;
    /// Eventfd that other threads write to after they added to queued_jobs_ or set is_stopping_.
    base::UniqueFd wakeup_;
    /// Timerfd that expires when idle sessions must be checked or a delayed datagram is due.
    base::UniqueFd timer_;
    Forwarder forwarder_;
    base::Clock::time_point next_check_;

    /// When the next delayed datagram is due; nullopt if no datagram waits.
    std::optional<base::Clock::time_point> next_due_;
    base::Clock::time_point timer_set_to_;
    /// True if next_check_ uses kIdleCheckInterval, because there was nothing to check.
    bool is_resting_ = false;
    bool busy_poll_;
    std::atomic<bool> is_stopping_{false};
    std::atomic<bool> is_handed_over_{false}; ///< the argument of stop()
    std::mutex jobs_mutex_;
    /// Functions that other threads want this thread to run.
    std::deque<std::function<void()>> queued_jobs_;
    std::thread thread_;
};

} // namespace tw::relay
