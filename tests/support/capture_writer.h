#pragma once

#include "tests/support/program.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw::test {

/// Builds bytes of capture files and of the headers in them; each call appends.
class CaptureBytes {
  public:
    explicit CaptureBytes(bool big_endian = false) : big_endian_{big_endian} {}

    /// Append a number in the file's byte order.
    CaptureBytes& u16(std::uint32_t value);
    CaptureBytes& u32(std::uint32_t value);
    /// Append a number in network byte order.
    CaptureBytes& be16(std::uint32_t value);
    CaptureBytes& be32(std::uint32_t value);
    CaptureBytes& u8(std::uint32_t value);
    CaptureBytes& zeros(std::size_t count);
    CaptureBytes& raw(std::span<const std::byte> bytes);

    [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

    [[nodiscard]] std::size_t size() const { return bytes_.size(); }

  private:
    bool big_endian_;
    std::vector<std::byte> bytes_;
};

using FrameBytes = std::vector<std::byte>;

/// Returns a UDP segment from port 1000 to 8303. `length`: a wrong size for its header. Without a
/// checksum, it is 0.
[[nodiscard]] FrameBytes udp_segment(std::span<const std::byte> payload,
                                     std::optional<std::uint32_t> length = std::nullopt,
                                     std::uint32_t checksum = 0);
/// Returns an IPv4 packet from 10.0.0.1 to 10.0.0.2. `fragment`: flags and offset as on the wire.
[[nodiscard]] FrameBytes ipv4_packet(std::span<const std::byte> segment,
                                     std::size_t option_bytes = 0, std::uint32_t fragment = 0,
                                     std::uint32_t protocol = 17);
/// Returns an IPv6 packet from fd00::1 to fd00::2, with these extension headers of 8 bytes each.
[[nodiscard]] FrameBytes ipv6_packet(std::span<const std::byte> segment,
                                     const std::vector<std::uint32_t>& extensions = {});

struct PcapForm {
    bool big_endian = false;
    bool nanoseconds = false;
    std::uint32_t link = 1;
};

struct PcapFrame {
    std::uint32_t seconds = 1'700'000'000;
    std::uint32_t fraction = 0; ///< microseconds or nanoseconds, as in the file
    FrameBytes bytes{};
    std::optional<std::uint32_t> original_size{}; ///< size on the wire if the frame was truncated
};

[[nodiscard]] FrameBytes pcap_file(const PcapForm& form, const std::vector<PcapFrame>& frames);
/// A pcapng section with one interface; `resolution`: if_tsresol, 6 for micro-, 9 for nanoseconds.
[[nodiscard]] FrameBytes
pcapng_file(bool big_endian, std::uint32_t link, std::uint32_t resolution,
            const std::vector<std::pair<std::uint64_t, FrameBytes>>& frames);

/// A file in a new folder; the destructor removes both.
class TemporaryFile {
  public:
    explicit TemporaryFile(std::span<const std::byte> content);

    [[nodiscard]] std::string path() const { return folder_.file("capture"); }

  private:
    TemporaryFolder folder_;
};

} // namespace tw::test
