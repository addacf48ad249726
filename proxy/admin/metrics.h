#pragma once

#include "proxy/admin/state.h"

#include <string>

namespace tw::admin {

/// The state as Prometheus' text format. Base units, `_total` on counters; the only labels are
/// direction, result, finding, item_type and, where the configuration names servers, server, so that
/// no peer can add a series: items that nobody described count as one type, `unknown`.
[[nodiscard]] std::string metrics_text(const State& state);

} // namespace tw::admin
