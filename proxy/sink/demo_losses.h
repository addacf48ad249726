#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tw::sink {

/// What demos could not hold.
struct DemoLosses {
    std::uint64_t snapshots = 0; ///< too large, or no room where they wait to be written
    std::uint64_t late = 0;      ///< snapshots that came behind a younger one
    std::uint64_t messages = 0;  ///< too large, or too many before the first snapshot
    std::uint64_t mapless = 0;   ///< sessions of which nobody said what map they are on
    std::uint64_t single = 0;    ///< stays on a map with one snapshot: no client plays such a demo

    void merge(const DemoLosses& other) {
        snapshots += other.snapshots;
        late += other.late;
        messages += other.messages;
        mapless += other.mapless;
        single += other.single;
    }
};

/// What demos of worlds could not hold.
struct WorldDemoLosses {
    std::uint64_t items = 0;    ///< beyond what a snapshot can be, or of players without an id
    std::uint64_t ticks = 0;    ///< that lack some
    std::uint64_t worlds = 0;   ///< of servers beyond those that may have demos at one time
    std::uint64_t messages = 0; ///< about players without an id, or too many at once
    DemoLosses demos{};
};

/// A sentence for people about each kind of loss that there was.
[[nodiscard]] std::vector<std::string> sentences_of(const DemoLosses& losses);
/// Without those of `demos`.
[[nodiscard]] std::vector<std::string> sentences_of(const WorldDemoLosses& losses);

} // namespace tw::sink
