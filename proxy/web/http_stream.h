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

/// Where a server is to listen: on an address and port, or on a unix socket.
struct HttpAddress {
    std::string address{};  ///< a literal address
    std::uint16_t port = 0; ///< 0: the system chooses
    std::string path{};     ///< of a unix socket; empty: `address` counts
};

/// The server cannot listen; what() is one line for the user.
class ListenError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// What may be there later: the address, or a port or a socket that another one serves.
class ListenLaterError : public ListenError {
  public:
    using ListenError::ListenError;
};

/// How a connection came.
enum class Way : std::uint8_t {
    network,  ///< from anywhere
    loopback, ///< to an address that only this machine reaches
    owner,    ///< by a unix socket that only the user we run as, and root, may connect to
};

/// A socket that listens.
class Listening {
  public:
    /// Binds. A unix socket gets mode 0600; one that nobody serves any more makes room for it, and
    /// stays behind at our end.
    /// Errors: throws ListenError, of what may come yet ListenLaterError.
    explicit Listening(HttpAddress where);
    /// Another process has bound it there.
    Listening(HttpAddress where, base::UniqueFd bound);

    /// The way of those who connect to it.
    [[nodiscard]] Way way() const noexcept { return way_; }

    /// As asked for, with the port in use.
    [[nodiscard]] const HttpAddress& where() const noexcept { return where_; }

    /// As socket() takes it.
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

/// What connections are made of: of ports and unix sockets alike.
using HttpStream = boost::beast::basic_stream<boost::asio::generic::stream_protocol,
                                              boost::asio::io_context::executor_type>;
using HttpMessage = boost::beast::http::request<boost::beast::http::string_body>;

/// Who is at the other end; all that come by a unix socket are one.
[[nodiscard]] base::Source peer_of(const HttpStream::socket_type& socket);

/// For people.
[[nodiscard]] std::string peer_name(const HttpStream::socket_type& socket, Way way);

/// What is written is sent at once, not when its reader has acknowledged what was before: that takes
/// 40 ms where a reader says nothing itself.
void send_at_once(HttpStream::socket_type& socket);

/// The other end of one WebSocket. Used on the server's thread only.
class WebSocket {
  public:
    /// Of what waits to be sent: whoever reads slower than we write loses the rest. What is longer goes alone, as the
    /// state of thousands of servers.
    static constexpr std::size_t kMaxQueuedBytes = std::size_t{1} << 20U;
    static constexpr std::size_t kMaxQueued = 64;
    /// Longest message from there: a filter and a few words.
    static constexpr std::size_t kMaxMessageBytes = std::size_t{8} << 10U;

    WebSocket() = default;
    virtual ~WebSocket() = default;
    WebSocket(const WebSocket&) = delete;
    WebSocket& operator=(const WebSocket&) = delete;
    WebSocket(WebSocket&&) = delete;
    WebSocket& operator=(WebSocket&&) = delete;

    /// False: its queue is full, or it is closed; the text is lost.
    virtual bool send(std::shared_ptr<const std::string> text) = 0;

    /// Says goodbye, with a reason of at most 123 bytes.
    virtual void close(std::string_view reason) = 0;

    /// Called for every text that comes. Set once.
    std::function<void(std::string_view)> on_text{};
};

/// The name of what we speak over a WebSocket; a page asks for it as a subprotocol.
inline constexpr const char* kLiveProtocol = "twscope.live.1";

/// Takes the stream over and answers the request to upgrade it. It lives for as long as its peer does,
/// or shows a sign of life every half minute. `on_open`: it can be used from now on; not called when
/// the upgrade fails.
void accept_web_socket(HttpStream stream, HttpMessage request,
                       std::function<void(const std::shared_ptr<WebSocket>&)> on_open);

/// Whether one of the subprotocols that a request lists is this one. A peer that asked for none must not
/// be answered with one.
[[nodiscard]] bool asks_for_protocol(std::string_view protocols, std::string_view name);

/// The token that a page sends as a subprotocol `bearer.HEX`, for want of another way; empty: none.
[[nodiscard]] std::string token_in_protocols(std::string_view protocols);

} // namespace tw::web
