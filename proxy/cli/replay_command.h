#pragma once

#include "proxy/replay/replay_run.h"

#include <cstdint>
#include <string>

namespace tw::cli {

/// Describes what a replay did. `withheld`: messages of its scripts that were not sent.
[[nodiscard]] std::string replay_text(const replay::ReplayResult& result, std::uint64_t withheld);

} // namespace tw::cli
