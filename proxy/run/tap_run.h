#pragma once

#include "proxy/capture/live_capture.h"
#include "proxy/relay/ring.h"
#include "proxy/relay/unique_fd.h"
#include "proxy/run/shared_block.h"
#include "proxy/run/supervisor.h"
#include "proxy/run/tap_feed.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

namespace tw::run {

/// What a run beside the path is to do.
struct TapRunOptions {
    capture::LiveOptions live;
    capture::ServerGuess servers;
    std::string shown; ///< what it looks at, as people read it
    capture::CaptureSessions::Limits limits{};
    std::size_t ring_bytes = 0; ///< copies that may wait
    SupervisorOptions supervision{};
};

/// A live run beside the path: reads what an interface shows, and is supervised (see Supervisor). What
/// it sees goes the way of what a relay forwards, by a ring to an observer in a process of its own.
class TapRun {
  public:
    /// Opens the interface, then gives up the right to do so, for itself and its observers.
    /// Errors: capture::CaptureError, std::system_error.
    explicit TapRun(TapRunOptions options);
    ~TapRun();
    TapRun(const TapRun&) = delete;
    TapRun& operator=(const TapRun&) = delete;
    TapRun(TapRun&&) = delete;
    TapRun& operator=(TapRun&&) = delete;

    /// Starts the observer. Returns how it ended where it could not begin; it has said why.
    [[nodiscard]] std::optional<Ending> open();

    /// Looks until a signal comes or the time is over, and the observer has written what is left. Once.
    [[nodiscard]] LiveRunResult run();

    /// The interface went away while it looked; it is said.
    [[nodiscard]] bool failed() const { return failed_; }

  private:
    void look();
    std::size_t turn();
    void drain();
    void on_second();

    TapRunOptions options_;
    capture::LiveCapture live_;
    SharedRun shared_;
    relay::Ring ring_;
    std::optional<TapFeed> feed_;
    std::optional<Supervisor> supervisor_;
    relay::UniqueFd bell_; ///< rung to end
    std::atomic<bool> ending_{false};
    std::atomic<bool> failed_{false};
    std::uint64_t reported_drops_ = 0;
    std::uint64_t reported_refused_ = 0;
    bool told_of_merged_ = false;
    std::thread thread_;
};

} // namespace tw::run
