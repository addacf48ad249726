#include "proxy/web/http_server.h"

#include "proxy/web/page.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <tuple>
#include <unordered_map>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace tw::web {

RequestTarget read_request_target(std::string_view text) {
    constexpr std::string_view kScheme = "http://";
    RequestTarget target;
    if (boost::beast::iequals(text.substr(0, kScheme.size()), kScheme)) {
        text.remove_prefix(kScheme.size());
        target.host = text.substr(0, text.find_first_of("/?"));
        text.remove_prefix(target.host->size());
    }
    const std::size_t path = std::min(text.find('?'), text.size());
    target.path = path == 0 ? "/" : text.substr(0, path);
    target.query = text.substr(std::min(path + 1, text.size()));
    return target;
}

namespace {

namespace beast = boost::beast;
namespace http = beast::http;

std::string_view to_std_view(beast::string_view text) {
    return {text.data(), text.size()};
}

/// Returns a header that may occur only once; empty if it is missing or repeated.
std::string_view single_field(const HttpMessage& message, http::field name) {
    return message.count(name) == 1 ? to_std_view(message[name]) : std::string_view{};
}

/// Returns the request that a message contains. Its views are valid while the message exists.
Request request_from(const HttpMessage& message) {
    const RequestTarget target = read_request_target(to_std_view(message.target()));
    const std::string_view host = single_field(message, http::field::host);
    return {.method = to_std_view(message.method_string()),
            .path = target.path,
            .query = target.query,
            .host = host.empty() ? host : target.host.value_or(host),
            .origin = to_std_view(message[http::field::origin]),
            .fetch_site = to_std_view(message["Sec-Fetch-Site"]),
            .content_type = to_std_view(message[http::field::content_type]),
            .authorization = single_field(message, http::field::authorization),
            .body = message.body()};
}

/// Returns true if the client waits for "100 Continue" before it sends the body, as curl does for
/// long bodies.
bool expects_continue(const HttpMessage& message) {
    constexpr unsigned kHttp11 = 11;
    return message.version() >= kHttp11 &&
           beast::iequals(message[http::field::expect], "100-continue");
}

/// Returns the response to a request that could not be read; nullopt if the client cannot receive a
/// response.
std::optional<Response> error_response(const boost::system::error_code& error) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
        return Response{.status = 431, .body = "headers too long\n"};
    }
    if (error == http::error::body_limit) {
        return Response{.status = 413, .body = "body too long\n"};
    }
    if (error.category() == make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message) {
        return Response{.status = 400, .body = "not an HTTP request\n"};
    }
    return std::nullopt;
}

} // namespace

ConnectionLimiter::ConnectionDecision
ConnectionLimiter::admit_connection(ConnectionNumber number, const base::Network& peer) {
    const auto count = [this](auto&& rule) {
        return static_cast<std::size_t>(std::ranges::count_if(connections_, rule));
    };
    const auto usual = [](const Connection& connection) { return !connection.is_reserved; };
    const auto spare = [](const Connection& connection) { return connection.is_reserved; };
    const auto of_peer = [&](const Connection& connection) { return connection.peer == peer; };
    if (count(usual) < kUsual && count([&](const Connection& connection) {
                                     return usual(connection) && of_peer(connection);
                                 }) < kOfPeer) {
        connections_.push_back({number, peer, false, false});
        return {.is_admitted = true};
    }
    const bool peer_full = count([&](const Connection& connection) {
                               return spare(connection) && of_peer(connection);
                           }) >= kReservedOfPeer;
    std::optional<ConnectionNumber> evicted;
    if (peer_full || count(spare) >= kReserved) {
        const auto waiting = std::ranges::find_if(connections_, [&](const Connection& connection) {
            return connection.is_reserved && !connection.asked &&
                   (!peer_full || of_peer(connection));
        });
        if (waiting == connections_.end()) {
            return {};
        }
        evicted = waiting->number;
        connections_.erase(waiting);
    }
    connections_.push_back({number, peer, true, false});
    return {.is_admitted = true, .is_reserved = true, .evicted = evicted};
}

void ConnectionLimiter::mark_request_arrived(ConnectionNumber number) noexcept {
    for (Connection& connection : connections_) {
        connection.asked = connection.asked || connection.number == number;
    }
}

void ConnectionLimiter::remove(ConnectionNumber number) noexcept {
    std::erase_if(connections_,
                  [number](const Connection& connection) { return connection.number == number; });
}

