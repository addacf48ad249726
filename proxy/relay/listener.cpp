#include "proxy/relay/listener.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include <ifaddrs.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/mman.h>

namespace tw::relay {

namespace {

/// The distance between two buffers. It is not a power of two, because then all buffers would use the
/// same cache sets.
constexpr std::size_t kBufferStride = DatagramBatch::kBufferBytes + std::size_t{2} * 1024 + 128;
constexpr std::size_t kBufferMemory = kBufferStride * DatagramBatch::kDatagrams;

} // namespace

DatagramBatch::DatagramBatch() {
    void* const memory = ::mmap(nullptr, kBufferMemory, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc{};
    }
    memory_ = static_cast<std::byte*>(memory);
    for (std::size_t i = 0; i < kDatagrams; ++i) {
        vectors_[i] = {memory_ + i * kBufferStride, kBufferBytes};
        messages_[i].msg_hdr.msg_iov = &vectors_[i];
        messages_[i].msg_hdr.msg_iovlen = 1;
    }
}

DatagramBatch::~DatagramBatch() {
    ::munmap(memory_, kBufferMemory);
}

int DatagramBatch::receive(int socket, std::size_t at, std::size_t max, bool with_names,
                           bool with_control) noexcept {
    const std::size_t end = std::min(at + max, kDatagrams);
    for (std::size_t i = at; i < end; ++i) {
        vectors_[i].iov_len = kBufferBytes;
        msghdr& header = messages_[i].msg_hdr;
        header.msg_name = with_names ? &names_[i] : nullptr;
        header.msg_namelen = with_names ? sizeof names_[i] : 0;
        header.msg_control = with_control ? control_[i].data() : nullptr;
        header.msg_controllen = with_control ? control_[i].size() : 0;
    }
    const int received =
        ::recvmmsg(socket, &messages_[at], static_cast<unsigned>(end - at), MSG_DONTWAIT, nullptr);
    return received < 0 ? -errno : received;
}

std::vector<base::Endpoint> interface_addresses() {
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) {
        return {};
    }
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned{first, &::freeifaddrs};
    std::vector<base::Endpoint> addresses;
    for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr != nullptr &&
            (each->ifa_addr->sa_family == AF_INET || each->ifa_addr->sa_family == AF_INET6)) {
            addresses.push_back(base::endpoint_from(each->ifa_addr));
        }
    }
    return addresses;
}

std::size_t make_reply_control(msghdr& from, ReplyControl& to) {
    for (cmsghdr* c = CMSG_FIRSTHDR(&from); c != nullptr; c = CMSG_NXTHDR(&from, c)) {
        std::size_t space = 0;
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            in_pktinfo info{};
            std::memcpy(&info, CMSG_DATA(c), sizeof info);
            info.ipi_ifindex = 0; // the routing table chooses the interface
            info.ipi_addr = {};
            std::memcpy(CMSG_DATA(c), &info, sizeof info);
            space = CMSG_SPACE(sizeof info);
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            in6_pktinfo info{};
            std::memcpy(&info, CMSG_DATA(c), sizeof info);
            if (!IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) {
                info.ipi6_ifindex = 0;
            }
            std::memcpy(CMSG_DATA(c), &info, sizeof info);
            space = CMSG_SPACE(sizeof info);
        }
        if (space != 0 && space <= to.size()) {
            std::memcpy(to.data(), c, space);
            return space;
        }
    }
    return 0;
}

std::vector<ListenerIndex> listeners_of(const SessionTable& table, std::span<const Listener> all) {
    std::vector<ListenerIndex> places;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].table == &table) {
            places.push_back(static_cast<ListenerIndex>(i));
        }
    }
    return places;
}

std::uint32_t new_kernel_drops(int socket, std::uint32_t& seen) noexcept {
    std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
    socklen_t length = sizeof info;
    if (::getsockopt(socket, SOL_SOCKET, SO_MEMINFO, info.data(), &length) != 0) {
        return 0;
    }
    const std::uint32_t before = std::exchange(seen, info[SK_MEMINFO_DROPS]);
    return seen - before; // the counter wraps
}

} // namespace tw::relay
