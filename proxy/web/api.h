#pragma once

#include "proxy/web/http_server.h"
#include "proxy/web/page_json.h"
#include "proxy/web/record_requests.h"
#include "proxy/web/viewers.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::web {

/// What can be recorded from the page.
enum class RecordingKind : std::uint8_t { capture, demos };

/// A file that was recorded.
struct RecordedFile {
    std::string name{};
    std::uint64_t bytes = 0;
    std::int64_t time_ms = 0; ///< since 1970: when it was last written to
};

/// What the page may record, and have; on the server's thread.
struct RecordingSources {
    /// Switches on or off. Errors: one line that says why it cannot be. None: there is no folder.
    std::function<tl::expected<void, std::string>(RecordingKind kind, bool on)> set{};
    /// The newest first; at most so many as a page can show. None: there is no folder.
    std::function<std::vector<RecordedFile>()> list{};
    /// One of those by its name; null: there is none.
    std::function<std::shared_ptr<const ServedFile>(std::string_view name)> open{};
};

/// GET /api/recordings: what is there.
void show_recordings(const RecordingSources& sources, const Request& request,
                     const Respond& respond);

/// POST /api/recordings?capture=on, or demos=off, and so on.
void switch_recordings(const RecordingSources& sources, const Request& request,
                       const Respond& respond);

/// GET /api/recording?name=NAME: the file.
void send_recording(const RecordingSources& sources, const Request& request,
                    const Respond& respond);

/// What /api gives besides the state.
struct ApiSources {
    /// Of a session; null: it is not known.
    std::function<std::shared_ptr<const map::Physics>(std::uint32_t session)> map{};
    /// What filters can name: keys, and the words that they can hold.
    std::function<std::string()> keys_json{};
    MakeLineFilter make_filter{};
};

/// /api/map?session=N: its physics layers.
void show_map(const ApiSources& sources, PackedMaps& packed, const Request& request,
              const Respond& respond);

/// /api/world?session=N: its next snapshot, without `session` the next world of all sessions, as a line
/// of records with all items.
void show_world(Viewers& viewers, const Request& request, const Respond& respond);

/// /api/records?filter=TEXT&wait=SECONDS&limit=N: what passes, as lines of records.
void show_records(const ApiSources& sources, Viewers& viewers, const Request& request,
                  const Respond& respond);

} // namespace tw::web
