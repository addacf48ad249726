#include "proxy/relay/shard.h"

#include "proxy/relay/start_error.h"

#include <algorithm>

#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>

namespace tw::relay {

namespace {

/// A socket option that is switched on, as Asio takes it (its SettableSocketOption).
template <int kLevel, int kName>
class SwitchedOn {
  public:
    template <typename Protocol>
    [[nodiscard]] int level(const Protocol& /*protocol*/) const noexcept {
        return kLevel;
    }

    template <typename Protocol>
    [[nodiscard]] int name(const Protocol& /*protocol*/) const noexcept {
        return kName;
    }

    template <typename Protocol>
    [[nodiscard]] const void* data(const Protocol& /*protocol*/) const noexcept {
        return &on_;
    }

    template <typename Protocol>
    [[nodiscard]] std::size_t size(const Protocol& /*protocol*/) const noexcept {
        return sizeof on_;
    }

  private:
    int on_ = 1;
};

using ReusePort = SwitchedOn<SOL_SOCKET, SO_REUSEPORT>;
using PacketInfo4 = SwitchedOn<IPPROTO_IP, IP_PKTINFO>;
using PacketInfo6 = SwitchedOn<IPPROTO_IPV6, IPV6_RECVPKTINFO>;

/// Between two sweeps when one has not seen all sessions that were due.
constexpr std::chrono::milliseconds kNextSweep{1};

/// Rounds before timers and the stop signal get their turn: a few milliseconds under full load.
constexpr int kMaxRounds = 64;
/// A round with fewer datagrams than this has emptied the sockets, or nearly: time to wait.
constexpr std::size_t kBusyRound = 16;

/// With busy_poll: how long to spin without a datagram before sleeping, in game time one tick and
/// a half, so that a single client keeps the relay awake.
constexpr std::chrono::milliseconds kSpinTime{30};
/// Spins between two looks at the clock and at Asio.
constexpr int kSpinsPerLook = 256;

/// What has come before a stop is passed on, but a flood shall not keep us from ending.
constexpr std::chrono::milliseconds kDrainTime{100};

} // namespace

Shard::Shard(const Options& options, unsigned thread, std::vector<Udp::endpoint>& listen,
             Shared& shared, Ring* ring)
    : busy_poll_{options.busy_poll} {
    const bool v6_only = std::any_of(listen.begin(), listen.end(),
                                     [](const auto& e) { return e.address().is_v4(); });
    std::vector<Listener> listeners;
    for (auto& endpoint : listen) {
        open_listener(options, endpoint, v6_only);
        listeners.push_back({sockets_.back().native_handle(), endpoint.address().is_unspecified()});
    }
    forwarder_ = std::make_unique<Forwarder>(shared, thread, listeners, ring);
    forwarder_->set_impairment(options.impairment);
    upstream_set_.assign(::dup(forwarder_->upstream_set()));
}

void Shard::open_listener(const Options& options, Udp::endpoint& endpoint, bool v6_only) {
    boost::system::error_code error;
    const auto check = [&](const char* what) {
        if (!error) {
            return;
        }
        const std::string text =
            std::string{"cannot "} + what + ' ' + to_string(endpoint) + ": " + error.message();
        if (error == boost::asio::error::address_in_use ||
            error == boost::system::errc::address_not_available) {
            throw NotYetError{text};
        }
        throw StartError{text};
    };
    Udp::socket& socket = sockets_.emplace_back(io_);
    socket.open(endpoint.protocol(), error);
    check("open a socket for");
    if (endpoint.address().is_v6()) {
        socket.set_option(boost::asio::ip::v6_only{v6_only}, error);
        check("set up");
    }
    if (options.threads > 1) {
        socket.set_option(ReusePort{}, error);
        check("share between threads");
    }
    if (endpoint.address().is_unspecified()) {
        // A socket for both families takes both options; one of them is enough for either.
        endpoint.address().is_v6() ? socket.set_option(PacketInfo6{}, error)
                                   : socket.set_option(PacketInfo4{}, error);
        check("set up");
    }
    set_socket_buffers(socket.native_handle(), options.socket_buffer_bytes);
    socket.bind(endpoint, error);
    check("listen on");
    socket.native_non_blocking(true, error);
    check("set up");
    endpoint = socket.local_endpoint();
}

void Shard::wait_for_clients(std::size_t listener) {
    sockets_[listener].async_wait(Udp::socket::wait_read,
                                  [this, listener](boost::system::error_code error) {
                                      if (error == boost::asio::error::operation_aborted) {
                                          return;
                                      }
                                      forward();
                                      wait_for_clients(listener);
                                  });
}

void Shard::wait_for_servers() {
    upstream_set_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                             [this](boost::system::error_code error) {
                                 if (error == boost::asio::error::operation_aborted) {
                                     return;
                                 }
                                 forward();
                                 wait_for_servers();
                             });
}

