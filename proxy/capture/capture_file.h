#pragma once

#include "proxy/capture/frame_reader.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw::capture {

/// Passes on a capture's bytes, converting all sections of a pcapng file to the byte order of its
/// first one, as libpcap reads no others. Other data passes unchanged.
///
/// Keeps at most one block of a section in the other byte order, of at most kMaxBlock bytes.
/// Source: draft-ietf-opsawg-pcapng, sections 3 and 4.
class SectionOrder {
  public:
    static constexpr std::uint32_t kMaxBlock = std::uint32_t{16} << 20U; ///< libpcap's limit

    /// Fills a buffer as far as data is available. Returns 0 at the end or on an error.
    using Read = std::function<std::size_t(std::span<std::byte>)>;

    /// Reads at least one byte, unless `source` has none.
    [[nodiscard]] std::size_t read(std::span<std::byte> room, const Read& source);

  private:
    struct Head {
        std::uint32_t type;
        std::uint32_t size;
    };

    /// Returns the head of the block that starts here; nullopt if it is incomplete or no pcapng
    /// block.
    [[nodiscard]] std::optional<Head> head_of(std::span<const std::byte> bytes);
    /// Returns how many of the next bytes may be passed on unchanged.
    [[nodiscard]] std::size_t unchanged_size(std::span<const std::byte> bytes);
    /// Moves complete blocks from held_ to ready_.
    void make_ready();

    bool is_pcapng_ = true; ///< false once the data is no pcapng
    bool begun_ = false;
    bool swapped_ = false;        ///< the first section's byte order is not this machine's
    bool foreign_ = false;        ///< the current section has another byte order than the first one
    std::uint64_t left_ = 0;      ///< remaining bytes of a block that passes unchanged
    std::vector<std::byte> held_; ///< bytes of an incomplete block
    std::vector<std::byte> ready_; ///< converted bytes
    std::size_t handed_ = 0;       ///< bytes of ready_ that were passed on
};

/// Finds session states (sink/pcapng.h) in the bytes of a pcapng file, because libpcap skips the
/// blocks of states. Keeps only states that before() has not returned yet.
class StateBlocks {
  public:
    /// Takes the next bytes of the file.
    void on_bytes(std::span<const std::byte> bytes);

    /// Returns the state directly before this packet, numbered from 0; null if there is none. Has
    /// to be called for every packet in order. Valid until the next call.
    [[nodiscard]] const CapturedState* before(std::uint64_t packet);

    /// True if the first interface is twscope's, even if another program rewrote the file.
    [[nodiscard]] bool by_twscope() const { return by_twscope_; }

  private:
    /// Size of a block's type and length; for a section, also of its byte-order mark.
    static constexpr std::size_t kHead = 8;
    static constexpr std::size_t kSectionHead = 12;

    struct Found {
        std::uint64_t packet = 0; ///< number of the packet that follows
        CapturedState state;
    };

    [[nodiscard]] std::uint32_t number_at(std::size_t at) const;
    /// Starts a block. Its head is complete.
    void begin_block();
    void end_block();
    void look_at_interface(std::span<const std::byte> body);

    bool begun_ = false;
    bool lost_ = false;    ///< the data is no pcapng
    bool swapped_ = false; ///< the byte order is not this machine's
    std::array<std::byte, kSectionHead> head_{};
    std::size_t head_size_ = 0;
    std::uint64_t left_ = 0; ///< remaining bytes of the current block
    bool keeps_ = false;     ///< the block is a session state or the first interface
    bool interface_ = false; ///< the block is the first interface
    bool interface_seen_ = false;
    bool by_twscope_ = false;
    std::vector<std::byte> body_;
    std::uint64_t packets_ = 0;
    std::deque<Found> found_;
    std::optional<CapturedState> due_;
};

} // namespace tw::capture

struct pcap;

namespace tw::capture {

struct CaptureStream;

/// Bytes at a capture's start that identify its format.
inline constexpr std::size_t kCaptureMagicSize = 4;

/// True if a file that starts with these bytes is pcap, in any of its variants, or pcapng.
[[nodiscard]] bool looks_like_capture(std::span<const std::byte> begin);

/// Reads a pcap or pcapng file ("-": standard input) with a link type that FrameReader knows.
class CaptureFile {
  public:
    /// Opens the file. Errors: CaptureError.
    explicit CaptureFile(const std::string& path);
    ~CaptureFile();
    CaptureFile(const CaptureFile&) = delete;
    CaptureFile& operator=(const CaptureFile&) = delete;
    CaptureFile(CaptureFile&&) = delete;
    CaptureFile& operator=(CaptureFile&&) = delete;

    /// Reads the next UDP datagram, complete or truncated. Its payload and state are valid until
    /// the next call. Returns false at the end.
    [[nodiscard]] bool next(CapturedDatagram& datagram);

    /// True if twscope wrote the file. Its datagrams may be slightly out of order.
    [[nodiscard]] bool by_twscope() const;

    /// At the end: why the rest cannot be read; empty if the file ended or was truncated.
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

    /// Stores why there is no next frame.
    void note_failure();

    std::unique_ptr<pcap, Close> handle_;
    /// The stream that libpcap reads, owned by handle_; null if libpcap reads the file itself.
    CaptureStream* stream_ = nullptr;
    std::uint64_t packets_ = 0; ///< packets that libpcap returned
    std::optional<FrameReader> reader_;
    bool ended_early_ = false;
    std::string unreadable_;
};

} // namespace tw::capture
