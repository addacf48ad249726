#include "proxy/web/api.h"

#include "map/game_layer.h"
#include "proxy/record/json.h"
#include "proxy/web/access.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tw::web {

RequestContext::RequestContext(PageData& page)
    : data{page}, viewers{page, [this] { return state_json(state()); }} {}

RunState RequestContext::state() const {
    RunState state = data.state();
    state.view.limit_sessions(false);
    state.impairment_change = impairment_change;
    state.viewers = viewers.size();
    state.dropped_viewer_messages = viewers.dropped_message_count();
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

constexpr unsigned kConflict = 409;
constexpr const char* kNoFolderText =
    "there is no folder for recordings; twscope is given one at start";

/// A request to start or stop a recording.
struct SwitchRequest {
    std::string_view name;
    RecordingKind kind;
    bool on;
};

/// Parses a query such as "capture=on"; nullopt if the query does not name exactly one recording.
std::optional<SwitchRequest> parse_switch_request(std::string_view query) {
    std::optional<SwitchRequest> wanted;
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
        wanted = SwitchRequest{.name = name, .kind = kind, .on = *value == "on"};
    }
    return wanted;
}

} // namespace

tl::expected<void, std::string> PageData::switch_recording(RecordingKind /*kind*/, bool /*on*/) {
    return tl::unexpected{std::string{kNoFolderText}};
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
    const auto wanted = parse_switch_request(request.query);
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

namespace {

/// The maximum number of tiles of a map that is sent. A browser could not show a larger map, and
/// converting it would take too much memory.
constexpr std::int64_t kMaxTiles = std::int64_t{1} << 21U;
/// The longest wait in seconds that a request may ask for. It is shorter than HttpTimeouts::usual,
/// so that the connection does not time out before the response.
constexpr double kMaxWaitSeconds = 4;
constexpr std::size_t kDefaultRecordLimit = 1000;
constexpr std::size_t kMaxRecordLimit = 10000;

} // namespace

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

namespace {

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

} // namespace

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

} // namespace tw::web
