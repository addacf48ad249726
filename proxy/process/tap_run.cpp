#include "proxy/process/tap_run.h"

#include "proxy/base/log.h"
#include "proxy/process/confinement.h"
#include "proxy/record/terminal_text.h"
#include "proxy/relay/options.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/asio/ip/udp.hpp>
#include <boost/asio/post.hpp>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace tw::process {

void KernelDropLocator::on_drop_count(Timestamp now, std::uint64_t total) {
    if (total > total_) {
        begin_ = has_interval_ ? begin_ : last_reading_;
        has_interval_ = true;
        end_ = now;
        unreported_ += total - total_;
        total_ = total;
    }
    last_reading_ = now;
}

std::optional<std::uint64_t> KernelDropLocator::take_missing_count(Timestamp time) {
    if (!has_interval_ || time <= begin_) {
        return std::nullopt;
    }
    if (time > end_) {
        has_interval_ = is_inside_interval_ = false;
        return std::exchange(unreported_, 0);
    }
    if (is_inside_interval_) {
        return std::nullopt;
    }
    is_inside_interval_ = true;
    return std::exchange(unreported_, 0);
}

namespace {

/// The interval, in nanoseconds, between calls of DatagramCopier::retry_events(), which resumes
/// copying of sessions.
constexpr base::Timestamp kRetryInterval = 100'000'000;

base::Endpoint endpoint_of(const capture::CaptureEndpoint& endpoint) {
    const boost::asio::ip::udp::endpoint address{endpoint.address, endpoint.port};
    return base::endpoint_from(address.data());
}

/// The most frames that are read between two readings of the drop counter.
constexpr std::size_t kMaxFramesPerBatch = 64;
/// The longest wait for a frame. After it, idle sessions are closed and loop_iterations is
/// incremented.
constexpr std::chrono::milliseconds kMaxWait{500};
/// The longest wait, at the end of the run, for frames that the kernel has not delivered yet.
constexpr std::chrono::milliseconds kMaxWaitForLastFrames{30};
constexpr std::chrono::milliseconds kDrainTime{200};
constexpr std::chrono::milliseconds kFinishTime{200};

} // namespace

TapFeed::TapFeed(relay::Ring& ring, relay::ObserverSharedMemory& observation,
                 capture::ServerDetector servers, capture::CaptureSessions::Limits limits,
                 base::Timestamp now)
    : copier_{&ring, observation.observer}, counters_{observation.counters.data()},
      servers_{std::move(servers)}, sessions_{*this, servers_, limits}, drops_{now} {
    copier_.reserve_events(limits.max_sessions);
}

void TapFeed::on_datagram_captured(const capture::CapturedDatagram& datagram) {
    report_drops(datagram.time);
    sessions_.on_datagram(datagram);
}

/// If datagrams may be missing before `time`, reports this to the observer.
void TapFeed::report_drops(base::Timestamp time) {
    if (const auto missing = drops_.take_missing_count(time)) {
        copier_.add_kernel_drops(*missing, time);
    }
}

void TapFeed::on_frames_read(base::Timestamp now, std::uint64_t kernel_dropped, bool idle) {
    counters_->loop_iterations.add(1);
    counters_->kernel_dropped.add(kernel_dropped - dropped_);
    dropped_ = kernel_dropped;
    counters_->datagrams_without_session.add(sessions_.refused_datagrams() - refused_);
    refused_ = sessions_.refused_datagrams();
    drops_.on_drop_count(now, kernel_dropped);
    if (idle) {
        sessions_.on_time(now);
        if (drops_.has_interval() && now - drops_.interval_end() > KernelDropLocator::kSettleTime) {
            report_drops(now);
        }
    }
    if (now - last_retry_ >= kRetryInterval || now < last_retry_) {
        last_retry_ = now;
        static_cast<void>(copier_.retry_events(now)); // tried again later
    } else {
        copier_.commit_events();
    }
}

bool TapFeed::close_all_sessions(base::Timestamp now) {
    if (drops_.has_interval()) {
        report_drops(std::max(now, drops_.interval_end() + 1));
    }
    std::vector<std::uint64_t> keys;
    keys.reserve(open_sessions_.size());
    for (const auto& [key, unused] : open_sessions_) {
        keys.push_back(key);
    }
    std::ranges::sort(keys);
    for (const std::uint64_t key : keys) {
        close_session(key, now, relay::CloseReason::shutdown);
    }
    return copier_.retry_events(now);
}

void TapFeed::on_session_open(std::uint64_t key, std::int64_t time,
                              const capture::CaptureEndpoint& client,
                              const capture::CaptureEndpoint& server) {
    relay::ObservedSession& session = open_sessions_[key];
    session.id = static_cast<std::uint32_t>(key);
    session.client = endpoint_of(client);
    session.upstream = session.client; // no proxy is in between
    session.server = endpoint_of(server);
    counters_->sessions_opened.add(1);
    copier_.open_session(session, time);
}

void TapFeed::on_datagram(std::uint64_t key, std::int64_t time, wire::Direction direction,
                          std::span<const std::byte> bytes, std::span<const std::byte> /*next*/) {
    const auto found = open_sessions_.find(key);
    if (found == open_sessions_.end()) {
        return;
    }
    const bool to_server = direction == wire::Direction::c2s;
    auto& counters = counters_->directions[to_server ? 0 : 1];
    counters.datagrams.add(1);
    counters.bytes.add(bytes.size());
    const std::uint64_t lost = copier_.num_lost_datagrams();
    copier_.copy_datagram(found->second, time,
                          to_server ? relay::Direction::c2s : relay::Direction::s2c, bytes);
    counters.copies_lost.add(copier_.num_lost_datagrams() - lost);
}

