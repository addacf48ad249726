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

/// A file as an answer.
struct ServedFile {
    base::UniqueFd file;
    std::uint64_t bytes = 0; ///< of it; what is appended meanwhile is not sent
};

/// What a request asks for; views of the line that does.
struct RequestTarget {
    std::optional<std::string_view> host{}; ///< counts, where it is named, and the header does not
    std::string_view path{};                ///< "/api/state"
    std::string_view query{};               ///< what is behind the question mark
};

/// Takes "/path?query" apart, or "http://host/path?query": who asks through a proxy may send that,
/// and every server of HTTP/1.1 has to take it (RFC 9112, 3.2.2).
[[nodiscard]] RequestTarget read_request_target(std::string_view text);

struct ServedFile;

/// What was asked. Views live as long as the call that hands them over.
struct Request {
    std::string_view method{}; ///< "GET"
    std::string_view path{};   ///< "/api/state", without a query
    std::string_view query{};  ///< what is behind the question mark
    std::string_view host{}; ///< of the one Host header; empty when there is none or there are more
    std::string_view origin{};
    std::string_view fetch_site{}; ///< Sec-Fetch-Site
    std::string_view content_type{};
    std::string_view authorization{}; ///< of the one there is, like `host`
    std::string_view body{};
    Way way = Way::loopback; ///< by which it came
    bool spare = false;      ///< it has a seat for health checks only (see ConnectionLimiter)
    bool upgrade = false;    ///< asks for a WebSocket
    std::string from{};      ///< who asks, for people: an address, or "the unix socket"
    base::Source peer{};     ///< who asks; all that come by a unix socket are one
};

struct Response {
    unsigned status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body{};
    std::string allow{};          ///< of a 405: the methods there are
    std::string challenge{};      ///< of a 401: WWW-Authenticate
    std::string content_policy{}; ///< Content-Security-Policy; empty: nothing may be loaded
    /// What `body` is when compressed by gzip, for who takes it so; an empty `body` is made of it for who
    /// does not. Null: it is compressed when worth it.
    std::shared_ptr<const std::string> gzipped{};
    std::shared_ptr<const ServedFile> file{}; ///< instead of `body`
    std::string file_name{};                  ///< what browsers call it; as recorders name files
};

// What Beast has read of a request, as the server's hosts have it.

inline constexpr unsigned kHttp11 = 11; ///< as Beast writes versions

[[nodiscard]] std::string_view http_text(boost::beast::string_view text);

/// A header that may stand there once; empty where it does not, or more often.
[[nodiscard]] std::string_view single_field(const HttpMessage& message,
                                            boost::beast::http::field name);

/// What the message itself says. Views live as long as it.
[[nodiscard]] Request request_from(const HttpMessage& message);

/// Whether its peer waits for "100 Continue" before it sends the body, as curl does before long ones.
[[nodiscard]] bool expects_continue(const HttpMessage& message);

/// What to say to a request that could not be read; nothing when nobody would hear it.
[[nodiscard]] std::optional<Response> complaint(const boost::system::error_code& error);

/// Sends a file piece by piece, however large it is; each piece has to be taken within `patience`.
/// `done` is called in any case, and keeps alive what `stream` is of. One that was cut off meanwhile
/// ends early, which whoever reads it sees by its length.
void send_file(HttpStream& stream, const boost::beast::http::response_header<>& head,
               std::shared_ptr<const ServedFile> file, std::chrono::milliseconds patience,
               std::function<void()> done);

/// Who may have a connection: so many in all and of each peer, and a few spare seats for those who
/// find none, so that health checks are answered while others hold all the rest.
///
/// In the spare seats, who has not asked yet leaves for who comes: a health check asks at once.
class ConnectionLimiter {
  public:
    using Number = std::uint64_t;

    /// A page and a scraper need two; a browser opens up to six at once.
    static constexpr std::size_t kUsual = 64;
    /// Of them, those of one IPv4 address or IPv6 /64.
    static constexpr std::size_t kOfPeer = 16;
    static constexpr std::size_t kSpare = 8;
    static constexpr std::size_t kSpareOfPeer = 4;

    /// Where who came is to sit.
    struct Place {
        bool seated = false;
        bool spare = false;             ///< for a health check only
        std::optional<Number> leaves{}; ///< who has to leave for it
    };

    /// Somebody comes; the number is the caller's, and new. Who has to leave is not seated any more.
    [[nodiscard]] Place arrive(Number number, const base::Source& peer);

    /// Its request is here: it may stay until it is answered.
    void ask(Number number) noexcept;

    /// It is gone; nothing happens when it had no seat.
    void leave(Number number) noexcept;

    [[nodiscard]] std::size_t taken() const noexcept { return guests_.size(); }

  private:
    struct Guest {
        Number number;
        base::Source peer;
        bool spare;
        bool asked;
    };

    std::vector<Guest> guests_; ///< in order of appearance
};

/// Longest request line and headers together: browsers send about 1 KiB.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{8} << 10U;
/// Longest body: an impairment is a line of text.
inline constexpr std::size_t kMaxBodyBytes = std::size_t{4} << 10U;

/// Gives the answer, at once or later and from any thread, but not after the server is destroyed:
/// who keeps one drops it before.
using Respond = std::function<void(Response)>;
/// Called on the server's thread, one request at a time.
using Handler = std::function<void(const Request&, Respond)>;

/// What becomes of a request for a WebSocket: a refusal, or whom to call once it is open.
struct Upgrade {
    std::optional<Response> refusal{};
    std::function<void(const std::shared_ptr<WebSocket>&)> on_open{};
};

/// Who answers, on the server's thread.
struct Hosts {
    Handler handler{};
    /// Of requests that ask for a WebSocket; none: they are answered as all others.
    std::function<Upgrade(const Request&)> upgrade{};
    /// Called every kTurn from each request on until it says false, and when wake() was.
    std::function<bool()> turn{};
};

/// What does not wake the server waits so long at most.
inline constexpr std::chrono::milliseconds kTurn{50};

/// A request has to be here, an answer to be taken, within so much time.
struct Deadlines {
    std::chrono::milliseconds usual{5000};
    std::chrono::milliseconds spare{1000}; ///< for who has a spare seat
};

/// A small HTTP/1.1 server on a thread of its own: one request a connection, everything bounded
/// (see ConnectionLimiter for how many). Who is too many is closed at once, and counted. What is opened as a
/// WebSocket gives its seat back: whoever opens it bounds those.
class HttpServer {
  public:
    /// Nothing is answered before start().
    HttpServer(const std::vector<Listening>& listening, Hosts hosts,
               const Deadlines& deadlines = {});

    HttpServer(const std::vector<Listening>& listening, Handler handler,
               const Deadlines& deadlines = {})
        : HttpServer{listening, Hosts{.handler = std::move(handler)}, deadlines} {}

    /// Binds, too. Errors: ListenError.
    HttpServer(const HttpAddress& where, Handler handler, const Deadlines& deadlines = {});
    /// Stops.
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;
    HttpServer(HttpServer&&) = delete;
    HttpServer& operator=(HttpServer&&) = delete;

    void start();

    /// From any thread, without waiting: a turn is due now, if turns are due at all.
    void wake();

    /// Drops every connection and joins.
    void stop();

    /// Where it listens, with the ports that the system chose.
    [[nodiscard]] const std::vector<HttpAddress>& where() const;

    /// The port of the first address.
    [[nodiscard]] std::uint16_t port() const { return where().front().port; }

    /// Connections closed because there were too many. From any thread.
    [[nodiscard]] std::uint64_t turned_away() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace tw::web
