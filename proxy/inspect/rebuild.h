#pragma once

#include "proxy/inspect/observer.h"
#include "snapshot/delta.h"
#include "snapshot/history.h"
#include "snapshot/parts.h"
#include "snapshot/shared_deltas.h"

#include <cstdint>

namespace tw::inspect {

/// What came of applying a delta to its base. Views are valid until the history changes, and say
/// something where `fate` lets them.
struct Rebuilt {
    DeltaFate fate = DeltaFate::accepted; ///< or mismatched, undecodable, unknown_base
    snapshot::SnapshotView base{};
    snapshot::SnapshotView result{}; ///< accepted or mismatched: lies in the history's room
    std::int32_t crc = 0;            ///< of the result
    snapshot::DecodeError error{};   ///< why it is undecodable
    snapshot::DeltaWarnings warnings{};
};

/// Rebuilds the snapshot of a delta behind those that the history has; it is for the caller to keep
/// it. Of what the delta was read with, `decoded` holds the ints in any case but an unknown base.
/// `shared`: what decodes it; null: it is decoded alone.
void rebuild(const snapshot::AssembledDelta& delta, const snapshot::AgreedSizes& sizes,
             snapshot::History& history, snapshot::Delta& decoded, Rebuilt& rebuilt,
             snapshot::SharedDeltas* shared = nullptr);

/// Whether base and result are equal, after a delta that says no other than zeros.
[[nodiscard]] bool are_same(const Rebuilt& rebuilt, const snapshot::Delta& delta);

/// Whether a delta built its base once more. Most say by their first int that they do not.
[[nodiscard]] inline bool leaves_as_is(const Rebuilt& rebuilt, const snapshot::Delta& delta) {
    if (!delta.updates.empty()) {
        const snapshot::DeltaUpdate& first = delta.updates.front();
        if (first.size != 0 && delta.ints[first.begin] != 0) [[likely]] {
            return false;
        }
    }
    return are_same(rebuilt, delta);
}

} // namespace tw::inspect
