#pragma once

#include "proxy/capture/demo_error.h"
#include "proxy/sink/demo_format.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::capture {

/// Whether a file that begins so is meant to be a demo.
[[nodiscard]] bool looks_like_demo(std::span<const std::byte> begin);

/// A demo's header, and where its parts stand.
struct DemoHead {
    sink::demo::Header header;
    std::size_t map_at = 0;              ///< the map's first byte
    std::span<const std::byte> map{};    ///< empty: the demo has none
    std::span<const std::byte> chunks{}; ///< all that follows
    std::size_t chunks_at = 0;
};

/// Reads the header of versions 3 to 6. Texts end at their NUL, or with their field. A version 6
/// without its extension is read as DDNet reads it: the map stands in its place.
///
/// Errors:  no_demo, version_unsupported, header_cut, map_size_invalid, map_cut.
/// Source:  DEMO.md; demo sheet, section 2.
[[nodiscard]] DemoResult<DemoHead> decode_demo_head(std::span<const std::byte> file);

/// Nanoseconds since 1970 of a header's timestamp, taken for UTC; nothing when it is none.
[[nodiscard]] std::optional<std::int64_t> demo_time(std::string_view timestamp);

} // namespace tw::capture
