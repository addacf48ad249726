#include "proxy/capture/capture_file.h"

#include "proxy/sink/byte_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>
#include <string_view>
#include <system_error>

#include <boost/asio/ip/udp.hpp>
#include <pcap/pcap.h>

namespace tw::capture {

namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint16_t kEtherIpv4 = 0x0800;
constexpr std::uint16_t kEtherIpv6 = 0x86dd;
constexpr std::uint8_t kUdp = 17;

std::uint16_t be16(Bytes bytes, std::size_t at) {
    return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[at]) << 8U |
                                      std::to_integer<unsigned>(bytes[at + 1]));
}

std::uint8_t u8(Bytes bytes, std::size_t at) {
    return std::to_integer<std::uint8_t>(bytes[at]);
}

template <typename Address>
Address read_address(Bytes bytes, std::size_t at) {
    typename Address::bytes_type raw;
    std::memcpy(raw.data(), bytes.data() + at, raw.size());
    return Address{raw};
}

/// IPv6 headers that may stand before UDP: hop-by-hop, routing, destination options.
bool is_skippable_extension(std::uint8_t next) {
    return next == 0 || next == 43 || next == 60;
}

constexpr std::uint8_t kIpv6Fragment = 44;

/// Where the IP packet begins, by link type.
struct LinkForm {
    int link;
    std::size_t header;      ///< bytes before the IP packet
    std::size_t protocol_at; ///< of the EtherType; kNoProtocol: the IP version decides
};

/// A compressed file as a stream of what is in it; null: it is none, or cannot be opened.
std::FILE* open_unpacked(const std::string& path) {
    if (!path.ends_with(".zst") && !path.ends_with(".gz")) {
        return nullptr;
    }
    try {
        auto source = std::make_unique<sink::ByteSource>(path);
        constexpr cookie_io_functions_t kReadOnly{
            .read = [](void* cookie, char* room, std::size_t size) -> ssize_t {
                auto& bytes = *static_cast<sink::ByteSource*>(cookie);
                const std::size_t read = bytes.read({room, size});
                const bool broken = read == 0 && bytes.end() != sink::FileEnd::whole;
                errno = broken ? EIO : errno;
                return broken ? -1 : static_cast<ssize_t>(read);
            },
            .write = nullptr,
            .seek = nullptr,
            .close =
                [](void* cookie) {
                    delete static_cast<sink::ByteSource*>(
                        cookie); // NOLINT(*-owning-memory): its own
                    return 0;
                }};
        std::FILE* const file = ::fopencookie(source.get(), "r", kReadOnly);
        if (file != nullptr) {
            std::ignore = source.release(); // closed with the stream
        }
        return file;
    } catch (const std::system_error&) {
        return nullptr; // opened by its name it says why
    }
}

constexpr std::size_t kNoProtocol = SIZE_MAX;
constexpr auto kLinks = std::to_array<LinkForm>({
    {DLT_EN10MB, 14, 12},
    {DLT_NULL, 4, kNoProtocol},
    {DLT_LOOP, 4, kNoProtocol},
    {DLT_RAW, 0, kNoProtocol},
    {DLT_IPV4, 0, kNoProtocol},
    {DLT_IPV6, 0, kNoProtocol},
    {DLT_LINUX_SLL, 16, 14},
    {DLT_LINUX_SLL2, 20, 0},
});

} // namespace

std::string to_string(const CaptureEndpoint& endpoint) {
    std::ostringstream text;
    text << boost::asio::ip::udp::endpoint{endpoint.address, endpoint.port};
    return text.str();
}

void CaptureFile::Close::operator()(pcap* handle) const {
    pcap_close(handle);
}

CaptureFile::CaptureFile(const std::string& path) {
    std::array<char, PCAP_ERRBUF_SIZE> error{};
    if (std::FILE* const file = open_unpacked(path)) {
        handle_.reset(pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO,
                                                               error.data()));
        if (!handle_) {
            std::fclose(file);
        }
    } else {
        handle_.reset(pcap_open_offline_with_tstamp_precision(
            path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error.data()));
    }
    if (!handle_) {
        // libpcap names the file only in some of its messages.
        std::string message{error.data()};
        if (!message.starts_with(path)) {
            message.insert(0, path + ": ");
        }
        throw CaptureError{message + " (expected a pcap or pcapng file)"};
    }
    link_ = pcap_datalink(handle_.get());
    const bool known = std::any_of(kLinks.begin(), kLinks.end(),
                                   [&](const LinkForm& form) { return form.link == link_; });
    if (!known) {
        const char* name = pcap_datalink_val_to_name(link_);
        throw CaptureError{path + ": link type " +
                           (name != nullptr ? name : std::to_string(link_)) +
                           " is not supported (Ethernet, loopback, raw IP and Linux cooked are)"};
    }
}

CaptureFile::~CaptureFile() = default;

