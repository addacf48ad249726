#pragma once

#include "proxy/admin/state.h"

#include <string>

namespace tw::admin {

/// The state as one JSON object, for the page and for scripts. Always valid UTF-8; keys are only
/// ever added.
[[nodiscard]] std::string state_json(const State& state);

/// Its sessions alone.
[[nodiscard]] std::string sessions_json(const State& state);
/// Its findings alone: how often each occurred and what usually causes it, and the latest.
[[nodiscard]] std::string findings_json(const State& state);

} // namespace tw::admin
