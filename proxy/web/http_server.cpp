#include "proxy/web/http_server.h"

#include "proxy/web/page.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <tuple>
#include <unordered_map>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
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

namespace beast = boost::beast;
namespace http = beast::http;

std::string_view http_text(beast::string_view text) {
    return {text.data(), text.size()};
}

std::string_view single_field(const HttpMessage& message, http::field name) {
    return message.count(name) == 1 ? http_text(message[name]) : std::string_view{};
}

Request request_from(const HttpMessage& message) {
    const RequestTarget target = read_request_target(http_text(message.target()));
    const std::string_view host = single_field(message, http::field::host);
    return {.method = http_text(message.method_string()),
            .path = target.path,
            .query = target.query,
            .host = host.empty() ? host : target.host.value_or(host),
            .origin = http_text(message[http::field::origin]),
            .fetch_site = http_text(message["Sec-Fetch-Site"]),
            .content_type = http_text(message[http::field::content_type]),
            .authorization = single_field(message, http::field::authorization),
            .body = message.body()};
}

bool expects_continue(const HttpMessage& message) {
    return message.version() >= kHttp11 &&
           beast::iequals(message[http::field::expect], "100-continue");
}

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

namespace {

using Error = boost::beast::error_code;

class FileSender : public std::enable_shared_from_this<FileSender> {
  public:
    FileSender(HttpStream& stream, const http::response_header<>& head,
               std::shared_ptr<const ServedFile> file, std::chrono::milliseconds patience,
               std::function<void()> done)
        : stream_{&stream}, file_{std::move(file)}, patience_{patience}, done_{std::move(done)},
          response_{head} {
        response_.content_length(file_->bytes);
        response_.body().more = true;
    }

    void run() {
        stream_->expires_after(patience_);
        http::async_write_header(
            *stream_, serializer_,
            [self = shared_from_this()](const Error& error, std::size_t) { self->next(error); });
    }

  private:
    // NOLINTBEGIN(misc-no-recursion): the event loop calls next() after each piece
    void next(const Error& error) {
        const bool wants_more = !error || error == http::error::need_buffer;
        if (!wants_more || sent_ >= file_->bytes || !read()) {
            return done_();
        }
        stream_->expires_after(patience_);
        http::async_write(
            *stream_, serializer_,
            [self = shared_from_this()](const Error& again, std::size_t) { self->next(again); });
    }

    // NOLINTEND(misc-no-recursion)

    bool read() {
        const auto most =
            static_cast<std::size_t>(std::min<std::uint64_t>(piece_.size(), file_->bytes - sent_));
        const ssize_t got =
            ::pread(file_->file.get(), piece_.data(), most, static_cast<off_t>(sent_));
        if (got <= 0) {
            return false;
        }
        sent_ += static_cast<std::uint64_t>(got);
        response_.body().data = piece_.data();
        response_.body().size = static_cast<std::size_t>(got);
        response_.body().more = sent_ < file_->bytes;
        return true;
    }

    HttpStream* stream_;
    std::shared_ptr<const ServedFile> file_;
    std::chrono::milliseconds patience_;
    std::function<void()> done_;
    http::response<http::buffer_body> response_;
    http::response_serializer<http::buffer_body> serializer_{response_};
    std::array<std::byte, std::size_t{64} << 10U> piece_{};
    std::uint64_t sent_ = 0;
};

} // namespace

void send_file(HttpStream& stream, const http::response_header<>& head,
               std::shared_ptr<const ServedFile> file, std::chrono::milliseconds patience,
               std::function<void()> done) {
    std::make_shared<FileSender>(stream, head, std::move(file), patience, std::move(done))->run();
}

ConnectionLimiter::Admission ConnectionLimiter::admit_connection(ConnectionNumber number,
                                                                 const base::Network& peer) {
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

/// The policy that forbids loading, running and framing anything.
constexpr std::string_view kClosedPolicy = "default-src 'none'; frame-ancestors 'none'";

} // namespace

// Not in an unnamed namespace, because HttpServer::Impl has members of these types.

/// The server's data that its connections use.
struct ServerContext {
    HttpHandlers handlers;
    HttpTimeouts timeouts;
    /// Starts the regular calls of HttpHandlers::update. Called after a request.
    std::function<void()> wake{};
    ConnectionLimiter limiter{};
};

