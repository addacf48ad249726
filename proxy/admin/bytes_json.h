#pragma once

#include "proxy/record/ledger.h"

#include <string>
#include <vector>

namespace tw::admin {

/// Where the bytes went, for viewers: adds up the accounts of the workers; the rows that cost the most,
/// as [direction, group, name, bits, count].
[[nodiscard]] std::string bytes_json(const std::vector<std::vector<record::LedgerRow>>& ledgers);

} // namespace tw::admin
