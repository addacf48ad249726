#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tw::sink {

/// What demos could not hold.
struct DemoLosses {
    std::uint64_t snapshots = 0;       ///< too large, or no room where they wait to be written
    std::uint64_t large_snapshots = 0; ///< those that were too large
    std::uint64_t late = 0;            ///< snapshots that came behind a younger one
    std::uint64_t messages = 0;        ///< too large, or too many before the first snapshot
    std::uint64_t large_messages = 0;  ///< those that were too large
    std::uint64_t mapless = 0;         ///< sessions of which nobody said what map they are on
    std::uint64_t single = 0; ///< stays on a map with one snapshot: no client plays such a demo

    void merge(const DemoLosses& other) {
        snapshots += other.snapshots;
        large_snapshots += other.large_snapshots;
        late += other.late;
        messages += other.messages;
        large_messages += other.large_messages;
        mapless += other.mapless;
        single += other.single;
    }
};

/// What demos of worlds could not hold. What the demo's protocol has no place for is not missing.
struct WorldDemoLosses {
    std::uint64_t items_over_limit = 0; ///< beyond what a snapshot can be
    std::uint64_t ticks_over_limit = 0; ///< that lack some of those
    std::uint64_t items_without_id = 0; ///< of players for whom no id is free
    std::uint64_t ticks_without_id = 0;
    std::uint64_t worlds = 0; ///< of servers beyond those that may have demos at one time
    std::uint64_t messages_without_id = 0; ///< about such players
    std::uint64_t messages_over_limit = 0; ///< too many at once
    DemoLosses demos{};
};

/// A sentence for people about each kind of loss that there was.
[[nodiscard]] std::vector<std::string> sentences_of(const DemoLosses& losses);
/// Without those of `demos`.
[[nodiscard]] std::vector<std::string> sentences_of(const WorldDemoLosses& losses);

} // namespace tw::sink
