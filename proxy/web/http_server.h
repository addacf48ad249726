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
    std::uint64_t bytes = 0; ///< bytes to send; data appended later is not sent
};

/// The parts of a request target, as views of the request line.
struct RequestTarget {
    std::optional<std::string_view> host{}; ///< if present, replaces the Host header
    std::string_view path{};                ///< "/api/state"
    std::string_view query{};               ///< text after the question mark
};

/// Parses "/path?query" or "http://host/path?query". A client may send the second form through a
/// proxy, and every HTTP/1.1 server has to accept it.
/// Source: RFC 9112, 3.2.2.
[[nodiscard]] RequestTarget read_request_target(std::string_view text);

struct ServedFile;

/// A request. Its views are valid during the call that passes it.
struct Request {
    std::string_view method{}; ///< "GET"
    std::string_view path{};   ///< "/api/state", without a query
    std::string_view query{};  ///< text after the question mark
    std::string_view host{};   ///< Host header; empty if there is none or more than one
    std::string_view origin{};
    std::string_view fetch_site{}; ///< Sec-Fetch-Site
    std::string_view content_type{};
    /// Authorization header; empty if there is none or more than one.
    std::string_view authorization{};
    std::string_view body{};
    Way way = Way::loopback; ///< how the connection came in
    /// The connection is one of those reserved for health checks (see ConnectionLimiter).
    bool spare = false;
    bool upgrade = false; ///< asks for a WebSocket
    std::string from{};   ///< the client for messages: an address, or "the unix socket"
    base::Source peer{};  ///< the client; all clients on unix sockets count as one
};

struct Response {
    unsigned status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body{};
    std::string allow{};          ///< the allowed methods, for status 405
    std::string challenge{};      ///< WWW-Authenticate, for status 401
    std::string content_policy{}; ///< Content-Security-Policy; empty forbids loading anything
    /// `body` compressed with gzip, for clients that accept it. If `body` is empty, it is made from
    /// this for other clients. If this is null, `body` is compressed when that is worthwhile.
    std::shared_ptr<const std::string> gzipped{};
    std::shared_ptr<const ServedFile> file{}; ///< sent instead of `body`
    std::string file_name{};                  ///< the name under which browsers save the file
};

// Conversions from Beast's messages.

inline constexpr unsigned kHttp11 = 11; ///< HTTP/1.1 as Beast's version number

[[nodiscard]] std::string_view http_text(boost::beast::string_view text);

/// Returns a header that may occur once; empty if it is missing or repeated.
[[nodiscard]] std::string_view single_field(const HttpMessage& message,
                                            boost::beast::http::field name);

/// Returns the request in a message. Its views are valid as long as the message.
[[nodiscard]] Request request_from(const HttpMessage& message);

/// True if the client waits for "100 Continue" before it sends the body, as curl does for long
/// bodies.
[[nodiscard]] bool expects_continue(const HttpMessage& message);

/// Returns the response to a request that could not be read; nullopt if no client would receive it.
[[nodiscard]] std::optional<Response> complaint(const boost::system::error_code& error);

/// Sends a file of any size in pieces. The client has to take each piece within `patience`. `done`
/// is always called; it has to keep the owner of `stream` alive. If the file was truncated
/// meanwhile, the response ends early, which the client notices by its length.
void send_file(HttpStream& stream, const boost::beast::http::response_header<>& head,
               std::shared_ptr<const ServedFile> file, std::chrono::milliseconds patience,
               std::function<void()> done);

/// Limits the number of connections, in all and for each peer. A few more are reserved for health
/// checks, so that these are answered while all others are in use.
///
/// A reserved connection that has sent no request yet is closed for a new one: a health check sends
/// its request at once.
class ConnectionLimiter {
  public:
    using Number = std::uint64_t;

    /// The most usual connections. A page and a scraper need two; a browser opens up to six at
    /// once.
    static constexpr std::size_t kUsual = 64;
    /// The most usual connections of one IPv4 address or IPv6 /64.
    static constexpr std::size_t kOfPeer = 16;
    static constexpr std::size_t kSpare = 8;
    static constexpr std::size_t kSpareOfPeer = 4;

