#include "proxy/relay/relay_thread.h"

#include "proxy/relay/listen_socket.h"
#include "proxy/relay/options.h"

#include <algorithm>
#include <cerrno>
#include <future>
#include <new>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace tw::relay {

namespace {

/// The time until the next check of sessions if the previous one did not handle all due sessions.
constexpr std::chrono::milliseconds kSweepAgainAfter{1};

/// With busy_poll: how long the thread polls without receiving a datagram before it sleeps. The
/// time is one and a half game ticks, so that even a single client keeps the thread awake.
constexpr std::chrono::milliseconds kSpinTime{30};
/// With busy_poll: the clock is read once in this many polls.
constexpr int kSpinsPerClockRead = 256;

/// The longest time for which a stopping thread still forwards datagrams that have arrived. Without
/// a limit, a flood could delay the stop.
constexpr std::chrono::milliseconds kMaxDrainTime{100};

/// The longest time for which run_on_thread() waits for the start of a job. The thread starts the
/// job within microseconds, except while the thread is paused for a handover.
constexpr std::chrono::seconds kCallTimeout{2};

/// The pause after an allocation failure.
constexpr std::chrono::milliseconds kMemoryPause{1};

base::UniqueFd descriptor_or_throw(int descriptor, const char* what) {
    base::UniqueFd owned{descriptor};
    if (!owned.valid()) {
        throw std::system_error{errno, std::system_category(), what};
    }
    return owned;
}

/// Converts a time of the steady clock for timerfd_settime() with CLOCK_MONOTONIC.
itimerspec to_itimerspec(base::Clock::time_point time) {
    const auto since =
        std::max<base::Clock::duration>(time.time_since_epoch(), base::Clock::duration{1});
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
    itimerspec when{};
    when.it_value.tv_sec = static_cast<time_t>(seconds.count());
    when.it_value.tv_nsec =
        std::chrono::duration_cast<std::chrono::nanoseconds>(since - seconds).count();
    return when;
}

} // namespace

RelayThread::RelayThread(const Options& options, unsigned thread, ObserverSharedMemory& observation,
                         Ring* ring)
    : wakeup_{descriptor_or_throw(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")},
      timer_{descriptor_or_throw(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
                                 "timerfd_create")},
      busy_poll_{options.busy_poll} {
    const auto shortest = std::min({options.idle_timeout, options.new_clients.unverified_time,
                                    options.new_clients.connless_time});
    forwarder_ = std::make_unique<Forwarder>(observation, thread, options.resync, shortest, ring);
    forwarder_->add_wakeup(wakeup_.get());
    forwarder_->add_wakeup(timer_.get());
    forwarder_->set_impairment(options.impairment);
}

void RelayThread::add_server(SharedServer& shared, std::span<const Udp::endpoint> listen,
                             std::vector<base::UniqueFd> sockets) {
    std::vector<Listener> listeners;
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        const Udp::endpoint& endpoint = listen[i % listen.size()];
        listeners.push_back({.socket = sockets[i].get(),
                             .any_address = endpoint.address().is_unspecified(),
                             .v6 = endpoint.address().is_v6(),
                             .local = base::endpoint_from(endpoint.data())});
    }
    sockets_[&shared] = std::move(sockets);
    forwarder_->add_server(shared, listeners);
}

bool RelayThread::remove_server(const SharedServer& shared) {
    const bool gone = forwarder_->remove_server(shared);
    if (gone) {
        sockets_.erase(&shared);
    }
    return gone;
}

void RelayThread::run_on_thread(std::function<void()> job) {
    auto task = std::make_shared<std::packaged_task<void()>>(std::move(job));
    auto done = task->get_future();
    const auto claimed =
        // true after the relay thread has begun the task, or the caller has stopped waiting
        std::make_shared<std::atomic<bool>>(false);
    enqueue_call([task, claimed] {
        if (!claimed->exchange(true)) {
            (*task)();
        }
    });
    if (done.wait_for(kCallTimeout) != std::future_status::ready && !claimed->exchange(true)) {
        throw StartError{"a relay thread is not responding"};
    }
    done.get();
}

void RelayThread::enqueue_call(std::function<void()> job) {
    {
        const std::scoped_lock lock{calls_mutex_};
        calls_.push_back(std::move(job));
    }
    wake();
}

void RelayThread::wake() noexcept {
    const std::uint64_t one = 1;
    std::ignore = ::write(wakeup_.get(), &one, sizeof one);
}

std::function<void()> RelayThread::take_next_call() {
    const std::scoped_lock lock{calls_mutex_};
    if (calls_.empty()) {
        return nullptr;
    }
    auto job = std::move(calls_.front());
    calls_.pop_front();
    return job;
}

void RelayThread::run_calls() {
    std::uint64_t rung = 0;
    std::ignore = ::read(wakeup_.get(), &rung, sizeof rung);
    while (const auto job = take_next_call()) {
        job();
    }
}

void RelayThread::set_impairment(const Impairment& impairment) {
    enqueue_call([this, impairment] {
        forwarder_->set_impairment(impairment);
        due_.reset();
    });
}

void RelayThread::request_full_snapshot(std::uint32_t session) {
    enqueue_call([this, session] { forwarder_->request_full_snapshot(session); });
}

/// Sets the timer to the earlier of next_sweep_ and due_. Returns false on failure.
bool RelayThread::set_timer() {
    const auto wanted = std::min(next_sweep_, due_.value_or(next_sweep_));
    if (wanted == timer_set_to_) {
        return true;
    }
    const itimerspec when = to_itimerspec(wanted);
    const bool set = ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) == 0;
    timer_set_to_ = set ? wanted : base::Clock::time_point{};
    return set;
}

