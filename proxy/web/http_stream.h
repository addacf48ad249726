#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/base/keyed_hash.h"

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
    std::string path{};     ///< path of a unix socket; if empty, `address` is used
};

/// The server cannot listen; what() is one line for the user.
class ListenError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// The server cannot listen yet: the address may appear later, or another process may free the port
/// or socket.
class ListenLaterError : public ListenError {
  public:
    using ListenError::ListenError;
};

/// How a connection came in.
enum class Way : std::uint8_t {
    network,  ///< from any address
    loopback, ///< to an address that only this machine can reach
    owner,    ///< on a unix socket that only our own user and root may connect to
};

/// A listening socket.
class Listening {
  public:
    /// Binds the address. A unix socket gets mode 0600. It replaces a socket file that no process
    /// serves, and its file stays when we end.
    /// Errors: throws ListenError, or ListenLaterError if a later try may succeed.
    explicit Listening(HttpAddress where);
    /// Takes a socket that another process bound to this address.
    Listening(HttpAddress where, base::UniqueFd bound);

    /// How connections to this socket come in.
    [[nodiscard]] Way way() const noexcept { return way_; }

    /// The requested address with the actual port.
    [[nodiscard]] const HttpAddress& where() const noexcept { return where_; }

    /// The address family for socket().
    [[nodiscard]] int family() const noexcept { return family_; }

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

  private:
    void listen_on_path();
    void listen_on_port();
    void know_socket();

    HttpAddress where_;
    base::UniqueFd socket_;
    int family_ = 0;
    Way way_ = Way::network;
};

/// The stream of a connection, for ports and unix sockets alike.
using HttpStream = boost::beast::basic_stream<boost::asio::generic::stream_protocol,
                                              boost::asio::io_context::executor_type>;
using HttpMessage = boost::beast::http::request<boost::beast::http::string_body>;

/// The peer's address; all clients on unix sockets count as one.
[[nodiscard]] base::Source peer_of(const HttpStream::socket_type& socket);

/// The peer's name for messages.
[[nodiscard]] std::string peer_name(const HttpStream::socket_type& socket, Way way);

/// Turns off Nagle's algorithm, which would delay data by 40 ms if the peer does not send anything
/// itself.
void send_at_once(HttpStream::socket_type& socket);

/// The peer of an open WebSocket. Used on the server's thread only.
class WebSocket {
  public:
    /// The most bytes that wait to be sent. A client that reads too slowly loses further messages.
    /// A longer message is sent alone, such as the state of thousands of servers.
    static constexpr std::size_t kMaxQueuedBytes = std::size_t{1} << 20U;
    static constexpr std::size_t kMaxQueued = 64;
    /// The most bytes of a message from the client: a filter and a few words.
    static constexpr std::size_t kMaxMessageBytes = std::size_t{8} << 10U;

    WebSocket() = default;
    virtual ~WebSocket() = default;
    WebSocket(const WebSocket&) = delete;
    WebSocket& operator=(const WebSocket&) = delete;
    WebSocket(WebSocket&&) = delete;
    WebSocket& operator=(WebSocket&&) = delete;

    /// Sends a text. Returns false if the text is lost, because the queue is full or the socket is
    /// closed.
    virtual bool send(std::shared_ptr<const std::string> text) = 0;

    /// Closes the socket with a reason of at most 123 bytes.
    virtual void close(std::string_view reason) = 0;

    /// Called for every text received. Set once.
    std::function<void(std::string_view)> on_text{};
};

/// The name of our WebSocket protocol; a page requests it as a subprotocol.
inline constexpr const char* kLiveProtocol = "twscope.live.1";

/// Takes over the stream and accepts its upgrade request. The socket stays open as long as the
/// client shows a sign of life every half minute. `on_open` is called once it can be used; it is
/// not called if the upgrade fails.
void accept_web_socket(HttpStream stream, HttpMessage request,
                       std::function<void(const std::shared_ptr<WebSocket>&)> on_open);

/// True if the requested subprotocols contain `name`. A client that requested none must not get one
/// in the response.
[[nodiscard]] bool asks_for_protocol(std::string_view protocols, std::string_view name);

/// Returns the token from a subprotocol `bearer.HEX`, the only way for a page to send it; empty if
/// there is none.
[[nodiscard]] std::string token_in_protocols(std::string_view protocols);

} // namespace tw::web
