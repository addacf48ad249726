#pragma once

#include "proxy/web/api.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace tw::web {

/// Returns the design of a map file as JSON: its plain tile layers that move with the game layer,
/// from back to front, and the embedded images that these layers use. Tiles are in base64, with
/// index and flags of each tile, rows from the top. Layers and images that are too large to send
/// are left out; all layers are left out if no image can be sent. Returns nullopt if the file is
/// too large or not a map.
[[nodiscard]] std::optional<std::string> map_design_json(std::span<const std::byte> file);

/// Returns the pixels of an embedded image of a map file: RGBA, rows from the top. Returns nullopt
/// if the image is not embedded, has no usable size or cannot be read.
[[nodiscard]] std::optional<std::string> image_pixels(std::span<const std::byte> file,
                                                      std::uint32_t number);

/// /api/map_design?session=N: sends map_design_json() of the session's map.
void send_map_design(RequestContext& context, const Request& request, const Respond& respond);

/// /api/map_image?session=N&image=N: sends image_pixels().
void send_map_image(RequestContext& context, const Request& request, const Respond& respond);

} // namespace tw::web
