#pragma once

#include "proxy/base/clock.h"
#include "proxy/base/descriptors.h"
#include "proxy/capture/capture_sessions.h"
#include "proxy/capture/live_capture.h"
#include "proxy/channel/shared_run_memory.h"
#include "proxy/process/supervisor.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/datagram_copier.h"
#include "proxy/relay/ring.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>

namespace tw::process {

/// Finds positions in captured traffic at which the kernel may have dropped datagrams.
///
/// The kernel only counts dropped datagrams. A drop is therefore known to have happened between two
/// readings of the counter, but frames that were captured in this interval may still wait to be
/// read. The reported positions are the start and the end of the interval.
class KernelDropLocator {
  public:
    using Timestamp = base::Timestamp;

    /// If no frame arrives for this long after an interval, in nanoseconds, all frames of the
    /// interval have been read.
    static constexpr Timestamp kSettleTime = 1'000'000'000;

    explicit KernelDropLocator(Timestamp now) : last_reading_{now} {}

    /// Must be called when the kernel's drop counter was read. `now`: the time of that reading.
    /// `total`: the counter's value.
    void on_drop_count(Timestamp now, std::uint64_t total);

    /// Must be called with a frame's time before the frame is processed, and with the current time
    /// if no frame arrived for kSettleTime. At the start and at the end of an interval, returns the
    /// number of missing datagrams that earlier calls did not return (may be 0). Otherwise returns
    /// nullopt.
    [[nodiscard]] std::optional<std::uint64_t> take_missing_count(Timestamp time);

    /// Returns whether there is an interval in which datagrams may be missing.
    [[nodiscard]] bool has_interval() const noexcept { return has_interval_; }

    /// Precondition: has_interval().
    [[nodiscard]] Timestamp interval_end() const noexcept { return end_; }

  private:
    Timestamp last_reading_;
    Timestamp begin_ = 0;
    Timestamp end_ = 0;
    std::uint64_t total_ = 0;
    std::uint64_t unreported_ = 0;
    bool has_interval_ = false;
    bool is_inside_interval_ = false; ///< true if a frame of the interval was read
};

/// Writes captured datagrams into the observer's ring and counts them, as a relay does with
/// forwarded datagrams. Used by one thread.
class TapFeed final : public capture::SessionReceiver {
  public:
    /// `servers`: tells which traffic belongs to game servers. `now`: the start time.
    TapFeed(relay::Ring& ring, relay::ObserverSharedMemory& observation,
            capture::ServerDetector servers, capture::CaptureSessions::Limits limits,
            base::Timestamp now);

    void on_datagram_captured(const capture::CapturedDatagram& datagram);
    /// Must be called after all available frames were read. `kernel_dropped`: number of frames that
    /// the kernel dropped since the start. `idle`: no frame was available.
    void on_frames_read(base::Timestamp now, std::uint64_t kernel_dropped, bool idle);
    /// Closes all sessions and reports their ends to the observer. Returns whether all events
    /// fitted into the ring.
    [[nodiscard]] bool close_all_sessions(base::Timestamp now);

    void on_session_open(std::uint64_t key, std::int64_t time,
                         const capture::CaptureEndpoint& client,
                         const capture::CaptureEndpoint& server) override;
    void on_datagram(std::uint64_t key, std::int64_t time, wire::Direction direction,
                     std::span<const std::byte> bytes, std::span<const std::byte> next) override;
    void on_session_end(std::uint64_t key, std::int64_t time,
                        capture::SessionEndReason why) override;

  private:
    void close_session(std::uint64_t key, base::Timestamp time, relay::CloseReason reason);
    void report_drops(base::Timestamp time);

    relay::DatagramCopier copier_;
    relay::LiveCounters* counters_;
    capture::ServerDetector servers_;
    capture::CaptureSessions sessions_;
    KernelDropLocator drops_;
    /// The open sessions by key. An ObservedSession must not be moved, and this map does not move
    /// its elements.
    std::unordered_map<std::uint64_t, relay::ObservedSession> open_sessions_;
    std::uint64_t dropped_ = 0;
    std::uint64_t refused_ = 0;
    base::Timestamp last_retry_ = 0;
};

struct TapRunOptions {
    capture::LiveCaptureOptions live_capture;
    capture::ServerDetector servers;
    std::string description; ///< the interface and servers, as text for the user
    capture::CaptureSessions::Limits limits{};
    std::size_t ring_bytes = 0;
    SupervisorOptions supervision{};
};

/// The main object of a process that captures traffic at a network interface instead of forwarding
/// it. It has an observer process with a ring, as a relay does, and is controlled by a Supervisor.
class TapRun final : public SupervisedRun {
  public:
    /// Opens the network interface, then drops the capability to open network interfaces, for this
    /// process and its observers. Errors: capture::CaptureError, std::system_error.
    explicit TapRun(TapRunOptions options);
    ~TapRun() override;

    /// Starts the observer. Returns nullopt on success. Otherwise returns how the observer ended;
    /// the observer has reported the reason.
    [[nodiscard]] std::optional<ProcessExit> start_observer();

    /// Captures until a signal or the time limit, then waits until the observer has finished.
    [[nodiscard]] LiveRunResult capture_until_stopped();

    /// Returns whether the run ended because the network interface disappeared.
    [[nodiscard]] bool is_interface_gone() const { return is_interface_gone_; }

  private:
    void capture_frames();
    std::size_t read_frames();
    void read_last_frames();
    void on_second() override;

    TapRunOptions options_;
    capture::LiveCapture live_;
    channel::SharedRunMemory shared_;
    relay::Ring ring_;
    std::optional<TapFeed> feed_;
    std::optional<Supervisor> supervisor_;
    /// Eventfd. Writing to it wakes the capturing thread.
    base::UniqueFd wake_event_;
    std::atomic<bool> ending_{false};
    std::atomic<bool> is_interface_gone_{false};
    std::uint64_t reported_drops_ = 0;
    std::uint64_t reported_refused_ = 0;
    bool has_reported_merged_frames_ = false;
    std::thread thread_;
};

} // namespace tw::process
