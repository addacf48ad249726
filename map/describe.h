#pragma once

#include "map/game_layer.h"
#include "map/map.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::map {

/// A position that need not be whole.
struct PointToDescribe {
    double x = 0, y = 0;
};

/// What a description answers beyond what is in the file.
struct DescribeOptions {
    std::string_view file;               ///< base name, printed as `file`
    std::optional<std::string_view> set; ///< where it is from, printed as `set` if given
    std::span<const PointToDescribe> points;
    std::span<const WorldPos> boxes; ///< centres of tees
};

/// Everything about a map as one JSON object on one line: file, checksums, container, items, game
/// layer, DDNet's layers, verdict, warnings, and what is at the given positions.
///
/// Layout:  FORMAT.md, section 8. Always valid UTF-8.
/// Units:   points and boxes in world units.
[[nodiscard]] std::string describe_json(const Map& map, const DescribeOptions& options);

/// The same of a file that is no map, as far as it goes: file, checksums, the container if it can
/// be read, and the verdict.
[[nodiscard]] std::string describe_rejected_json(std::vector<std::byte> bytes,
                                                 const MapError& error,
                                                 const DescribeOptions& options);

} // namespace tw::map
