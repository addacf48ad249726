#pragma once

#include "proxy/base/clock.h"
#include "proxy/base/descriptors.h"
#include "proxy/capture/capture_sessions.h"
#include "proxy/capture/live_capture.h"
#include "proxy/channel/shared_block.h"
#include "proxy/process/supervisor.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/ring.h"
#include "proxy/relay/tap.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>

namespace tw::process {

/// Finds where captured traffic may lack datagrams that the kernel dropped.
///
/// The kernel only counts the datagrams that it drops, and frames captured before a drop may still
/// wait to be read. So a drop is known to lie between two frames: the first and the last one
/// captured between two readings of the counter. Both positions are reported.
class DropWindow {
  public:
    using Timestamp = base::Timestamp;

    /// If no frame arrives for this long after an interval, all frames of the interval were read.
    static constexpr Timestamp kSettleTime = 1'000'000'000;

    explicit DropWindow(Timestamp now) : last_reading_{now} {}

    /// To be called with the kernel's total drop count and the time at which it was read.
    void on_drop_count(Timestamp now, std::uint64_t total);

    /// To be called with the time of the next frame before that frame is processed, or with the
    /// current time if no frame arrived for kSettleTime. Returns the number of datagrams to report
    /// as missing at this position; 0 at the end of the interval, nullopt if nothing is to be
    /// reported.
    [[nodiscard]] std::optional<std::uint64_t> take_missing(Timestamp time);

    [[nodiscard]] bool is_open() const noexcept { return open_; }

    /// The end of the interval in which datagrams may be missing. Precondition: open().
    [[nodiscard]] Timestamp end() const noexcept { return end_; }

  private:
    Timestamp last_reading_;
    Timestamp begin_ = 0;
    Timestamp end_ = 0;
    std::uint64_t total_ = 0;
    std::uint64_t unreported_ = 0;
    bool open_ = false;
    bool entered_ = false; ///< a frame of the interval was read
};

/// Writes captured datagrams into an observer's ring, and counts them, as the relay does with its
/// traffic. Used by one thread.
class TapFeed final : public capture::SessionReceiver {
  public:
    /// `servers`: the servers whose traffic counts. `now`: the start time.
    TapFeed(relay::Ring& ring, relay::Observation& observation, capture::ServerGuess servers,
            capture::CaptureSessions::Limits limits, base::Timestamp now);

    /// To be called for each captured datagram.
    void on_captured(const capture::CapturedDatagram& datagram);
    /// Called after all available frames were read. `kernel_dropped`: frames dropped since the
    /// beginning. `idle`: no frame was available.
    void on_frames_read(base::Timestamp now, std::uint64_t kernel_dropped, bool idle);
    /// Closes all sessions and reports their ends to the observer. Returns whether everything
    /// fitted into the ring.
    [[nodiscard]] bool finish(base::Timestamp now);

    // SessionReceiver
    void on_open(std::uint64_t key, std::int64_t time, const capture::CaptureEndpoint& client,
                 const capture::CaptureEndpoint& server) override;
    void on_datagram(std::uint64_t key, std::int64_t time, wire::Direction direction,
                     std::span<const std::byte> bytes, std::span<const std::byte> next) override;
    void on_end(std::uint64_t key, std::int64_t time, capture::SessionEnd why) override;

  private:
    void close(std::uint64_t key, base::Timestamp time, relay::CloseReason reason);
    void report_drops(base::Timestamp time);

    relay::Tap tap_;
    relay::LiveCounters* counters_;
    capture::ServerGuess servers_;
    capture::CaptureSessions sessions_;
    DropWindow drops_;
    /// The open sessions by key. The map is node-based, because a TapSession must keep its address.
    std::unordered_map<std::uint64_t, relay::TapSession> open_;
    std::uint64_t dropped_ = 0;
    std::uint64_t refused_ = 0;
    base::Timestamp settled_ = 0;
};

/// The settings of a tap run.
struct TapRunOptions {
    capture::LiveOptions live;
    capture::ServerGuess servers;
    std::string shown; ///< the interface and servers, as text for the user
    capture::CaptureSessions::Limits limits{};
    std::size_t ring_bytes = 0; ///< size of the ring
    SupervisorOptions supervision{};
};

/// A live run that captures traffic at a network interface instead of forwarding it, and is
/// supervised (see Supervisor). It uses a ring and an observer process, as a relay does.
class TapRun {
  public:
    /// Opens the interface, then drops the capability to do so for this process and its observers.
    /// Errors: capture::CaptureError, std::system_error.
    explicit TapRun(TapRunOptions options);
    ~TapRun();
    TapRun(const TapRun&) = delete;
    TapRun& operator=(const TapRun&) = delete;

    /// Starts the observer. Returns how it ended if it could not start; it has reported why.
    [[nodiscard]] std::optional<ProcessExit> open();

    /// Captures until a signal or the time limit, then waits until the observer has finished. Call
    /// it once.
    [[nodiscard]] LiveRunResult run();

    /// Whether the run ended because the interface disappeared.
    [[nodiscard]] bool failed() const { return failed_; }

  private:
    void capture_frames();
    std::size_t read_frames();
    void drain();
    void on_second();

    TapRunOptions options_;
    capture::LiveCapture live_;
    channel::SharedRun shared_;
    relay::Ring ring_;
    std::optional<TapFeed> feed_;
    std::optional<Supervisor> supervisor_;
    base::UniqueFd wake_event_; ///< another thread writes to it to end the capturing thread
    std::atomic<bool> ending_{false};
    std::atomic<bool> failed_{false};
    std::uint64_t reported_drops_ = 0;
    std::uint64_t reported_refused_ = 0;
    bool reported_merged_ = false;
    std::thread thread_;
};

} // namespace tw::process
