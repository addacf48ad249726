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

/// Whether something is as it should be, and if not, why.
struct Health {
    bool ok = false;
    std::string text; ///< one line
};

/// What was said last, by whatever thread.
class LastHealth {
  public:
    void set(Health health) {
        const std::scoped_lock lock{mutex_};
        health_ = std::move(health);
    }

    [[nodiscard]] std::optional<Health> get() const {
        const std::scoped_lock lock{mutex_};
        return health_;
    }

  private:
    mutable std::mutex mutex_;
    std::optional<Health> health_;
};

/// Where the page gets things from; all but `health`'s answer is on the server's thread.
struct Sources {
    std::function<State()> state;
    /// The same with only this server's sessions, and more of them; none: `state` has a table of each
    /// server.
    std::function<State(const std::string& server)> state_of{};
    /// Whether the processes turn: if not, only a restart helps. Told at once.
    std::function<Health()> live;
    /// Whether players can play. Asks; the answer comes later, from any thread.
    std::function<void(std::function<void(Health)>)> ready;
    /// As relay::parse_impairment reads it. Errors: one line that says what is wrong with the text.
    std::function<tl::expected<void, std::string>(const std::string&)> set_impairment;
    /// Writes what the flight recorder keeps of a session, or with 0 of all. False: no such session
    /// is open. None: there is no recorder.
    std::function<bool(std::uint32_t session)> write_flight{};
    RecordingSources recordings{};
    /// The story of the findings about a session's snapshot of this tick; nothing: none is kept.
    std::function<std::optional<std::string>(std::uint32_t session, std::int64_t tick)> explain;
    ApiSources api{};
    /// Its `make_filter` and `state_json` are set by Admin.
    ViewSources view{};
};

struct AdminOptions {
    std::vector<std::string> hosts{}; ///< names it goes by (OriginOptions)
    std::string unknown_host_hint{};  ///< (OriginOptions)
    AccessOptions access{};
};

/// What answers are made of; on the server's thread.
struct RequestContext {
    explicit RequestContext(Sources from);

    /// With what is known here only.
    [[nodiscard]] State state() const;

    /// With the sessions of this server only.
    [[nodiscard]] State state_of(const std::string& server) const;

    Sources sources;
    std::optional<ImpairmentChange> impaired{}; ///< by the page, the last time
    PackedMaps maps;
    std::shared_ptr<LastHealth> readiness = std::make_shared<LastHealth>();
    Viewers viewers;
};

/// What twscope answers over HTTP: the page, health checks, `/metrics`, and what docs/api.md says of
/// `/api`.
class Admin {
  public:
    Admin(AdminOptions options, const std::vector<Listening>& listening, Sources sources);

    void start() {
        listen([this] { server_.wake(); });
        server_.start();
    }

    ~Admin() { stop(); }

    Admin(const Admin&) = delete;
    Admin& operator=(const Admin&) = delete;
    Admin(Admin&&) = delete;
    Admin& operator=(Admin&&) = delete;

    void stop() {
        listen(nullptr);
        server_.stop();
        desk_.viewers.clear(); // before the server goes: some wait for its answers
    }

    /// From any thread: from now on this is the token. Viewers whom another one let in are ended.
    void set_token(const std::string& token);

    [[nodiscard]] const HttpServer& server() const { return server_; }

  private:
    /// To whom workers call that there is something to show.
    void listen(std::function<void()> listener) const {
        if (Feed* const feed = desk_.sources.view.feed; feed != nullptr) {
            feed->bell.set_listener(std::move(listener));
        }
    }

    void answer(const Request& request, const Respond& respond);
    [[nodiscard]] Upgrade upgrade(const Request& request);

    [[nodiscard]] std::optional<Response> refuse(const Request& request, Right right);

    RequestContext desk_;
    OriginOptions origin_;
    std::mutex access_mutex_;
    AccessOptions access_;
    std::atomic<std::uint32_t> token_number_{1}; ///< of those that there were
    HttpServer server_;                          ///< last: it calls the rest
};

} // namespace tw::web
