#include "tests/support/capture.h"

#include <array>
#include <memory>
#include <span>
#include <stdexcept>

#include <zlib.h>

namespace tw::test {

namespace {

constexpr std::uint32_t kPcapMagic = 0xA1B2C3D4; // microseconds, little-endian
constexpr std::size_t kFileHeaderSize = 24;
constexpr std::size_t kRecordHeaderSize = 16;
constexpr std::size_t kMaxFrameSize = 65536;
constexpr std::size_t kEthernetSize = 14;
constexpr std::size_t kMinIpSize = 20;
constexpr std::size_t kUdpSize = 8;
constexpr std::uint32_t kProtocolUdp = 17;

using Bytes = std::span<const std::byte>;

std::uint32_t u8(Bytes data, std::size_t at) {
    return std::to_integer<std::uint32_t>(data[at]);
}

std::uint32_t u32_little(Bytes data, std::size_t at) {
    return u8(data, at) | u8(data, at + 1) << 8U | u8(data, at + 2) << 16U |
           u8(data, at + 3) << 24U;
}

std::uint16_t u16_big(Bytes data, std::size_t at) {
    return static_cast<std::uint16_t>(u8(data, at) << 8U | u8(data, at + 1));
}

std::uint32_t u32_big(Bytes data, std::size_t at) {
    return std::uint32_t{u16_big(data, at)} << 16U | u16_big(data, at + 2);
}

/// Returns false if the frame is not an IPv4 UDP datagram.
bool parse_frame(Bytes frame, CapturedDatagram& out) {
    if (frame.size() < kEthernetSize + kMinIpSize + kUdpSize) {
        return false;
    }
    const Bytes ip = frame.subspan(kEthernetSize);
    const std::size_t ip_size = (u8(ip, 0) & 0x0FU) * 4;
    if (u8(ip, 0) >> 4U != 4 || u8(ip, 9) != kProtocolUdp || ip_size < kMinIpSize ||
        ip.size() < ip_size + kUdpSize) {
        return false;
    }
    const Bytes udp = ip.subspan(ip_size);
    const std::size_t udp_size = u16_big(udp, 4);
    if (udp_size < kUdpSize || udp_size > udp.size()) {
        return false;
    }
    out.source_address = u32_big(ip, 12);
    out.destination_address = u32_big(ip, 16);
    out.source_port = u16_big(udp, 0);
    out.destination_port = u16_big(udp, 2);
    const Bytes payload = udp.first(udp_size).subspan(kUdpSize);
    out.payload.assign(payload.begin(), payload.end());
    return true;
}

} // namespace

std::vector<CapturedDatagram> read_capture(const std::string& path) {
    const std::unique_ptr<gzFile_s, int (*)(gzFile)> file{gzopen(path.c_str(), "rb"), gzclose};
    if (!file) {
        throw std::runtime_error{"cannot open " + path};
    }
    const auto read = [&](std::span<std::byte> out) {
        return gzread(file.get(), out.data(), static_cast<unsigned>(out.size())) ==
               static_cast<int>(out.size());
    };
    std::array<std::byte, kFileHeaderSize> header{};
    if (!read(header) || u32_little(header, 0) != kPcapMagic) {
        throw std::runtime_error{"not a classic pcap: " + path};
    }
    std::vector<CapturedDatagram> datagrams;
    std::array<std::byte, kRecordHeaderSize> record{};
    std::vector<std::byte> frame;
    while (read(record)) {
        const std::size_t size = u32_little(record, 8);
        if (size > kMaxFrameSize) {
            throw std::runtime_error{"frame too large in " + path};
        }
        frame.resize(size);
        if (!read(frame)) {
            break; // the capture is truncated
        }
        CapturedDatagram datagram;
        datagram.time_us = std::int64_t{u32_little(record, 0)} * 1'000'000 + u32_little(record, 4);
        if (parse_frame(frame, datagram)) {
            datagrams.push_back(std::move(datagram));
        }
    }
    return datagrams;
}

} // namespace tw::test
