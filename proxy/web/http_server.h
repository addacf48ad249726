#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/base/keyed_hash.h"
#include "proxy/web/sockets.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>

namespace tw::web {

struct ServedFile;

/// The parts of a request target. They refer to the parsed text.
struct RequestTarget {
    /// The host in the target, which replaces the Host header; nullopt if the target has no host.
    std::optional<std::string_view> host{};
    std::string_view path{};  ///< "/api/state"
    std::string_view query{}; ///< text after the question mark
};

/// Parses "/path?query" or "http://host/path?query". Clients send the second form to a proxy, but
/// every HTTP/1.1 server must accept it.
/// Source: RFC 9112, 3.2.2.
[[nodiscard]] RequestTarget read_request_target(std::string_view text);

/// An HTTP request. Its views are valid only during the call of the handler that receives it.
struct Request {
    std::string_view method{}; ///< "GET"
    std::string_view path{};   ///< "/api/state", without a query
    std::string_view query{};  ///< text after the question mark
    std::string_view host{};   ///< Host header; empty if it is missing or occurs more than once
    std::string_view origin{};
    std::string_view fetch_site{}; ///< Sec-Fetch-Site header
    std::string_view content_type{};
    /// Authorization header; empty if it is missing or occurs more than once.
    std::string_view authorization{};
    /// Sec-WebSocket-Protocol header; empty if it is missing or occurs more than once.
    std::string_view protocols{};
    std::string_view body{};
    ConnectionOrigin connection_origin = ConnectionOrigin::loopback;
    /// True if the connection is reserved for health checks (see ConnectionLimiter).
    bool is_reserved = false;
    bool wants_web_socket = false; ///< true if the request asks for a WebSocket
    bool accepts_gzip = false;     ///< true if the client accepts compressed responses
    std::string client_name{};     ///< for log messages: an address, or "the unix socket"
    base::Network peer{}; ///< the client's address; all clients on unix sockets count as one
};

/// An HTTP response.
struct Response {
    unsigned status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body{};
    /// True if `body` is compressed with gzip. If false, the server compresses long bodies.
    bool is_gzipped = false;
    std::string allow{};          ///< the allowed methods, for status 405
    std::string challenge{};      ///< WWW-Authenticate, for status 401
    std::string content_policy{}; ///< Content-Security-Policy; if empty, the page may load nothing
    std::shared_ptr<const ServedFile> file{}; ///< sent instead of `body`
    std::string file_name{};                  ///< the name under which browsers save the file
};

[[nodiscard]] inline Response json_response(std::string body) {
    return {.content_type = "application/json", .body = std::move(body)};
}

/// Limits the number of connections, of all peers and of each peer. Above these limits, a few more
/// connections are admitted, which only health checks may use.
///
/// If these reserved connections are used up, too, a new connection replaces the oldest reserved
/// connection that has not sent its request. Health checks send their request at once, so they are
/// not replaced.
class ConnectionLimiter {
  public:
    using ConnectionNumber = std::uint64_t;

    /// The maximum number of unreserved connections. A page and a metrics scraper need two; a
    /// browser opens up to six at once.
    static constexpr std::size_t kMaxUnreserved = 64;
    /// The maximum number of unreserved connections of one IPv4 address or IPv6 /64.
    static constexpr std::size_t kMaxUnreservedPerPeer = 16;
    static constexpr std::size_t kMaxReserved = 8;
    static constexpr std::size_t kMaxReservedPerPeer = 4;

    /// The decision about a new connection.
    struct AdmissionDecision {
        bool is_admitted = false;
        bool is_reserved = false; ///< true if only a health check may use the connection
        /// An earlier connection that the new one replaces. The caller must close it.
        std::optional<ConnectionNumber> evicted{};
    };

    /// Decides whether to accept a new connection. `number`: a new number, which the caller
    /// chooses.
    [[nodiscard]] AdmissionDecision admit_connection(ConnectionNumber number,
                                                     const base::Network& peer);

    /// Protects a connection from eviction, because its request has arrived.
    void mark_request_arrived(ConnectionNumber number) noexcept;

    /// Removes a closed connection. Does nothing if the connection was not admitted.
    void remove_connection(ConnectionNumber number) noexcept;

    [[nodiscard]] std::size_t size() const noexcept { return connections_.size(); }

  private:
    struct Connection {
        ConnectionNumber number;
        base::Network peer;
        bool is_reserved;
        bool has_request;
    };

