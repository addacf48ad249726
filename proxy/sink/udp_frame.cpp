#include "proxy/sink/udp_frame.h"

#include <algorithm>
#include <charconv>
#include <string>

#include <arpa/inet.h>

namespace tw::sink {

namespace {

constexpr std::uint8_t kUdp = 17;
constexpr std::uint8_t kTimeToLive = 64;
constexpr std::size_t kUdpHeader = 8;
constexpr std::size_t kIpv4Header = 20;

/// The internet checksum, of pieces with an even number of bytes but the last.
class Checksum {
  public:
    void add(std::span<const std::byte> bytes) {
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            sum_ += std::to_integer<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8U : 0U);
        }
    }

    void add(std::uint32_t word) { sum_ += word; }

    [[nodiscard]] std::uint16_t value() const {
        std::uint64_t folded = sum_;
        while (folded > UINT16_MAX) {
            folded = (folded & UINT16_MAX) + (folded >> 16U);
        }
        return static_cast<std::uint16_t>(~folded);
    }

  private:
    std::uint64_t sum_ = 0;
};

void put8(std::uint32_t value, std::vector<std::byte>& out) {
    out.push_back(static_cast<std::byte>(value));
}

void put16(std::uint32_t value, std::vector<std::byte>& out) {
    put8(value >> 8U, out);
    put8(value, out);
}

void set16(std::size_t at, std::uint16_t value, std::vector<std::byte>& out) {
    out[at] = static_cast<std::byte>(value >> 8U);
    out[at + 1] = static_cast<std::byte>(value);
}

/// From and to nobody's card.
void put_ethernet(bool is_v6, std::vector<std::byte>& out) {
    for (const std::uint32_t end : {1U, 2U}) {
        for (const std::uint32_t byte : {2U, 0U, 0U, 0U, 0U, end}) {
            put8(byte, out);
        }
    }
    put16(is_v6 ? 0x86dd : 0x0800, out);
}

/// An address of IPv4 among those of IPv6.
FrameEndpoint as_v6(const FrameEndpoint& endpoint) {
    if (endpoint.is_v6) {
        return endpoint;
    }
    FrameEndpoint mapped{.is_v6 = true, .port = endpoint.port};
    mapped.address[10] = mapped.address[11] = UINT8_MAX;
    std::copy_n(endpoint.address.begin(), 4, mapped.address.begin() + 12);
    return mapped;
}

void put_address(const FrameEndpoint& endpoint, std::vector<std::byte>& out) {
    const auto bytes = std::as_bytes(std::span{endpoint.address}).first(endpoint.is_v6 ? 16 : 4);
    out.insert(out.end(), bytes.begin(), bytes.end());
}

} // namespace

std::optional<FrameEndpoint> parse_endpoint(std::string_view text) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        return std::nullopt;
    }
    FrameEndpoint endpoint;
    const std::string_view port = text.substr(colon + 1);
    const auto [end, failed] =
        std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
    if (failed != std::errc{} || end != port.data() + port.size()) {
        return std::nullopt;
    }
    std::string host{text.substr(0, colon)};
    endpoint.is_v6 = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (endpoint.is_v6) {
        host = host.substr(1, host.size() - 2);
    }
    if (::inet_pton(endpoint.is_v6 ? AF_INET6 : AF_INET, host.c_str(), endpoint.address.data()) !=
        1) {
        return std::nullopt;
    }
    return endpoint;
}

void make_same_family(FrameEndpoint& one, FrameEndpoint& other) {
    if (one.is_v6 || other.is_v6) {
        one = as_v6(one);
        other = as_v6(other);
    }
}

void make_udp_frame(const FrameEndpoint& from, const FrameEndpoint& to,
                    std::span<const std::byte> payload, std::vector<std::byte>& out) {
    FrameEndpoint source = from;
    FrameEndpoint destination = to;
    make_same_family(source, destination);
    const bool is_v6 = source.is_v6;
    const auto length = static_cast<std::uint32_t>(kUdpHeader + payload.size());
    out.clear();
    put_ethernet(is_v6, out);
    const std::size_t packet = out.size();
    if (is_v6) {
        put16(0x6000, out);
        put16(0, out);
        put16(length, out);
        put8(kUdp, out);
        put8(kTimeToLive, out);
    } else {
        put16(0x4500, out);
        put16(kIpv4Header + length, out);
        put16(0, out);
        put16(0x4000, out); // whole
        put8(kTimeToLive, out);
        put8(kUdp, out);
        put16(0, out);
    }
    const std::size_t addresses = out.size();
    put_address(source, out);
    put_address(destination, out);
    if (!is_v6) {
        Checksum header;
        header.add(std::span<const std::byte>{out}.subspan(packet));
        set16(addresses - 2, header.value(), out);
    }
    const std::size_t udp = out.size();
    put16(source.port, out);
    put16(destination.port, out);
    put16(length, out);
    put16(0, out);
    out.insert(out.end(), payload.begin(), payload.end());
    Checksum sum;
    sum.add(std::span<const std::byte>{out}.subspan(addresses));
    sum.add(kUdp);
    sum.add(length);
    set16(udp + 6, sum.value() == 0 ? UINT16_MAX : sum.value(), out);
}

} // namespace tw::sink
