#include "proxy/capture/live_capture.h"

#include "proxy/capture/pcapng.h"

#include <algorithm>
#include <array>
#include <new>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pcap/pcap.h>

namespace tw::capture {

namespace {

/// The time in ms for which the kernel collects frames before it delivers them together.
constexpr int kDeliveryTimeoutMs = 10;

/// Parts of the names of libpcap's devices that are not network interfaces.
constexpr std::array<std::string_view, 5> kNonNetworkDeviceParts{"bluetooth", "dbus-", "nflog",
                                                                 "nfqueue", "usbmon"};

/// Returns the names of the interfaces as a list such as "lo, eth0, any".
std::string interface_names() {
    std::array<char, PCAP_ERRBUF_SIZE> error{};
    pcap_if_t* all = nullptr;
    if (pcap_findalldevs(&all, error.data()) != 0) {
        return "unknown";
    }
    const std::unique_ptr<pcap_if_t, decltype(&pcap_freealldevs)> owner{all, &pcap_freealldevs};
    std::vector<std::string> names;
    for (const pcap_if_t* each = all; each != nullptr; each = each->next) {
        const std::string name{each->name};
        const bool is_network =
            std::ranges::none_of(kNonNetworkDeviceParts,
                                 [&](std::string_view begin) { return name.starts_with(begin); });
        if (is_network) {
            names.push_back(name);
        }
    }
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

} // namespace

void LiveCapture::PcapCloser::operator()(pcap* handle) const {
    pcap_close(handle);
}

LiveCapture::LiveCapture(const LiveCaptureOptions& options) : interface_{options.interface} {
    std::array<char, PCAP_ERRBUF_SIZE> error{};
    pcap_.reset(pcap_create(interface_.c_str(), error.data()));
    if (!pcap_) {
        throw CaptureError{fmt::format("{}: {}", interface_, error.data())};
    }
    activate_handle(options);
    pcap_set_datalink(pcap_.get(), DLT_LINUX_SLL2); // has an effect on cooked links only
    const int link = pcap_datalink(pcap_.get());
    if (!FrameReader::supports_link_type(link)) {
        throw CaptureError{
            fmt::format("{}: {}", interface_, FrameReader::describe_unsupported_link(link))};
    }
    reader_.set_link_type(link);
    set_filter(options.ports);
    if (pcap_setnonblock(pcap_.get(), 1, error.data()) != 0) {
        throw CaptureError{fmt::format("{}: {}", interface_, error.data())};
    }
}

void LiveCapture::activate_handle(const LiveCaptureOptions& options) {
    pcap* const handle = pcap_.get();
    constexpr std::size_t kMost = std::size_t{1} << 30U;
    pcap_set_snaplen(handle, kSnapLength);
    pcap_set_promisc(handle, 1); // promiscuous mode also captures traffic of a mirrored port
    pcap_set_timeout(handle, kDeliveryTimeoutMs);
    pcap_set_buffer_size(handle, static_cast<int>(std::min(options.buffer_bytes, kMost)));
    pcap_set_tstamp_precision(handle, PCAP_TSTAMP_PRECISION_NANO);
    const int status = pcap_activate(handle);
    if (status >= 0) {
        return;
    }
    const char* const why = pcap_geterr(handle);
    switch (status) {
    case PCAP_ERROR_NO_SUCH_DEVICE:
        throw NoInterfaceError{
            fmt::format("no interface {} (available: {})", interface_, interface_names())};
    case PCAP_ERROR_IFACE_NOT_UP:
        throw NoInterfaceError{fmt::format("the interface {} is not up", interface_)};
    case PCAP_ERROR_PERM_DENIED:
    case PCAP_ERROR_PROMISC_PERM_DENIED:
        throw NoPermissionError{fmt::format("no permission to capture on {}", interface_)};
    default:
        throw CaptureError{
            fmt::format("{}: {}", interface_, *why != '\0' ? why : pcap_statustostr(status))};
    }
}

std::string live_filter_expression(const std::vector<std::uint16_t>& ports) {
    std::string text = "not (tcp or arp or icmp or icmp6)";
    if (!ports.empty()) {
        std::vector<std::string> wanted;
        wanted.reserve(ports.size());
        for (const std::uint16_t port : ports) {
            wanted.push_back(fmt::format("udp port {}", port));
        }
        // The mask selects datagrams that are not fragmented: no further fragments and offset 0.
        text += fmt::format(" and not (((ip and udp and ip[6:2] & 0x3fff = 0) or "
                            "(ip6 and ip6[6] = 17)) and not ({}))",
                            fmt::join(wanted, " or "));
    }
    return text;
}

void LiveCapture::set_filter(const std::vector<std::uint16_t>& ports) {
    bpf_program program{};
    if (pcap_compile(pcap_.get(), &program, live_filter_expression(ports).c_str(), 1,
                     PCAP_NETMASK_UNKNOWN) != 0) {
        throw CaptureError{fmt::format("{}: {}", interface_, pcap_geterr(pcap_.get()))};
    }
    const int status = pcap_setfilter(pcap_.get(), &program);
    pcap_freecode(&program);
    if (status != 0) {
        throw CaptureError{fmt::format("{}: {}", interface_, pcap_geterr(pcap_.get()))};
    }
}

int LiveCapture::descriptor() const {
    return pcap_get_selectable_fd(pcap_.get());
}

std::size_t LiveCapture::read_datagrams(const std::function<void(const CapturedDatagram&)>& take,
                                        std::size_t max) {
    struct Reading {
        FrameReader* reader;
        const std::function<void(const CapturedDatagram&)>* take;
        std::uint64_t* dropped;
    } reading{.reader = &reader_, .take = &take, .dropped = &dropped_};

    const int frames = pcap_dispatch(
        pcap_.get(), static_cast<int>(max),
        [](u_char* user, const pcap_pkthdr* header, const u_char* data) {
            const Reading& into = *reinterpret_cast<const Reading*>(user);
            CapturedDatagram datagram;
            // The handle has nanosecond precision, so the field named tv_usec counts nanoseconds.
            datagram.time = FrameReader::clamped_time(header->ts.tv_sec, header->ts.tv_usec);
            try { // no exception may pass through libpcap, which is written in C
                if (into.reader->read_frame(std::as_bytes(std::span{data, header->caplen}),
                                            header->len, datagram)) {
                    do {
                        (*into.take)(datagram);
                    } while (into.reader->read_next_coalesced_datagram(datagram));
                }
            } catch (const std::bad_alloc&) {
                ++*into.dropped;
            }
        },
        reinterpret_cast<u_char*>(&reading));
    if (frames < 0) {
        throw CaptureError{fmt::format("{}: {}", interface_, pcap_geterr(pcap_.get()))};
    }
    return static_cast<std::size_t>(frames);
}

std::uint64_t LiveCapture::dropped_frames() {
    pcap_stat stats{};
    if (pcap_stats(pcap_.get(), &stats) == 0) {
        dropped_ += stats.ps_drop - last_dropped_;
        last_dropped_ = stats.ps_drop;
    }
    return dropped_;
}

} // namespace tw::capture
