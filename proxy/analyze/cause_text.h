#pragma once

#include <string_view>

namespace tw::analyze {

/// Returns where to look for the cause of a finding about snapshots; empty if nothing is known.
/// `id`: the finding's id. `name`: the record's member `name`, which tells causes apart.
[[nodiscard]] std::string_view find_cause_hint(std::string_view id, std::string_view name);

} // namespace tw::analyze
