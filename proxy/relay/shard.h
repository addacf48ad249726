#pragma once

#include "proxy/relay/forwarder.h"

#include <atomic>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::relay {

/// One relay thread: waits on its sockets with Asio and lets the forwarder work when there is work.
class Shard {
  public:
    /// Opens and binds the listening sockets. Throws StartError when that fails.
    /// `listen` has its ports filled in: the other shards bind to the same ones.
    Shard(const Options& options, unsigned thread,
          std::vector<boost::asio::ip::udp::endpoint>& listen, Shared& shared, Ring* ring);

    /// Works until stopped; then passes on what has already come and closes the sessions.
    void run();

    /// From any thread; returns at once.
    void stop();

    /// From any thread; done as soon as the thread gets to it.
    void set_impairment(const Impairment& impairment);

  private:
    using Udp = boost::asio::ip::udp;

    void open_listener(const Options& options, Udp::endpoint& endpoint, bool v6_only);
    void wait_for_clients(std::size_t listener);
    void wait_for_servers();
    void wait_for_sweep(std::chrono::milliseconds time);
    void forward();
    void send_due();
    void spin();
    void sleep();
    void drain();

    boost::asio::io_context io_{1};
    std::vector<Udp::socket> sockets_;
    std::unique_ptr<Forwarder> forwarder_;
    boost::asio::posix::stream_descriptor upstream_set_{io_};
    boost::asio::steady_timer sweep_timer_{io_};
    boost::asio::steady_timer due_timer_{io_}; ///< with impaired lines: when something has to leave
    std::optional<Clock::time_point> due_;     ///< when that is, while the timer runs
    bool busy_poll_;
    bool woken_ = false; ///< a socket was ready since sleep() began
    std::atomic<bool> stopping_{false};
};

} // namespace tw::relay
