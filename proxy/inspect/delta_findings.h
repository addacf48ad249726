#pragma once

#include "proxy/inspect/mismatch.h"
#include "proxy/inspect/reporter.h"
#include "snapshot/delta.h"
#include "snapshot/error.h"
#include "snapshot/parts.h"

#include <cstddef>
#include <span>

/// What is wrong with a delta, and where: the item, the part and the offset in it.
namespace tw::inspect {

/// The item as findings name it; without a name while its descriptor is missing.
[[nodiscard]] record::FindingItem name_item(const record::TypeNames& types, snapshot::ItemKey key);

/// A delta that cannot be decoded or applied; points into the body.
[[nodiscard]] record::FindingRecord decode_finding(const snapshot::DecodeError& error,
                                                   std::span<const std::byte> body,
                                                   const record::TypeNames& types);

/// A delta whose result has another checksum; points into its body.
[[nodiscard]] record::FindingRecord checksum_finding(const Mismatch& mismatch,
                                                     const record::TypeNames& types);

void report_warnings(const snapshot::AssembledDelta& delta, const snapshot::DeltaWarnings& warnings,
                     const record::TypeNames& types, Reporter& reporter);

/// Counts and reports the deltas whose missing parts will not come any more.
void report_lost(std::span<const snapshot::LostDelta> lost, Reporter& reporter);

} // namespace tw::inspect
