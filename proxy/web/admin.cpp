#include "proxy/web/admin.h"

#include "map/game_layer.h"
#include "proxy/record/json.h"
#include "proxy/web/page_files.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>

#include <fmt/format.h>

namespace tw::web {

RequestContext::RequestContext(PageData& page)
    : data{page}, viewers{page, [this] { return state_json(state()); }} {}

RunState RequestContext::state() const {
    RunState state = data.state();
    state.view.limit_sessions(false);
    state.impairment_change = impairment_change;
    state.viewers = viewers.size();
    state.dropped_viewer_messages = viewers.num_dropped_messages();
    return state;
}

RunState PageData::state_of_server(const std::string& server) const {
    RunState of_server = state();
    std::erase_if(of_server.view.sessions,
                  [&](const SessionView& session) { return session.server_name != server; });
    const auto seen = of_server.view.servers.find(server);
    of_server.view.sessions_open = seen == of_server.view.servers.end() ? 0 : seen->second.sessions;
    return of_server;
}

namespace {

constexpr const char* kNoFolderText =
    "there is no folder for recordings; twscope is given one at start";

} // namespace

tl::expected<void, std::string> PageData::switch_recording(RecordingKind /*kind*/, bool /*on*/) {
    return tl::unexpected{std::string{kNoFolderText}};
}

namespace {

constexpr const char* kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";
constexpr unsigned kServiceUnavailable = 503;
constexpr unsigned kConflict = 409;
/// The maximum number of tiles of a map that is sent. A browser could not show a larger map, and
/// converting it would take too much memory.
constexpr std::int64_t kMaxTiles = std::int64_t{1} << 21U;
/// The longest wait in seconds that a request may ask for. It is shorter than HttpTimeouts::usual,
/// so that the connection does not time out before the response.
constexpr double kMaxWaitSeconds = 4;
constexpr std::size_t kDefaultRecordLimit = 1000;
constexpr std::size_t kMaxRecordLimit = 10000;

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

Response health_response(const Health& health) {
    return {.status = health.ok ? 200 : kServiceUnavailable, .body = health.text + '\n'};
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

/// A request to start or stop a recording.
struct RecordingSwitch {
    std::string_view name;
    RecordingKind kind;
    bool on;
};

/// Parses a query such as "capture=on"; nullopt if the query does not name exactly one recording.
std::optional<RecordingSwitch> parse_recording_switch(std::string_view query) {
    std::optional<RecordingSwitch> wanted;
    constexpr std::array<std::pair<std::string_view, RecordingKind>, 2> kSwitches{
        {{"capture", RecordingKind::capture}, {"demos", RecordingKind::demos}}};
    for (const auto& [name, kind] : kSwitches) {
        const auto value = query_value(query, name);
        if (!value) {
            continue;
        }
        if (wanted || (*value != "on" && *value != "off")) {
            return std::nullopt;
        }
        wanted = RecordingSwitch{.name = name, .kind = kind, .on = *value == "on"};
    }
    return wanted;
}

void send_recording_list(RequestContext& context, const Request& /*request*/,
                         const Respond& respond) {
    const auto recordings = context.data.list_recordings();
    if (!recordings) {
        return respond({.status = kConflict, .body = std::string{kNoFolderText} + '\n'});
    }
    boost::json::array files;
    for (const RecordedFile& file : *recordings) {
        files.push_back(boost::json::object{
            {"name", file.name}, {"bytes", file.bytes}, {"time_ms", file.time_ms}});
    }
    respond(json_response(
        record::json_text(boost::json::object{{"v", 1}, {"files", std::move(files)}}) + '\n'));
}

void switch_recordings(RequestContext& context, const Request& request, const Respond& respond) {
    const auto wanted = parse_recording_switch(request.query);
    if (!wanted) {
        return respond({.status = 400,
                        .body = "expected one of capture or demos, on or off, for example "
                                "/api/recordings?capture=on\n"});
    }
    if (const auto done = context.data.switch_recording(wanted->kind, wanted->on); !done) {
        return respond({.status = kConflict, .body = done.error() + '\n'});
    }
    respond({.body = fmt::format("{} {}\n", wanted->name, wanted->on ? "on" : "off")});
}

void send_recording(RequestContext& context, const Request& request, const Respond& respond) {
    const auto name = query_text(request.query, "name");
    auto file = name ? context.data.open_recording(*name) : nullptr;
    if (file == nullptr) {
        return respond({.status = 404, .body = "no such recording; /api/recordings lists them\n"});
    }
    respond({.content_type = "application/octet-stream",
             .body = {},
             .file = std::move(file),
             .file_name = *name});
}

void send_map(RequestContext& context, const Request& request, const Respond& respond) {
    const auto session = query_number<std::uint32_t>(request.query, "session");
    if (!session) {
        return respond({.status = 400, .body = "name a session, for example /api/map?session=1\n"});
    }
    const auto physics = context.data.map_of_session(*session).physics;
    if (physics == nullptr) {
        return respond({.status = 404, .body = "the map of that session is unknown\n"});
    }
    if (std::int64_t{physics->width()} * physics->height() > kMaxTiles) {
        return respond({.status = 404, .body = "that map is too large to show\n"});
    }
    Response response = json_response(
        request.accepts_gzip ? *context.maps.compressed_map_json(physics) : map_json(*physics));
    response.is_gzipped = request.accepts_gzip;
    respond(std::move(response));
}

/// Returns the map file of the request's session; null if there is none.
std::shared_ptr<const std::vector<std::byte>> find_map_file(const PageData& data,
                                                            const Request& request) {
    const auto session = query_number<std::uint32_t>(request.query, "session");
    return session ? data.map_of_session(*session).file_bytes : nullptr;
}

void send_if_found(std::optional<std::string> body, const char* content_type,
                   const Respond& respond) {
    if (!body) {
        return respond({.status = 404,
                        .body = "no such map or image, or it is too large; an example: "
                                "/api/map_design?session=1\n"});
    }
    respond({.content_type = content_type, .body = *std::move(body)});
}

void send_map_design(RequestContext& context, const Request& request, const Respond& respond) {
    const auto file = find_map_file(context.data, request);
    send_if_found(file ? map_design_json(*file) : std::nullopt, "application/json", respond);
}

void send_map_image(RequestContext& context, const Request& request, const Respond& respond) {
    const auto file = find_map_file(context.data, request);
    const auto number = query_number<std::uint32_t>(request.query, "image");
    send_if_found(file && number ? image_pixels(*file, *number) : std::nullopt,
                  "application/octet-stream", respond);
}

void send_next_snapshot(RequestContext& context, const Request& request, const Respond& respond) {
    constexpr std::uint32_t kAll = 0;
    if (!query_value(request.query, "session")) {
        return context.viewers.request_snapshot(kAll, request.peer, respond);
    }
    const auto session = query_number<std::uint32_t>(request.query, "session");
    if (!session || *session == kAll) {
        return respond({.status = 400,
                        .body = "name a session, for example /api/world?session=1, or leave "
                                "session out for the merged world\n"});
    }
    context.viewers.request_snapshot(*session, request.peer, respond);
}

void send_records(RequestContext& context, const Request& request, const Respond& respond) {
    LineFilter filter;
    if (query_value(request.query, "filter")) {
        const auto text = query_text(request.query, "filter");
        if (!text) {
            return respond({.status = 400, .body = "percent-encode the filter: a space is %20\n"});
        }
        auto made = context.data.make_filter(*text);
        if (!made) {
            return respond(
                {.status = 400,
                 .body = fmt::format("{} (at {})\n", made.error().message, made.error().offset)});
        }
        filter = *std::move(made);
    }
    const bool has_wait = query_value(request.query, "wait").has_value();
    const bool has_limit = query_value(request.query, "limit").has_value();
    const auto wait = query_number<double>(request.query, "wait");
    const auto limit = query_number<std::size_t>(request.query, "limit");
    if ((has_wait && !(wait && *wait >= 0 && *wait <= kMaxWaitSeconds)) ||
        (has_limit && !(limit && *limit <= kMaxRecordLimit))) {
        return respond({.status = 400,
                        .body = fmt::format("wait is 0 to {} seconds, limit at most {} records\n",
                                            kMaxWaitSeconds, kMaxRecordLimit)});
    }
    constexpr double kMsPerSecond = 1000;
    context.viewers.request_records(
        std::move(filter),
        std::chrono::milliseconds{static_cast<int>(wait.value_or(1) * kMsPerSecond)},
        limit.value_or(kDefaultRecordLimit), request.peer, respond);
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
     {"GET", "/healthz", AccessLevel::health,
      [](auto& context, auto& /*request*/, auto& respond) {
          respond(health_response(context.data.check_liveness()));
      }},
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
     {"GET", "/api/objects", AccessLevel::read,
      [](auto& context, auto& /*request*/, auto& respond) {
          respond(json_response(objects_json(context.data.objects())));
      }},
     {"GET", "/api/keys", AccessLevel::read,
      [](auto& context, auto& /*request*/, auto& respond) {
          respond(json_response(context.data.filter_keys_json()));
      }},
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
              .answer_request =
                  [this](const Request& request, const Respond& respond) {
                      answer_request(request, respond);
                  },
              .answer_upgrade = [this](const Request& request) { return answer_upgrade(request); },
              .on_update =
                  [this] {
                      context_.viewers.disconnect_viewers_with_other_token(token_number_);
                      return context_.viewers.update_viewers();
                  }}} {}

/// Answers a request for a WebSocket. Refuses requests from pages of other sites, because browsers
/// let any page open a WebSocket to any server and read the data.
WebSocketAnswer AdminServer::answer_upgrade(const Request& request) {
    if (auto refusal = refuse_foreign_origin(request, access_)) {
        return {.refusal = std::move(refusal)};
    }
    if (request.path != "/api/live") {
        return {.refusal = Response{.status = 404, .body = "the WebSocket is at /api/live\n"}};
    }
    // The number is read before the check below. If the token changes in the meantime, the viewer
    // is added with the old number, and is then disconnected.
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
    // Health checks of load balancers may lack the Host header (HTTP/1.0), or contain any name in
    // it. HAProxy sends its health checks with the method OPTIONS by default.
    const bool has_health_path = std::ranges::any_of(kRoutes, [&](const Route& route) {
        return route.level == AccessLevel::health && route.path == request.path;
    });
    const bool means_get =
        request.method == "HEAD" || (has_health_path && request.method == "OPTIONS");
    const std::string_view method = means_get ? "GET" : request.method;
    const bool is_health_check = has_health_path && method == "GET";
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
