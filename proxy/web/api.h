#pragma once

#include "proxy/web/http_server.h"
#include "proxy/web/page_data.h"
#include "proxy/web/page_json.h"
#include "proxy/web/record_requests.h"
#include "proxy/web/run_state.h"
#include "proxy/web/viewers.h"

#include <optional>

#include <tl/expected.hpp>

namespace tw::web {

/// The data that the functions that answer HTTP requests use. Used only on the HTTP server's
/// thread.
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

/// GET /api/recordings: lists the recordings.
void send_recording_list(RequestContext& context, const Request& request, const Respond& respond);

/// POST /api/recordings?capture=on, or ?demos=off and so on: starts or stops a recording.
void switch_recordings(RequestContext& context, const Request& request, const Respond& respond);

/// GET /api/recording?name=NAME: sends a recorded file.
void send_recording(RequestContext& context, const Request& request, const Respond& respond);

/// GET /api/map?session=N: sends the physics layers of the session's map.
void send_map(RequestContext& context, const Request& request, const Respond& respond);

/// GET /api/map_design?session=N: sends map_design_json() of the session's map.
void send_map_design(RequestContext& context, const Request& request, const Respond& respond);

/// GET /api/map_image?session=N&image=N: sends image_pixels() of the session's map.
void send_map_image(RequestContext& context, const Request& request, const Respond& respond);

/// GET /api/world?session=N: sends the session's next snapshot as a JSON line with all items.
/// Without `session`, sends the next merged snapshot of all sessions.
void send_next_snapshot(RequestContext& context, const Request& request, const Respond& respond);

/// GET /api/records?filter=TEXT&wait=SECONDS&limit=N: sends the records of the next SECONDS that
/// match the filter, as JSON lines.
void send_records(RequestContext& context, const Request& request, const Respond& respond);

} // namespace tw::web
