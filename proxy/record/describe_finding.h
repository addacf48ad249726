#pragma once

#include "proxy/record/records.h"

#include <string>

namespace tw::record {

/// One line for a finding; safe on a terminal.
[[nodiscard]] std::string describe(const FindingRecord& record);

/// The line of a snapshot.crc_mismatch that a snapshot.explained explains: with what is known now.
[[nodiscard]] std::string describe_explained(const FindingRecord& explained);

} // namespace tw::record