void RelayThread::run_due_work() {
    const auto now = base::Clock::now();
    timer_set_to_ = {}; // the timer may have expired and must be set again
    if (now >= next_sweep_) {
        const bool all = forwarder_->check_timeouts(now);
        const auto interval = forwarder_->timeout_check_interval();
        resting_ = all && interval >= Forwarder::kRestInterval;
        next_sweep_ = now + (all ? interval : kSweepAgainAfter);
    }
    if (forwarder_->is_impaired()) {
        due_ = forwarder_->send_due_datagrams(now);
    }
}

std::size_t RelayThread::wait_and_forward() {
    constexpr int kForever = -1;
    constexpr int kRetryMs = 100;
    const bool set = set_timer();
    const Forwarder::ForwardResult woken =
        forwarder_->forward_from_ready_sockets(set ? kForever : kRetryMs);
    if (woken.is_woken || !set) {
        run_calls();
        run_due_work();
    } else if (forwarder_->is_impaired()) {
        due_ = forwarder_->send_due_datagrams(base::Clock::now());
    }
    if (resting_ && forwarder_->timeout_check_interval() < Forwarder::kRestInterval) {
        resting_ = false;
        next_sweep_ = base::Clock::now() + forwarder_->timeout_check_interval();
    }
    return woken.datagrams;
}

void RelayThread::poll_without_sleep() {
    auto last_seen = base::Clock::now();
    bool seen = false;
    int spins = 0;
    while (!stopping_.load(std::memory_order_relaxed)) {
        const Forwarder::ForwardResult woken = forwarder_->forward_from_ready_sockets(0);
        seen = seen || woken.datagrams != 0;
        if (woken.is_woken) {
            run_calls();
            run_due_work();
            static_cast<void>(set_timer()); // an expired timer would make each poll return
        }
        if (forwarder_->is_impaired()) {
            due_ = forwarder_->send_due_datagrams(base::Clock::now());
        }
        if (++spins < kSpinsPerClockRead) {
            continue;
        }
        run_due_work();
        const auto now = base::Clock::now();
        if (seen) {
            last_seen = now;
        } else if (now - last_seen > kSpinTime) {
            while (!stopping_.load(std::memory_order_relaxed) &&
                   wait_and_forward() == 0) { // the loop sleeps until a datagram comes
            }
            last_seen = base::Clock::now();
        }
        seen = false;
        spins = 0;
    }
}

void RelayThread::forward_received_datagrams() {
    const auto deadline = base::Clock::now() + kMaxDrainTime;
    while (forwarder_->forward_from_ready_sockets(0).datagrams != 0 &&
           base::Clock::now() < deadline) {
    }
}

void RelayThread::run() {
    raise_thread_priority();
    next_sweep_ = base::Clock::now() + forwarder_->timeout_check_interval();
    resting_ = forwarder_->timeout_check_interval() >= Forwarder::kRestInterval;
    if (forwarder_->is_impaired()) {
        due_ = forwarder_->send_due_datagrams(base::Clock::now());
    }
    while (!stopping_.load(std::memory_order_relaxed)) {
        try {
            if (busy_poll_) {
                poll_without_sleep();
            } else {
                wait_and_forward();
            }
        } catch (const std::bad_alloc&) {
            // The loop continues. Only the work that needed the memory is lost.
            std::this_thread::sleep_for(kMemoryPause);
        }
    }
    const bool leaving = is_stopping_for_handover();
    if (!leaving) {
        forward_received_datagrams();
    }
    forwarder_->send_delayed_datagrams();
    forwarder_->close_all_sessions(leaving ? CloseReason::handed_over : CloseReason::shutdown);
}

void RelayThread::request_pause() {
    const std::scoped_lock lock{pause_mutex_};
    pause_ = PauseState::requested;
    enqueue_call([this] { pause_if_requested(); });
}

void RelayThread::pause_if_requested() {
    std::unique_lock lock{pause_mutex_};
    if (pause_ != PauseState::requested) {
        return; // the deadline has passed
    }
    forwarder_->send_delayed_datagrams();
    pause_ = PauseState::paused;
    pause_changed_.notify_all();
    pause_changed_.wait(lock, [this] { return pause_ != PauseState::paused; });
}

bool RelayThread::wait_until_paused(base::Clock::time_point deadline) {
    std::unique_lock lock{pause_mutex_};
    return pause_changed_.wait_until(lock, deadline,
                                     [this] { return pause_ == PauseState::paused; });
}

void RelayThread::resume() {
    const std::scoped_lock lock{pause_mutex_};
    pause_ = PauseState::none;
    pause_changed_.notify_all();
}

void RelayThread::stop_for_handover() {
    // stopping_ is set before the pause ends, so that the thread receives nothing afterwards.
    stopping_.store(true, std::memory_order_relaxed);
    wake();
    const std::scoped_lock lock{pause_mutex_};
    pause_ = PauseState::leaving;
    pause_changed_.notify_all();
}

bool RelayThread::is_stopping_for_handover() {
    const std::scoped_lock lock{pause_mutex_};
    return pause_ == PauseState::leaving;
}

void RelayThread::stop() {
    stopping_.store(true, std::memory_order_relaxed);
    wake();
    const std::scoped_lock lock{pause_mutex_};
    if (pause_ == PauseState::requested || pause_ == PauseState::paused) {
        pause_ = PauseState::none;
        pause_changed_.notify_all();
    }
}

} // namespace tw::relay
