#pragma once

#include "map/picture.h"

#include <string>
#include <vector>

namespace tw {

/// The ways of the tees in a file of records (`twscope proxy -o`), one for each player.
/// Errors: UsageError when the file cannot be read or holds no snapshot with characters.
[[nodiscard]] std::vector<map::Path> read_recorded_paths(const std::string& path);

} // namespace tw
