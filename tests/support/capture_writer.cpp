#include "tests/support/capture_writer.h"

#include "proxy/capture/pcapng.h"

#include <fstream>

namespace tw::test {

CaptureBytes& CaptureBytes::u8(std::uint32_t value) {
    bytes_.push_back(static_cast<std::byte>(value));
    return *this;
}

CaptureBytes& CaptureBytes::be16(std::uint32_t value) {
    return u8(value >> 8U).u8(value);
}

CaptureBytes& CaptureBytes::be32(std::uint32_t value) {
    return be16(value >> 16U).be16(value);
}

CaptureBytes& CaptureBytes::u16(std::uint32_t value) {
    return big_endian_ ? be16(value) : u8(value).u8(value >> 8U);
}

CaptureBytes& CaptureBytes::u32(std::uint32_t value) {
    return big_endian_ ? be32(value) : u16(value).u16(value >> 16U);
}

CaptureBytes& CaptureBytes::zeros(std::size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
}

CaptureBytes& CaptureBytes::raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
}

FrameBytes udp_segment(std::span<const std::byte> payload, std::optional<std::uint32_t> length,
                       std::uint32_t checksum) {
    constexpr std::size_t kHeader = 8;
    return CaptureBytes{}
        .be16(1000)
        .be16(8303)
        .be16(length.value_or(static_cast<std::uint32_t>(payload.size() + kHeader)))
        .be16(checksum)
        .raw(payload)
        .bytes();
}

FrameBytes ipv4_packet(std::span<const std::byte> segment, std::size_t option_bytes,
                       std::uint32_t fragment, std::uint32_t protocol) {
    const std::size_t header = 20 + option_bytes;
    return CaptureBytes{}
        .u8(static_cast<std::uint32_t>(0x40 | header / 4))
        .u8(0)
        .be16(static_cast<std::uint32_t>(header + segment.size()))
        .be16(7)
        .be16(fragment)
        .u8(64)
        .u8(protocol)
        .be16(0)
        .be32(0x0a000001)
        .be32(0x0a000002)
        .zeros(option_bytes)
        .raw(segment)
        .bytes();
}

FrameBytes ipv6_packet(std::span<const std::byte> segment,
                       const std::vector<std::uint32_t>& extensions) {
    constexpr std::uint32_t kIpProtocolUdp = 17;
    const auto next_after = [&](std::size_t index) {
        return index < extensions.size() ? extensions[index] : kIpProtocolUdp;
    };
    CaptureBytes packet;
    packet.be32(0x60000000)
        .be16(static_cast<std::uint32_t>(segment.size() + 8 * extensions.size()))
        .u8(next_after(0))
        .u8(64);
    for (const std::uint32_t host : {1U, 2U}) {
        packet.be16(0xfd00).zeros(10).be32(host);
    }
    for (std::size_t i = 0; i < extensions.size(); ++i) {
        packet.u8(next_after(i + 1)).u8(0).zeros(6);
    }
    return packet.raw(segment).bytes();
}

FrameBytes pcap_file(const PcapForm& form, const std::vector<PcapFrame>& frames) {
    CaptureBytes file{form.big_endian};
    file.u32(form.nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4)
        .u16(2)
        .u16(4)
        .u32(0)
        .u32(0)
        .u32(65535)
        .u32(form.link);
    for (const PcapFrame& frame : frames) {
        const auto size = static_cast<std::uint32_t>(frame.bytes.size());
        file.u32(frame.seconds)
            .u32(frame.fraction)
            .u32(size)
            .u32(frame.original_size.value_or(size))
            .raw(frame.bytes);
    }
    return file.bytes();
}

FrameBytes pcapng_file(bool big_endian, std::uint32_t link, std::uint32_t resolution,
                       const std::vector<std::pair<std::uint64_t, FrameBytes>>& frames) {
    FrameBytes file;
    const capture::PcapngEncoder encoder{big_endian};
    encoder.append_section({}, file);
    encoder.append_interface({.link = static_cast<std::uint16_t>(link),
                              .resolution = static_cast<std::uint8_t>(resolution)},
                             file);
    for (const auto& [time, bytes] : frames) {
        encoder.append_packet({.time = time, .frame = bytes}, file);
    }
    return file;
}

TemporaryFile::TemporaryFile(std::span<const std::byte> content) {
    std::ofstream{path(), std::ios::binary}.write(reinterpret_cast<const char*>(content.data()),
                                                  static_cast<std::streamsize>(content.size()));
}

} // namespace tw::test
