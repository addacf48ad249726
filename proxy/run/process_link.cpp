#include "proxy/run/process_link.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <sys/socket.h>

namespace tw::run {

std::pair<ProcessLink, ProcessLink> ProcessLink::pair() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw std::system_error{errno, std::system_category(), "socketpair"};
    }
    return {ProcessLink{relay::UniqueFd{ends[0]}}, ProcessLink{relay::UniqueFd{ends[1]}}};
}

bool ProcessLink::send(Word word, std::string_view text) const noexcept {
    if (text.size() > kMaxText) {
        return false;
    }
    std::array<char, 1 + kMaxText> message{};
    message[0] = static_cast<char>(word);
    text.copy(message.data() + 1, text.size());
    return ::send(socket_.get(), message.data(), 1 + text.size(), MSG_NOSIGNAL) >= 0;
}

std::optional<ProcessLink::Message> ProcessLink::receive() {
    std::array<char, 1 + kMaxText> message{};
    ssize_t received = 0;
    do {
        received = ::recv(socket_.get(), message.data(), message.size(), 0);
    } while (received < 0 && errno == EINTR);
    if (received > 0) {
        return Message{static_cast<Word>(message[0]),
                       {message.data() + 1, static_cast<std::size_t>(received) - 1}};
    }
    closed_ = received == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    return std::nullopt;
}

} // namespace tw::run
