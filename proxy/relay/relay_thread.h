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

/// A relay thread: waits for ready sockets, timers and other threads' calls, and runs its
/// forwarder.
class RelayThread {
  public:
    using Udp = boost::asio::ip::udp;

    /// Creates the thread's epoll instance, timer and forwarder. Errors: throws std::system_error.
    RelayThread(const Options& options, unsigned thread, ObserverSharedMemory& observation,
                Ring* ring);

    // Adding and removing servers. Call these functions before run(), or through run_on_thread().

    /// Adds a server. `listen`: the listening addresses for the server's clients. `sockets`: sets
    /// of sockets bound to these addresses, one set after the other; empty if this thread does not
    /// listen. Errors: throws std::system_error.
    void add_server(SharedServer& shared, std::span<const Udp::endpoint> listen,
                    std::vector<base::UniqueFd> sockets);
    /// Closes some of the server's sessions and, after the last one, its listening sockets. Returns
    /// whether the server is removed; if not, remove_server() must be called again.
    [[nodiscard]] bool remove_server(const SharedServer& shared);

    /// Runs `job` on this relay thread and waits until `job` has returned. Precondition: run() is
    /// active. Errors: the exceptions of `job`; StartError if `job` does not start in time.
    void run_on_thread(std::function<void()> job);

    /// Forwards datagrams until stop() or stop_for_handover(). After stop(), forwards the datagrams
    /// that have arrived and closes the sessions.
    void run();

    /// Makes run() end. Callable from any thread; returns at once.
    void stop();

    /// Sets the impairment of all sessions. Callable from any thread; takes effect asynchronously.
    void set_impairment(const Impairment& impairment);

    /// Makes the server send a full snapshot to a session; see Relay::request_full_snapshot.
    /// Callable from any thread.
    void request_full_snapshot(std::uint32_t session);

    // Handover to another relay. Call these functions from a single thread.

    /// Asks the thread to pause between two batches, after it has sent all delayed datagrams.
    void request_pause();
    /// Waits until the thread has paused. Returns false if it has not paused by the deadline.
    [[nodiscard]] bool wait_until_paused(base::Clock::time_point deadline);
    void resume();
    /// Ends the thread without further receiving, and reports to the observer that another relay
    /// continues the sessions.
    void stop_for_handover();

    /// The thread's forwarder. Precondition: the thread is paused or has not started.
    [[nodiscard]] Forwarder& forwarder() noexcept { return *forwarder_; }

  private:
    /// Waits for a ready socket or timer, and forwards arrived datagrams. Returns their number.
    std::size_t wait_and_forward();
    void poll_without_sleep();
    void run_due_work();
    void run_calls();
    [[nodiscard]] std::function<void()> take_next_call();
    [[nodiscard]] bool set_timer();
    void enqueue_call(std::function<void()> job);
    void wake() noexcept;
    void forward_received_datagrams();
    void pause_if_requested();
    [[nodiscard]] bool is_stopping_for_handover();

    /// This thread's listening sockets for each server.
    std::map<const SharedServer*, std::vector<base::UniqueFd>> sockets_;
    /// Eventfd that other threads write to after they added to calls_ or set stopping_.
    base::UniqueFd wakeup_;
    /// Timerfd that expires when idle sessions must be checked or a delayed datagram is due.
    base::UniqueFd timer_;
    std::unique_ptr<Forwarder> forwarder_;
    base::Clock::time_point next_sweep_;

    /// When the next delayed datagram is due; nullopt if no datagram waits.
    std::optional<base::Clock::time_point> due_;
    base::Clock::time_point timer_set_to_;
    bool resting_ = false; ///< true if next_sweep_ uses kRestInterval: there was nothing to check
    bool busy_poll_;
    std::atomic<bool> stopping_{false};
    std::mutex calls_mutex_;
    /// Functions that other threads want this thread to run.
    std::deque<std::function<void()>> calls_;

    /// The progress of a handover.
    enum class PauseState : std::uint8_t { none, requested, paused, leaving };
    std::mutex pause_mutex_;
    std::condition_variable pause_changed_;
    PauseState pause_ = PauseState::none;
};

} // namespace tw::relay
