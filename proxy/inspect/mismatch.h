#pragma once

#include "snapshot/delta.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::inspect {

/// All that is known when a checksum does not agree.
struct Mismatch {
    std::span<const std::byte> body{};
    const snapshot::Delta* delta = nullptr;
    snapshot::SnapshotView base{};
    snapshot::SnapshotView previous{}; ///< the last snapshot that was right
    snapshot::SnapshotView result{};   ///< the one that is not
    const snapshot::DeltaWarnings* warnings = nullptr;
    std::int32_t wanted = 0;
    std::int32_t got = 0;
};

/// What most likely made the checksums differ.
struct MismatchCause {
    std::string_view name{}; ///< "duplicate_update", "damaged_value", "unknown"
    std::string_view sentence{};
    std::optional<snapshot::ItemKey> key{};
    std::optional<std::size_t> int_index{}; ///< of the value or update in the delta's ints
};

/// Looks for the one thing that explains the difference of the checksums exactly: a second item
/// with the same key, or one value of the delta with one flipped bit. Where several values would
/// do, the one that strays furthest from the last right snapshot is named.
[[nodiscard]] MismatchCause explain_mismatch(const Mismatch& mismatch);

} // namespace tw::inspect
