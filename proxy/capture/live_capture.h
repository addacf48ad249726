#pragma once

#include "proxy/capture/frame_reader.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct pcap;

namespace tw::capture {

/// What to capture, and how.
struct LiveOptions {
    std::string interface;                 ///< "any" for all interfaces
    std::vector<std::uint16_t> ports{};    ///< ports of servers; empty to use every datagram
    std::size_t buffer_bytes = 16U << 20U; ///< size of the kernel's buffer for waiting frames
};

/// The interface does not exist or is not up; a later try may succeed.
class NoInterfaceError : public CaptureError {
  public:
    using CaptureError::CaptureError;
};

/// The process lacks the right to capture on an interface.
class NoRightError : public CaptureError {
  public:
    using CaptureError::CaptureError;
};

/// Captures the traffic of an interface with libpcap, without affecting it.
///
/// Opening needs CAP_NET_RAW. No right is needed afterwards.
class LiveCapture {
  public:
    /// Opens the interface. Errors: NoInterfaceError, NoRightError, CaptureError.
    explicit LiveCapture(const LiveOptions& options);
    ~LiveCapture();
    LiveCapture(const LiveCapture&) = delete;
    LiveCapture& operator=(const LiveCapture&) = delete;
    LiveCapture(LiveCapture&&) = delete;
    LiveCapture& operator=(LiveCapture&&) = delete;

    /// Becomes readable when frames are waiting.
    [[nodiscard]] int descriptor() const;

    /// Passes waiting datagrams, from at most `max` frames, to `take`. A payload is valid during
    /// the call. Never waits. Returns the number of frames.
    /// Errors: CaptureError if the interface is gone.
    std::size_t read(const std::function<void(const CapturedDatagram&)>& take, std::size_t max);

    /// Frames dropped since the start because the kernel's buffer or memory was full.
    [[nodiscard]] std::uint64_t dropped();

    [[nodiscard]] const CaptureCounts& counts() const { return reader_->counts(); }

  private:
    struct Close {
        void operator()(pcap* handle) const;
    };

    void activate(const LiveOptions& options);
    void filter(const std::vector<std::uint16_t>& ports);

    std::string interface_;
    std::unique_ptr<pcap, Close> handle_;
    std::optional<FrameReader> reader_;
    std::uint64_t dropped_ = 0;
    std::uint32_t last_dropped_ = 0; ///< libpcap's last count, in 32 bits
};

/// Returns a filter that makes the kernel drop other protocols, and complete datagrams of other
/// ports. Everything else is checked here: only the first fragment contains a port, and a VLAN tag
/// may precede the header.
[[nodiscard]] std::string live_filter(const std::vector<std::uint16_t>& ports);

} // namespace tw::capture
