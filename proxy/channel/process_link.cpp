#include "proxy/channel/process_link.h"

#include <array>
#include <cerrno>
#include <span>
#include <system_error>

#include <sys/socket.h>

namespace tw::channel {

std::pair<ProcessLink, ProcessLink> ProcessLink::create_pair() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw std::system_error{errno, std::system_category(), "socketpair"};
    }
    return {ProcessLink{base::UniqueFd{ends[0]}}, ProcessLink{base::UniqueFd{ends[1]}}};
}

bool ProcessLink::send(ControlMessage kind, std::string_view text, int descriptor) const noexcept {
    if (text.size() > kMaxTextBytes) {
        return false;
    }
    return base::send_packet(socket_.get(), static_cast<std::uint8_t>(kind),
                             std::as_bytes(std::span{text}),
                             std::span{&descriptor, descriptor < 0 ? 0U : 1U});
}

std::optional<ProcessLink::Message> ProcessLink::receive() {
    std::array<char, kMaxTextBytes> room{};
    auto packet = base::receive_packet(socket_.get(), std::as_writable_bytes(std::span{room}));
    if (!packet) {
        is_closed_ = errno != EAGAIN;
        return std::nullopt;
    }
    Message message{static_cast<ControlMessage>(packet->first_byte), {room.data(), packet->size}};
    if (packet->descriptors.size() == 1) {
        message.descriptor = std::move(packet->descriptors.front());
    }
    return message;
}

} // namespace tw::channel
