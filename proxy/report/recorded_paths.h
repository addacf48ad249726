#pragma once

#include "map/picture.h"

#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace tw::report {

/// The ways of the tees in a file of records (`twscope proxy -o`), one for each player.
/// Errors: one line, when the file cannot be read or holds no snapshot with characters.
[[nodiscard]] tl::expected<std::vector<map::Path>, std::string>
read_recorded_paths(const std::string& path);

} // namespace tw::report
