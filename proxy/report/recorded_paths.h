#pragma once

#include "map/picture.h"

#include <cstdint>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace tw::report {

enum class PathsError : std::uint8_t {
    unreadable,    ///< the file cannot be read
    no_characters, ///< it holds no snapshot with characters
};

/// The ways of the tees in a file of records, one for each player.
[[nodiscard]] tl::expected<std::vector<map::Path>, PathsError>
read_recorded_paths(const std::string& path);

} // namespace tw::report
