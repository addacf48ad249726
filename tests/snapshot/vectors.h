#pragma once

#include "snapshot/snapshot.h"
#include "tests/support/spec_vectors.h"

#include <cstdint>
#include <vector>

namespace tw::snapshot::test {

using namespace tw::test;

std::vector<std::int32_t> ints_of(const boost::json::value& list);
Bytes encode_ints(const std::vector<std::int32_t>& ints);

/// Returns the snapshot in a list of {type, id, data} in any order.
Snapshot snapshot_of(const boost::json::value& items);

} // namespace tw::snapshot::test
