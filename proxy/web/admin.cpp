#include "proxy/web/admin.h"

#include "proxy/web/page_files.h"
#include "proxy/web/page_json.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tw::web {

namespace {

constexpr const char* kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";
constexpr unsigned kServiceUnavailable = 503;

void show_page_file(RequestContext& /*context*/, const Request& request, const Respond& respond) {
    const PageFile& file = *find_page_file(request.path);
    respond({.content_type = std::string{file.content_type},
             .body = request.accepts_gzip ? file.gzipped : std::string{file.text},
             .is_gzipped = request.accepts_gzip,
             .content_policy = std::string{page_security_policy()}});
}

template <std::string (*Text)(const RunState&)>
void show_state(RequestContext& context, const Request& /*request*/, const Respond& respond) {
    Response response = json_response(Text(context.state()));
    response.content_type = Text == metrics_text ? kPrometheusText : response.content_type;
    respond(std::move(response));
}

void show_sessions(RequestContext& context, const Request& request, const Respond& respond) {
    const auto server = query_text(request.query, "server");
    if (!server && query_value(request.query, "server")) {
        return respond({.status = 400, .body = "percent-encode server: a space is %20\n"});
    }
    respond(json_response(sessions_json(
        server && !server->empty() ? context.data.state_of_server(*server) : context.state())));
}

void show_objects(RequestContext& context, const Request& /*request*/, const Respond& respond) {
    respond(json_response(objects_json(context.data.objects())));
}

void show_filter_keys(RequestContext& context, const Request& /*request*/, const Respond& respond) {
    respond(json_response(context.data.filter_keys_json()));
}

Response health_response(const Health& health) {
    return {.status = health.ok ? 200 : kServiceUnavailable, .body = health.text + '\n'};
}

void show_liveness(RequestContext& context, const Request& /*request*/, const Respond& respond) {
    respond(health_response(context.data.check_liveness()));
}

/// Answers /readyz. On a connection reserved for health checks, sends the result of the previous
/// check without waiting for a new one.
void show_readiness(RequestContext& context, const Request& request, const Respond& respond) {
    if (request.is_reserved) {
        respond(health_response(
            context.readiness.value_or(Health{.text = "too many requests; try again"})));
    }
    context.data.check_readiness(
        [&context, respond = request.is_reserved ? Respond{} : respond](const Health& health) {
            context.readiness = health;
            if (respond) {
                respond(health_response(health));
            }
        });
}

void show_impairment(RequestContext& context, const Request& /*request*/, const Respond& respond) {
    respond({.body = context.data.state().impairment + '\n'});
}

void set_impairment(RequestContext& context, const Request& request, const Respond& respond) {
    if (request.body.empty()) {
        return respond(
            {.status = 400,
             .body = "expected an impairment, for example s2c:delay=40ms,loss=2%, or none\n"});
    }
    std::string_view text = request.body;
    while (text.ends_with('\n') || text.ends_with('\r')) {
        text.remove_suffix(1);
    }
    if (const auto done = context.data.set_impairment(std::string{text}); !done) {
        return respond({.status = 400, .body = done.error() + '\n'});
    }
    const RunState state = context.data.state();
    context.impairment_change = ImpairmentChange{
        .time_ms = state.now_ms, .client_name = request.client_name, .settings = state.impairment};
    show_impairment(context, request, respond);
}

void show_explanation(RequestContext& context, const Request& request, const Respond& respond) {
    const auto session = query_number<std::uint32_t>(request.query, "session");
    const auto tick = query_number<std::int64_t>(request.query, "tick");
    if (!session || !tick) {
        return respond({.status = 400,
                        .body = "name a finding, for example /api/explain?session=1&tick=1000\n"});
    }
    if (auto explanation = context.data.explain_finding(*session, *tick)) {
        return respond({.body = *std::move(explanation)});
    }
    respond({.status = 404,
             .body = "only the latest findings about snapshots have an explanation; "
                     "'twscope explain' reads the records\n"});
}

void write_flight_recording(RequestContext& context, const Request& request,
                            const Respond& respond) {
    constexpr unsigned kConflict = 409;
    const auto session = request.query.empty()
                             ? std::optional<std::uint32_t>{0}
                             : query_number<std::uint32_t>(request.query, "session");
    if (!session) {
        return respond(
            {.status = 400,
             .body = "name a session, for example /api/flight?session=1, or none for all\n"});
    }
    if (!context.data.state().recording.has_flight_recorder) {
        return respond({.status = kConflict, .body = "there is no flight recorder\n"});
    }
    if (!context.data.write_flight_recording(*session)) {
        return respond(
            {.status = 404,
             .body = "no such session is open; without session, everything kept is written\n"});
    }
    respond({.body = "written\n"});
}

/// A request that the server answers: its method and path, and the function that answers it.
struct Route {
    std::string_view method;
    std::string_view path;
    AccessLevel level;
    void (*answer)(RequestContext&, const Request&, const Respond&);
};

constexpr std::array<Route, 23> kRoutes{
    {{"GET", "/", AccessLevel::page, show_page_file},
     {"GET", "/page.js", AccessLevel::page, show_page_file},
     {"GET", "/page.css", AccessLevel::page, show_page_file},
     {"GET", "/healthz", AccessLevel::health, show_liveness},
     {"GET", "/readyz", AccessLevel::health, show_readiness},
     {"GET", "/metrics", AccessLevel::read, show_state<metrics_text>},
     {"GET", "/api/state", AccessLevel::read, show_state<state_json>},
     {"GET", "/api/sessions", AccessLevel::read, show_sessions},
     {"GET", "/api/findings", AccessLevel::read, show_state<findings_json>},
     {"GET", "/api/explain", AccessLevel::read, show_explanation},
     {"GET", "/api/world", AccessLevel::read, send_next_snapshot},
     {"GET", "/api/records", AccessLevel::read, send_records},
     {"GET", "/api/map", AccessLevel::read, send_map},
     {"GET", "/api/map_design", AccessLevel::read, send_map_design},
     {"GET", "/api/map_image", AccessLevel::read, send_map_image},
     {"GET", "/api/objects", AccessLevel::read, show_objects},
     {"GET", "/api/keys", AccessLevel::read, show_filter_keys},
     {"GET", "/api/impairment", AccessLevel::read, show_impairment},
     {"PUT", "/api/impairment", AccessLevel::change, set_impairment},
     {"GET", "/api/recordings", AccessLevel::read, send_recording_list},
     {"POST", "/api/recordings", AccessLevel::change, switch_recordings},
     {"GET", "/api/recording", AccessLevel::change, send_recording},
     {"POST", "/api/flight", AccessLevel::change, write_flight_recording}}};

} // namespace

