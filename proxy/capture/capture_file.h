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

/// Reads the bytes of a capture. Converts all sections of a pcapng file to the byte order of the
/// first section, because libpcap cannot read files with two byte orders. Other data stays
/// unchanged.
class ByteOrderConverter {
  public:
    static constexpr std::uint32_t kMaxBlock = std::uint32_t{16} << 20U; ///< libpcap's limit

    /// Fills a buffer with the available bytes. Returns the number of bytes; 0 at the end or after
    /// an error.
    using Read = std::function<std::size_t(std::span<std::byte>)>;

    /// Fills `room` with bytes from `source`, converted if necessary. Returns the number of bytes;
    /// 0 only if `source` returns 0.
    [[nodiscard]] std::size_t read(std::span<std::byte> room, const Read& source);

  private:
    struct BlockHead {
        std::uint32_t type;
        std::uint32_t size;
    };

    /// Returns the head of the block that starts at these bytes; nullopt if the head is incomplete
    /// or is not the head of a pcapng block.
    [[nodiscard]] std::optional<BlockHead> read_block_head(std::span<const std::byte> bytes);
    /// Returns how many of the next bytes need no conversion.
    [[nodiscard]] std::size_t pass_through_size(std::span<const std::byte> bytes);
    /// Converts complete blocks and moves them from held_ to ready_.
    void convert_blocks();

    bool is_pcapng_ = true; ///< false as soon as the data is known not to be pcapng
    bool begun_ = false;
    bool is_swapped_ = false; ///< the byte order of the first section differs from this machine's
    bool needs_conversion_ =
        false; ///< the byte order of the current section differs from the first section's
    std::uint64_t left_ = 0;        ///< number of remaining bytes of a block that stays unchanged
    std::vector<std::byte> held_;   ///< bytes of an incomplete block
    std::vector<std::byte> ready_;  ///< converted bytes
    std::size_t num_passed_on_ = 0; ///< number of bytes of ready_ that read() has returned
};

/// Finds session states (sink/pcapng.h) in the bytes of a pcapng file, because libpcap skips the
/// blocks with states.
class StateBlockReader {
  public:
    /// Searches the next bytes of the file for session states.
    void on_bytes(std::span<const std::byte> bytes);

    /// Returns the state directly before the packet with this number (counted from 0); null if no
    /// state precedes the packet. Call this function for every packet, in order. The result is
    /// valid until the next call.
    [[nodiscard]] const CapturedState* state_before(std::uint64_t packet);

    /// Returns true if twscope recorded the capture, according to the description of the first
    /// interface. Other programs keep this description when they rewrite the file.
    [[nodiscard]] bool is_by_twscope() const { return is_by_twscope_; }

  private:
    /// Size of a block's type and length; kSectionHead: size of a section's type, length and
    /// byte-order mark.
    static constexpr std::size_t kHead = 8;
    static constexpr std::size_t kSectionHead = 12;

    struct StateFound {
        std::uint64_t packet = 0; ///< number of the packet that follows the state
        CapturedState state;
    };

    [[nodiscard]] std::uint32_t number_at(std::size_t at) const;
    /// Starts a block. Called when the head of the block is complete.
    void begin_block();
    void end_block();
    void check_interface(std::span<const std::byte> body);

    bool begun_ = false;
    bool is_not_pcapng_ = false; ///< the data is known not to be pcapng
    bool is_swapped_ = false;    ///< the byte order differs from this machine's
    std::array<std::byte, kSectionHead> head_{};
    std::size_t head_size_ = 0;
    std::uint64_t left_ = 0; ///< number of remaining bytes of the current block
    /// The body of the current block is stored, because it is a session state or the first
    /// interface.
    bool stores_body_ = false;
    bool interface_ = false; ///< the current block is the first interface
    bool interface_seen_ = false;
    bool is_by_twscope_ = false;
    std::vector<std::byte> body_;
    std::uint64_t packets_ = 0;
    std::deque<StateFound> found_;
    std::optional<CapturedState> due_;
};

} // namespace tw::capture

struct pcap;

namespace tw::capture {

struct CaptureStream;

/// The number of bytes at the start of a capture that identify its format.
inline constexpr std::size_t kCaptureMagicSize = 4;

/// Returns true if a file that starts with these bytes is pcapng, or pcap in any of its variants.
[[nodiscard]] bool looks_like_capture(std::span<const std::byte> begin);

/// Reads the UDP datagrams in a pcap or pcapng file, or in standard input ("-").
class CaptureFile {
  public:
    /// Opens the file. Errors: throws CaptureError, also if FrameReader does not support the link
    /// type.
    explicit CaptureFile(const std::string& path);
    ~CaptureFile();
    CaptureFile(const CaptureFile&) = delete;
    CaptureFile& operator=(const CaptureFile&) = delete;

    /// Reads the next UDP datagram, which may be truncated. Its payload and state are valid until
    /// the next call. Returns false at the end of the file.
    [[nodiscard]] bool read_datagram(CapturedDatagram& datagram);

    /// Returns true if twscope wrote the file. Its datagrams may then be slightly out of order.
    [[nodiscard]] bool is_by_twscope() const;

    /// Returns why the rest of the file cannot be read; empty if the file was read to the end or is
    /// truncated.
    [[nodiscard]] const std::string& read_error() const { return read_error_; }

    [[nodiscard]] CaptureCounts counts() const {
        CaptureCounts counts = reader_->counts();
        counts.ended_early = ended_early_;
        return counts;
    }

  private:
    struct PcapCloser {
        void operator()(pcap* handle) const;
    };

    /// Stores the reason why libpcap returned no further frame.
    void store_read_error();

    std::unique_ptr<pcap, PcapCloser> handle_;
    /// The stream from which libpcap reads, owned by handle_; null if libpcap opened the file
    /// itself.
    CaptureStream* stream_ = nullptr;
    std::uint64_t packets_ = 0; ///< number of packets that libpcap returned
    std::optional<FrameReader> reader_;
    bool ended_early_ = false;
    std::string read_error_;
};

} // namespace tw::capture
