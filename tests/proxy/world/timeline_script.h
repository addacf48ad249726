#pragma once

#include "proxy/world/timeline.h"
#include "tests/proxy/world/views.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace tw::test {

inline constexpr record::Timestamp kScriptTick = 20'000'000;

/// A timeline, and what it closed: "100:2!" is tick 100 with two views, and not complete.
struct TimelineScript {
    explicit TimelineScript(world::Patience ticks = {}) : patience{ticks} {}

    world::Patience patience;
    std::vector<std::string> closed;
    std::uint32_t runs = 0; ///< with a world
    snapshot::Dialect dialect = snapshot::Dialect::six;
    world::OpenWorlds memory;
    world::Timeline timeline{[this](const world::ClosedWorld& world) {
                                 runs = world.run;
                                 closed.push_back(fmt::format("{}:{}{}", world.views->tick(),
                                                              world.views->views(),
                                                              world.complete ? "" : "!"));
                             },
                             memory, 0, patience};
    snapshot::Snapshot items = to_snapshot({{{9, 0}, {1}}});
    record::Timestamp epoch = 1'000'000'000'000;

    void at(std::uint32_t session, snapshot::Tick tick, bool empty = false) {
        timeline.add_view({.kind = world::Input::Kind::snapshot,
                           .time = epoch + tick * kScriptTick,
                           .session = session,
                           .tick = tick,
                           .items = empty ? snapshot::SnapshotView{} : items.view(),
                           .dialect = dialect});
    }

    /// What is shown at the time of `tick` is so far ahead of it.
    void ahead(std::uint32_t session, snapshot::Tick tick, snapshot::Tick by) {
        const record::Timestamp own = epoch;
        epoch -= by * kScriptTick;
        at(session, tick + by);
        epoch = own;
    }

    std::vector<std::string> finish() {
        timeline.finish();
        return closed;
    }

    /// Worlds with so many views, complete.
    [[nodiscard]] std::ptrdiff_t with(int views) const {
        return std::ranges::count_if(closed, [&](const std::string& world) {
            return world.ends_with(fmt::format(":{}", views));
        });
    }
};

} // namespace tw::test
