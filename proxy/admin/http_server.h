#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tw::admin {

/// Longest request line and headers together: browsers send about 1 KiB.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{8} << 10U;
/// Longest body: an impairment is a line of text.
inline constexpr std::size_t kMaxBodyBytes = std::size_t{4} << 10U;
/// Connections at the same time; a page and a scraper need two. More are closed at once.
inline constexpr std::size_t kMaxConnections = 32;

/// What was asked. Views live as long as the call that hands them over.
struct Request {
    std::string_view method{}; ///< "GET"
    std::string_view path{};   ///< "/api/state", without a query
    std::string_view host{}; ///< of the one Host header; empty when there is none or there are more
    std::string_view origin{};
    std::string_view fetch_site{}; ///< Sec-Fetch-Site
    std::string_view content_type{};
    std::string_view body{};
};

struct Response {
    unsigned status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
    std::string allow{};          ///< of a 405: the methods there are
    std::string content_policy{}; ///< Content-Security-Policy; empty: nothing may be loaded
};

/// Gives the answer, at once or later and from any thread, but not after the server is destroyed:
/// who keeps one drops it before.
using Respond = std::function<void(Response)>;
/// Called on the server's thread, one request at a time.
using Handler = std::function<void(const Request&, Respond)>;

struct ServerOptions {
    std::string address; ///< a literal address
    std::uint16_t port = 0;
    /// A request has to be here, an answer to be taken, within this time.
    std::chrono::milliseconds timeout{5000};
};

/// The server cannot listen; what() is one line for the user.
class ListenError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A small HTTP/1.1 server on a thread of its own: one request a connection, everything bounded.
class HttpServer {
  public:
    /// Binds; nothing is answered before start().
    /// Errors: ListenError.
    HttpServer(const ServerOptions& options, Handler handler);
    /// Stops.
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;
    HttpServer(HttpServer&&) = delete;
    HttpServer& operator=(HttpServer&&) = delete;

    void start();
    /// Drops every connection and joins.
    void stop();

    /// The port in use, when the system chose it.
    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] bool on_loopback() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace tw::admin
