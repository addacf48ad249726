#pragma once

#include "proxy/relay/forwarder.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::relay {

/// One relay thread: waits on its sockets with Asio and lets the forwarder work when there is work.
class Shard {
  public:
    using Udp = boost::asio::ip::udp;

    /// `listen`: the addresses; `sockets`: sets of sockets bound to them, one set after the other, or
    /// none where another thread has them all.
    Shard(const Options& options, unsigned thread, std::span<const Udp::endpoint> listen,
          std::vector<UniqueFd> sockets, Shared& shared, Ring* ring);

    /// Works until stopped; then passes on what has already come and closes the sessions.
    void run();

    /// From any thread; returns at once.
    void stop();

    /// From any thread; done as soon as the thread gets to it.
    void set_impairment(const Impairment& impairment);

    /// From any thread; see Relay::resync.
    void resync(std::uint32_t session);

    // To hand over. From one thread.

    /// Asks the thread to hold between two batches, with nothing that waits to be sent on.
    void ask_to_hold();
    /// Waits until it does; false at the deadline.
    [[nodiscard]] bool holds_until(Clock::time_point deadline);
    /// It goes on.
    void resume();
    /// It ends, reads nothing more, and tells the observer that its sessions go on elsewhere.
    void leave();

    /// What it forwards with: while it holds or before it runs.
    [[nodiscard]] Forwarder& forwarder() noexcept { return *forwarder_; }

    /// Its listening sockets.
    [[nodiscard]] std::span<const Listener> listeners() const noexcept {
        return forwarder_->listeners();
    }

  private:
    void wait_for_all();
    void stop_waiting();
    void wait_for_clients(std::size_t listener);
    void wait_for_servers();
    void wait_for_sweep(std::chrono::milliseconds time);
    void end_rest();
    void forward();
    void send_due();
    void spin();
    void sleep();
    void drain();
    void hold();
    [[nodiscard]] bool leaves();

    boost::asio::io_context io_{1};
    std::vector<Udp::socket> sockets_;
    std::unique_ptr<Forwarder> forwarder_;
    boost::asio::posix::stream_descriptor upstream_set_{io_};
    boost::asio::steady_timer sweep_timer_{io_};
    boost::asio::steady_timer due_timer_{io_}; ///< with impaired lines: when something has to leave
    std::optional<Clock::time_point> due_;     ///< when that is, while the timer runs
    bool busy_poll_;
    bool resting_ = false; ///< the next sweep is far away: there is nothing to look after
    bool woken_ = false;   ///< a socket was ready since sleep() began
    std::atomic<bool> stopping_{false};

    /// Of a handover.
    enum class Hold : std::uint8_t { none, asked, holding, leaving };
    std::mutex hold_mutex_;
    std::condition_variable hold_changed_;
    Hold hold_ = Hold::none;
};

} // namespace tw::relay
