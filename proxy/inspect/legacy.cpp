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

std::vector<Legacy::Part> open_parts(const snapshot::PartAssembler& parts) {
    std::vector<Legacy::Part> open;
    parts.for_each_open([&](const snapshot::Part& part) {
        Legacy::Part& kept = open.emplace_back();
        kept.head = part;
        kept.head.data = {};
        kept.data.assign(part.data.begin(), part.data.end());
    });
    return open;
}

std::vector<Legacy::Snapshot> snapshots_from(const snapshot::History& history,
                                             snapshot::Tick oldest) {
    std::vector<Legacy::Snapshot> snapshots;
    history.for_each_from(oldest, [&](snapshot::Tick tick, const snapshot::SnapshotView& view) {
        auto& kept = snapshots.emplace_back();
        kept.tick = tick;
        kept.num_items = static_cast<std::uint32_t>(view.size());
        kept.block.resize(view.block_ints());
        view.write_block(kept.block.data());
    });
    std::ranges::sort(snapshots, {}, &Legacy::Snapshot::tick);
    return snapshots;
}

} // namespace tw::inspect
