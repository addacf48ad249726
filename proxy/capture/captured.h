#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <boost/asio/ip/address.hpp>

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

/// What a capture says of a session besides its traffic (sink/session_state.h).
struct CapturedState {
    CaptureEndpoint client;
    CaptureEndpoint server;
    std::vector<std::byte> bytes;
};

/// One UDP datagram of a capture.
struct CapturedDatagram {
    std::int64_t time = 0; ///< nanoseconds since 1970-01-01 UTC
    CaptureEndpoint source;
    CaptureEndpoint destination;
    std::span<const std::byte> payload;
    std::span<const std::byte> next{};    ///< payload of the one behind it, where that is at hand
    const CapturedState* state = nullptr; ///< of its session before it; null: nothing is said
    bool cut = false; ///< recorded shorter than it was sent: there is no payload
};

/// What was captured besides whole UDP datagrams.
struct CaptureCounts {
    std::uint64_t frames = 0;
    std::uint64_t datagrams = 0;
    std::uint64_t other = 0;       ///< not UDP over IPv4 or IPv6
    std::uint64_t reassembled = 0; ///< of the datagrams: that came in fragments
    std::uint64_t pieces = 0;      ///< frames that were reassembled, but for one of each datagram
    std::uint64_t repeats = 0;     ///< IP fragments that had been there before
    std::uint64_t merged = 0;      ///< frames that held several datagrams, which were split again
    std::uint64_t fragments = 0;   ///< IP fragments of datagrams that never became whole
    std::uint64_t cut = 0;         ///< recorded shorter than they were sent: datagrams, or unknown
    bool ended_early = false;      ///< the file ends inside a frame
};

/// What is no capture, or cannot be opened; the message says which and why.
class CaptureError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

} // namespace tw::capture
