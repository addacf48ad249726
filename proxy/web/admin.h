#pragma once

#include "proxy/web/access.h"
#include "proxy/web/http_server.h"
#include "proxy/web/page_data.h"
#include "proxy/web/page_json.h"
#include "proxy/web/record_requests.h"
#include "proxy/web/run_state.h"
#include "proxy/web/viewers.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tw::web {

/// Data for the functions that answer HTTP requests. Used only on the HTTP server's thread.
struct RequestContext {
    /// `page` must outlive the object.
    explicit RequestContext(PageData& page);

    /// Returns `data.state()` with the number of viewers and the latest change of the impairment.
    [[nodiscard]] RunState state() const;

    PageData& data;
    /// The latest change of the impairment that was made on the page.
    std::optional<ImpairmentChange> impairment_change{};
    CompressedMapCache maps;
    std::optional<Health> readiness{}; ///< the latest result of PageData::check_readiness
    Viewers viewers;
};

/// Answers twscope's HTTP requests: the page, health checks, `/metrics`, and `/api` (docs/api.md).
class AdminServer {
  public:
    /// `data` must outlive the server.
    AdminServer(AccessOptions access, const std::vector<ListeningSocket>& listening,
                PageData& data);

    void start() {
        set_feed_listener([this] { server_.request_update(); });
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

    /// Returns the io_context that runs on the server's thread.
    [[nodiscard]] boost::asio::io_context& io() { return server_.io(); }

  private:
    /// Sets the function that workers call when they have new data for the page.
    void set_feed_listener(std::function<void()> listener) const {
        if (PageFeed* const feed = context_.data.page_feed(); feed != nullptr) {
            feed->set_listener(std::move(listener));
        }
    }

    void answer_request(const Request& request, const Respond& respond);
    [[nodiscard]] WebSocketAnswer answer_upgrade(const Request& request);

    [[nodiscard]] std::optional<Response> refuse_request(const Request& request, AccessLevel level);

    RequestContext context_;
    std::mutex access_mutex_; ///< guards access_.token
    AccessOptions access_;
    /// Number of the current token. Each change of the token increases it.
    std::atomic<std::uint32_t> token_number_{1};
    HttpServer server_; ///< the last member, because its thread uses the others
};

} // namespace tw::web
