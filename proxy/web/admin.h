#pragma once

#include "proxy/web/access.h"
#include "proxy/web/api.h"
#include "proxy/web/http_server.h"
#include "proxy/web/state.h"
#include "proxy/web/viewers.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace tw::web {

/// The result of a health check, with the reason for a failure.
struct Health {
    bool ok = false;
    std::string text; ///< one line
};

/// Stores the last result of a health check. Any thread may set and read the result.
class LastHealth {
  public:
    void set_health(Health health) {
        const std::scoped_lock lock{mutex_};
        health_ = std::move(health);
    }

    [[nodiscard]] std::optional<Health> health() const {
        const std::scoped_lock lock{mutex_};
        return health_;
    }

  private:
    mutable std::mutex mutex_;
    std::optional<Health> health_;
};

/// The functions from which the page gets its data. They are called on the HTTP server's thread.
/// Only `ready` may answer from another thread.
struct PageSources {
    std::function<RunState()> state;
    /// Returns the state of one game server, with more of its sessions than `state` lists. Empty if
    /// `state` lists the sessions of all servers.
    std::function<RunState(const std::string& server)> state_of{};
    /// Checks at once whether twscope's processes work. After a failure, only a restart helps.
    std::function<Health()> live;
    /// Tests whether players can play. Calls its argument with the result later, from any thread.
    std::function<void(std::function<void(Health)>)> ready;
    /// Sets the impairment from a text in the format of relay::parse_impairment.
    /// Errors: one line that says what is wrong with the text.
    std::function<tl::expected<void, std::string>(const std::string&)> set_impairment;
    /// Writes the flight recorder's datagrams of a session, or of all sessions if `session` is 0.
    /// Returns false if the session does not exist. Empty without a flight recorder.
    std::function<bool(std::uint32_t session)> write_flight{};
    RecordingSources recordings{};
    /// Returns an explanation of the findings about a session's snapshot of this tick; nullopt if
    /// it has no findings.
    std::function<std::optional<std::string>(std::uint32_t session, std::int64_t tick)> explain;
    ApiSources api{};
    /// The members `make_filter` and `state_json` are set by AdminServer.
    ViewSources view{};
};

struct AdminOptions {
    std::vector<std::string> hosts{}; ///< see OriginOptions
    std::string unknown_host_hint{};  ///< see OriginOptions
    AccessOptions access{};
};

/// The data from which HTTP requests are answered. Used only on the HTTP server's thread.
struct RequestContext {
    explicit RequestContext(PageSources from);

    /// Returns `sources.state()`, completed with the viewers and the last change of the impairment.
    [[nodiscard]] RunState state() const;

    /// Returns the state with only the sessions of this game server.
    [[nodiscard]] RunState state_of(const std::string& server) const;

    PageSources sources;
    /// The last change of the impairment that was made on the page.
    std::optional<ImpairmentChange> impaired{};
    CompressedMapCache maps;
    std::shared_ptr<LastHealth> readiness = std::make_shared<LastHealth>();
    Viewers viewers;
};

/// Answers twscope's HTTP requests: the page, health checks, `/metrics`, and `/api` (docs/api.md).
class AdminServer {
  public:
    AdminServer(AdminOptions options, const std::vector<ListeningSocket>& listening,
                PageSources sources);

    void start() {
        set_feed_listener([this] { server_.wake(); });
        server_.start();
    }

    ~AdminServer() { stop(); }

    AdminServer(const AdminServer&) = delete;
    AdminServer& operator=(const AdminServer&) = delete;

    void stop() {
        set_feed_listener(nullptr);
        server_.stop();
        // Removes the waiting requests, because their Respond functions must not outlive the
        // server.
        context_.viewers.clear();
    }

    /// Replaces the token and disconnects viewers that used another token. Callable from any
    /// thread.
    void set_token(const std::string& token);

    [[nodiscard]] const HttpServer& server() const { return server_; }

  private:
    /// Sets the function that workers call when they have new data for the page.
    void set_feed_listener(std::function<void()> listener) const {
        if (PageFeed* const feed = context_.sources.view.feed; feed != nullptr) {
            feed->notifier.set_listener(std::move(listener));
        }
    }

    void answer_request(const Request& request, const Respond& respond);
    [[nodiscard]] WebSocketAnswer answer_upgrade(const Request& request);

    [[nodiscard]] std::optional<Response> refuse_request(const Request& request, AccessLevel level);

    RequestContext context_;
    OriginOptions origin_;
    std::mutex access_mutex_;
    AccessOptions access_;
    std::atomic<std::uint32_t> token_number_{
        1};             ///< number of the current token; grows with each change
    HttpServer server_; ///< the last member, because its thread uses the others
};

} // namespace tw::web