AdminServer::AdminServer(AccessOptions access, const std::vector<ListeningSocket>& listening,
                         PageData& data)
    : context_{data}, access_{std::move(access)},
      server_{
          listening,
          HttpHandlers{
              .handler = [this](const Request& request,
                                const Respond& respond) { answer_request(request, respond); },
              .answer_upgrade = [this](const Request& request) { return answer_upgrade(request); },
              .update =
                  [this] {
                      context_.viewers.disconnect_viewers_with_other_token(token_number_);
                      return context_.viewers.fetch_and_send();
                  }}} {}

/// Answers a request for a WebSocket. Only the live page may open a WebSocket: browsers let pages
/// of other sites open WebSockets to any server and read the answers.
WebSocketAnswer AdminServer::answer_upgrade(const Request& request) {
    if (auto refusal = refuse_foreign_origin(request, access_)) {
        return {.refusal = std::move(refusal)};
    }
    if (request.path != "/api/live") {
        return {.refusal = Response{.status = 404, .body = "the WebSocket is at /api/live\n"}};
    }
    // If the token changes after the check below, the viewer has an old number and is disconnected.
    const std::uint32_t token = token_number_;
    const std::string from_page = "Bearer " + token_in_protocols(request.protocols);
    Request authorized = request;
    authorized.authorization = request.authorization.empty() ? from_page : request.authorization;
    if (auto refusal = refuse_request(authorized, AccessLevel::read)) {
        return {.refusal = std::move(refusal)};
    }
    Request without = request;
    without.authorization = {};
    const bool needs_token = refuse_request(without, AccessLevel::read).has_value();
    if (!context_.viewers.has_room_for(request.peer)) {
        return {.refusal = Response{.status = 503, .body = "too many viewers\n"}};
    }
    return {.on_open = [this, peer = request.peer, used_token = needs_token ? token : 0](
                           const std::shared_ptr<WebSocket>& socket) {
        // Another viewer may have connected between the request and its acceptance.
        if (!context_.viewers.has_room_for(peer)) {
            return socket->close("too many viewers");
        }
        context_.viewers.add_viewer(socket, peer, used_token);
    }};
}

void AdminServer::set_token(const std::string& token) {
    const std::scoped_lock lock{access_mutex_};
    token_number_ += access_.token == token ? 0 : 1;
    access_.token = token;
}

std::optional<Response> AdminServer::refuse_request(const Request& request, AccessLevel level) {
    const std::scoped_lock lock{access_mutex_};
    return refuse_access(request, level, access_);
}

void AdminServer::answer_request(const Request& request, const Respond& respond) {
    const std::string_view method = request.method == "HEAD" ? "GET" : request.method;
    // A load balancer's health check has no Host header (in HTTP/1.0), or any name in it.
    const bool is_health_check = std::ranges::any_of(kRoutes, [&](const Route& route) {
        return route.level == AccessLevel::health && route.method == method &&
               route.path == request.path;
    });
    if (auto refusal = refuse_foreign_origin(request, access_); refusal && !is_health_check) {
        return respond(*std::move(refusal));
    }
    std::string allow;
    for (const Route& route : kRoutes) {
        if (route.path != request.path) {
            continue;
        }
        if (route.method == method) {
            if (auto refusal = refuse_request(request, route.level)) {
                return respond(*std::move(refusal));
            }
            return route.answer(context_, request, respond);
        }
        allow += allow.empty() ? "" : ", ";
        allow += route.method;
    }
    if (allow.empty()) {
        return respond({.status = 404, .body = "not found; the page is at /\n"});
    }
    respond({.status = 405, .body = "only " + allow + '\n', .allow = allow});
}

} // namespace tw::web
