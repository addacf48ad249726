#pragma once

#include "proxy/admin/state.h"

#include <string>

namespace tw::admin {

/// The state as one JSON object, for the page and for scripts. Always valid UTF-8; keys are only
/// ever added.
[[nodiscard]] std::string state_json(const State& state);

} // namespace tw::admin
