#pragma once

#include "proxy/capture/capture_sessions.h"
#include "proxy/relay/observation.h"
#include "proxy/relay/tap.h"
#include "proxy/run/drop_window.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

namespace tw::run {

/// From captured datagrams to the ring of an observer: what the relay is to its own traffic. Counts as
/// the relay does. One thread's.
class TapFeed final : public capture::SessionReceiver {
  public:
    /// `servers`: whose traffic counts. `now`: when it begins to look.
    TapFeed(relay::Ring& ring, relay::Observation& observation, capture::ServerGuess servers,
            capture::CaptureSessions::Limits limits, relay::Timestamp now);

    /// The next datagram.
    void on_captured(const capture::CapturedDatagram& datagram);
    /// All that waited was read; the kernel has dropped so many frames since the beginning.
    /// `idle`: nothing had waited.
    void on_turn(relay::Timestamp now, std::uint64_t kernel_dropped, bool idle);
    /// Closes all sessions, and says so as far as there is room. Whether there was.
    [[nodiscard]] bool finish(relay::Timestamp now);

    // SessionReceiver
    void on_open(std::uint64_t key, std::int64_t time, const capture::CaptureEndpoint& client,
                 const capture::CaptureEndpoint& server) override;
    void on_datagram(std::uint64_t key, std::int64_t time, wire::Direction direction,
                     std::span<const std::byte> bytes, std::span<const std::byte> next) override;
    void on_end(std::uint64_t key, std::int64_t time, capture::Ended why) override;

  private:
    void close(std::uint64_t key, relay::Timestamp time, relay::CloseReason reason);
    void tell_drops(relay::Timestamp time);

    relay::Tap tap_;
    relay::LiveCounters* counters_;
    capture::ServerGuess servers_;
    capture::CaptureSessions sessions_;
    DropWindow drops_;
    std::unordered_map<std::uint64_t, relay::TapSession> open_; ///< each stays where it is
    std::uint64_t dropped_ = 0;
    std::uint64_t refused_ = 0;
    relay::Timestamp settled_ = 0;
};

} // namespace tw::run
