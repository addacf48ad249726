#pragma once

#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace tw::capture {

/// What is wrong with a full snapshot, and at which of its ints; players skip it.
struct DemoSnapshotError {
    enum class Kind : std::uint8_t { counts, offsets, type };

    Kind kind = Kind::counts;
    std::size_t index = 0;
};

struct DemoSnapshotRead {
    bool ok = true;
    DemoSnapshotError error{};
    std::size_t duplicates =
        0; ///< items under a key that an item before them has; players see these
};

/// Reads a full snapshot as demos hold them: bytes of items, number of items, their offsets, items.
/// They are sorted by key; of several under one key the first counts. On an error `out` is empty.
/// Source: DEMO.md; demo sheet, section 4.
[[nodiscard]] DemoSnapshotRead decode_demo_snapshot(std::span<const std::int32_t> ints,
                                                    snapshot::Snapshot& out);

} // namespace tw::capture
