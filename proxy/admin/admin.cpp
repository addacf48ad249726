#include "proxy/admin/admin.h"

#include "proxy/admin/metrics.h"
#include "proxy/admin/page.h"
#include "proxy/admin/state_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
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

Response response_of(const Health& health) {
    return {.status = health.ok ? 200 : kUnavailable, .body = health.text + '\n'};
}

void show_live(const Sources& sources, const Request& /*request*/, const Respond& respond) {
    respond(response_of(sources.live()));
}

void show_ready(const Sources& sources, const Request& /*request*/, const Respond& respond) {
    sources.ready([respond](const Health& health) { respond(response_of(health)); });
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

/// The number behind `name=` in a query; nothing where there is none, or it is too large.
template <typename Number>
std::optional<Number> number_in(std::string_view query, std::string_view name) {
    while (!query.empty()) {
        const std::string_view pair = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(pair.size() + 1, query.size()));
        if (!pair.starts_with(name) || pair.substr(name.size(), 1) != "=") {
            continue;
        }
        const std::string_view digits = pair.substr(name.size() + 1);
        Number number{};
        const char* const end = digits.data() + digits.size();
        const auto read = std::from_chars(digits.data(), end, number);
        return read.ec == std::errc{} && read.ptr == end ? std::optional{number} : std::nullopt;
    }
    return std::nullopt;
}

void explain(const Sources& sources, const Request& request, const Respond& respond) {
    const auto session = number_in<std::uint32_t>(request.query, "session");
    const auto tick = number_in<std::int64_t>(request.query, "tick");
    if (!session || !tick) {
        return respond(
            {.status = 400,
             .body = "say which finding, for example /api/explain?session=1&tick=1000\n"});
    }
    if (auto story = sources.explain(*session, *tick)) {
        return respond({.body = *std::move(story)});
    }
    respond({.status = 404,
             .body = "nothing is kept of that, only of the latest findings about snapshots; "
                     "'twscope explain' reads the records\n"});
}

struct Route {
    std::string_view method;
    std::string_view path;
    Right right;
    void (*answer)(const Sources&, const Request&, const Respond&);
};

constexpr std::array<Route, 8> kRoutes{{{"GET", "/", Right::page, show_page},
                                        {"GET", "/healthz", Right::health, show_live},
                                        {"GET", "/readyz", Right::health, show_ready},
                                        {"GET", "/metrics", Right::read, show_metrics},
                                        {"GET", "/api/state", Right::read, show_state},
                                        {"GET", "/api/explain", Right::read, explain},
                                        {"GET", "/api/impairment", Right::read, show_impairment},
                                        {"PUT", "/api/impairment", Right::change, set_impairment}}};

} // namespace

Admin::Admin(AdminOptions options, const std::vector<Listening>& listening, Sources sources)
    : sources_{std::move(sources)}, origin_{.hosts = std::move(options.hosts),
                                            .unknown_host_hint =
                                                std::move(options.unknown_host_hint)},
      access_{std::move(options.access)}, server_{listening, [this](const Request& request,
                                                                    const Respond& respond) {
                                                      answer(request, respond);
                                                  }} {}

void Admin::set_token(const std::string& token) {
    const std::scoped_lock lock{access_mutex_};
    access_.token = token;
}

std::optional<Response> Admin::refuse(const Request& request, Right right) {
    const std::scoped_lock lock{access_mutex_};
    return refuse_access(request, right, access_);
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
            if (auto refusal = refuse(request, route.right)) {
                return respond(*std::move(refusal));
            }
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
