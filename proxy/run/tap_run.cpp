#include "proxy/run/tap_run.h"

#include "proxy/relay/clock.h"
#include "proxy/relay/precedence.h"
#include "proxy/run/confinement.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <tuple>
#include <utility>

#include <boost/asio/post.hpp>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace tw::run {

namespace {

/// Frames read at a time, before the kernel is asked what it dropped.
constexpr std::size_t kBatch = 64;
/// Where nothing comes: sessions may be idle, and the page wants to know that we live.
constexpr std::chrono::milliseconds kTurn{500};
/// At the end: what was sent before it has come by then. The kernel gathers frames for a while.
constexpr std::chrono::milliseconds kLastFrames{30};
constexpr std::chrono::milliseconds kDrainTime{200};
constexpr std::chrono::milliseconds kSettleTime{200};

relay::UniqueFd make_bell() {
    relay::UniqueFd bell{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    if (!bell.valid()) {
        throw std::system_error{errno, std::system_category(), "eventfd"};
    }
    return bell;
}

} // namespace

TapRun::TapRun(TapRunOptions options)
    : options_{std::move(options)}, live_{options_.live}, shared_{1, options_.ring_bytes},
      ring_{shared_.ring(0)}, bell_{make_bell()} {
    give_up_rights();
    RelayFacts& facts = shared_.block().facts;
    facts.num_servers = 1; // they count as one
    const std::size_t size = std::min(options_.shown.size(), facts.tapped.size() - 1);
    std::copy_n(options_.shown.begin(), size, facts.tapped.begin());
    supervisor_.emplace(options_.supervision,
                        Supervisor::Parts{.shared = &shared_,
                                          .rings = {&ring_, 1},
                                          .on_second = [this] { on_second(); }});
}

TapRun::~TapRun() {
    if (thread_.joinable()) {
        ending_ = true;
        thread_.join();
    }
}

std::optional<Ending> TapRun::open() {
    auto ending = supervisor_->open();
    if (!ending) {
        spdlog::info("observing {}; nothing is forwarded or changed", options_.shown);
    }
    return ending;
}

LiveRunResult TapRun::run() {
    feed_.emplace(ring_, shared_.block().observation, options_.servers, options_.limits,
                  relay::now_utc());
    thread_ = std::thread{[this] { look(); }};
    supervisor_->run(std::chrono::steady_clock::now());
    ending_ = true;
    const std::uint64_t one = 1;
    std::ignore = ::write(bell_.get(), &one, sizeof one);
    thread_.join();
    on_second();
    return supervisor_->finish();
}

/// On a thread of its own, which may do nothing but this: it reads what strangers send.
void TapRun::look() {
    relay::go_behind();
    const Confinement confinement = confine({});
    spdlog::info("reading frames in a thread confined by: {}", describe(confinement));
    try {
        while (!ending_) {
            if (turn() == 0) {
                std::array<pollfd, 2> wait{
                    pollfd{.fd = live_.descriptor(), .events = POLLIN, .revents = 0},
                    pollfd{.fd = bell_.get(), .events = POLLIN, .revents = 0}};
                std::ignore = ::poll(wait.data(), wait.size(), static_cast<int>(kTurn.count()));
            }
        }
        drain();
    } catch (const capture::CaptureError& error) {
        failed_ = true;
        boost::asio::post(supervisor_->io(), [this, what = std::string{error.what()}] {
            spdlog::error("{}", what);
            supervisor_->stop("there is nothing left to observe");
        });
    }
    const auto deadline = relay::Clock::now() + kSettleTime;
    while (!feed_->finish(relay::now_utc()) && relay::Clock::now() < deadline) {
        std::this_thread::yield();
    }
}

std::size_t TapRun::turn() {
    const std::size_t frames = live_.read(
        [this](const capture::CapturedDatagram& datagram) { feed_->on_captured(datagram); },
        kBatch);
    feed_->on_turn(relay::now_utc(), live_.dropped(), frames == 0);
    if (!told_of_merged_ && live_.counts().merged != 0) {
        told_of_merged_ = true;
        spdlog::warn("the interface merges datagrams into frames (generic receive offload); they "
                     "are split where that is certain: ethtool -K {} gro off",
                     options_.live.interface);
    }
    return frames;
}

void TapRun::drain() {
    const auto deadline = relay::Clock::now() + kDrainTime;
    while (relay::Clock::now() < deadline) {
        pollfd frames{.fd = live_.descriptor(), .events = POLLIN, .revents = 0};
        if (turn() == 0 && ::poll(&frames, 1, static_cast<int>(kLastFrames.count())) == 0) {
            break;
        }
    }
}

void TapRun::on_second() {
    const relay::Counters counters = relay::totals(shared_.block().observation);
    const std::uint64_t dropped = counters.kernel_dropped;
    if (dropped != reported_drops_) {
        spdlog::warn(
            "the kernel dropped {} frames: its buffer was full; sessions are verified again from "
            "their next full snapshot, and a larger buffer or fewer frames help",
            dropped - reported_drops_);
        reported_drops_ = dropped;
    }
    const std::uint64_t refused = counters.sessions_refused;
    if (refused != reported_refused_) {
        spdlog::warn("ignored {} datagrams of new clients: the maximum number of sessions is open",
                     refused - reported_refused_);
        reported_refused_ = refused;
    }
}

} // namespace tw::run