void Shard::wait_for_sweep(std::chrono::milliseconds time) {
    sweep_timer_.expires_after(time);
    sweep_timer_.async_wait([this](boost::system::error_code error) {
        if (error) {
            return;
        }
        const bool all = forwarder_->sweep(Clock::now());
        wait_for_sweep(all ? forwarder_->sweep_interval() : kNextSweep);
    });
}

void Shard::forward() {
    woken_ = true;
    for (int round = 0; round < kMaxRounds; ++round) {
        const bool busy = forwarder_->read_clients() + forwarder_->read_servers() >= kBusyRound;
        if (forwarder_->impaired()) {
            send_due();
        }
        if (!busy) {
            return;
        }
    }
}

void Shard::send_due() {
    if (!forwarder_->impaired()) {
        return;
    }
    const auto next = forwarder_->send_due(Clock::now());
    if (next == due_) {
        return;
    }
    due_ = next;
    if (!next) {
        due_timer_.cancel();
        return;
    }
    due_timer_.expires_at(*next); // cancels the wait for an earlier one
    due_timer_.async_wait([this](boost::system::error_code error) {
        if (!error) {
            due_.reset();
            send_due();
        }
    });
}

void Shard::set_impairment(const Impairment& impairment) {
    boost::asio::post(io_, [this, impairment] {
        forwarder_->set_impairment(impairment);
        due_.reset();
        due_timer_.cancel();
    });
}

void Shard::spin() {
    auto last_seen = Clock::now();
    bool seen = false;
    int spins = 0;
    while (!stopping_.load(std::memory_order_relaxed)) {
        seen |= forwarder_->read_clients() + forwarder_->read_servers() != 0;
        if (forwarder_->impaired()) {
            send_due();
        }
        if (++spins < kSpinsPerLook) {
            continue;
        }
        const auto now = Clock::now();
        io_.poll();
        if (seen) {
            last_seen = now;
        } else if (now - last_seen > kSpinTime) {
            sleep();
            last_seen = Clock::now();
        }
        seen = false;
        spins = 0;
    }
}

void Shard::sleep() {
    woken_ = false;
    while (!woken_ && !stopping_.load(std::memory_order_relaxed)) {
        io_.run_one();
    }
}

void Shard::drain() {
    const auto deadline = Clock::now() + kDrainTime;
    while (forwarder_->read_clients() + forwarder_->read_servers() != 0 &&
           Clock::now() < deadline) {
    }
}

void Shard::run() {
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
        wait_for_clients(i);
    }
    wait_for_servers();
    wait_for_sweep(forwarder_->sweep_interval());
    if (busy_poll_) {
        spin();
    } else {
        io_.run();
    }
    drain();
    forwarder_->set_impairment({}); // sends on what still waits
    forwarder_->close_all();
}

void Shard::stop() {
    stopping_.store(true, std::memory_order_relaxed);
    io_.stop();
}

} // namespace tw::relay
