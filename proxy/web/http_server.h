#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/base/keyed_hash.h"
#include "proxy/web/http_stream.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/beast/core/string_type.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>

namespace tw::web {

/// A file that is sent as a response.
struct ServedFile {
    base::UniqueFd file;
    std::uint64_t bytes = 0; ///< number of bytes to send; data appended later is not sent
};

/// The parts of a request target, as views of the request line.
struct RequestTarget {
    /// The host in the target; if present, it replaces the Host header.
    std::optional<std::string_view> host{};
    std::string_view path{};  ///< "/api/state"
    std::string_view query{}; ///< text after the question mark
};

/// Parses "/path?query" or "http://host/path?query". A client may send the second form through a
/// proxy, and every HTTP/1.1 server must accept it.
/// Source: RFC 9112, 3.2.2.
[[nodiscard]] RequestTarget read_request_target(std::string_view text);

/// A request. Its views are valid only during the call that receives it.
struct Request {
    std::string_view method{}; ///< "GET"
    std::string_view path{};   ///< "/api/state", without a query
    std::string_view query{};  ///< text after the question mark
    std::string_view host{};   ///< Host header; empty if there is none or more than one
    std::string_view origin{};
    std::string_view fetch_site{}; ///< Sec-Fetch-Site header
    std::string_view content_type{};
    /// Authorization header; empty if there is none or more than one.
    std::string_view authorization{};
    std::string_view body{};
    ConnectionOrigin connection_origin =
        ConnectionOrigin::loopback; ///< where the connection comes from
    /// The connection is one of those reserved for health checks (see ConnectionLimiter).
    bool is_reserved = false;
    bool upgrade = false; ///< the request asks for a WebSocket
    std::string from{};   ///< the client's name in log messages: an address, or "the unix socket"
    base::Network peer{}; ///< the client's address; all clients on unix sockets count as one
};

struct Response {
    unsigned status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body{};
    std::string allow{};          ///< the allowed methods, for status 405
    std::string challenge{};      ///< WWW-Authenticate, for status 401
    std::string content_policy{}; ///< Content-Security-Policy; if empty, the page may load nothing
    /// `body` compressed with gzip. If `body` is empty, clients that do not accept gzip get this text
    /// decompressed. If this is null, the server compresses long bodies itself.
    std::shared_ptr<const std::string> gzipped{};
    std::shared_ptr<const ServedFile> file{}; ///< sent instead of `body`
    std::string file_name{};                  ///< the name under which browsers save the file
};

// Conversions from the messages of Boost.Beast.

inline constexpr unsigned kHttp11 = 11; ///< HTTP/1.1 as Beast's version number

[[nodiscard]] std::string_view http_text(boost::beast::string_view text);

/// Returns a header that may occur only once; empty if it is missing or repeated.
[[nodiscard]] std::string_view single_field(const HttpMessage& message,
                                            boost::beast::http::field name);

/// Returns the request in a message. Its views are valid while the message exists.
[[nodiscard]] Request request_from(const HttpMessage& message);

/// True if the client waits for "100 Continue" before it sends the body, as curl does for long
/// bodies.
[[nodiscard]] bool expects_continue(const HttpMessage& message);

/// Returns the response to a request that could not be read; nullopt if the client could not receive
/// a response either.
[[nodiscard]] std::optional<Response> error_response(const boost::system::error_code& error);

/// Sends a file of any size in pieces. The client must accept each piece within `patience`. `done` is
/// always called; it must keep the owner of `stream` alive. If the file is truncated meanwhile, the
/// response ends early, and the client notices this by the announced length.
void send_file(HttpStream& stream, const boost::beast::http::response_header<>& head,
               std::shared_ptr<const ServedFile> file, std::chrono::milliseconds patience,
               std::function<void()> done);

/// Limits the number of connections, in all and for each peer. A few more connections are reserved for
/// health checks, which are therefore answered even while all others are in use.
///
/// A reserved connection that has not sent its request yet is closed if a new one arrives, because a
/// health check sends its request at once.
class ConnectionLimiter {
  public:
    using ConnectionNumber = std::uint64_t;

    /// The most unreserved connections. A page and a metrics scraper need two; a browser opens up to
    /// six at once.
    static constexpr std::size_t kUsual = 64;
    /// The most unreserved connections of one IPv4 address or IPv6 /64.
    static constexpr std::size_t kOfPeer = 16;
    static constexpr std::size_t kReserved = 8;
    static constexpr std::size_t kReservedOfPeer = 4;

