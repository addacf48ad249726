#include "proxy/web/http_server.h"

#include "proxy/web/page_data.h"
#include "proxy/web/page_files.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
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
std::string_view single_header(const BeastRequest& message, http::field name) {
    return message.count(name) == 1 ? to_std_view(message[name]) : std::string_view{};
}

/// Returns the request that a message contains. Its views are valid while the message exists.
Request to_request(const BeastRequest& message) {
    const RequestTarget target = read_request_target(to_std_view(message.target()));
    const std::string_view host = single_header(message, http::field::host);
    return {.method = to_std_view(message.method_string()),
            .path = target.path,
            .query = target.query,
            .host = host.empty() ? host : target.host.value_or(host),
            .origin = to_std_view(message[http::field::origin]),
            .fetch_site = to_std_view(message["Sec-Fetch-Site"]),
            .content_type = to_std_view(message[http::field::content_type]),
            .authorization = single_header(message, http::field::authorization),
            .protocols = single_header(message, http::field::sec_websocket_protocol),
            .body = message.body(),
            .wants_web_socket = boost::beast::websocket::is_upgrade(message),
            .accepts_gzip = accepts_gzip(to_std_view(message[http::field::accept_encoding]))};
}

/// Returns true if the client waits for "100 Continue" before it sends the body, as curl does for
/// long bodies.
bool expects_continue(const BeastRequest& message) {
    constexpr unsigned kHttp11 = 11;
    return message.version() >= kHttp11 &&
           beast::iequals(message[http::field::expect], "100-continue");
}

/// Returns the response to a request that the parser rejected.
Response parse_error_response(const boost::system::error_code& error) {
    if (error == http::error::header_limit) {
        return {.status = 431, .body = "headers too long\n"};
    }
    if (error == http::error::body_limit) {
        return {.status = 413, .body = "body too long\n"};
    }
    return {.status = 400, .body = "not an HTTP request\n"};
}

} // namespace

