#include "proxy/relay/shard.h"

#include <new>
#include <thread>
#include <utility>

#include <boost/asio/post.hpp>

namespace tw::relay {

namespace {

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

/// When there was no memory, until it is asked for again.
constexpr std::chrono::milliseconds kMemoryPause{1};

} // namespace

Shard::Shard(const Options& options, unsigned thread, std::span<const Udp::endpoint> listen,
             std::vector<UniqueFd> sockets, Shared& shared, Ring* ring)
    : busy_poll_{options.busy_poll} {
    std::vector<Listener> listeners;
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        const Udp::endpoint& endpoint = listen[i % listen.size()];
        const int socket =
            sockets_.emplace_back(io_, endpoint.protocol(), sockets[i].release()).native_handle();
        listeners.push_back({.socket = socket,
                             .any_address = endpoint.address().is_unspecified(),
                             .v6 = endpoint.address().is_v6()});
    }
    forwarder_ = std::make_unique<Forwarder>(shared, thread, listeners, ring);
    forwarder_->set_impairment(options.impairment);
    upstream_set_.assign(::dup(forwarder_->upstream_set()));
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
    resting_ = time >= Forwarder::kRest;
    sweep_timer_.expires_after(time);
    sweep_timer_.async_wait([this](boost::system::error_code error) {
        if (error) {
            return;
        }
        const bool all = forwarder_->sweep(Clock::now());
        wait_for_sweep(all ? forwarder_->sweep_interval() : kNextSweep);
    });
}

/// There is something to look after again.
void Shard::end_rest() {
    if (resting_ && forwarder_->sweep_interval() < Forwarder::kRest) {
        wait_for_sweep(forwarder_->sweep_interval());
    }
}

void Shard::forward() {
    woken_ = true;
    for (int round = 0; round < kMaxRounds; ++round) {
        const bool busy = forwarder_->read_clients() + forwarder_->read_servers() >= kBusyRound;
        if (forwarder_->impaired()) {
            send_due();
        }
        if (!busy) {
            break;
        }
    }
    end_rest();
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

void Shard::resync(std::uint32_t session) {
    boost::asio::post(io_, [this, session] { forwarder_->resync(session); });
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
        end_rest();
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

void Shard::wait_for_all() {
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
        wait_for_clients(i);
    }
    wait_for_servers();
    wait_for_sweep(forwarder_->sweep_interval());
    send_due();
}

void Shard::stop_waiting() {
    boost::system::error_code ignored;
    for (Udp::socket& socket : sockets_) {
        socket.cancel(ignored);
    }
    upstream_set_.cancel(ignored);
    sweep_timer_.cancel(ignored);
    due_timer_.cancel(ignored);
    due_.reset();
}

void Shard::run() {
    while (!stopping_.load(std::memory_order_relaxed)) {
        try {
            wait_for_all();
            busy_poll_ ? spin() : static_cast<void>(io_.run());
        } catch (const std::bad_alloc&) {
            // What there was no memory for is lost. What was waited for may be no longer: anew.
            stop_waiting();
            std::this_thread::sleep_for(kMemoryPause);
        }
    }
    const bool leaving = leaves();
    if (!leaving) {
        drain();
    }
    forwarder_->settle();
    forwarder_->close_all(leaving ? CloseReason::handed_over : CloseReason::shutdown);
}

void Shard::ask_to_hold() {
    const std::scoped_lock lock{hold_mutex_};
    hold_ = Hold::asked;
    boost::asio::post(io_, [this] { hold(); });
}

void Shard::hold() {
    std::unique_lock lock{hold_mutex_};
    if (hold_ != Hold::asked) {
        return; // too late: who asked waits no longer
    }
    forwarder_->settle();
    hold_ = Hold::holding;
    hold_changed_.notify_all();
    hold_changed_.wait(lock, [this] { return hold_ != Hold::holding; });
}

bool Shard::holds_until(Clock::time_point deadline) {
    std::unique_lock lock{hold_mutex_};
    return hold_changed_.wait_until(lock, deadline, [this] { return hold_ == Hold::holding; });
}

void Shard::resume() {
    const std::scoped_lock lock{hold_mutex_};
    hold_ = Hold::none;
    hold_changed_.notify_all();
}

void Shard::leave() {
    // First, so that it reads nothing once it is let go.
    stopping_.store(true, std::memory_order_relaxed);
    io_.stop();
    const std::scoped_lock lock{hold_mutex_};
    hold_ = Hold::leaving;
    hold_changed_.notify_all();
}

bool Shard::leaves() {
    const std::scoped_lock lock{hold_mutex_};
    return hold_ == Hold::leaving;
}

void Shard::stop() {
    stopping_.store(true, std::memory_order_relaxed);
    io_.stop();
    const std::scoped_lock lock{hold_mutex_};
    if (hold_ == Hold::asked || hold_ == Hold::holding) {
        hold_ = Hold::none;
        hold_changed_.notify_all();
    }
}

} // namespace tw::relay