    /// The decision about a new connection.
    struct Place {
        bool is_admitted = false;
        bool spare = false;              ///< the connection is reserved for a health check
        std::optional<Number> evicted{}; ///< the connection to close to make room
    };

    /// Decides about a new connection. The caller chooses a new number for it. A connection in
    /// `evicted` is no longer counted.
    [[nodiscard]] Place admit(Number number, const base::Source& peer);

    /// Notes that the connection's request arrived. The connection may stay until the response was
    /// sent.
    void note_request(Number number) noexcept;

    /// Removes a closed connection. Does nothing if it was not admitted.
    void remove(Number number) noexcept;

    [[nodiscard]] std::size_t taken() const noexcept { return connections_.size(); }

  private:
    struct Connection {
        Number number;
        base::Source peer;
        bool spare;
        bool asked;
    };

    std::vector<Connection> connections_; ///< in order of arrival
};

/// The most bytes of request line and headers together. Browsers send about 1 KiB.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{8} << 10U;
/// The most bytes of a body. An impairment is a line of text.
inline constexpr std::size_t kMaxBodyBytes = std::size_t{4} << 10U;

/// Sends the response, at once or later, from any thread. It must not be called after the server
/// was destroyed, so whoever keeps one drops it before that.
using Respond = std::function<void(Response)>;
/// Called on the server's thread, one request at a time.
using Handler = std::function<void(const Request&, Respond)>;

/// The result of a request for a WebSocket: a refusal, or the function to call once it is open.
struct Upgrade {
    std::optional<Response> refusal{};
    std::function<void(const std::shared_ptr<WebSocket>&)> on_open{};
};

/// The functions that answer requests. Called on the server's thread.
struct HttpHandlers {
    Handler handler{};
    /// Answers requests for a WebSocket. If empty, `handler` answers them.
    std::function<Upgrade(const Request&)> upgrade{};
    /// Called every kTurn after a request until it returns false, and after wake().
    std::function<bool()> turn{};
};

/// Interval of calls to HttpHandlers::turn; data that does not wake the server waits this long.
inline constexpr std::chrono::milliseconds kTurn{50};

/// Limits for the time in which a client has to send its request, and to receive the response.
struct Deadlines {
    std::chrono::milliseconds usual{5000};
    std::chrono::milliseconds spare{1000}; ///< for connections reserved for health checks
};

/// A small HTTP/1.1 server on its own thread, with one request for each connection. All its
/// resources are bounded (see ConnectionLimiter for connections). Connections beyond the limit are
/// closed at once and counted. A connection that becomes a WebSocket no longer counts; whoever
/// opens it limits those.
class HttpServer {
  public:
    /// Serves open listening sockets. Requests are answered only after start().
    HttpServer(const std::vector<Listening>& listening, HttpHandlers hosts,
               const Deadlines& deadlines = {});

    HttpServer(const std::vector<Listening>& listening, Handler handler,
               const Deadlines& deadlines = {})
        : HttpServer{listening, HttpHandlers{.handler = std::move(handler)}, deadlines} {}

    /// Binds the address, and answers all requests with `handler`.
    /// Errors: throws ListenError.
    HttpServer(const HttpAddress& where, Handler handler, const Deadlines& deadlines = {});
    /// Calls stop().
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;
    HttpServer(HttpServer&&) = delete;
    HttpServer& operator=(HttpServer&&) = delete;

    void start();

    /// Requests a call of HttpHandlers::turn now, if such calls are active. From any thread;
    /// does not wait.
    void wake();

    /// Closes every connection and joins the thread.
    void stop();

    /// The addresses on which the server listens, with the ports that the system chose.
    [[nodiscard]] const std::vector<HttpAddress>& where() const;

    /// The port of the first address.
    [[nodiscard]] std::uint16_t port() const { return where().front().port; }

    /// The number of connections closed because there were too many. From any thread.
    [[nodiscard]] std::uint64_t turned_away() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace tw::web