namespace {

namespace asio = boost::asio;
namespace websocket = beast::websocket;
using Protocol = asio::generic::stream_protocol;
using Stream = HttpStream;
using Socket = Stream::socket_type;
using Error = boost::system::error_code;

/// The pause after an error of accept(), such as a lack of file descriptors.
constexpr std::chrono::milliseconds kAcceptPause{100};

/// The smallest size in bytes of a response that is compressed.
constexpr std::size_t kWorthGzip = 1024;

/// The number of bytes of a file that are read at once.
constexpr std::size_t kFilePiece = std::size_t{64} << 10U;

/// The policy that forbids loading, running and framing anything.
constexpr std::string_view kClosedPolicy = "default-src 'none'; frame-ancestors 'none'";

/// Returns the status line and the headers of a response. `length`: the size of its body.
std::string header_text(const Response& response, std::uint64_t length, bool is_gzipped) {
    const auto reason = http::obsolete_reason(http::int_to_status(response.status));
    std::string text = fmt::format("HTTP/1.1 {} {}\r\n", response.status, to_std_view(reason));
    const auto add = [&](std::string_view name, std::string_view value) {
        text.append(name).append(": ").append(value).append("\r\n");
    };
    add("Connection", "close");
    add("Content-Type", response.content_type);
    add("Content-Length", std::to_string(length));
    add("Cache-Control", "no-store");
    add("X-Frame-Options", "DENY");
    add("X-Content-Type-Options", "nosniff");
    add("Referrer-Policy", "no-referrer");
    add("Cross-Origin-Resource-Policy", "same-origin");
    add("Content-Security-Policy",
        response.content_policy.empty() ? kClosedPolicy : response.content_policy);
    add("Vary", "Accept-Encoding");
    if (!response.allow.empty()) {
        add("Allow", response.allow);
    }
    if (!response.challenge.empty()) {
        add("WWW-Authenticate", response.challenge);
    }
    if (is_gzipped) {
        add("Content-Encoding", "gzip");
    }
    if (response.file != nullptr) {
        add("Content-Disposition", "attachment; filename=\"" + response.file_name + '"');
    }
    return text + "\r\n";
}

} // namespace

// Not in an unnamed namespace, because HttpServer::Impl has members of these types.

/// The server's data that its connections use.
struct ServerContext {
    HttpHandlers handlers;
    HttpTimeouts timeouts;
    /// Starts the regular calls of HttpHandlers::update. Called after a request.
    std::function<void()> start_updates{};
    ConnectionLimiter limiter{};
};

