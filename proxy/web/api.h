#pragma once

#include "proxy/web/http_server.h"
#include "proxy/web/page_json.h"
#include "proxy/web/record_requests.h"
#include "proxy/web/state.h"
#include "proxy/web/viewers.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace tw::web {

/// The kinds of recording that the page can start.
enum class RecordingKind : std::uint8_t { capture, demos };

struct RecordedFile {
    std::string name{};
    std::uint64_t bytes = 0;
    std::int64_t time_ms = 0; ///< latest modification, in milliseconds since 1970
};

/// Functions for the recordings that viewers start on the page. Called only on the HTTP server's
/// thread.
struct RecordingSources {
    /// Starts or stops a recording. Empty without a folder for recordings.
    std::function<tl::expected<void, std::string>(RecordingKind kind, bool on)> set{};
    /// Lists recorded files, the newest first, at most as many as the page shows. Empty without a
    /// folder for recordings.
    std::function<std::vector<RecordedFile>()> list{};
    /// Opens a recorded file by its name. Returns null if the file does not exist.
    std::function<std::shared_ptr<const ServedFile>(std::string_view name)> open{};
};

/// Functions that return maps and filter keys for requests below /api.
struct ApiSources {
    /// Returns the map of a session; null if the map is unknown.
    std::function<std::shared_ptr<const map::PhysicsLayers>(std::uint32_t session)> map{};
    /// Returns the bytes of a session's map file; null if the file is unknown.
    std::function<std::shared_ptr<const std::vector<std::byte>>(std::uint32_t session)> map_file{};
    /// Returns the keys that filters can use, and their possible values, as JSON.
    std::function<std::string()> keys_json{};
    MakeLineFilter make_filter{};
};

/// The result of a health check, with the reason for a failure.
struct Health {
    bool ok = false;
    std::string text; ///< one line
};

/// The functions from which the page gets its data. They are called on the HTTP server's thread.
struct PageSources {
    std::function<RunState()> state;
    /// Returns the state of one game server, with more sessions than `state` lists for the server.
    /// Unset if `state` lists the sessions of all servers.
    std::function<RunState(const std::string& server)> state_of{};
    /// Checks at once whether twscope's processes work. After a failure, only a restart helps.
    std::function<Health()> live;
    /// Tests whether players can play. Calls its argument with the result, now or later.
    std::function<void(std::function<void(Health)>)> ready;
    /// Sets the impairment from a text in the format of relay::parse_impairment.
    /// Errors: one line that says what is wrong with the text.
    std::function<tl::expected<void, std::string>(const std::string&)> set_impairment;
    /// Writes the flight recorder's datagrams of a session, or of all sessions if `session` is 0.
    /// Returns false if the session does not exist. Empty without a flight recorder.
    std::function<bool(std::uint32_t session)> write_flight_data{};
    RecordingSources recordings{};
    /// Returns an explanation of the findings about a session's snapshot of this tick; nullopt if
    /// there are no findings.
    std::function<std::optional<std::string>(std::uint32_t session, std::int64_t tick)> explain;
    ApiSources api{};
    /// The members `make_filter` and `state_json` are set by AdminServer.
    ViewSources view{};
};

/// The data from which HTTP requests are answered. Used only on the HTTP server's thread.
struct RequestContext {
    explicit RequestContext(PageSources from);

    /// Returns `sources.state()`, completed with the number of viewers and the latest change of the
    /// impairment.
    [[nodiscard]] RunState state() const;

    [[nodiscard]] RunState state_of(const std::string& server) const;

    PageSources sources;
    /// The latest change of the impairment that was made on the page.
    std::optional<ImpairmentChange> impaired{};
    CompressedMapCache maps;
    std::optional<Health> readiness{}; ///< the latest result of PageSources::ready
    Viewers viewers;
};

/// GET /api/recordings: lists the recordings.
void send_recording_list(RequestContext& context, const Request& request, const Respond& respond);

/// POST /api/recordings?capture=on, or demos=off: starts or stops a recording.
void switch_recordings(RequestContext& context, const Request& request, const Respond& respond);

/// GET /api/recording?name=NAME: sends a recorded file.
void send_recording(RequestContext& context, const Request& request, const Respond& respond);

/// /api/map?session=N: sends the physics layers of the session's map.
void send_map(RequestContext& context, const Request& request, const Respond& respond);

/// /api/world?session=N: sends the session's next snapshot as a JSON line with all items. Without
/// `session`, sends the next merged snapshot of all sessions.
void send_next_snapshot(RequestContext& context, const Request& request, const Respond& respond);

/// /api/records?filter=TEXT&wait=SECONDS&limit=N: sends the records of the next SECONDS that match
/// the filter, as JSON lines.
void send_records(RequestContext& context, const Request& request, const Respond& respond);

} // namespace tw::web
