#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/base/endpoint.h"
#include "proxy/relay/options.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/asio/ip/udp.hpp>
#include <sys/socket.h>

namespace tw::relay {

/// A buffer for one IP_PKTINFO or IPV6_PKTINFO control message, which contains an address.
using ReplyControl = std::array<std::byte, 64>;

/// Buffers for a batch of datagrams, with the message headers for recvmmsg and sendmmsg.
///
/// Each buffer has room for the longest UDP payload, so no datagram is truncated. Unused pages of a
/// buffer take no memory. Datagrams are sent from the buffers into which they were received.
class DatagramBatch {
  public:
    /// The most datagrams per system call. More would cost less per datagram, but their buffers
    /// would not fit into the processor's cache.
    static constexpr std::size_t kDatagrams = 64;
    /// The longest UDP payload is 65,507 bytes over IPv4 and 65,527 over IPv6.
    static constexpr std::size_t kBufferBytes = 65'536;

    DatagramBatch();
    ~DatagramBatch();
    DatagramBatch(const DatagramBatch&) = delete;
    DatagramBatch& operator=(const DatagramBatch&) = delete;

    /// Receives datagrams into the buffers from index `at` on. `with_senders`: also receives sender
    /// addresses. `with_destinations`: also receives destination addresses. Returns the number of
    /// datagrams received, or -errno.
    [[nodiscard]] int receive(int socket, std::size_t at, bool with_senders,
                              bool with_destinations) noexcept;

    [[nodiscard]] mmsghdr& message_header(std::size_t i) noexcept { return messages_[i]; }

    [[nodiscard]] iovec& buffer_vector(std::size_t i) noexcept { return vectors_[i]; }

    [[nodiscard]] std::span<const std::byte> datagram(std::size_t i) const noexcept {
        return {static_cast<const std::byte*>(vectors_[i].iov_base), messages_[i].msg_len};
    }

  private:
    std::byte* memory_;
    std::array<mmsghdr, kDatagrams> messages_{};
    std::array<iovec, kDatagrams> vectors_{};
    std::array<base::SocketAddress, kDatagrams> sender_addresses_{};
    std::array<ReplyControl, kDatagrams> control_{};
};

class SessionTable;

/// A listening socket, to which clients send. The object does not own the socket.
struct Listener {
    int socket = 0;
    /// The session table of the server whose clients send to this socket; null if it is not in use.
    SessionTable* table = nullptr;
    /// The socket is bound to 0.0.0.0 or ::, so each reply must name its source address.
    bool is_any_address = false;
    bool v6 = false;        ///< true for an IPv6 socket; its clients may use IPv4 or IPv6
    base::Endpoint local{}; ///< the address that the socket is bound to
    /// The kernel's drop counter of the socket when it was last read.
    std::uint32_t kernel_drops = 0;
};

/// The most listening sockets for a server: each thread has its own socket for each address.
inline constexpr std::size_t kMaxListeningSockets = 1024;

/// The index of a listener among all listeners of its thread, below kMaxListeningSockets.
using ListenerIndex = std::uint16_t;

/// Returns the indices of the listeners in `all` that belong to this session table, ascending.
[[nodiscard]] std::vector<ListenerIndex> listeners_of(const SessionTable& table,
                                                      std::span<const Listener> all);

/// Returns the addresses of this host's network interfaces, with port 0. Returns an empty list if
/// the system does not list them.
[[nodiscard]] std::vector<base::Endpoint> interface_addresses();

/// Writes a control message to `to` that sets a reply's source address to the destination address
/// of the received datagram `from`. Returns the message's length; 0 if that address is unknown.
[[nodiscard]] std::size_t make_reply_control(msghdr& from, ReplyControl& to);

/// Requests socket buffers of this size; the system may grant less.
void set_socket_buffers(int socket, int bytes) noexcept;

[[nodiscard]] bool is_udp_socket(int descriptor) noexcept;

/// Reads the kernel's drop counter of a socket into `seen`. Returns by how much the counter exceeds
/// the previous value of `seen`.
[[nodiscard]] std::uint32_t read_new_kernel_drops(int socket, std::uint32_t& seen) noexcept;

/// Thrown if the relay cannot start. what() is one line for the user.
class StartError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Thrown if a host name or address does not exist, or a port is in use. A later start may succeed.
class RetryableStartError : public StartError {
  public:
    using StartError::StartError;
};

/// Thrown if the server would see one address for all clients, and the options do not allow that.
class SharedAddressError : public StartError {
  public:
    using StartError::StartError;
};

/// Thrown if the data that another relay handed over is invalid or does not fit this relay. what()
/// is one line for the user.
class TakeoverError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Returns all addresses of a host, at least one, IPv4 addresses first. Errors: StartError.
[[nodiscard]] std::vector<boost::asio::ip::udp::endpoint> resolve_addresses(const std::string& host,
                                                                            std::uint16_t port);

[[nodiscard]] bool is_local_address(const boost::asio::ip::udp::endpoint& endpoint);

/// Throws StartError if the relay itself listens on the server's address, because the relay would
/// then send datagrams to itself forever.
void check_no_forwarding_loop(const boost::asio::ip::udp::endpoint& server,
                              const std::vector<boost::asio::ip::udp::endpoint>& listen);

/// Throws StartError if there are no listening addresses, or more than kMaxListeners.
void check_listen_addresses(const std::vector<boost::asio::ip::udp::endpoint>& listen);

/// Opens a set of non-blocking listening sockets: one for each address in `listen`, in that order.
/// If the system chooses a port, stores the port in `listen`, so that the next set uses it, too.
/// `is_first_set`: no other socket may be bound to the addresses. Later sets share the addresses
/// with the first set. Errors: RetryableStartError, StartError.
[[nodiscard]] std::vector<base::UniqueFd>
open_listeners(const Options& options, std::vector<boost::asio::ip::udp::endpoint>& listen,
               bool is_first_set);

/// Checks listening sockets that another relay opened: one or more sets of UDP sockets, each set
/// bound to the addresses in `listen`. Returns the number of sets. Errors: TakeoverError.
[[nodiscard]] std::size_t
check_listening_sockets(const std::vector<base::UniqueFd>& sockets,
                        const std::vector<boost::asio::ip::udp::endpoint>& listen);

} // namespace tw::relay
