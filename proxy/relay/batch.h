#pragma once

#include "proxy/relay/endpoint.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include <sys/socket.h>

namespace tw::relay {

/// Room for one IP_PKTINFO or IPV6_PKTINFO message: the address of ours a datagram was sent to.
using Control = std::array<std::byte, 64>;

/// Buffers for a batch of datagrams, and the headers recvmmsg and sendmmsg want.
///
/// Each buffer holds whatever UDP can carry, so that nothing is ever cut. The memory is reserved,
/// not touched: what no datagram reaches costs nothing. Received datagrams are sent from where they
/// lie.
class Batch {
  public:
    /// As many as one system call takes: its cost is then spread thin, and the buffers stay in
    /// cache.
    static constexpr std::size_t kDatagrams = 64;
    /// The longest UDP payload is 65,507 bytes over IPv4 and 65,527 over IPv6.
    static constexpr std::size_t kBufferBytes = 65'536;

    Batch();
    ~Batch();
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    Batch(Batch&&) = delete;
    Batch& operator=(Batch&&) = delete;

    /// Receives up to `max` datagrams behind the first `at`, with their senders when `with_names`
    /// and the addresses they were sent to when `with_control`. Returns how many, or -errno.
    [[nodiscard]] int receive(int socket, std::size_t at, std::size_t max, bool with_names,
                              bool with_control) noexcept;

    [[nodiscard]] mmsghdr& message(std::size_t i) noexcept { return messages_[i]; }

    [[nodiscard]] iovec& vector(std::size_t i) noexcept { return vectors_[i]; }

    [[nodiscard]] const sockaddr* name(std::size_t i) const noexcept { return &names_[i].base; }

    [[nodiscard]] std::span<const std::byte> bytes(std::size_t i) const noexcept {
        return {static_cast<const std::byte*>(vectors_[i].iov_base), messages_[i].msg_len};
    }

  private:
    std::byte* memory_;
    std::array<mmsghdr, kDatagrams> messages_{};
    std::array<iovec, kDatagrams> vectors_{};
    std::array<SocketAddress, kDatagrams> names_{};
    std::array<Control, kDatagrams> control_{};
};

} // namespace tw::relay
