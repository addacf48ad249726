#pragma once

#include "proxy/record/records.h"

#include <string>

namespace tw::record {

/// One line for a finding; safe on a terminal.
[[nodiscard]] std::string describe(const FindingRecord& record);

} // namespace tw::record
