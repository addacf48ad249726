#pragma once

#include "proxy/admin/http_server.h"
#include "proxy/admin/request_origin.h"
#include "proxy/admin/state.h"

#include <functional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace tw::admin {

/// Whether the relay works, and if not, why.
struct Health {
    bool ok = false;
    std::string text; ///< one line
};

/// Where the page gets things from; all but `health`'s answer is on the server's thread.
struct Sources {
    std::function<State()> state;
    /// Asks; the answer comes later, from any thread.
    std::function<void(std::function<void(Health)>)> health;
    /// As relay::parse_impairment reads it. Errors: one line that says what is wrong with the text.
    std::function<tl::expected<void, std::string>(const std::string&)> set_impairment;
};

struct AdminOptions {
    ServerOptions server{};
    std::vector<std::string> hosts{}; ///< names it goes by (OriginOptions)
    std::string unknown_host_hint{};  ///< (OriginOptions)
};

/// What twscope answers over HTTP: `/`, `/healthz`, `/metrics`, `/api/state`, `/api/impairment`.
class Admin {
  public:
    /// Binds. Errors: ListenError.
    Admin(const AdminOptions& options, Sources sources);

    void start() { server_.start(); }

    void stop() { server_.stop(); }

    [[nodiscard]] std::uint16_t port() const { return server_.port(); }

    [[nodiscard]] bool on_loopback() const { return origin_.loopback; }

  private:
    void answer(const Request& request, const Respond& respond);

    Sources sources_;
    OriginOptions origin_;
    HttpServer server_; ///< last: it calls the rest
};

} // namespace tw::admin
