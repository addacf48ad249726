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

/// What to look at, and how.
struct LiveOptions {
    std::string interface;                 ///< "any": all
    std::vector<std::uint16_t> ports{};    ///< of servers; empty: every datagram counts
    std::size_t buffer_bytes = 16U << 20U; ///< of the kernel's, in which frames wait for us
};

/// An interface that is not there or not up: worth another try.
class NoInterfaceError : public CaptureError {
  public:
    using CaptureError::CaptureError;
};

/// The system lets only who has the right to look at an interface.
class NoRightError : public CaptureError {
  public:
    using CaptureError::CaptureError;
};

/// Traffic of an interface as it passes, by libpcap: the kernel forwards it whether we look or not.
///
/// Opening takes CAP_NET_RAW; afterwards no right is needed.
class LiveCapture {
  public:
    /// Errors: NoInterfaceError, NoRightError, CaptureError.
    explicit LiveCapture(const LiveOptions& options);
    ~LiveCapture();
    LiveCapture(const LiveCapture&) = delete;
    LiveCapture& operator=(const LiveCapture&) = delete;
    LiveCapture(LiveCapture&&) = delete;
    LiveCapture& operator=(LiveCapture&&) = delete;

    /// Readable when frames wait.
    [[nodiscard]] int descriptor() const;

    /// Hands on the datagrams that wait, `max` frames of them at most; a payload is valid during the
    /// call. Never waits. Returns how many frames there were.
    /// Errors: CaptureError: the interface is gone.
    std::size_t read(const std::function<void(const CapturedDatagram&)>& take, std::size_t max);

    /// Frames that found no room since the beginning, in the kernel's buffer or in memory.
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
    std::uint32_t last_dropped_ = 0; ///< as libpcap counts, in 32 bits
};

/// What the kernel need not show: other protocols, and other ports of whole datagrams. All else is
/// sorted out here: a port stands in a fragment's first piece only, and a tag may be in the way.
[[nodiscard]] std::string live_filter(const std::vector<std::uint16_t>& ports);

} // namespace tw::capture