ConnectionLimiter::AdmissionDecision
ConnectionLimiter::admit_connection(ConnectionNumber number, const base::Network& peer) {
    // Each array contains the number of unreserved, and the number of reserved connections.
    std::array<std::size_t, 2> all{};
    std::array<std::size_t, 2> of_peer{};
    for (const Connection& connection : connections_) {
        ++all.at(connection.is_reserved ? 1 : 0);
        of_peer.at(connection.is_reserved ? 1 : 0) += connection.peer == peer ? 1U : 0U;
    }
    if (all[0] < kMaxUnreserved && of_peer[0] < kMaxUnreservedPerPeer) {
        connections_.push_back({number, peer, false, false});
        return {.is_admitted = true};
    }
    const bool peer_full = of_peer[1] >= kMaxReservedPerPeer;
    std::optional<ConnectionNumber> evicted;
    if (peer_full || all[1] >= kMaxReserved) {
        const auto waiting = std::ranges::find_if(connections_, [&](const Connection& connection) {
            return connection.is_reserved && !connection.has_request &&
                   (!peer_full || connection.peer == peer);
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
        connection.has_request = connection.has_request || connection.number == number;
    }
}

void ConnectionLimiter::remove_connection(ConnectionNumber number) noexcept {
    std::erase_if(connections_,
                  [number](const Connection& connection) { return connection.number == number; });
}

namespace {

namespace asio = boost::asio;
using Error = boost::system::error_code;

/// The pause after an error of accept(), such as a lack of file descriptors.
constexpr std::chrono::milliseconds kAcceptPause{100};

/// Responses with fewer bytes than this are not compressed.
constexpr std::size_t kMinGzipBytes = 1024;

/// The number of bytes of a file that are read at once.
constexpr std::size_t kFileReadBytes = std::size_t{64} << 10U;

/// The policy that forbids loading, running and framing anything.
constexpr const char* kStrictContentPolicy = "default-src 'none'; frame-ancestors 'none'";

/// Returns the status line and the headers of a response. `length`: the size of its body.
std::string header_text(const Response& response, std::uint64_t length) {
    const auto reason = http::obsolete_reason(http::int_to_status(response.status));
    std::string text = fmt::format("HTTP/1.1 {} {}\r\n", response.status, to_std_view(reason));
    const std::pair<std::string_view, std::string> headers[]{
        {"Connection", "close"},
        {"Content-Type", response.content_type},
        {"Content-Length", std::to_string(length)},
        {"Cache-Control", "no-store"},
        {"X-Frame-Options", "DENY"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Content-Security-Policy",
         response.content_policy.empty() ? kStrictContentPolicy : response.content_policy},
        {"Vary", "Accept-Encoding"},
        {"Allow", response.allow},
        {"WWW-Authenticate", response.challenge},
        {"Content-Encoding", response.is_gzipped ? "gzip" : ""},
        {"Content-Disposition",
         response.file == nullptr ? "" : "attachment; filename=\"" + response.file_name + '"'}};
    for (const auto& [name, value] : headers) {
        if (!value.empty()) {
            text.append(name).append(": ").append(value).append("\r\n");
        }
    }
    return text + "\r\n";
}

} // namespace

/// A connection that reads one request, writes one response, and is then closed. ConnectionLimiter
/// counts the connection until this object is destroyed.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
  public:
    HttpConnection(HttpSocket socket, ConnectionOrigin origin, bool is_reserved,
                   ConnectionLimiter::ConnectionNumber number, HttpServer& server)
        : socket_{std::move(socket)}, server_{&server}, number_{number}, origin_{origin},
          is_reserved_{is_reserved}, deadline_{server.io_.get_executor()} {
        parser_.header_limit(static_cast<std::uint32_t>(kMaxHeaderBytes));
        parser_.body_limit(kMaxBodyBytes);
        parser_.eager(true); // parses headers and body at once
    }

    ~HttpConnection() { server_->limiter_.remove_connection(number_); }

    HttpConnection(const HttpConnection&) = delete;
    HttpConnection& operator=(const HttpConnection&) = delete;

    /// Reads and answers the request.
    void start() {
        restart_deadline();
        read_request_bytes();
    }

    /// Closes the connection and cancels pending operations.
    void close() {
        Error ignored;
        socket_.close(ignored);
    }

  private:
    /// Closes the connection after the time limit, unless this function is called again before.
    void restart_deadline() {
        const HttpTimeouts& timeouts = server_->timeouts_;
        deadline_.expires_after(is_reserved_ ? timeouts.reserved : timeouts.usual);
        deadline_.async_wait([weak = weak_from_this()](const Error& cancelled) {
            if (const auto self = weak.lock(); self && !cancelled) {
                self->close();
            }
        });
    }

    // NOLINTBEGIN(misc-no-recursion): each cycle of calls passes through the event loop
    void read_request_bytes() {
        socket_.async_read_some(buffer_.prepare(buffer_.max_size() - buffer_.size()),
                                [self = shared_from_this()](const Error& error, std::size_t size) {
                                    self->buffer_.commit(size);
                                    if (!error) {
                                        self->parse_request();
                                    }
                                });
    }

    void parse_request() {
        Error error;
        buffer_.consume(parser_.put(buffer_.data(), error));
        if (error && error != http::error::need_more) {
            return write_response(parse_error_response(error));
        }
        if (buffer_.size() == buffer_.max_size()) {
            return write_response(parse_error_response(http::error::header_limit));
        }
        if (parser_.is_done()) {
            return answer_request();
        }
        if (parser_.is_header_done() && expects_continue(parser_.get()) &&
            !std::exchange(has_sent_continue_, true)) {
            return send("HTTP/1.1 100 Continue\r\n\r\n", {}, &HttpConnection::read_request_bytes);
        }
        read_request_bytes();
    }

    /// Sends these texts, then calls `then`.
    void send(std::string head, std::string body, void (HttpConnection::*then)()) {
        headers_ = std::move(head);
        body_ = std::move(body);
        asio::async_write(socket_, std::array{asio::buffer(headers_), asio::buffer(body_)},
                          [self = shared_from_this(), then](const Error& error, std::size_t) {
                              if (!error) {
                                  (self.get()->*then)();
                              }
                          });
    }

    /// Sends the next piece of the file. Each piece has its own deadline. If the file was
    /// truncated meanwhile, the response is shorter than announced.
    void send_file() {
        std::string piece(std::min<std::uint64_t>(kFileReadBytes, file_->bytes - sent_file_bytes_),
                          '\0');
        const ssize_t size = piece.empty() ? 0
                                           : ::pread(file_->file.get(), piece.data(), piece.size(),
                                                     static_cast<off_t>(sent_file_bytes_));
        if (size <= 0) {
            return shut_down();
        }
        piece.resize(static_cast<std::size_t>(size));
        sent_file_bytes_ += piece.size();
        restart_deadline();
        send({}, std::move(piece), &HttpConnection::send_file);
    }

    // NOLINTEND(misc-no-recursion)

    void answer_request() {
        deadline_.cancel(); // the time limit does not include the work of the handler
        server_->limiter_.mark_request_arrived(number_);
        is_head_request_ = parser_.get().method() == http::verb::head;
        Request request = to_request(parser_.get());
        accepts_gzip_ = request.accepts_gzip;
        request.connection_origin = origin_;
        request.is_reserved = is_reserved_;
        request.client_name = peer_name(socket_, origin_);
        request.peer = peer_network(socket_);
        if (request.wants_web_socket && server_->handlers_.answer_upgrade) {
            return upgrade_to_web_socket(request);
        }
        server_->handlers_.answer_request(request, [self = shared_from_this()](Response response) {
            asio::post(self->socket_.get_executor(),
                       [self, response = std::move(response)]() mutable {
                           self->write_response(std::move(response));
                       });
        });
        server_->start_updates();
    }

    void upgrade_to_web_socket(const Request& request) {
        WebSocketAnswer answer = server_->handlers_.answer_upgrade(request);
        if (answer.refusal) {
            return write_response(*std::move(answer.refusal));
        }
        open_web_socket(std::move(socket_), parser_.release(),
                        [on_open = std::move(answer.on_open),
                         server = server_](const std::shared_ptr<WebSocket>& socket) {
                            on_open(socket);
                            server->start_updates();
                        });
    }

    void write_response(Response response) {
        const bool compresses =
            accepts_gzip_ && !response.is_gzipped && response.body.size() >= kMinGzipBytes;
        if (compresses) {
            response.body = gzip_text(response.body);
            response.is_gzipped = true;
        }
        file_ = is_head_request_ ? nullptr : response.file;
        const std::uint64_t length =
            response.file != nullptr ? response.file->bytes : response.body.size();
        std::string head = header_text(response, length);
        restart_deadline();
        send(std::move(head), is_head_request_ ? std::string{} : std::move(response.body),
             file_ != nullptr ? &HttpConnection::send_file : &HttpConnection::shut_down);
    }

    void shut_down() {
        Error ignored;
        socket_.shutdown(HttpSocket::shutdown_both, ignored);
    }

    HttpSocket socket_;
    HttpServer* server_;
    ConnectionLimiter::ConnectionNumber number_;
    ConnectionOrigin origin_;
    bool is_reserved_;
    HttpServer::Timer deadline_;
    beast::flat_buffer buffer_{kMaxHeaderBytes + kMaxBodyBytes};
    http::request_parser<http::string_body> parser_;
    std::string headers_;
    std::string body_;
    std::shared_ptr<const ServedFile> file_; ///< sent after body_; null: there is no file
    std::uint64_t sent_file_bytes_ = 0;      ///< number of bytes of the file that were sent
    bool has_sent_continue_ = false;         ///< true if "100 Continue" was sent
    bool is_head_request_ = false;
    bool accepts_gzip_ = false;
};

HttpServer::HttpServer(const std::vector<ListeningSocket>& listening, HttpHandlers handlers,
                       const HttpTimeouts& timeouts)
    : handlers_{std::move(handlers)}, timeouts_{timeouts} {
    for (const ListeningSocket& each : listening) {
        addresses_.push_back(each.address());
        Acceptor& added = acceptors_.emplace_back(
            Acceptor{each.origin(), decltype(Acceptor::acceptor){io_.get_executor()},
                     Timer{io_.get_executor()}});
        added.acceptor.assign(asio::generic::stream_protocol{each.address_family(), 0},
                              ::dup(each.descriptor()));
    }
}

void HttpServer::accept(Acceptor& acceptor) {
    acceptor.acceptor.async_accept([this, &acceptor](const Error& error, HttpSocket socket) {
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

void HttpServer::add_connection(HttpSocket socket, ConnectionOrigin origin) {
    disable_nagle(socket);
    const ConnectionLimiter::ConnectionNumber number = ++last_number_;
    const ConnectionLimiter::AdmissionDecision place =
        limiter_.admit_connection(number, peer_network(socket));
    rejected_connections_ += !place.is_admitted || place.evicted ? 1 : 0;
    if (!place.is_admitted) {
        return;
    }
    if (place.evicted) {
        if (const auto leaving = reserved_connections_[*place.evicted].lock()) {
            leaving->close();
        }
    }
    const auto connection = std::make_shared<HttpConnection>(std::move(socket), origin,
                                                             place.is_reserved, number, *this);
    if (place.is_reserved) {
        std::erase_if(reserved_connections_,
                      [](const auto& entry) { return entry.second.expired(); });
        reserved_connections_[number] = connection;
    }
    connection->start();
}

void HttpServer::start_updates() {
    if (handlers_.on_update && !std::exchange(is_updating_, true)) {
        update_timer_.expires_after(kUpdateInterval);
        schedule_update();
    }
}

void HttpServer::schedule_update() {
    update_timer_.async_wait([this](const Error& error) {
        is_updating_ = !error && handlers_.on_update();
        if (is_updating_) {
            update_timer_.expires_at(
                std::max(update_timer_.expiry() + kUpdateInterval, Clock::now()));
            schedule_update();
        }
    });
}

void HttpServer::start() {
    thread_ = std::thread{[this] {
        for (Acceptor& acceptor : acceptors_) {
            accept(acceptor);
        }
        io_.run();
    }};
}

void HttpServer::request_update() {
    asio::post(io_, [this] {
        if (is_updating_) {
            std::ignore = handlers_.on_update();
        }
    });
}

void HttpServer::stop() {
    if (thread_.joinable()) {
        io_.stop();
        thread_.join();
    }
}

} // namespace tw::web
