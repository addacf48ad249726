#pragma once

#include "proxy/relay/forwarder.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::relay {

/// One relay thread: waits with one epoll instance for sockets, timers and calls from other
/// threads, and runs the forwarder.
class RelayThread {
  public:
    using Udp = boost::asio::ip::udp;

    /// Creates the thread's epoll instance, timer and forwarder. Errors: throws std::system_error.
    RelayThread(const Options& options, unsigned thread, Observation& observation, Ring* ring);

    // Servers. Call these before run(), or through run_on_thread().

    /// `listen`: the addresses where the server's clients connect. `sockets`: sets of sockets bound to
    /// these addresses, one set after the other; empty if other threads have all sets.
    /// Errors: throws std::system_error.
    void add_server(SharedServer& shared, std::span<const Udp::endpoint> listen,
                    std::vector<base::UniqueFd> sockets);
    /// Closes some of the server's sessions and, after the last one, the server's listening sockets.
    /// Returns whether the server is removed; if not, the caller must call again.
    [[nodiscard]] bool remove_server(const SharedServer& shared);

    /// Runs `job` on this thread and waits until it has returned. Precondition: run() is active.
    /// Errors: what `job` throws; StartError if it does not start in time.
    void run_on_thread(std::function<void()> job);

    /// Runs until stop() or stop_for_handover(). After stop(), forwards what was received and closes the sessions.
    void run();

    /// Ends run(). Callable from any thread; returns at once.
    void stop();

    /// Sets the impairment of all sessions. Callable from any thread; takes effect asynchronously.
    void set_impairment(const Impairment& impairment);

    /// Requests a full snapshot for a session; see Relay::resync. Callable from any thread.
    void resync(std::uint32_t session);

    // Handover. Call these from one thread.

    /// Asks the thread to pause between two batches, after it has sent all delayed datagrams.
    void request_pause();
    /// Waits until the thread pauses. Returns false at the deadline.
    [[nodiscard]] bool wait_until_paused(base::Clock::time_point deadline);
    /// Ends the pause.
    void resume();
    /// Ends the thread without receiving more, and reports to the observer that another relay continues
    /// the sessions.
    void stop_for_handover();

    /// The thread's forwarder. Precondition: the thread is paused or has not started.
    [[nodiscard]] Forwarder& forwarder() noexcept { return *forwarder_; }

  private:
    /// Waits for a ready socket or a timer, and forwards what has arrived. Returns the number of
    /// datagrams received.
    std::size_t wait_and_forward();
    void poll_without_sleep();
    void run_due_work();
    void run_calls();
    [[nodiscard]] std::function<void()> next_call();
    [[nodiscard]] bool set_timer();
    void enqueue_call(std::function<void()> job);
    void wake() noexcept;
    void forward_received();
    void pause_if_requested();
    [[nodiscard]] bool is_stopping_for_handover();

    /// Sockets that the clients of each server send to.
    std::map<const SharedServer*, std::vector<base::UniqueFd>> sockets_;
    base::UniqueFd wakeup_; ///< eventfd: another thread has added to calls_, or stops this thread
    base::UniqueFd timer_;  ///< timerfd: a sweep or a delayed datagram is due
    std::unique_ptr<Forwarder> forwarder_;
    base::Clock::time_point next_sweep_;

    /// When the next delayed datagram is due; nullopt if none waits.
    std::optional<base::Clock::time_point> due_;
    base::Clock::time_point timer_set_to_;
    bool resting_ = false; ///< the next sweep is kRestInterval after the last one
    bool busy_poll_;
    std::atomic<bool> stopping_{false};
    std::mutex calls_mutex_;
    std::deque<std::function<void()>> calls_; ///< calls from other threads

    /// The state of a handover.
    enum class PauseState : std::uint8_t { none, requested, paused, leaving };
    std::mutex pause_mutex_;
    std::condition_variable pause_changed_;
    PauseState pause_ = PauseState::none;
};

} // namespace tw::relay
