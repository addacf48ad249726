#include "proxy/relay/relay_thread.h"

#include "proxy/relay/listen_socket.h"
#include "proxy/relay/options.h"

#include <algorithm>
#include <future>
#include <new>
#include <thread>
#include <tuple>
#include <utility>

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace tw::relay {

namespace {

/// The time until the next check of sessions if the previous one did not handle all due sessions.
constexpr std::chrono::milliseconds kRecheckDelay{1};

/// With busy_poll: how long the thread polls without receiving a datagram before it sleeps. The
/// time is one and a half game ticks, so that even a single client keeps the thread awake.
constexpr std::chrono::milliseconds kPollTime{30};
/// With busy_poll: the clock is read once in this many polls.
constexpr int kPollsPerClockRead = 256;

/// The longest time for which a stopping thread still forwards datagrams that have arrived. Without
/// a limit, a flood could delay the stop.
constexpr std::chrono::milliseconds kMaxDrainTime{100};

/// The longest time for which run_on_thread() waits for the start of a job. The thread starts the
/// job within microseconds, except while the thread is paused for a takeover.
constexpr std::chrono::seconds kJobStartTimeout{2};

/// The pause after an allocation failure.
constexpr std::chrono::milliseconds kOutOfMemoryPause{1};

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
    : wakeup_{base::take_descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")},
      timer_{base::take_descriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
                                   "timerfd_create")},
      forwarder_{observation, thread, options.resync_functions,
                 std::min({options.idle_timeout, options.new_client_limits.unverified_timeout,
                           options.new_client_limits.connless_timeout}),
                 ring},
      busy_poll_{options.busy_poll} {
    forwarder_.add_wakeup_descriptor(wakeup_.get());
    forwarder_.add_wakeup_descriptor(timer_.get());
    forwarder_.set_impairment(options.impairment);
}

void RelayThread::add_server(SharedServerData& shared, std::vector<base::UniqueFd> sockets) {
    std::vector<Listener> listeners;
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        const Udp::endpoint& endpoint = shared.listen[i % shared.listen.size()];
        listeners.push_back({.socket = sockets[i].get(),
                             .is_any_address = endpoint.address().is_unspecified(),
                             .v6 = endpoint.address().is_v6(),
                             .local = base::endpoint_from(endpoint.data())});
    }
    sockets_[&shared] = std::move(sockets);
    forwarder_.add_server(shared, listeners);
}

bool RelayThread::remove_server(const SharedServerData& shared) {
    const bool gone = forwarder_.remove_server(shared);
    if (gone) {
        sockets_.erase(&shared);
    }
    return gone;
}

void RelayThread::run_on_thread(std::function<void()> job) {
    if (!thread_.joinable()) {
        return job();
    }
    auto task = std::make_shared<std::packaged_task<void()>>(std::move(job));
    auto done = task->get_future();
    // True after the relay thread has begun the job, or the caller has stopped waiting.
    const auto claimed = std::make_shared<std::atomic<bool>>(false);
    run_later([task, claimed] {
        if (!claimed->exchange(true)) {
            (*task)();
        }
    });
    if (done.wait_for(kJobStartTimeout) != std::future_status::ready && !claimed->exchange(true)) {
        throw StartError{"a relay thread is not responding"};
    }
    done.get();
}

void RelayThread::run_later(std::function<void()> job) {
    {
        const std::scoped_lock lock{jobs_mutex_};
        queued_jobs_.push_back(std::move(job));
    }
    wake();
}

void RelayThread::wake() noexcept {
    const std::uint64_t one = 1;
    std::ignore = ::write(wakeup_.get(), &one, sizeof one);
}

std::function<void()> RelayThread::take_next_job() {
    const std::scoped_lock lock{jobs_mutex_};
    if (queued_jobs_.empty()) {
        return nullptr;
    }
    auto job = std::move(queued_jobs_.front());
    queued_jobs_.pop_front();
    return job;
}

void RelayThread::run_queued_jobs() {
    std::uint64_t rung = 0;
    std::ignore = ::read(wakeup_.get(), &rung, sizeof rung);
    while (const auto job = take_next_job()) {
        job();
    }
}

/// Sets the timer to the earlier of next_check_ and next_due_. Returns false on failure.
bool RelayThread::set_timer() {
    const auto wanted = std::min(next_check_, next_due_.value_or(next_check_));
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
    if (now >= next_check_) {
        const bool all = forwarder_.check_timeouts(now);
        const auto interval = forwarder_.timeout_check_interval();
        is_resting_ = all && interval >= Forwarder::kIdleCheckInterval;
        next_check_ = now + (all ? interval : kRecheckDelay);
    }
    next_due_ = forwarder_.send_due_datagrams(now);
}

std::size_t RelayThread::wait_and_forward() {
    constexpr int kForever = -1;
    constexpr int kRetryMs = 100;
    const bool set = set_timer();
    const Forwarder::ForwardResult woken =
        forwarder_.forward_from_ready_sockets(set ? kForever : kRetryMs);
    if (woken.is_woken || !set) {
        run_queued_jobs();
        run_due_work();
    } else if (forwarder_.is_impaired()) {
        next_due_ = forwarder_.send_due_datagrams(base::Clock::now());
    }
    if (is_resting_ && forwarder_.timeout_check_interval() < Forwarder::kIdleCheckInterval) {
        is_resting_ = false;
        next_check_ = base::Clock::now() + forwarder_.timeout_check_interval();
    }
    return woken.datagrams;
}

void RelayThread::poll_without_sleep() {
    auto last_seen = base::Clock::now();
    bool seen = false;
    int polls = 0;
    while (!is_stopping_.load(std::memory_order_relaxed)) {
        const Forwarder::ForwardResult woken = forwarder_.forward_from_ready_sockets(0);
        seen = seen || woken.datagrams != 0;
        if (woken.is_woken) {
            run_queued_jobs();
            run_due_work();
            static_cast<void>(set_timer()); // an expired timer would wake the thread in each poll
        }
        if (forwarder_.is_impaired()) {
            next_due_ = forwarder_.send_due_datagrams(base::Clock::now());
        }
        if (++polls < kPollsPerClockRead) {
            continue;
        }
        run_due_work();
        const auto now = base::Clock::now();
        if (seen) {
            last_seen = now;
        } else if (now - last_seen > kPollTime) {
            while (!is_stopping_.load(std::memory_order_relaxed) &&
                   wait_and_forward() == 0) { // the loop sleeps until a datagram comes
            }
            last_seen = base::Clock::now();
        }
        seen = false;
        polls = 0;
    }
}

void RelayThread::run() {
    raise_thread_priority();
    next_check_ = base::Clock::now() + forwarder_.timeout_check_interval();
    is_resting_ = forwarder_.timeout_check_interval() >= Forwarder::kIdleCheckInterval;
    next_due_ = forwarder_.send_due_datagrams(base::Clock::now());
    while (!is_stopping_.load(std::memory_order_relaxed)) {
        try {
            if (busy_poll_) {
                poll_without_sleep();
            } else {
                wait_and_forward();
            }
        } catch (const std::bad_alloc&) {
            // The loop continues, and only the work that needed the memory is lost.
            std::this_thread::sleep_for(kOutOfMemoryPause);
        }
    }
    const auto deadline = base::Clock::now() + kMaxDrainTime;
    while (!is_handed_over_ && forwarder_.forward_from_ready_sockets(0).datagrams != 0 &&
           base::Clock::now() < deadline) {
    }
    forwarder_.send_delayed_datagrams();
    forwarder_.close_all_sessions(is_handed_over_ ? CloseReason::handed_over
                                                  : CloseReason::shutdown);
}

void RelayThread::start() {
    thread_ = std::thread{[this] { run(); }};
}

void RelayThread::stop(bool handed_over) {
    is_handed_over_ = is_handed_over_ || handed_over;
    is_stopping_ = true;
    wake();
}

void RelayThread::join() {
    if (thread_.joinable()) {
        thread_.join();
    }
}

void ThreadPause::begin_pause() {
    const std::scoped_lock lock{mutex_};
    is_wanted_ = true;
    num_paused_threads_ = 0;
}

void ThreadPause::wait_for_end() {
    std::unique_lock lock{mutex_};
    if (!is_wanted_) {
        return;
    }
    ++num_paused_threads_;
    changed_.notify_all();
    changed_.wait(lock, [this, number = num_ended_pauses_] { return num_ended_pauses_ != number; });
}

bool ThreadPause::await_threads(std::size_t threads, base::Clock::time_point deadline) {
    std::unique_lock lock{mutex_};
    return changed_.wait_until(lock, deadline, [&] { return num_paused_threads_ == threads; });
}

void ThreadPause::end_pause() {
    const std::scoped_lock lock{mutex_};
    is_wanted_ = false;
    ++num_ended_pauses_;
    changed_.notify_all();
}

} // namespace tw::relay