    /// The decision about a new connection.
    struct Admission {
        bool is_admitted = false;
        bool is_reserved = false; ///< the connection is reserved for health checks
        /// A connection that the caller must close to make room.
        std::optional<ConnectionNumber> evicted{};
    };

    /// Decides about a new connection, for which the caller chooses an unused number. An evicted
    /// connection is no longer counted.
    [[nodiscard]] Admission admit(ConnectionNumber number, const base::Network& peer);

    /// Notes that the connection's request has arrived. The connection is not evicted any more.
    void note_request_arrived(ConnectionNumber number) noexcept;

    /// Removes a closed connection. Does nothing if the connection was not admitted.
    void remove(ConnectionNumber number) noexcept;

    [[nodiscard]] std::size_t size() const noexcept { return connections_.size(); }

  private:
    struct Connection {
        ConnectionNumber number;
        base::Network peer;
        bool is_reserved;
        bool asked;
    };

    std::vector<Connection> connections_; ///< in order of arrival
};

/// The most bytes of request line and headers together. Browsers send about 1 KiB.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{8} << 10U;
/// The most bytes of a request's body. The longest one in use is an impairment, a line of text.
inline constexpr std::size_t kMaxBodyBytes = std::size_t{4} << 10U;

/// Sends the response to a request, at once or later, from any thread. It must not be called after the
/// server was destroyed, so a stored Respond must be dropped before the server.
using Respond = std::function<void(Response)>;
/// Answers requests. Called on the server's thread, for one request at a time.
using Handler = std::function<void(const Request&, Respond)>;

/// The result of a request for a WebSocket: a refusal, or the function to call once the socket is
/// open.
struct WebSocketAnswer {
    std::optional<Response> refusal{};
    std::function<void(const std::shared_ptr<WebSocket>&)> on_open{};
};

/// The functions that answer requests. Called on the server's thread.
struct HttpHandlers {
    Handler handler{};
    /// Answers requests for a WebSocket. If this is empty, `handler` answers them.
    std::function<WebSocketAnswer(const Request&)> upgrade{};
    /// Called every kUpdateInterval after a request until it returns false, and also after wake().
    std::function<bool()> update{};
};

/// The interval of calls to HttpHandlers::update. Data that does not wake the server waits at most
/// this long.
inline constexpr std::chrono::milliseconds kUpdateInterval{50};

/// The time that a client has to send its request, and again to receive the response.
struct HttpTimeouts {
    std::chrono::milliseconds usual{5000};
    std::chrono::milliseconds reserved{1000}; ///< for connections reserved for health checks
};

/// A small HTTP/1.1 server on its own thread. It answers one request for each connection. Connections
/// beyond the limits of ConnectionLimiter are closed at once and counted. A connection that becomes a
/// WebSocket no longer counts: HttpHandlers::upgrade must limit the number of WebSockets.
class HttpServer {
  public:
    /// Serves sockets that already listen. Requests are answered only after start().
    HttpServer(const std::vector<ListeningSocket>& listening, HttpHandlers handlers,
               const HttpTimeouts& timeouts = {});

    HttpServer(const std::vector<ListeningSocket>& listening, Handler handler,
               const HttpTimeouts& timeouts = {})
        : HttpServer{listening, HttpHandlers{.handler = std::move(handler)}, timeouts} {}

    /// Listens on the address, and answers all requests with `handler`.
    /// Errors: throws ListenError.
    HttpServer(const HttpAddress& where, Handler handler, const HttpTimeouts& timeouts = {});
    /// Calls stop().
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    void start();

    /// Makes the server call HttpHandlers::update now, if the regular calls are active. May be called
    /// from any thread; does not wait.
    void wake();

    /// Closes every connection and joins the thread.
    void stop();

    /// The addresses on which the server listens, with the ports that the system chose.
    [[nodiscard]] const std::vector<HttpAddress>& addresses() const;

    /// The port of the first address.
    [[nodiscard]] std::uint16_t port() const { return addresses().front().port; }

    /// The number of connections closed because there were too many. From any thread.
    [[nodiscard]] std::uint64_t rejected_connections() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace tw::web
