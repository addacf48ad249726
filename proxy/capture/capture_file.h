#pragma once

#include "proxy/capture/captured.h"
#include "proxy/capture/frame_reader.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

struct pcap;

namespace tw::capture {

struct CaptureStream;

/// Bytes at a capture's begin that tell what it is.
inline constexpr std::size_t kCaptureMagicSize = 4;

/// Whether a file that begins so is pcap, as one of its writers writes it, or pcapng.
[[nodiscard]] bool looks_like_capture(std::span<const std::byte> begin);

/// A pcap or pcapng file ("-": standard input) of a link that FrameReader knows.
class CaptureFile {
  public:
    /// Errors: CaptureError.
    explicit CaptureFile(const std::string& path);
    ~CaptureFile();
    CaptureFile(const CaptureFile&) = delete;
    CaptureFile& operator=(const CaptureFile&) = delete;
    CaptureFile(CaptureFile&&) = delete;
    CaptureFile& operator=(CaptureFile&&) = delete;

    /// The next UDP datagram, whole or cut; its payload and state are valid until the next call. False
    /// at the end.
    [[nodiscard]] bool next(CapturedDatagram& datagram);

    /// Whether twscope wrote it: its datagrams may stand a little out of order.
    [[nodiscard]] bool by_twscope() const;

    /// At the end: why nothing more can be read; empty: there is nothing more, or it was cut short.
    [[nodiscard]] const std::string& unreadable() const { return unreadable_; }

    [[nodiscard]] CaptureCounts counts() const {
        CaptureCounts counts = reader_->counts();
        counts.ended_early = ended_early_;
        return counts;
    }

  private:
    struct Close {
        void operator()(pcap* handle) const;
    };

    /// Notes why there is no next frame.
    void note_failure();

    std::unique_ptr<pcap, Close> handle_;
    CaptureStream* stream_ = nullptr; ///< that it reads, lives as long as handle_; null: by itself
    std::uint64_t packets_ = 0;       ///< that it handed on
    std::optional<FrameReader> reader_;
    bool ended_early_ = false;
    std::string unreadable_;
};

} // namespace tw::capture