void TapFeed::on_session_end(std::uint64_t key, std::int64_t time, capture::SessionEndReason why) {
    close_session(key, time,
                  why == capture::SessionEndReason::idle ? relay::CloseReason::idle
                  : why == capture::SessionEndReason::evicted
                      ? relay::CloseReason::displaced
                      : relay::CloseReason::sides_exchanged);
}

void TapFeed::close_session(std::uint64_t key, base::Timestamp time, relay::CloseReason reason) {
    const auto found = open_sessions_.find(key);
    if (found == open_sessions_.end()) {
        return;
    }
    copier_.close_session(found->second, time, reason);
    counters_->sessions_closed.add(1);
    open_sessions_.erase(found);
}

TapRun::TapRun(TapRunOptions options)
    : options_{std::move(options)}, live_{options_.live_capture}, shared_{1, options_.ring_bytes},
      ring_{shared_.ring_memory(0)}, wake_event_{base::take_descriptor(
                                         ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")} {
    drop_privileges();
    channel::RelayFacts& facts = shared_.data().facts;
    facts.num_servers = 1; // all tapped servers share one entry
    const std::size_t size =
        std::min(options_.description.size(), facts.tap_description.size() - 1);
    std::copy_n(options_.description.begin(), size, facts.tap_description.begin());
    supervisor_.emplace(
        options_.supervision,
        Supervisor::Dependencies{.shared = &shared_, .rings = {&ring_, 1}, .run = this});
}

TapRun::~TapRun() {
    if (thread_.joinable()) {
        ending_ = true;
        thread_.join();
    }
}

std::optional<ProcessExit> TapRun::start_observer() {
    auto ending = supervisor_->start_observer();
    if (!ending) {
        log::info("observing {}; nothing is forwarded or changed", options_.description);
    }
    return ending;
}

LiveRunResult TapRun::capture_until_stopped() {
    feed_.emplace(ring_, shared_.data().observer_memory, options_.servers, options_.limits,
                  base::now_utc());
    thread_ = std::thread{[this] { capture_frames(); }};
    supervisor_->run_until_stopped(std::chrono::steady_clock::now());
    ending_ = true;
    const std::uint64_t one = 1;
    std::ignore = ::write(wake_event_.get(), &one, sizeof one);
    thread_.join();
    on_second();
    return supervisor_->finish_run();
}

/// Reads frames until the run ends. Runs on a confined thread, because frames are untrusted.
void TapRun::capture_frames() {
    relay::lower_thread_priority();
    const Confinement confinement = confine_calling_thread({});
    log::debug("reading frames in a thread confined by: {}", describe(confinement));
    try {
        while (!ending_) {
            if (read_frames() == 0) {
                std::array<pollfd, 2> wait{
                    pollfd{.fd = live_.descriptor(), .events = POLLIN, .revents = 0},
                    pollfd{.fd = wake_event_.get(), .events = POLLIN, .revents = 0}};
                std::ignore = ::poll(wait.data(), wait.size(), static_cast<int>(kMaxWait.count()));
            }
        }
        read_last_frames();
    } catch (const capture::CaptureError& error) {
        is_interface_gone_ = true;
        boost::asio::post(supervisor_->io(), [this, what = std::string{error.what()}] {
            log::error("{}", what);
            supervisor_->stop("there is nothing left to observe");
        });
    }
    const auto deadline = base::Clock::now() + kFinishTime;
    while (!feed_->close_all_sessions(base::now_utc()) && base::Clock::now() < deadline) {
        std::this_thread::yield();
    }
}

std::size_t TapRun::read_frames() {
    const std::size_t frames = live_.read_datagrams(
        [this](const capture::CapturedDatagram& datagram) {
            feed_->on_datagram_captured(datagram);
        },
        kMaxFramesPerBatch);
    feed_->on_frames_read(base::now_utc(), live_.dropped_frames(), frames == 0);
    if (!has_reported_merged_frames_ && live_.counts().merged_frames != 0) {
        has_reported_merged_frames_ = true;
        log::warn("the interface merges datagrams into frames (generic receive offload); they "
                  "are split where that is certain: ethtool -K {} gro off",
                  options_.live_capture.interface);
    }
    return frames;
}

void TapRun::read_last_frames() {
    const auto deadline = base::Clock::now() + kDrainTime;
    while (base::Clock::now() < deadline) {
        pollfd frames{.fd = live_.descriptor(), .events = POLLIN, .revents = 0};
        if (read_frames() == 0 &&
            ::poll(&frames, 1, static_cast<int>(kMaxWaitForLastFrames.count())) == 0) {
            break;
        }
    }
}

void TapRun::on_second() {
    const relay::Counters counters = relay::totals(shared_.data().observer_memory);
    const std::uint64_t dropped = counters.kernel_dropped;
    if (dropped != reported_drops_) {
        log::warn("the kernel dropped {}: its buffer was full; sessions are verified again from "
                  "their next full snapshot, and a larger buffer or fewer frames help",
                  record::count_with_noun(dropped - reported_drops_, "frame[s]"));
        reported_drops_ = dropped;
    }
    const std::uint64_t refused = counters.datagrams_without_session;
    if (refused != reported_refused_) {
        log::warn("ignored {} of new clients: the maximum number of sessions is open",
                  record::count_with_noun(refused - reported_refused_, "datagram[s]"));
        reported_refused_ = refused;
    }
}

} // namespace tw::process