/// A connection: reads one request, writes one response and closes. The server owns the connection
/// as long as ConnectionLimiter counts it.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
  public:
    HttpConnection(Socket socket, ConnectionOrigin origin, bool spare,
                   ConnectionLimiter::ConnectionNumber number, ServerContext& server_context)
        : stream_{std::move(socket)}, server_{&server_context}, number_{number}, origin_{origin},
          spare_{spare}, deadline_{spare ? server_context.timeouts.reserved
                                         : server_context.timeouts.usual} {
        parser_.header_limit(static_cast<std::uint32_t>(kMaxHeaderBytes));
        parser_.body_limit(kMaxBodyBytes);
    }

    ~HttpConnection() { server_->limiter.remove(number_); }

    HttpConnection(const HttpConnection&) = delete;
    HttpConnection& operator=(const HttpConnection&) = delete;

    void read_header() {
        stream_.expires_after(deadline_);
        http::async_read_header(
            stream_, buffer_, parser_,
            [self = shared_from_this()](const Error& error, std::size_t) {
                if (error) {
                    self->respond_to_error(error);
                } else if (self->buffer_.size() == 0 && !self->parser_.is_done() &&
                           expects_continue(self->parser_.get())) {
                    self->send("HTTP/1.1 100 Continue\r\n\r\n", {}, &HttpConnection::read_body);
                } else {
                    self->read_body();
                }
            });
    }

    /// Closes the connection and cancels pending operations.
    void close() { stream_.close(); }

  private:
    // NOLINTBEGIN(misc-no-recursion): the event loop calls each function after the previous
    // operation
    void read_body() {
        http::async_read(stream_, buffer_, parser_,
                         [self = shared_from_this()](const Error& error, std::size_t) {
                             error ? self->respond_to_error(error) : self->on_request();
                         });
    }

    void respond_to_error(const Error& error) {
        if (auto response = error_response(error)) {
            write_response(*std::move(response));
        }
    }

    /// Sends these texts, then calls `then`.
    void send(std::string head, std::string body, void (HttpConnection::*then)()) {
        head_ = std::move(head);
        body_ = std::move(body);
        asio::async_write(stream_, std::array{asio::buffer(head_), asio::buffer(body_)},
                          [self = shared_from_this(), then](const Error& error, std::size_t) {
                              if (!error) {
                                  (self.get()->*then)();
                              }
                          });
    }

    /// Sends the next piece of the file. Each piece has its own deadline. If the file was
    /// truncated meanwhile, the response is shorter than announced.
    void send_file() {
        std::string piece(std::min<std::uint64_t>(kFilePiece, file_->bytes - sent_), '\0');
        const ssize_t size = piece.empty() ? 0
                                           : ::pread(file_->file.get(), piece.data(), piece.size(),
                                                     static_cast<off_t>(sent_));
        if (size <= 0) {
            return shut_down();
        }
        piece.resize(static_cast<std::size_t>(size));
        sent_ += piece.size();
        stream_.expires_after(deadline_);
        send({}, std::move(piece), &HttpConnection::send_file);
    }

    // NOLINTEND(misc-no-recursion)

    void on_request() {
        server_->limiter.mark_request_arrived(number_);
        head_only_ = parser_.get().method() == http::verb::head;
        gzip_ = accepts_gzip(to_std_view(parser_.get()[http::field::accept_encoding]));
        Request request = request_from(parser_.get());
        request.connection_origin = origin_;
        request.is_reserved = spare_;
        request.from = peer_name(stream_.socket(), origin_);
        request.peer = peer_network(stream_.socket());
        request.upgrade = websocket::is_upgrade(parser_.get());
        if (request.upgrade && server_->handlers.upgrade) {
            return upgrade_to_web_socket(request);
        }
        server_->handlers.handler(request, [self = shared_from_this()](Response response) {
            asio::post(self->stream_.get_executor(),
                       [self, response = std::move(response)]() mutable {
                           self->write_response(std::move(response));
                       });
        });
        server_->start_updates();
    }

    void upgrade_to_web_socket(Request& request) {
        const std::string token =
            token_in_protocols(single_field(parser_.get(), http::field::sec_websocket_protocol));
        const std::string authorization = "Bearer " + token;
        if (request.authorization.empty() && !token.empty()) {
            request.authorization = authorization;
        }
        WebSocketAnswer answer = server_->handlers.upgrade(request);
        if (answer.refusal) {
            return write_response(*std::move(answer.refusal));
        }
        accept_web_socket(
            std::move(stream_), parser_.release(),
            [on_open = std::move(answer.on_open),
             start_updates = server_->start_updates](const std::shared_ptr<WebSocket>& socket) {
                on_open(socket);
                start_updates();
            });
    }

    void write_response(Response response) {
        const bool gzip =
            gzip_ && (response.gzipped != nullptr || response.body.size() >= kWorthGzip);
        if (gzip) {
            response.body =
                response.gzipped != nullptr ? *response.gzipped : gzip_text(response.body);
        } else if (response.body.empty() && response.gzipped != nullptr) {
            response.body = gunzip_text(*response.gzipped);
        }
        file_ = head_only_ ? nullptr : response.file;
        const std::uint64_t length =
            response.file != nullptr ? response.file->bytes : response.body.size();
        std::string head = header_text(response, length, gzip);
        stream_.expires_after(deadline_);
        send(std::move(head), head_only_ ? std::string{} : std::move(response.body),
             file_ != nullptr ? &HttpConnection::send_file : &HttpConnection::shut_down);
    }

    void shut_down() {
        Error ignored;
        stream_.socket().shutdown(Socket::shutdown_both, ignored);
    }

    Stream stream_;
    ServerContext* server_;
    ConnectionLimiter::ConnectionNumber number_;
    ConnectionOrigin origin_;
    bool spare_;
    std::chrono::milliseconds deadline_;
    beast::flat_buffer buffer_{kMaxHeaderBytes + kMaxBodyBytes};
    http::request_parser<http::string_body> parser_;
    std::string head_;
    std::string body_;
    std::shared_ptr<const ServedFile> file_; ///< sent after body_; null: there is no file
    std::uint64_t sent_ = 0;                 ///< number of bytes of the file that were sent
    bool head_only_ = false;
    bool gzip_ = false; ///< the client accepts compressed responses
};

/// A listening socket with its acceptor.
struct Acceptor {
    ConnectionOrigin origin;
    asio::basic_socket_acceptor<Protocol, asio::io_context::executor_type> acceptor;
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>,
                               asio::io_context::executor_type>
        pause;
};

