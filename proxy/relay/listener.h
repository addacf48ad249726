#pragma once

#include "proxy/base/endpoint.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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
    std::array<base::SocketAddress, kDatagrams> names_{};
    std::array<Control, kDatagrams> control_{};
};

class SessionTable;

/// A socket clients send to; not owned.
struct Listener {
    int socket = 0;
    SessionTable* door = nullptr; ///< of its server; null: nobody listens here any more
    bool any_address = false;     ///< bound to 0.0.0.0 or ::, so replies must name their address
    bool v6 = false;              ///< of that family; its clients may be of both
    base::Endpoint local{};       ///< what it is bound to
    std::uint32_t drops = 0;      ///< by the kernel, as last read
};

/// Its place among those of its thread, of which there may be kMaxListeningSockets.
using ListenerIndex = std::uint16_t;

/// The places of those that belong to a door, in the order in which they were added.
[[nodiscard]] std::vector<ListenerIndex> listeners_of(const SessionTable& door,
                                                      std::span<const Listener> all);

/// The addresses of this host's interfaces, without ports, as far as the system names them.
[[nodiscard]] std::vector<base::Endpoint> interface_addresses();

/// Turns the control message of a datagram into one that makes the reply leave from the address it
/// came to. Returns its length, 0 when there is none.
[[nodiscard]] std::size_t make_reply_control(msghdr& from, Control& to);

/// Datagrams that a socket had no room for since the kernel's counter stood at `seen`, which becomes
/// what it is now.
[[nodiscard]] std::uint32_t new_kernel_drops(int socket, std::uint32_t& seen) noexcept;

} // namespace tw::relay
