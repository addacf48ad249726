#pragma once

#include "proxy/record/stats.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tw::report {

/// What captures held, for people: sessions, snapshots, and a line for each finding that occurred.
[[nodiscard]] std::string totals_text(const std::vector<std::string>& captures,
                                      const record::SessionStats& totals, std::uint32_t sessions);

} // namespace tw::report
