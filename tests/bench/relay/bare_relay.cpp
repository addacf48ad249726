// bare_relay LISTEN_PORT SERVER_PORT: a minimal relay on loopback, to compare with. One thread, one
// epoll, recvmmsg and sendmmsg; no observer, no limits, no error handling.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <unordered_map>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace {

constexpr std::size_t kBatch = 64;
constexpr std::size_t kMaxDatagram = 2048;
constexpr int kSocketBuffer = 4 * 1024 * 1024;

struct Session {
    int fd = 0;
    sockaddr_in client{};
};

std::array<std::array<char, kMaxDatagram>, kBatch> buffers;
std::array<sockaddr_in, kBatch> names;
std::array<iovec, kBatch> vectors;
std::array<mmsghdr, kBatch> messages;
std::unordered_map<std::uint64_t, std::unique_ptr<Session>> sessions;

int udp_socket() {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
    return fd;
}

sockaddr* as_sockaddr(sockaddr_in* name) {
    return static_cast<sockaddr*>(static_cast<void*>(name));
}

sockaddr_in loopback(const char* port) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return name;
}

std::size_t receive_datagrams(int fd, bool with_names) {
    for (std::size_t i = 0; i < kBatch; ++i) {
        vectors[i] = {buffers[i].data(), kMaxDatagram};
        msghdr& header = messages[i].msg_hdr;
        header.msg_iov = &vectors[i];
        header.msg_iovlen = 1;
        header.msg_name = with_names ? &names[i] : nullptr;
        header.msg_namelen = with_names ? sizeof names[i] : 0;
    }
    const int count = ::recvmmsg(fd, messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < count; ++i) {
        vectors[static_cast<std::size_t>(i)].iov_len =
            messages[static_cast<std::size_t>(i)].msg_len;
    }
    return count > 0 ? static_cast<std::size_t>(count) : 0;
}

Session& find_or_open_session(const sockaddr_in& client, int epoll, sockaddr_in& server) {
    auto& slot = sessions[std::uint64_t{client.sin_addr.s_addr} << 16U | client.sin_port];
    if (slot == nullptr) {
        slot = std::make_unique<Session>();
        slot->client = client;
        slot->fd = udp_socket();
        ::connect(slot->fd, as_sockaddr(&server), sizeof server);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.ptr = slot.get();
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, slot->fd, &event);
    }
    return *slot;
}

void forward_from_clients(int listen_fd, int epoll, sockaddr_in& server) {
    const std::size_t count = receive_datagrams(listen_fd, true);
    for (std::size_t begin = 0; begin < count;) {
        Session& session = find_or_open_session(names[begin], epoll, server);
        std::size_t end = begin;
        while (end < count && names[end].sin_port == session.client.sin_port &&
               names[end].sin_addr.s_addr == session.client.sin_addr.s_addr) {
            messages[end].msg_hdr.msg_name = nullptr;
            messages[end].msg_hdr.msg_namelen = 0;
            ++end;
        }
        ::sendmmsg(session.fd, &messages[begin], static_cast<unsigned>(end - begin), 0);
        begin = end;
    }
}

void forward_from_server(int listen_fd, Session& session) {
    const std::size_t count = receive_datagrams(session.fd, false);
    for (std::size_t i = 0; i < count; ++i) {
        messages[i].msg_hdr.msg_name = &session.client;
        messages[i].msg_hdr.msg_namelen = sizeof session.client;
    }
    if (count != 0) {
        ::sendmmsg(listen_fd, messages.data(), static_cast<unsigned>(count), 0);
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        return 2;
    }
    auto local = loopback(argv[1]);
    auto server = loopback(argv[2]);
    const int listen_fd = udp_socket();
    if (::bind(listen_fd, as_sockaddr(&local), sizeof local) != 0) {
        return 2;
    }
    const int epoll = ::epoll_create1(0);
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, listen_fd, &event);
    while (true) {
        std::array<epoll_event, 256> events{};
        const int ready = ::epoll_wait(epoll, events.data(), events.size(), -1);
        for (int i = 0; i < ready; ++i) {
            auto* const session =
                static_cast<Session*>(events[static_cast<std::size_t>(i)].data.ptr);
            if (session == nullptr) {
                forward_from_clients(listen_fd, epoll, server);
            } else {
                forward_from_server(listen_fd, *session);
            }
        }
    }
}