    std::vector<Connection> connections_; ///< in order of arrival
};

/// The maximum number of bytes of request line and headers together. Browsers send about 1 KiB.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{8} << 10U;
/// The maximum number of bytes of a request's body. The longest body is an impairment, which is
/// a line of text.
inline constexpr std::size_t kMaxBodyBytes = std::size_t{4} << 10U;

/// Sends the response to a request. Callable at once or later, from any thread, but not after the
/// server was destroyed.
using Respond = std::function<void(Response)>;
/// Answers a request. Called on the server's thread, for one request at a time.
using RequestHandler = std::function<void(const Request&, Respond)>;

/// The answer to a request for a WebSocket: a refusal, or the function to call when the socket is
/// open.
struct WebSocketAnswer {
    std::optional<Response> refusal{};
    std::function<void(const std::shared_ptr<WebSocket>&)> on_open{};
};

/// The functions that answer requests. Called on the server's thread.
struct HttpHandlers {
    RequestHandler answer_request{};
    /// Answers a request for a WebSocket. If empty, `answer_request` answers these requests.
    std::function<WebSocketAnswer(const Request&)> answer_upgrade{};
    /// Called every kUpdateInterval after a request, until the function returns false. Meanwhile,
    /// HttpServer::request_update() causes further calls.
    std::function<bool()> on_update{};
};

/// How often HttpHandlers::on_update is called.
inline constexpr std::chrono::milliseconds kUpdateInterval{50};

/// The time that a client has to send its request, and again to receive the response.
struct HttpTimeouts {
    std::chrono::milliseconds usual{5000};
    std::chrono::milliseconds reserved{1000}; ///< for connections reserved for health checks
};

class HttpConnection;

/// An HTTP/1.1 server on a separate thread. Answers one request for each connection. Connections
/// beyond the limits of ConnectionLimiter are closed at once and counted. WebSockets do not count
/// as connections: HttpHandlers::answer_upgrade must limit their number.
class HttpServer {
  public:
    /// Serves sockets that already listen. Requests are answered only after start().
    HttpServer(const std::vector<ListeningSocket>& listening, HttpHandlers handlers,
               const HttpTimeouts& timeouts = {});

    ~HttpServer() { stop(); }

    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    void start();

    /// Makes the server's thread call HttpHandlers::on_update soon, if the regular calls of that
    /// function are active. Callable from any thread. Does not wait.
    void request_update();

    /// Closes every connection and joins the thread.
    void stop();

    /// Returns the io_context that start() runs on the server's thread.
    [[nodiscard]] boost::asio::io_context& io() { return io_; }

    /// Returns the addresses on which the server listens, with the ports that the system chose.
    [[nodiscard]] const std::vector<HttpAddress>& addresses() const { return addresses_; }

    [[nodiscard]] std::uint16_t port() const { return addresses_.front().port; }

    /// Returns the number of connections closed because there were too many. Callable from any
    /// thread.
    [[nodiscard]] std::uint64_t num_rejected_connections() const { return rejected_connections_; }

  private:
    friend class HttpConnection;

    using Clock = std::chrono::steady_clock;
    using Executor = boost::asio::io_context::executor_type;
    using Timer =
        boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, Executor>;

    struct Acceptor {
        ConnectionOrigin origin;
        boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol, Executor>
            acceptor;
        Timer pause;
    };

    void accept(Acceptor& acceptor);
    void add_connection(HttpSocket socket, ConnectionOrigin origin);
    /// Starts the regular calls of HttpHandlers::on_update, if they are not active.
    void start_updates();
    void schedule_update();

    HttpHandlers handlers_;
    HttpTimeouts timeouts_;
    ConnectionLimiter limiter_;
    bool is_updating_ = false;
    std::vector<HttpAddress> addresses_;
    ConnectionLimiter::ConnectionNumber last_number_ = 0;
    std::atomic<std::uint64_t> rejected_connections_{0};
    /// The connections that are reserved for health checks.
    std::unordered_map<ConnectionLimiter::ConnectionNumber, std::weak_ptr<HttpConnection>>
        reserved_connections_;
    /// Must be destroyed after the timer and the acceptors, and before the members that its
    /// handlers use; therefore it is declared here.
    boost::asio::io_context io_{1};
    Timer update_timer_{io_.get_executor()};
    std::vector<Acceptor> acceptors_;
    std::thread thread_;
};

} // namespace tw::web
