#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::sink {

/// An address and port as packets have them.
struct FrameEndpoint {
    bool is_v6 = false;
    std::array<std::uint8_t, 16> address{}; ///< of IPv4 the first four
    std::uint16_t port = 0;
};

/// Reads "127.0.0.1:8303" and "[::1]:8303".
[[nodiscard]] std::optional<FrameEndpoint> parse_endpoint(std::string_view text);

/// Where one of two is of IPv6, both are: no packet has one of each.
void make_same_family(FrameEndpoint& one, FrameEndpoint& other);

/// Most bytes of a datagram that a frame holds.
inline constexpr std::size_t kMaxFramePayload = 65'507;

/// Replaces `out` by the Ethernet frame that a datagram would be. Between an address of IPv4 and one
/// of IPv6 it is one of IPv6. (Of raw IP, which needs no Ethernet, libpcap reads no capture with two
/// interfaces.)
/// Precondition: `payload` has at most kMaxFramePayload bytes.
void make_udp_frame(const FrameEndpoint& from, const FrameEndpoint& to,
                    std::span<const std::byte> payload, std::vector<std::byte>& out);

} // namespace tw::sink
