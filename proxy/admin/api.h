#pragma once

#include "proxy/admin/http_server.h"
#include "proxy/admin/map_json.h"
#include "proxy/admin/viewers.h"
#include "proxy/admin/wishes.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tw::admin {

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

} // namespace tw::admin
