#include "proxy/web/sockets.h"

#include "proxy/base/endpoint.h"

#include <cerrno>
#include <chrono>
#include <deque>
#include <system_error>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/websocket.hpp>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace tw::web {

namespace {

using Error = boost::system::error_code;

/// The maximum number of connections that wait to be accepted.
constexpr int kMaxPendingConnections = 128;

base::UniqueFd open_socket(int family) {
    return base::UniqueFd{::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
}

/// Throws a ListenError with the text of an errno value. Throws a RetryableListenError instead if
/// the address is missing or in use, and `is_temporary` is true.
[[noreturn]] void throw_listen_error(const std::string& where, int error, bool is_temporary) {
    const std::string text =
        "cannot listen on " + where + ": " + std::generic_category().message(error);
    if (!is_temporary || (error != EADDRINUSE && error != EADDRNOTAVAIL)) {
        const bool is_port = error == EACCES && !where.starts_with("unix:");
        throw ListenError{text + (is_port ? " (ports below 1024 need root)" : "")};
    }
    throw RetryableListenError{text + (error == EADDRINUSE && !where.starts_with("unix:")
                                           ? " (ss -tlpn shows which program has the port)"
                                           : "")};
}

/// Makes the socket listen on this address. Returns false and sets errno on failure.
template <typename Endpoint>
bool bind_and_listen(const base::UniqueFd& socket, const Endpoint& name) {
    return ::bind(socket.get(), name.data(), static_cast<socklen_t>(name.size())) == 0 &&
           ::listen(socket.get(), kMaxPendingConnections) == 0;
}

bool is_socket(const std::string& path) {
    struct stat found {};

    return ::lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
}

/// Removes a socket file that no process serves. Other files and served sockets stay.
void remove_stale_socket(const std::string& path,
                         const boost::asio::local::stream_protocol::endpoint& name) {
    const base::UniqueFd probe = open_socket(AF_UNIX);
    if (is_socket(path) &&
        ::connect(probe.get(), name.data(), static_cast<socklen_t>(name.size())) != 0 &&
        errno == ECONNREFUSED) {
        ::unlink(path.c_str());
    }
}

} // namespace

ListeningSocket::ListeningSocket(HttpAddress where) : address_{std::move(where)} {
    if (address_.path.empty()) {
        listen_on_port();
    } else {
        listen_on_path();
    }
    read_bound_address();
}

ListeningSocket::ListeningSocket(HttpAddress where, base::UniqueFd bound)
    : address_{std::move(where)}, socket_{std::move(bound)} {
    read_bound_address();
}

void ListeningSocket::read_bound_address() {
    base::SocketAddress bound{};
    socklen_t length = sizeof bound;
    ::getsockname(socket_.get(), &bound.base, &length);
    family_ = bound.base.sa_family;
    if (family_ == AF_UNIX) {
        origin_ = ConnectionOrigin::owner;
        return;
    }
    const auto name = base::to_asio_endpoint(base::endpoint_from(&bound.base));
    address_.port = name.port();
    origin_ = name.address().is_loopback() ? ConnectionOrigin::loopback : ConnectionOrigin::network;
}

void ListeningSocket::listen_on_path() {
    constexpr mode_t kOwnerOnly = 0600;
    constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
    const std::string shown = "unix:" + address_.path;
    if (address_.path.size() > kMaxPath) {
        throw ListenError{
            fmt::format("cannot listen on {}: the path of a unix socket has at most {} characters",
                        shown, kMaxPath)};
    }
    const boost::asio::local::stream_protocol::endpoint name{address_.path};
    remove_stale_socket(address_.path, name);
    socket_ = open_socket(AF_UNIX);
    // bind() creates the file with the socket's mode, so the file never has another mode.
    if (::fchmod(socket_.get(), kOwnerOnly) != 0 || !bind_and_listen(socket_, name)) {
        const int error = errno;
        throw_listen_error(shown, error, is_socket(address_.path));
    }
}

void ListeningSocket::listen_on_port() {
    boost::system::error_code unreadable;
    const auto address = boost::asio::ip::make_address(address_.address, unreadable);
    if (unreadable) {
        throw ListenError{fmt::format("cannot listen on {}:{}: {}", address_.address, address_.port,
                                      unreadable.message())};
    }
    const boost::asio::ip::udp::endpoint name{address, address_.port};
    socket_ = open_socket(name.protocol().family());
    const int on = 1;
    if (::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        !bind_and_listen(socket_, name)) {
        throw_listen_error(base::to_string(name), errno, true);
    }
}

base::Network peer_network(const HttpSocket& socket) {
    Error ignored;
    const auto peer = socket.remote_endpoint(ignored);
    return base::narrowest_network(base::endpoint_from(peer.data()));
}

std::string peer_name(const HttpSocket& socket, ConnectionOrigin origin) {
    Error ignored;
    const auto peer = socket.remote_endpoint(ignored);
    return origin == ConnectionOrigin::owner || ignored
               ? "the unix socket"
               : base::to_string(base::endpoint_from(peer.data()));
}

void disable_nagle(HttpSocket& socket) {
    Error ignored; // set_option fails for unix sockets, which never delay data
    socket.set_option(boost::asio::ip::tcp::no_delay{true}, ignored);
}

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;

/// A peer that sends nothing for this time is disconnected. It receives a ping after half of the
/// time.
constexpr std::chrono::seconds kIdleTimeout{60};
/// The size in bytes of the system's buffer for sent data. If the buffer is full, further data
/// waits in queue_, which is limited.
constexpr int kSendBufferBytes = 1 << 18;
constexpr std::size_t kMaxCloseReasonBytes = 123;

class AcceptedWebSocket final : public WebSocket,
                                public std::enable_shared_from_this<AcceptedWebSocket> {
  public:
    explicit AcceptedWebSocket(HttpSocket socket) : socket_{std::move(socket)} {}

    /// Sends the response to the request. Returns false if the request is invalid. Does not wait,
    /// because the first response of a connection fits in the system's buffer.
    bool accept(const BeastRequest& request) {
        Error error;
        socket_.next_layer().set_option(asio::socket_base::send_buffer_size{kSendBufferBytes},
                                        error);
        socket_.set_option(websocket::stream_base::timeout{.handshake_timeout = kIdleTimeout,
                                                           .idle_timeout = kIdleTimeout,
                                                           .keep_alive_pings = true});
        // The response must not name a subprotocol that the client did not request.
        beast::http::token_list asked{request[beast::http::field::sec_websocket_protocol]};
        if (asked.exists(kLiveProtocol)) {
            socket_.set_option(
                websocket::stream_base::decorator{[](websocket::response_type& reply) {
                    reply.set(beast::http::field::sec_websocket_protocol, kLiveProtocol);
                }});
        }
        socket_.read_message_max(kMaxMessageBytes);
        socket_.auto_fragment(false);
        socket_.text(true);
        socket_.accept(request, error);
        is_open_ = !error;
        return is_open_;
    }

    bool send(std::shared_ptr<const std::string> text) override {
        if (!is_open_ || queue_.size() >= kMaxQueuedMessages ||
            (!queue_.empty() && queued_bytes_ + text->size() > kMaxQueuedBytes)) {
            return false;
        }
        queued_bytes_ += text->size();
        queue_.push_back(std::move(text));
        if (queue_.size() == 1) {
            write_next_text();
        }
        return true;
    }

    void close(std::string_view reason) override {
        if (!std::exchange(is_open_, false)) {
            return;
        }
        reason = reason.substr(0, kMaxCloseReasonBytes);
        socket_.async_close(
            {websocket::close_code::policy_error, beast::string_view{reason.data(), reason.size()}},
            [self = shared_from_this()](const Error&) {});
    }

    // NOLINTBEGIN(misc-no-recursion): each cycle of calls passes through the event loop

    /// Reads the client's messages until the socket is closed.
    void read_messages() {
        socket_.async_read_some(
            buffer_, 0, [self = shared_from_this()](const Error& error, std::size_t) {
                self->is_open_ = self->is_open_ && !error;
                if (self->is_open_ && !self->socket_.got_text()) {
                    self->close("only text is accepted");
                }
                if (self->is_open_ && self->socket_.is_message_done()) {
                    if (self->on_text) {
                        const auto bytes = self->buffer_.cdata();
                        self->on_text({static_cast<const char*>(bytes.data()), bytes.size()});
                    }
                    self->buffer_.clear();
                }
                if (self->is_open_) {
                    self->read_messages();
                }
            });
    }

  private:
    void write_next_text() {
        socket_.async_write(asio::buffer(*queue_.front()),
                            [self = shared_from_this()](const Error& error, std::size_t) {
                                self->queued_bytes_ -= self->queue_.front()->size();
                                self->queue_.pop_front();
                                if (error) {
                                    self->is_open_ = false;
                                } else if (self->is_open_ && !self->queue_.empty()) {
                                    self->write_next_text();
                                }
                            });
    }

    // NOLINTEND(misc-no-recursion)

    websocket::stream<HttpSocket, false> socket_; ///< `false` turns compression off
    beast::flat_buffer buffer_{kMaxMessageBytes + 1};
    std::deque<std::shared_ptr<const std::string>> queue_; ///< the first text is being sent
    std::size_t queued_bytes_ = 0;                         ///< number of bytes in queue_
    bool is_open_ = false;
};

} // namespace

void open_web_socket(HttpSocket socket, const BeastRequest& request,
                     const std::function<void(const std::shared_ptr<WebSocket>&)>& on_open) {
    const auto opened = std::make_shared<AcceptedWebSocket>(std::move(socket));
    if (opened->accept(request)) {
        on_open(opened);
        opened->read_messages();
    }
}

} // namespace tw::web
