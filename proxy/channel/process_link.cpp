#include "proxy/channel/process_link.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <sys/socket.h>
#include <sys/uio.h>

namespace tw::channel {

namespace {

/// A buffer for the control message with one descriptor. If a message contains several descriptors,
/// the system closes the others.
struct DescriptorControl {
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> bytes;
};

/// Returns the descriptor of a received message; invalid if the message has no descriptor.
base::UniqueFd descriptor_of(msghdr& header) {
    const cmsghdr* const with = CMSG_FIRSTHDR(&header);
    if (with == nullptr || with->cmsg_level != SOL_SOCKET || with->cmsg_type != SCM_RIGHTS ||
        with->cmsg_len != CMSG_LEN(sizeof(int))) {
        return base::UniqueFd{};
    }
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(with), sizeof descriptor);
    return base::UniqueFd{descriptor};
}

} // namespace

std::pair<ProcessLink, ProcessLink> ProcessLink::create_pair() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw std::system_error{errno, std::system_category(), "socketpair"};
    }
    return {ProcessLink{base::UniqueFd{ends[0]}}, ProcessLink{base::UniqueFd{ends[1]}}};
}

bool ProcessLink::send(ControlMessage kind, std::string_view text, int descriptor) const noexcept {
    if (text.size() > kMaxText) {
        return false;
    }
    std::array<char, 1 + kMaxText> message{};
    message[0] = static_cast<char>(kind);
    text.copy(message.data() + 1, text.size());
    iovec part{.iov_base = message.data(), .iov_len = 1 + text.size()};
    DescriptorControl control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (descriptor >= 0) {
        header.msg_control = control.bytes.data();
        header.msg_controllen = control.bytes.size();
        cmsghdr* const with = CMSG_FIRSTHDR(&header);
        with->cmsg_level = SOL_SOCKET;
        with->cmsg_type = SCM_RIGHTS;
        with->cmsg_len = CMSG_LEN(sizeof descriptor);
        std::memcpy(CMSG_DATA(with), &descriptor, sizeof descriptor);
    }
    return ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL) >= 0;
}

std::optional<ProcessLink::Message> ProcessLink::receive() {
    std::array<char, 1 + kMaxText> message{};
    iovec part{.iov_base = message.data(), .iov_len = message.size()};
    DescriptorControl control{};
    msghdr header{};
    ssize_t received = 0;
    do {
        header = {};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control.bytes.data();
        header.msg_controllen = control.bytes.size();
        received = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    } while (received < 0 && errno == EINTR);
    base::UniqueFd descriptor = received < 0 ? base::UniqueFd{} : descriptor_of(header);
    if (received > 0) {
        return Message{static_cast<ControlMessage>(message[0]),
                       {message.data() + 1, static_cast<std::size_t>(received) - 1},
                       std::move(descriptor)};
    }
    closed_ = received == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    return std::nullopt;
}

} // namespace tw::channel