/// A connection: reads one request, writes one response and closes. The server owns the connection
/// while ConnectionLimiter counts it.
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

    void run() {
        stream_.expires_after(deadline_);
        http::async_read_header(
            stream_, buffer_, parser_,
            [self = shared_from_this()](const Error& error, std::size_t) { self->on_head(error); });
    }

    /// Closes the connection and cancels pending operations.
    void close() { stream_.close(); }

  private:
    /// Reads the body after the head. First sends "100 Continue" if the client waits for it.
    void on_head(const Error& error) {
        if (error || parser_.is_done() || buffer_.size() != 0 || !expects_continue(parser_.get())) {
            return read_body(error);
        }
        http::async_write(stream_, go_on_,
                          [self = shared_from_this()](const Error& failed, std::size_t) {
                              self->read_body(failed);
                          });
    }

    void read_body(const Error& error) {
        if (error) {
            return on_request(error);
        }
        http::async_read(stream_, buffer_, parser_,
                         [self = shared_from_this()](const Error& failed, std::size_t) {
                             self->on_request(failed);
                         });
    }

    void on_request(const Error& error) {
        if (error) {
            if (auto response = error_response(error)) {
                write(*std::move(response));
            }
            return;
        }
        server_->limiter.mark_request_arrived(number_);
        head_only_ = parser_.get().method() == http::verb::head;
        gzip_ = accepts_gzip(http_text(parser_.get()[http::field::accept_encoding]));
        Request request = request_from(parser_.get());
        request.connection_origin = origin_;
        request.is_reserved = spare_;
        request.from = peer_name(stream_.socket(), origin_);
        request.peer = peer_of(stream_.socket());
        request.upgrade = websocket::is_upgrade(parser_.get());
        if (request.upgrade && server_->handlers.upgrade) {
            return upgrade(request);
        }
        server_->handlers.handler(request, [self = shared_from_this()](Response response) {
            asio::post(self->stream_.get_executor(),
                       [self, response = std::move(response)]() mutable {
                           self->write(std::move(response));
                       });
        });
        server_->wake();
    }

    void upgrade(Request& request) {
        const std::string token =
            token_in_protocols(single_field(parser_.get(), http::field::sec_websocket_protocol));
        const std::string authorization = "Bearer " + token;
        if (request.authorization.empty() && !token.empty()) {
            request.authorization = authorization;
        }
        WebSocketAnswer answer = server_->handlers.upgrade(request);
        if (answer.refusal) {
            return write(*std::move(answer.refusal));
        }
        accept_web_socket(std::move(stream_), parser_.release(),
                          [on_open = std::move(answer.on_open),
                           wake = server_->wake](const std::shared_ptr<WebSocket>& socket) {
                              on_open(socket);
                              wake();
                          });
    }

    void write(Response response) {
        reply_.version(kHttp11);
        reply_.result(response.status);
        reply_.keep_alive(false);
        reply_.set(http::field::content_type, response.content_type);
        reply_.set(http::field::cache_control, "no-store");
        reply_.set(http::field::x_frame_options, "DENY");
        reply_.set("X-Content-Type-Options", "nosniff");
        reply_.set("Referrer-Policy", "no-referrer");
        reply_.set("Cross-Origin-Resource-Policy", "same-origin");
        const auto policy = response.content_policy.empty()
                                ? kClosedPolicy
                                : std::string_view{response.content_policy};
        reply_.set("Content-Security-Policy", beast::string_view{policy.data(), policy.size()});
        if (!response.allow.empty()) {
            reply_.set(http::field::allow, response.allow);
        }
        if (!response.challenge.empty()) {
            reply_.set(http::field::www_authenticate, response.challenge);
        }
        if (gzip_ && (response.gzipped != nullptr || response.body.size() >= kWorthGzip)) {
            response.body =
                response.gzipped != nullptr ? *response.gzipped : gzipped(response.body);
            reply_.set(http::field::content_encoding, "gzip");
        } else if (response.body.empty() && response.gzipped != nullptr) {
            response.body = gunzipped(*response.gzipped);
        }
        reply_.set(http::field::vary, "Accept-Encoding");
        if (response.file != nullptr) {
            reply_.set(http::field::content_disposition,
                       "attachment; filename=\"" + response.file_name + '"');
        }
        if (response.file != nullptr && !head_only_) {
            return send_file(stream_, reply_.base(), std::move(response.file), deadline_,
                             [self = shared_from_this()] { self->end(); });
        }
        reply_.content_length(response.file != nullptr ? response.file->bytes
                                                       : response.body.size());
        if (!head_only_) {
            reply_.body() = std::move(response.body);
        }
        stream_.expires_after(deadline_);
        http::async_write(stream_, reply_,
                          [self = shared_from_this()](const Error&, std::size_t) { self->end(); });
    }

    void end() {
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
    http::response<http::empty_body> go_on_{http::status::continue_, kHttp11};
    http::response<http::string_body> reply_;
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

namespace {

std::vector<ListeningSocket> listen_on(const HttpAddress& where) {
    std::vector<ListeningSocket> listening;
    listening.emplace_back(where);
    return listening;
}

} // namespace

struct HttpServer::Impl {
    Impl(const std::vector<ListeningSocket>& listening, HttpHandlers handlers,
         const HttpTimeouts& timeouts)
        : server_context{std::move(handlers), timeouts, [this] { wake(); }} {
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
            add_viewer(std::move(socket), acceptor.origin);
            accept(acceptor);
        });
    }

    void add_viewer(Socket socket, ConnectionOrigin origin) {
        disable_nagle(socket);
        const ConnectionLimiter::ConnectionNumber number = ++last_number;
        const ConnectionLimiter::Admission place =
            server_context.limiter.admit_connection(number, peer_of(socket));
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
        connection->run();
    }

    void wake() {
        if (server_context.handlers.update && !std::exchange(is_updating, true)) {
            update_timer.expires_after(kUpdateInterval);
            update();
        }
    }

    void update() {
        update_timer.async_wait([this](const Error& error) {
            is_updating = !error && server_context.handlers.update();
            if (is_updating) {
                update_timer.expires_at(std::max(update_timer.expiry() + kUpdateInterval,
                                                 std::chrono::steady_clock::now()));
                update();
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

HttpServer::HttpServer(const HttpAddress& where, Handler handler, const HttpTimeouts& timeouts)
    : HttpServer{listen_on(where), HttpHandlers{.handler = std::move(handler)}, timeouts} {}

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
            // the result is needed only by the regular calls
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

const std::vector<HttpAddress>& HttpServer::addresses() const {
    return impl_->where;
}

std::uint64_t HttpServer::rejected_connections() const {
    return impl_->rejected_connections.load(std::memory_order_relaxed);
}

} // namespace tw::web
