#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/base/keyed_hash.h"
#include "proxy/record/interface.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

namespace tw::web {

/// An address to listen on: an IP address and port, or a unix socket.
struct HttpAddress {
    std::string address{};  ///< IP address as text
    std::uint16_t port = 0; ///< 0 lets the system choose
    std::string path{};     ///< path of a unix socket; empty to use `address`
};

/// Thrown if the server cannot listen. what() returns one line for the user.
class ListenError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Thrown if a later attempt to listen may succeed, because the address may appear, or another
/// process may release the port or socket.
class RetryableListenError : public ListenError {
  public:
    using ListenError::ListenError;
};

/// Where the clients of a listening socket can be.
enum class ConnectionOrigin : std::uint8_t {
    network,  ///< anywhere
    loopback, ///< on this machine, because the socket has a loopback address
    owner,    ///< on this machine, as twscope's user or root, because it is a unix socket
};

/// A socket on which the HTTP server accepts connections.
class ListeningSocket {
  public:
    /// Listens on the address. A unix socket gets mode 0600 and replaces a socket file that no
    /// process serves. The socket file is not removed at the end.
    explicit ListeningSocket(HttpAddress where);
    /// Uses a socket that another process has bound to this address.
    ListeningSocket(HttpAddress where, base::UniqueFd bound);

    [[nodiscard]] ConnectionOrigin origin() const noexcept { return origin_; }

    /// Returns the requested address, with the port on which the socket really listens.
    [[nodiscard]] const HttpAddress& address() const noexcept { return address_; }

    [[nodiscard]] int address_family() const noexcept { return family_; }

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

  private:
    void listen_on_path();
    void listen_on_port();
    void read_bound_address();

    HttpAddress address_;
    base::UniqueFd socket_;
    int family_ = 0;
    ConnectionOrigin origin_ = ConnectionOrigin::network;
};

/// The socket of a connection to a port or a unix socket.
using HttpSocket = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol,
                                                    boost::asio::io_context::executor_type>;
using BeastRequest = boost::beast::http::request<boost::beast::http::string_body>;

/// Returns the peer's address. All clients on unix sockets have the same address.
[[nodiscard]] base::Network peer_network(const HttpSocket& socket);

/// Returns the peer's address and port as text, or "the unix socket".
[[nodiscard]] std::string peer_name(const HttpSocket& socket, ConnectionOrigin origin);

/// Turns off Nagle's algorithm, which delays data by 40 ms while the peer sends nothing.
void disable_nagle(HttpSocket& socket);

/// An open WebSocket. Used only on the server's thread.
class WebSocket : public record::InterfaceBase {
  public:
    /// The maximum number of bytes that wait to be sent. If a client reads too slowly, further
    /// messages are lost. A single message above this limit, such as the state of thousands of
    /// servers, is sent only if no other message waits.
    static constexpr std::size_t kMaxQueuedBytes = std::size_t{1} << 20U;
    static constexpr std::size_t kMaxQueuedMessages = 64;
    /// The maximum number of bytes of a message from the client. A message contains at most a
    /// filter and a few words.
    static constexpr std::size_t kMaxMessageBytes = std::size_t{8} << 10U;

    /// Sends a text. Returns false if the text is dropped, because the queue is full or the socket
    /// is closed.
    virtual bool send(std::shared_ptr<const std::string> text) = 0;

    /// Closes the socket with a reason of at most 123 bytes.
    virtual void close(std::string_view reason) = 0;

    /// Called with every text that the client sends. Set at most once.
    std::function<void(std::string_view)> on_text{};
};

/// The name of twscope's WebSocket protocol, which the page requests as a subprotocol.
inline constexpr const char* kLiveProtocol = "twscope.live.1";

/// Sends the response to a request for a WebSocket. Calls `on_open` with the WebSocket, unless the
/// request is invalid. The WebSocket is closed if the client sends nothing, not even a reply to a
/// ping, for a minute.
void open_web_socket(HttpSocket socket, const BeastRequest& request,
                     const std::function<void(const std::shared_ptr<WebSocket>&)>& on_open);

} // namespace tw::web
