#include "proxy/admin/admin.h"

#include "proxy/admin/metrics.h"
#include "proxy/admin/page.h"
#include "proxy/admin/state_json.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace tw::admin {

namespace {

constexpr const char* kJson = "application/json";
constexpr const char* kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";
constexpr unsigned kUnavailable = 503;

void show_page(const Sources& /*sources*/, const Request& /*request*/, const Respond& respond) {
    respond({.content_type = "text/html; charset=utf-8",
             .body = std::string{page_html()},
             .content_policy = page_policy()});
}

void show_state(const Sources& sources, const Request& /*request*/, const Respond& respond) {
    respond({.content_type = kJson, .body = state_json(sources.state())});
}

void show_metrics(const Sources& sources, const Request& /*request*/, const Respond& respond) {
    respond({.content_type = kPrometheusText, .body = metrics_text(sources.state())});
}

void show_health(const Sources& sources, const Request& /*request*/, const Respond& respond) {
    sources.health([respond](const Health& health) {
        respond({.status = health.ok ? 200 : kUnavailable, .body = health.text + '\n'});
    });
}

void show_impairment(const Sources& sources, const Request& /*request*/, const Respond& respond) {
    respond({.body = sources.state().impairment + '\n'});
}

void set_impairment(const Sources& sources, const Request& request, const Respond& respond) {
    if (request.body.empty()) {
        return respond(
            {.status = 400, .body = "say how, for example s2c:delay=40ms,loss=2%, or none\n"});
    }
    std::string_view text = request.body;
    while (text.ends_with('\n') || text.ends_with('\r')) {
        text.remove_suffix(1);
    }
    if (const auto done = sources.set_impairment(std::string{text}); !done) {
        return respond({.status = 400, .body = done.error() + '\n'});
    }
    show_impairment(sources, request, respond);
}

struct Route {
    std::string_view method;
    std::string_view path;
    void (*answer)(const Sources&, const Request&, const Respond&);
};

constexpr std::array<Route, 6> kRoutes{{{"GET", "/", show_page},
                                        {"GET", "/healthz", show_health},
                                        {"GET", "/metrics", show_metrics},
                                        {"GET", "/api/state", show_state},
                                        {"GET", "/api/impairment", show_impairment},
                                        {"PUT", "/api/impairment", set_impairment}}};

} // namespace

Admin::Admin(const AdminOptions& options, Sources sources)
    : sources_{std::move(sources)}, origin_{.loopback = true,
                                            .hosts = options.hosts,
                                            .unknown_host_hint = options.unknown_host_hint},
      server_{options.server, [this](const Request& request, const Respond& respond) {
                  answer(request, respond);
              }} {
    origin_.loopback = server_.on_loopback();
}

void Admin::answer(const Request& request, const Respond& respond) {
    if (auto refusal = refuse_foreign_origin(request, origin_)) {
        return respond(*std::move(refusal));
    }
    const std::string_view method = request.method == "HEAD" ? "GET" : request.method;
    std::string allow;
    for (const Route& route : kRoutes) {
        if (route.path != request.path) {
            continue;
        }
        if (route.method == method) {
            return route.answer(sources_, request, respond);
        }
        allow += allow.empty() ? "" : ", ";
        allow += route.method;
    }
    if (allow.empty()) {
        return respond({.status = 404, .body = "there is nothing here; / is the page\n"});
    }
    respond({.status = 405, .body = "only " + allow + '\n', .allow = allow});
}

} // namespace tw::admin
