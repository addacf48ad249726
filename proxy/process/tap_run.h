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

/// Tells where in captured traffic the datagrams are missing that the kernel had no room for.
///
/// The kernel says only how many, and frames that were there before still wait to be read. What it
/// has dropped between two looks is missing among the frames of that time: nothing is missing up to
/// the first of them, and nothing from the first one behind them on. Both places are told of.
class DropWindow {
  public:
    using Timestamp = base::Timestamp;

    /// So long after a look the frames of its time have been read, where nothing else comes.
    static constexpr Timestamp kSettled = 1'000'000'000;

    explicit DropWindow(Timestamp now) : looked_{now} {}

    /// A look at `total`, what the kernel has dropped since the beginning; time is `now`.
    void look(Timestamp now, std::uint64_t total);

    /// To be asked before a frame of that time is read, or when there is none at that time and was
    /// none for kSettled. How many are missing here and were not told of yet, if a place to tell is
    /// reached: 0 where the last of them may be.
    [[nodiscard]] std::optional<std::uint64_t> reached(Timestamp time);

    [[nodiscard]] bool open() const noexcept { return open_; }

    /// Until when datagrams may be missing; of an open one.
    [[nodiscard]] Timestamp end() const noexcept { return end_; }

  private:
    Timestamp looked_;
    Timestamp begin_ = 0;
    Timestamp end_ = 0;
    std::uint64_t total_ = 0;
    std::uint64_t untold_ = 0;
    bool open_ = false;
    bool entered_ = false; ///< a frame of its time was read
};

/// From captured datagrams to the ring of an observer: what the relay is to its own traffic. Counts as
/// the relay does. One thread's.
class TapFeed final : public capture::SessionReceiver {
  public:
    /// `servers`: whose traffic counts. `now`: when it begins to look.
    TapFeed(relay::Ring& ring, relay::Observation& observation, capture::ServerGuess servers,
            capture::CaptureSessions::Limits limits, base::Timestamp now);

    /// The next datagram.
    void on_captured(const capture::CapturedDatagram& datagram);
    /// All that waited was read; the kernel has dropped so many frames since the beginning.
    /// `idle`: nothing had waited.
    void on_turn(base::Timestamp now, std::uint64_t kernel_dropped, bool idle);
    /// Closes all sessions, and says so as far as there is room. Whether there was.
    [[nodiscard]] bool finish(base::Timestamp now);

    // SessionReceiver
    void on_open(std::uint64_t key, std::int64_t time, const capture::CaptureEndpoint& client,
                 const capture::CaptureEndpoint& server) override;
    void on_datagram(std::uint64_t key, std::int64_t time, wire::Direction direction,
                     std::span<const std::byte> bytes, std::span<const std::byte> next) override;
    void on_end(std::uint64_t key, std::int64_t time, capture::Ended why) override;

  private:
    void close(std::uint64_t key, base::Timestamp time, relay::CloseReason reason);
    void tell_drops(base::Timestamp time);

    relay::Tap tap_;
    relay::LiveCounters* counters_;
    capture::ServerGuess servers_;
    capture::CaptureSessions sessions_;
    DropWindow drops_;
    std::unordered_map<std::uint64_t, relay::TapSession> open_; ///< each stays where it is
    std::uint64_t dropped_ = 0;
    std::uint64_t refused_ = 0;
    base::Timestamp settled_ = 0;
};

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
    channel::SharedRun shared_;
    relay::Ring ring_;
    std::optional<TapFeed> feed_;
    std::optional<Supervisor> supervisor_;
    base::UniqueFd bell_; ///< rung to end
    std::atomic<bool> ending_{false};
    std::atomic<bool> failed_{false};
    std::uint64_t reported_drops_ = 0;
    std::uint64_t reported_refused_ = 0;
    bool told_of_merged_ = false;
    std::thread thread_;
};

} // namespace tw::process
