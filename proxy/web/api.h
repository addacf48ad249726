#pragma once

#include "proxy/web/http_server.h"
#include "proxy/web/page_json.h"
#include "proxy/web/record_requests.h"
#include "proxy/web/viewers.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::web {

/// The kinds of recording that the page can start.
enum class RecordingKind : std::uint8_t { capture, demos };

struct RecordedFile {
    std::string name{};
    std::uint64_t bytes = 0;
    std::int64_t time_ms = 0; ///< last modification, in milliseconds since 1970
};

/// Access to the recordings that were started from the page. Used on the server's thread only.
struct RecordingSources {
    /// Starts or stops a recording. The function is empty if there is no folder for recordings.
    /// Errors: one line with the reason.
    std::function<tl::expected<void, std::string>(RecordingKind kind, bool on)> set{};
    /// Lists the newest files first, at most as many as a page shows. The function is empty if there is
    /// no folder for recordings.
    std::function<std::vector<RecordedFile>()> list{};
    /// Opens a listed file by its name; returns null if the file does not exist.
    std::function<std::shared_ptr<const ServedFile>(std::string_view name)> open{};
};

/// GET /api/recordings: lists the recordings.
void show_recordings(const RecordingSources& sources, const Request& request,
                     const Respond& respond);

/// POST /api/recordings?capture=on, or demos=off: starts or stops a recording.
void switch_recordings(const RecordingSources& sources, const Request& request,
                       const Respond& respond);

/// GET /api/recording?name=NAME: sends the file.
void send_recording(const RecordingSources& sources, const Request& request,
                    const Respond& respond);

/// The functions that answer requests below /api, apart from the state.
struct ApiSources {
    /// Returns the map of a session; null if it is unknown.
    std::function<std::shared_ptr<const map::Physics>(std::uint32_t session)> map{};
    /// Returns the keys that filters can use, and their possible values, as JSON.
    std::function<std::string()> keys_json{};
    MakeLineFilter make_filter{};
};

/// /api/map?session=N: sends the physics layers of the session's map.
void show_map(const ApiSources& sources, PackedMaps& packed, const Request& request,
              const Respond& respond);

/// /api/world?session=N: sends the session's next snapshot as a record line with all items. Without
/// `session`, sends the next merged snapshot of all sessions.
void show_world(Viewers& viewers, const Request& request, const Respond& respond);

/// /api/records?filter=TEXT&wait=SECONDS&limit=N: sends the records that match the filter, as
/// lines.
void show_records(const ApiSources& sources, Viewers& viewers, const Request& request,
                  const Respond& respond);

} // namespace tw::web