struct HttpServer::Impl {
    Impl(const std::vector<ListeningSocket>& listening, HttpHandlers handlers,
         const HttpTimeouts& timeouts)
        : server_context{std::move(handlers), timeouts, [this] { start_updates(); }} {
        acceptors.reserve(listening.size());
        for (const ListeningSocket& each : listening) {
            where.push_back(each.where());
            Acceptor& acceptor = acceptors.emplace_back(
                Acceptor{each.origin(), decltype(Acceptor::acceptor){io.get_executor()},
                         decltype(Acceptor::pause){io.get_executor()}});
            acceptor.acceptor.assign(Protocol{each.family(), 0}, ::dup(each.descriptor()));
        }
    }

    void accept(Acceptor& acceptor) {
        acceptor.acceptor.async_accept([this, &acceptor](const Error& error, Socket socket) {
            if (error == asio::error::operation_aborted) {
                return;
            }
            if (error) {
                acceptor.pause.expires_after(kAcceptPause);
                acceptor.pause.async_wait([this, &acceptor](const Error& cancelled) {
                    if (!cancelled) {
                        accept(acceptor);
                    }
                });
                return;
            }
            add_connection(std::move(socket), acceptor.origin);
            accept(acceptor);
        });
    }

    void add_connection(Socket socket, ConnectionOrigin origin) {
        disable_nagle(socket);
        const ConnectionLimiter::ConnectionNumber number = ++last_number;
        const ConnectionLimiter::ConnectionDecision place =
            server_context.limiter.admit_connection(number, peer_network(socket));
        if (!place.is_admitted || place.evicted) {
            rejected_connections.fetch_add(1, std::memory_order_relaxed);
        }
        if (!place.is_admitted) {
            return;
        }
        if (place.is_reserved) {
            std::erase_if(spare, [](const auto& entry) { return entry.second.expired(); });
        }
        if (place.evicted) {
            if (const auto leaving = spare[*place.evicted].lock()) {
                leaving->close();
            }
        }
        const auto connection = std::make_shared<HttpConnection>(
            std::move(socket), origin, place.is_reserved, number, server_context);
        if (place.is_reserved) {
            spare[number] = connection;
        }
        connection->read_header();
    }

    void start_updates() {
        if (server_context.handlers.update && !std::exchange(is_updating, true)) {
            update_timer.expires_after(kUpdateInterval);
            schedule_update();
        }
    }

    void schedule_update() {
        update_timer.async_wait([this](const Error& error) {
            is_updating = !error && server_context.handlers.update();
            if (is_updating) {
                update_timer.expires_at(std::max(update_timer.expiry() + kUpdateInterval,
                                                 std::chrono::steady_clock::now()));
                schedule_update();
            }
        });
    }

    ServerContext server_context;
    bool is_updating = false;
    std::vector<HttpAddress> where;
    ConnectionLimiter::ConnectionNumber last_number = 0;
    std::atomic<std::uint64_t> rejected_connections{0};
    std::unordered_map<ConnectionLimiter::ConnectionNumber, std::weak_ptr<HttpConnection>> spare;
    /// Declared here, because it must be destroyed after the timer and the acceptors, and before
    /// the members that its handlers use.
    asio::io_context io{1};
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>,
                               asio::io_context::executor_type>
        update_timer{io.get_executor()};
    std::vector<Acceptor> acceptors;
    std::thread thread;
};

HttpServer::HttpServer(const std::vector<ListeningSocket>& listening, HttpHandlers handlers,
                       const HttpTimeouts& timeouts)
    : impl_{std::make_unique<Impl>(listening, std::move(handlers), timeouts)} {}

HttpServer::~HttpServer() {
    stop();
}

void HttpServer::start() {
    impl_->thread = std::thread{[impl = impl_.get()] {
        for (Acceptor& acceptor : impl->acceptors) {
            impl->accept(acceptor);
        }
        impl->io.run();
    }};
}

void HttpServer::wake() {
    asio::post(impl_->io, [impl = impl_.get()] {
        if (impl->is_updating) {
            std::ignore = impl->server_context.handlers.update();
        }
    });
}

void HttpServer::stop() {
    if (impl_->thread.joinable()) {
        impl_->io.stop();
        impl_->thread.join();
    }
}

asio::io_context& HttpServer::io() const {
    return impl_->io;
}

const std::vector<HttpAddress>& HttpServer::addresses() const {
    return impl_->where;
}

std::uint64_t HttpServer::rejected_connections() const {
    return impl_->rejected_connections.load(std::memory_order_relaxed);
}

} // namespace tw::web
