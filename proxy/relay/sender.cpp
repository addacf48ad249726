#include "proxy/relay/sender.h"

#include <cerrno>

namespace tw::relay {

namespace {

/// A socket reports each pending error once, whatever is sent next: what an ICMP message said, who
/// may have been anybody, of something that was sent before.
constexpr int kAttempts = 4;

int send_some(int socket, mmsghdr* messages, std::size_t count) noexcept {
    if (count == 1) {
        const auto sent = ::sendmsg(socket, &messages->msg_hdr, MSG_DONTWAIT);
        return sent < 0 ? -1 : 1;
    }
    return ::sendmmsg(socket, messages, static_cast<unsigned>(count), MSG_DONTWAIT);
}

bool is_full(int error) noexcept {
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
}

} // namespace

void send_messages(int socket, mmsghdr* messages, std::size_t count,
                   DirectionTotals<Counter>& totals, Counter& icmp_refused) noexcept {
    std::size_t done = 0;
    std::uint64_t datagrams = 0;
    std::uint64_t bytes = 0;
    int attempts = 0;
    while (done < count) {
        const int sent = send_some(socket, messages + done, count - done);
        if (sent > 0) {
            const auto end = done + static_cast<std::size_t>(sent);
            for (; done < end; ++done) {
                bytes += messages[done].msg_hdr.msg_iov->iov_len;
            }
            datagrams += static_cast<std::uint64_t>(sent);
            attempts = 0;
            continue;
        }
        const int error = errno;
        if (error == ECONNREFUSED) {
            icmp_refused.add(1);
        }
        if (++attempts < kAttempts) {
            continue;
        }
        (is_full(error) ? totals.dropped : totals.send_errors).add(1);
        attempts = 0;
        ++done;
    }
    totals.datagrams.add(datagrams);
    totals.bytes.add(bytes);
}

} // namespace tw::relay
