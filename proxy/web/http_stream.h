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

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

namespace tw::web {

/// An address to listen on: an IP address and port, or a unix socket.
struct HttpAddress {
    std::string address{};  ///< an IP address as text
    std::uint16_t port = 0; ///< 0 lets the system choose
    std::string path{};     ///< path of a unix socket; if it is empty, `address` is used
};

/// Thrown if the server cannot listen. what() is one line for the user.
class ListenError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Thrown if the server cannot listen yet: the address may appear later, or another process may free
/// the port or socket.
class ListenLaterError : public ListenError {
  public:
    using ListenError::ListenError;
};

/// Where a connection comes from.
enum class ConnectionOrigin : std::uint8_t {
    network,  ///< any address
    loopback, ///< this machine: the connection was made to a loopback address
    owner,    ///< a unix socket to which only our own user and root may connect
};

class ListeningSocket {
  public:
    /// Listens on the address. A unix socket gets mode 0600. It replaces a socket file that no process
    /// serves. Its own file stays when the process ends.
    /// Errors: throws ListenError, or ListenLaterError if a later try may succeed.
    explicit ListeningSocket(HttpAddress where);
    /// Takes over a socket that another process bound to this address.
    ListeningSocket(HttpAddress where, base::UniqueFd bound);

    /// Where connections to this socket come from.
    [[nodiscard]] ConnectionOrigin origin() const noexcept { return origin_; }

    /// The requested address, with the port on which the socket really listens.
    [[nodiscard]] const HttpAddress& where() const noexcept { return where_; }

    /// The socket's address family, as for socket().
    [[nodiscard]] int family() const noexcept { return family_; }

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

  private:
    void listen_on_path();
    void listen_on_port();
    void read_socket_name();

    HttpAddress where_;
    base::UniqueFd socket_;
    int family_ = 0;
    ConnectionOrigin origin_ = ConnectionOrigin::network;
};

/// The stream of a connection, for ports and unix sockets alike.
using HttpStream = boost::beast::basic_stream<boost::asio::generic::stream_protocol,
                                              boost::asio::io_context::executor_type>;
using HttpMessage = boost::beast::http::request<boost::beast::http::string_body>;

/// Returns the peer's address; all clients on unix sockets count as one.
[[nodiscard]] base::Network peer_of(const HttpStream::socket_type& socket);

/// Returns the peer's name for log messages.
[[nodiscard]] std::string peer_name(const HttpStream::socket_type& socket, ConnectionOrigin origin);

/// Turns off Nagle's algorithm, which delays data by 40 ms while the peer sends nothing itself.
void disable_nagle(HttpStream::socket_type& socket);

/// An open WebSocket. Used on the server's thread only.
class WebSocket : public record::Interface {
  public:
    /// The most bytes that wait to be sent. If a client reads too slowly, further messages are lost. A
    /// message above this limit, such as the state of thousands of servers, is sent only if no other
    /// message waits.
    static constexpr std::size_t kMaxQueuedBytes = std::size_t{1} << 20U;
    static constexpr std::size_t kMaxQueued = 64;
    /// The most bytes of a message from the client, which holds a filter and a few words.
    static constexpr std::size_t kMaxMessageBytes = std::size_t{8} << 10U;

    /// Sends a text. Returns false if the text is lost, because the queue is full or the socket is
    /// closed.
    virtual bool send(std::shared_ptr<const std::string> text) = 0;

    /// Closes the socket with a reason of at most 123 bytes.
    virtual void close(std::string_view reason) = 0;

    /// Called with every text received. Set at most once.
    std::function<void(std::string_view)> on_text{};
};

/// The name of our WebSocket protocol, which a page requests as a subprotocol.
inline constexpr const char* kLiveProtocol = "twscope.live.1";

/// Takes over the stream and accepts its WebSocket request. The socket stays open while the client
/// gives a sign of life every half minute. `on_open` is called once the socket can be used; it is not
/// called if the handshake fails.
void accept_web_socket(HttpStream stream, HttpMessage request,
                       std::function<void(const std::shared_ptr<WebSocket>&)> on_open);

/// True if the requested subprotocols contain `name`. A response must not name a subprotocol that the
/// client did not request.
[[nodiscard]] bool asks_for_protocol(std::string_view protocols, std::string_view name);

/// Returns the token in a subprotocol `bearer.HEX`; empty if there is none. A page has no other way to
/// send a token with a WebSocket request.
[[nodiscard]] std::string token_in_protocols(std::string_view protocols);

} // namespace tw::web
