#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/base/endpoint.h"
#include "proxy/relay/options.h"
#include "proxy/relay/ring.h"

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

/// Room for one IP_PKTINFO or IPV6_PKTINFO control message, which contains a datagram's destination
/// address.
using ReplyControl = std::array<std::byte, 64>;

/// Buffers for a batch of datagrams, with the headers for recvmmsg and sendmmsg.
///
/// Each buffer holds the longest UDP payload, so nothing is truncated. Untouched pages of a buffer
/// cost no memory. Datagrams are sent from the buffer they were received into.
class DatagramBatch {
  public:
    /// Datagrams per system call: enough to spread its cost, few enough that the buffers stay in
    /// cache.
    static constexpr std::size_t kDatagrams = 64;
    /// The longest UDP payload is 65,507 bytes over IPv4 and 65,527 over IPv6.
    static constexpr std::size_t kBufferBytes = 65'536;

    DatagramBatch();
    ~DatagramBatch();
    DatagramBatch(const DatagramBatch&) = delete;
    DatagramBatch& operator=(const DatagramBatch&) = delete;

    /// Receives up to `max` datagrams into the buffers from index `at` on. `with_names`: also receives
    /// their sender addresses. `with_control`: also receives their destination addresses. Returns the
    /// number of datagrams, or -errno.
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
    std::array<ReplyControl, kDatagrams> control_{};
};

class SessionTable;

/// A socket that clients send to; not owned.
struct Listener {
    int socket = 0;
    SessionTable* table = nullptr; ///< the server's session table; null: the listener is not in use
    bool any_address = false; ///< the socket is bound to 0.0.0.0 or ::, so replies set their source
    bool v6 = false;          ///< an IPv6 socket; clients may use IPv4 or IPv6
    base::Endpoint local{};   ///< the address that the socket is bound to
    /// The socket's count of datagrams that the kernel dropped, as last read.
    std::uint32_t drops = 0;
};

/// The most listening sockets for a server: each thread has its own socket for each address.
inline constexpr std::size_t kMaxListeningSockets = 1024;

/// A listener's index within its thread; there are at most kMaxListeningSockets.
using ListenerIndex = std::uint16_t;

/// The indices of the listeners that belong to a session table, in the order of adding.
[[nodiscard]] std::vector<ListenerIndex> listeners_of(const SessionTable& table,
                                                      std::span<const Listener> all);

/// The addresses of this host's interfaces, with port 0; empty if the system does not list them.
[[nodiscard]] std::vector<base::Endpoint> interface_addresses();

/// Converts the control message of a received datagram so that a reply is sent from the address that
/// the datagram was sent to. Returns the length of `to`; 0 if the datagram has no control message.
[[nodiscard]] std::size_t make_reply_control(msghdr& from, ReplyControl& to);

/// Requests socket buffers of this size; the system may grant less.
void set_socket_buffers(int socket, int bytes) noexcept;

[[nodiscard]] bool is_udp_socket(int descriptor) noexcept;

/// Returns how many datagrams the kernel dropped at a socket since its drop counter was `seen`. Sets
/// `seen` to the counter.
[[nodiscard]] std::uint32_t new_kernel_drops(int socket, std::uint32_t& seen) noexcept;

/// The relay cannot start; what() is one line for the user.
class StartError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A name or an address does not exist yet, or another process uses the port; a later start may
/// succeed.
class NotYetError : public StartError {
  public:
    using StartError::StartError;
};

/// Clients would share one address at the server, and the options do not allow that.
class SharedAddressError : public StartError {
  public:
    using StartError::StartError;
};

/// The data that another relay handed over is invalid or does not fit this relay; what() is one
/// line for the user.
class HandoverError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Resolving the server's name.

/// All addresses of the server, the IPv4 ones first. Errors: StartError.
[[nodiscard]] std::vector<boost::asio::ip::udp::endpoint> resolve_all(const std::string& host,
                                                                      std::uint16_t port);

/// Returns the server's first IPv4 address, else its first address. Errors: StartError.
[[nodiscard]] boost::asio::ip::udp::endpoint resolve_server(const std::string& host,
                                                            std::uint16_t port);

/// Whether the address belongs to this host.
[[nodiscard]] bool is_own_address(const boost::asio::ip::udp::endpoint& endpoint);

// Checks before the start. A failed check throws StartError.

void check(const Options& options, std::span<Ring* const> rings);

void check_listen(const std::vector<boost::asio::ip::udp::endpoint>& listen);

/// Returns the mode to use, never `automatic`. Errors: StartError, SharedAddressError.
[[nodiscard]] ClientAddress choose_mode(const Options& options, const base::Endpoint& server);

void check_transparent(const boost::asio::ip::udp::endpoint& server,
                       const std::vector<boost::asio::ip::udp::endpoint>& listen);

/// Rejects a server address that the relay listens on, because datagrams would loop forever.
void check_not_own(const boost::asio::ip::udp::endpoint& server,
                   const std::vector<boost::asio::ip::udp::endpoint>& listen);

/// Opens one set of non-blocking listening sockets, in the order of `listen`. Stores ports that the
/// system chose in `listen`, so that the next set uses the same ports. `first`: this is the first set,
/// so no other socket may be bound to the addresses; later sets share them.
/// Errors: NotYetError, StartError.
[[nodiscard]] std::vector<base::UniqueFd>
open_listeners(const Options& options, std::vector<boost::asio::ip::udp::endpoint>& listen,
               bool first);

/// Checks listening sockets that another relay opened: each must be a UDP socket bound to its
/// address in `listen`. Returns the number of sets of sockets.
/// Errors: HandoverError.
[[nodiscard]] std::size_t
check_listeners(const std::vector<base::UniqueFd>& sockets,
                const std::vector<boost::asio::ip::udp::endpoint>& listen);

} // namespace tw::relay
