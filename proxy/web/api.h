#pragma once

#include "proxy/web/http_server.h"
#include "proxy/web/page_json.h"
#include "proxy/web/record_requests.h"
#include "proxy/web/viewers.h"

#include <cstddef>
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

/// GET /api/recordings: lists the recordings.
void send_recording_list(const RecordingSources& sources, const Request& request,
                         const Respond& respond);

/// POST /api/recordings?capture=on, or demos=off: starts or stops a recording.
void switch_recordings(const RecordingSources& sources, const Request& request,
                       const Respond& respond);

/// GET /api/recording?name=NAME: sends a recorded file.
void send_recording(const RecordingSources& sources, const Request& request,
                    const Respond& respond);

/// The functions that answer requests below /api, apart from the state.
struct ApiSources {
    /// Returns the map of a session; null if it is unknown.
    std::function<std::shared_ptr<const map::PhysicsLayers>(std::uint32_t session)> map{};
    /// Returns the bytes of a session's map file; null if it is unknown.
    std::function<std::shared_ptr<const std::vector<std::byte>>(std::uint32_t session)> map_file{};
    /// Returns the keys that filters can use, and their possible values, as JSON.
    std::function<std::string()> keys_json{};
    MakeLineFilter make_filter{};
};

/// /api/map?session=N: sends the physics layers of the session's map.
void send_map(const ApiSources& sources, CompressedMapCache& packed, const Request& request,
              const Respond& respond);

/// /api/world?session=N: sends the session's next snapshot as a JSON line with all items. Without
/// `session`, sends the next merged snapshot of all sessions.
void send_next_snapshot(Viewers& viewers, const Request& request, const Respond& respond);

/// /api/records?filter=TEXT&wait=SECONDS&limit=N: sends the records of the next SECONDS that match
/// the filter, as JSON lines.
void send_records(const ApiSources& sources, Viewers& viewers, const Request& request,
                  const Respond& respond);

} // namespace tw::web
