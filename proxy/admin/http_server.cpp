#include "proxy/admin/http_server.h"

#include "proxy/relay/endpoint.h"

#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

namespace tw::admin {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using Error = boost::system::error_code;

/// After an error of accept, as when the process has no file descriptors left.
constexpr std::chrono::milliseconds kAcceptPause{100};

/// Nothing may be loaded, run or framed.
constexpr std::string_view kClosedPolicy = "default-src 'none'; frame-ancestors 'none'";

std::string_view view(beast::string_view text) {
    return {text.data(), text.size()};
}

using Message = http::request<http::string_body>;

std::string_view single(const Message& message, http::field name) {
    return message.count(name) == 1 ? view(message[name]) : std::string_view{};
}

Request request_from(const Message& message) {
    const std::string_view target = view(message.target());
    return {.method = view(message.method_string()),
            .path = target.substr(0, target.find('?')),
            .host = single(message, http::field::host),
            .origin = view(message[http::field::origin]),
            .fetch_site = view(message["Sec-Fetch-Site"]),
            .content_type = view(message[http::field::content_type]),
            .body = message.body()};
}

/// What to say to a request that could not be read; nothing when nobody would hear it.
std::optional<Response> complaint(const Error& error) {
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

/// Reads one request, writes one answer, closes.
class Connection : public std::enable_shared_from_this<Connection> {
  public:
    Connection(Tcp::socket socket, const Handler& handler, std::chrono::milliseconds timeout,
               std::shared_ptr<std::size_t> count)
        : stream_{std::move(socket)}, handler_{&handler}, timeout_{timeout}, count_{
                                                                                 std::move(count)} {
        ++*count_;
        parser_.header_limit(static_cast<std::uint32_t>(kMaxHeaderBytes));
        parser_.body_limit(kMaxBodyBytes);
    }

    ~Connection() { --*count_; }

    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    Connection(Connection&&) = delete;
    Connection& operator=(Connection&&) = delete;

    void run() {
        stream_.expires_after(timeout_);
        http::async_read(stream_, buffer_, parser_,
                         [self = shared_from_this()](const Error& error, std::size_t) {
                             self->on_request(error);
                         });
    }

  private:
    void on_request(const Error& error) {
        if (error) {
            if (auto response = complaint(error)) {
                write(*std::move(response));
            }
            return;
        }
        head_only_ = parser_.get().method() == http::verb::head;
        (*handler_)(request_from(parser_.get()), [self = shared_from_this()](Response response) {
            asio::post(self->stream_.get_executor(),
                       [self, response = std::move(response)]() mutable {
                           self->write(std::move(response));
                       });
        });
    }

    void write(Response response) {
        reply_.version(11);
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
        reply_.content_length(response.body.size());
        if (!head_only_) {
            reply_.body() = std::move(response.body);
        }
        stream_.expires_after(timeout_);
        http::async_write(stream_, reply_, [self = shared_from_this()](const Error&, std::size_t) {
            Error ignored;
            self->stream_.socket().shutdown(Tcp::socket::shutdown_both, ignored);
        });
    }

    beast::tcp_stream stream_;
    const Handler* handler_;
    std::chrono::milliseconds timeout_;
    std::shared_ptr<std::size_t> count_;
    beast::flat_buffer buffer_{kMaxHeaderBytes + kMaxBodyBytes};
    http::request_parser<http::string_body> parser_;
    http::response<http::string_body> reply_;
    bool head_only_ = false;
};

} // namespace

struct HttpServer::Impl {
    explicit Impl(Handler answer) : handler{std::move(answer)} {}

    void accept() {
        acceptor.async_accept([this](const Error& error, Tcp::socket socket) {
            if (error == asio::error::operation_aborted) {
                return;
            }
            if (error) {
                pause.expires_after(kAcceptPause);
                pause.async_wait([this](const Error& cancelled) {
                    if (!cancelled) {
                        accept();
                    }
                });
                return;
            }
            if (*count < kMaxConnections) {
                std::make_shared<Connection>(std::move(socket), handler, timeout, count)->run();
            }
            accept();
        });
    }

    Handler handler;
    std::chrono::milliseconds timeout{};
    std::shared_ptr<std::size_t> count = std::make_shared<std::size_t>(0);
    asio::io_context io{1};
    Tcp::acceptor acceptor{io};
    asio::steady_timer pause{io};
    std::thread thread;
};

HttpServer::HttpServer(const ServerOptions& options, Handler handler)
    : impl_{std::make_unique<Impl>(std::move(handler))} {
    impl_->timeout = options.timeout;
    Error unreadable;
    const auto address = asio::ip::make_address(options.address, unreadable);
    if (unreadable) {
        throw ListenError{"cannot listen on " + options.address + ':' +
                          std::to_string(options.port) + ": " + unreadable.message()};
    }
    try {
        const Tcp::endpoint where{address, options.port};
        impl_->acceptor.open(where.protocol());
        impl_->acceptor.set_option(Tcp::acceptor::reuse_address{true});
        impl_->acceptor.bind(where);
        impl_->acceptor.listen(static_cast<int>(kMaxConnections));
    } catch (const boost::system::system_error& error) {
        throw ListenError{"cannot listen on " +
                          relay::to_string(asio::ip::udp::endpoint{address, options.port}) + ": " +
                          error.code().message()};
    }
}

HttpServer::~HttpServer() {
    stop();
}

void HttpServer::start() {
    impl_->thread = std::thread{[impl = impl_.get()] {
        impl->accept();
        impl->io.run();
    }};
}

void HttpServer::stop() {
    if (impl_->thread.joinable()) {
        impl_->io.stop();
        impl_->thread.join();
    }
}

std::uint16_t HttpServer::port() const {
    return impl_->acceptor.local_endpoint().port();
}

bool HttpServer::on_loopback() const {
    return impl_->acceptor.local_endpoint().address().is_loopback();
}

} // namespace tw::admin
