#pragma once

#include "proxy/capture/frame_reader.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

struct pcap;

namespace tw::capture {

struct LiveCaptureOptions {
    std::string interface;              ///< "any" for all interfaces
    std::vector<std::uint16_t> ports{}; ///< ports of the game servers; empty to use all datagrams
    /// Size of the kernel's buffer for frames that wait to be read.
    std::size_t buffer_bytes = 16U << 20U;
};

/// Thrown if the interface does not exist or is not up. A later try may succeed.
class NoInterfaceError : public CaptureError {
  public:
    using CaptureError::CaptureError;
};

class NoPermissionError : public CaptureError {
  public:
    using CaptureError::CaptureError;
};

/// Captures the traffic of a network interface with libpcap. The traffic is not affected.
class LiveCapture {
  public:
    /// Opens the interface. Errors: NoInterfaceError, NoPermissionError, CaptureError.
    explicit LiveCapture(const LiveCaptureOptions& options);

    /// Returns a descriptor that becomes readable when frames are waiting.
    [[nodiscard]] int descriptor() const;

    /// Calls `take` with the datagrams in the waiting frames, at most `max` frames. A payload is
    /// valid only during the call of `take`. Never waits. Returns the number of frames.
    std::size_t read_datagrams(const std::function<void(const CapturedDatagram&)>& take,
                               std::size_t max);

    /// Returns the number of frames dropped since the start because the kernel's buffer or memory
    /// was full.
    [[nodiscard]] std::uint64_t dropped_frames();

    [[nodiscard]] const CaptureCounts& counts() const { return reader_.counts(); }

  private:
    struct PcapCloser {
        void operator()(pcap* handle) const;
    };

    void activate_handle(const LiveCaptureOptions& options);
    void set_filter(const std::vector<std::uint16_t>& ports);

    std::string interface_;
    std::unique_ptr<pcap, PcapCloser> pcap_;
    FrameReader reader_;
    std::uint64_t dropped_ = 0;
    std::uint32_t last_dropped_ = 0; ///< last value of libpcap's counter, which has 32 bits
};

/// Returns a filter for the kernel that drops other protocols and other ports. The filter accepts
/// all fragments, because only the first fragment contains a port. It accepts all frames with a
/// VLAN tag, because the tag moves the IP header. The ports of both are checked later.
[[nodiscard]] std::string live_filter_expression(const std::vector<std::uint16_t>& ports);

} // namespace tw::capture
