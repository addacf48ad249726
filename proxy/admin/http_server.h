#pragma once

#include "proxy/admin/http_request.h"
#include "proxy/admin/listening.h"
#include "proxy/admin/web_socket.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tw::admin {

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
/// (see Seats for how many). Who is too many is closed at once, and counted. What is opened as a
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

} // namespace tw::admin
