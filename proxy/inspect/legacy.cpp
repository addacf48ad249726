#include "proxy/inspect/legacy.h"

#include <algorithm>
#include <functional>

namespace tw::inspect {

bool Legacy::Snapshot::is_sound() const {
    if (tick < 0 || num_items > snapshot::kMaxItems || block.size() < 2 * std::size_t{num_items} ||
        view().size_bytes() > snapshot::kMaxSnapshotBytes) {
        return false;
    }
    const snapshot::SnapshotView snapshot = view();
    const auto ends = snapshot.ends();
    return std::ranges::adjacent_find(snapshot.keys(), std::greater_equal{}) ==
               snapshot.keys().end() &&
           std::ranges::is_sorted(ends) &&
           (ends.empty() ? snapshot.data().empty() : ends.back() == snapshot.data().size());
}

bool Legacy::is_sound() const {
    return std::ranges::all_of(snapshots, &Snapshot::is_sound) &&
           std::ranges::adjacent_find(snapshots, std::greater_equal{}, &Snapshot::tick) ==
               snapshots.end();
}

} // namespace tw::inspect
