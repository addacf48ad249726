#pragma once

#include "proxy/capture/frame_reader.h"
#include "proxy/store/byte_source.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw::capture {

/// The number of bytes at the start of a capture that identify its format.
inline constexpr std::size_t kCaptureMagicSize = 4;

/// Returns true if a file that starts with these bytes is pcapng, or pcap in any of its variants.
[[nodiscard]] bool looks_like_capture(std::span<const std::byte> begin);

/// Reads the UDP datagrams in a pcap or pcapng file, or in standard input ("-"). Decompresses the
/// file if necessary. The interfaces of a pcapng file may have different link types, and its
/// sections different byte orders.
/// Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
class CaptureFile {
  public:
    /// Opens the file. Errors: throws CaptureError, also if FrameReader does not support the link
    /// type of the first interface.
    explicit CaptureFile(const std::string& path);

    /// Reads the next UDP datagram, which may be truncated. Its payload and state are valid until
    /// the next call. Returns false at the end of the file.
    [[nodiscard]] bool read_datagram(CapturedDatagram& datagram);

    /// Returns true if the description of the first interface says that twscope wrote the file.
    /// Other programs keep the description when they rewrite a file. Datagrams in such files may be
    /// slightly out of order.
    [[nodiscard]] bool is_written_by_twscope() const { return is_by_twscope_; }

    /// Returns why the rest of the file cannot be read; empty if the file was read to the end or is
    /// truncated.
    [[nodiscard]] const std::string& read_error() const { return read_error_; }

    [[nodiscard]] CaptureCounts counts() const {
        CaptureCounts counts = reader_.counts();
        counts.ended_early = ended_early_;
        return counts;
    }

  private:
    using Bytes = std::span<const std::byte>;

    struct Interface {
        int link = 0;                               ///< libpcap's number of the link type
        std::uint32_t snap_length = 0;              ///< the most bytes of a frame; 0: unlimited
        std::uint64_t units_per_second = 1'000'000; ///< the unit of the interface's times
        std::int64_t time_offset = 0;               ///< seconds to add to the interface's times
    };

    struct StoredFrame {
        int link = 0;
        std::int64_t time = 0;     ///< nanoseconds since 1970-01-01 UTC
        std::size_t wire_size = 0; ///< size of the frame on the wire
        Bytes bytes{};
    };

    /// Reads the file up to its first frame or interface.
    void read_to_first_frame();
    /// Reads the next frame into `frame_`. Returns false at the end of the file.
    [[nodiscard]] bool read_frame();
    /// Reads the next record of a pcap file, which is a frame.
    [[nodiscard]] bool read_pcap_record();
    /// Reads the next block of a pcapng file, of any type.
    [[nodiscard]] bool read_pcapng_block();
    /// Reads the byte order of the section that starts at the current position.
    [[nodiscard]] bool read_byte_order();
    void read_interface_block(Bytes body);
    void read_packet_block(std::uint32_t type, Bytes body);

    /// Makes the next `size` bytes of the file available. Returns false if fewer bytes are left.
    [[nodiscard]] bool load_bytes(std::size_t size);

    /// Returns the bytes that load_bytes() made available.
    [[nodiscard]] Bytes loaded_bytes(std::size_t size) const {
        return std::as_bytes(std::span{buffer_}).subspan(at_, size);
    }

    /// Stores whether the file ends early, or why it cannot be read.
    void store_end_reason();
    /// Stores why the rest of the file cannot be read. Returns false.
    bool set_read_error(std::string why);

    /// Returns a number in the file's byte order.
    template <typename Integer>
    [[nodiscard]] Integer read_number(Bytes bytes, std::size_t at) const;

    std::optional<store::ByteSource> source_;
    std::vector<char> buffer_;
    std::size_t at_ = 0;  ///< offset in `buffer_` of the first byte that was not read yet
    std::size_t end_ = 0; ///< number of bytes in `buffer_`
    bool is_pcapng_ = false;
    bool is_swapped_ = false;            ///< the byte order differs from this machine's
    std::size_t record_header_size_ = 0; ///< in a pcap file: size of the header before each frame
    std::vector<Interface> interfaces_;  ///< the current section's interfaces; a pcap file has one
    bool has_interfaces_ = false;        ///< true if an interface was read
    bool is_by_twscope_ = false;
    /// Session state that is stored before the next frame.
    std::optional<StoredSessionState> next_state_;
    std::optional<StoredSessionState> state_; ///< session state that is stored before `frame_`
    std::optional<StoredFrame> frame_;
    FrameReader reader_;
    bool ended_early_ = false;
    std::string read_error_;
};

} // namespace tw::capture
