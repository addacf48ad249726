#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>

#include <boost/asio/ip/address.hpp>

struct pcap;

namespace tw::capture {

/// An address and port as a capture shows them.
struct CaptureEndpoint {
    boost::asio::ip::address address;
    std::uint16_t port = 0;

    friend bool operator==(const CaptureEndpoint&, const CaptureEndpoint&) = default;

    friend bool operator<(const CaptureEndpoint& left, const CaptureEndpoint& right) {
        return std::tie(left.address, left.port) < std::tie(right.address, right.port);
    }
};

/// "127.0.0.1:8303", "[::1]:8303"
[[nodiscard]] std::string to_string(const CaptureEndpoint& endpoint);

/// One UDP datagram of a capture.
struct CapturedDatagram {
    std::int64_t time = 0; ///< nanoseconds since 1970-01-01 UTC
    CaptureEndpoint source;
    CaptureEndpoint destination;
    std::span<const std::byte> payload;
};

/// What a capture held besides whole UDP datagrams.
struct CaptureCounts {
    std::uint64_t frames = 0;
    std::uint64_t datagrams = 0;
    std::uint64_t other = 0;     ///< no UDP over IPv4 or IPv6
    std::uint64_t fragments = 0; ///< IP fragments: not reassembled
    std::uint64_t cut = 0;       ///< recorded shorter than they were sent
    bool ended_early = false;    ///< the file ends inside a frame
};

/// A file that is no capture, or cannot be opened; the message says which and why.
class CaptureError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A pcap or pcapng file ("-": standard input): Ethernet with or without VLAN tags, loopback, raw
/// IP and Linux's cooked links.
class CaptureFile {
  public:
    /// Errors: CaptureError.
    explicit CaptureFile(const std::string& path);
    ~CaptureFile();
    CaptureFile(const CaptureFile&) = delete;
    CaptureFile& operator=(const CaptureFile&) = delete;
    CaptureFile(CaptureFile&&) = delete;
    CaptureFile& operator=(CaptureFile&&) = delete;

    /// The next UDP datagram; its payload is valid until the next call. False at the end.
    [[nodiscard]] bool next(CapturedDatagram& datagram);

    [[nodiscard]] const CaptureCounts& counts() const { return counts_; }

  private:
    [[nodiscard]] bool parse_link(std::span<const std::byte> frame, CapturedDatagram& datagram);
    [[nodiscard]] bool parse_ip(std::span<const std::byte> packet, CapturedDatagram& datagram);
    [[nodiscard]] bool parse_ipv4(std::span<const std::byte> packet, CapturedDatagram& datagram);
    [[nodiscard]] bool parse_ipv6(std::span<const std::byte> packet, CapturedDatagram& datagram);
    [[nodiscard]] bool parse_udp(std::span<const std::byte> segment, CapturedDatagram& datagram);

    struct Close {
        void operator()(pcap* handle) const;
    };

    std::unique_ptr<pcap, Close> handle_;
    int link_ = 0;
    CaptureCounts counts_;
};

} // namespace tw::capture