bool CaptureFile::next(CapturedDatagram& datagram) {
    while (true) {
        pcap_pkthdr* header = nullptr;
        const u_char* data = nullptr;
        const int status = pcap_next_ex(handle_.get(), &header, &data);
        if (status != 1) {
            counts_.ended_early = status == PCAP_ERROR;
            return false;
        }
        ++counts_.frames;
        // With nanosecond precision the field named tv_usec counts nanoseconds.
        constexpr std::int64_t kSecond = 1'000'000'000;
        // A damaged file may claim any time; inspection adds to it and takes differences.
        constexpr std::int64_t kLastSecond = 9'000'000'000; // in the year 2255
        datagram.time = std::clamp<std::int64_t>(header->ts.tv_sec, 0, kLastSecond) * kSecond +
                        std::clamp<std::int64_t>(header->ts.tv_usec, 0, kSecond - 1);
        if (parse_link(std::as_bytes(std::span{data, header->caplen}), datagram)) {
            ++counts_.datagrams;
            return true;
        }
    }
}

bool CaptureFile::parse_link(Bytes frame, CapturedDatagram& datagram) {
    const auto* form = std::find_if(kLinks.begin(), kLinks.end(),
                                    [&](const LinkForm& link) { return link.link == link_; });
    std::size_t header = form->header;
    if (frame.size() < header) {
        ++counts_.other;
        return false;
    }
    if (form->protocol_at != kNoProtocol) {
        std::uint16_t protocol = be16(frame, form->protocol_at);
        // 802.1Q and 802.1ad tags, at most two.
        for (int tags = 0;
             tags < 2 && (protocol == 0x8100 || protocol == 0x88a8) && frame.size() >= header + 4;
             ++tags) {
            protocol = be16(frame, header + 2);
            header += 4;
        }
        if (protocol != kEtherIpv4 && protocol != kEtherIpv6) {
            ++counts_.other;
            return false;
        }
    }
    return parse_ip(frame.subspan(header), datagram);
}

bool CaptureFile::parse_ip(Bytes packet, CapturedDatagram& datagram) {
    if (!packet.empty()) {
        switch (u8(packet, 0) >> 4U) {
        case 4:
            return parse_ipv4(packet, datagram);
        case 6:
            return parse_ipv6(packet, datagram);
        default:
            break;
        }
    }
    ++counts_.other;
    return false;
}

bool CaptureFile::parse_ipv4(Bytes packet, CapturedDatagram& datagram) {
    constexpr std::size_t kMinHeader = 20;
    const std::size_t header = packet.size() < kMinHeader ? 0 : (u8(packet, 0) & 15U) * 4U;
    if (header < kMinHeader || packet.size() < header || u8(packet, 9) != kUdp) {
        ++counts_.other;
        return false;
    }
    constexpr unsigned kMoreFragments = 0x2000;
    constexpr unsigned kFragmentOffset = 0x1fff;
    if ((be16(packet, 6) & (kMoreFragments | kFragmentOffset)) != 0) {
        ++counts_.fragments;
        return false;
    }
    datagram.source.address = read_address<boost::asio::ip::address_v4>(packet, 12);
    datagram.destination.address = read_address<boost::asio::ip::address_v4>(packet, 16);
    return parse_udp(packet.subspan(header), datagram);
}

bool CaptureFile::parse_ipv6(Bytes packet, CapturedDatagram& datagram) {
    constexpr std::size_t kHeader = 40;
    if (packet.size() < kHeader) {
        ++counts_.other;
        return false;
    }
    std::uint8_t next = u8(packet, 6);
    std::size_t at = kHeader;
    while (is_skippable_extension(next) && packet.size() >= at + 8) {
        next = u8(packet, at);
        at += (std::size_t{u8(packet, at + 1)} + 1) * 8;
    }
    if (next == kIpv6Fragment) {
        ++counts_.fragments;
        return false;
    }
    if (next != kUdp || packet.size() < at) {
        ++counts_.other;
        return false;
    }
    datagram.source.address = read_address<boost::asio::ip::address_v6>(packet, 8);
    datagram.destination.address = read_address<boost::asio::ip::address_v6>(packet, 24);
    return parse_udp(packet.subspan(at), datagram);
}

bool CaptureFile::parse_udp(Bytes segment, CapturedDatagram& datagram) {
    constexpr std::size_t kHeader = 8;
    const std::size_t length = segment.size() < kHeader ? 0 : be16(segment, 4);
    if (length < kHeader) {
        ++counts_.other;
        return false;
    }
    if (length > segment.size()) {
        ++counts_.cut;
        return false;
    }
    datagram.source.port = be16(segment, 0);
    datagram.destination.port = be16(segment, 2);
    datagram.payload = segment.subspan(kHeader, length - kHeader);
    return true;
}

} // namespace tw::capture
