#pragma once

#include "proxy/world/view_collector.h"
#include "tests/proxy/world/views.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include <fmt/format.h>

namespace tw::test {

inline constexpr record::Timestamp kScriptTick = 20'000'000;

/// A view collector, and the worlds that it closed: "100:2!" is an incomplete world of tick 100
/// with two views.
struct ViewScript {
    explicit ViewScript(world::MergeDelay ticks = {}) : delay{ticks} {}

    world::MergeDelay delay;
    Lines closed_worlds;
    std::uint32_t run_count = 0; ///< number of map runs with a world
    snapshot::Dialect dialect = snapshot::Dialect::six;
    world::ViewCollector collector{[this](const world::ClosedTick& world) {
                                       run_count = world.map_run;
                                       closed_worlds.push_back(
                                           fmt::format("{}:{}{}", world.tick, world.views.size(),
                                                       world.is_complete ? "" : "!"));
                                   },
                                   0, delay};
    std::shared_ptr<const snapshot::Snapshot> items = to_shared({{{9, 0}, {1}}});
    record::Timestamp epoch = 1'000'000'000'000;

    void add_view(std::uint32_t session, snapshot::Tick tick, bool empty = false) {
        collector.add_view({.kind = world::MergerInput::Kind::snapshot,
                            .time = epoch + tick * kScriptTick,
                            .session = session,
                            .tick = tick,
                            .items = empty ? to_shared({}) : items,
                            .dialect = dialect});
    }

    /// Adds the sessions' views of every second tick.
    void add_views(std::initializer_list<std::uint32_t> sessions, snapshot::Tick first,
                   snapshot::Tick last) {
        for (snapshot::Tick tick = first; tick <= last; tick += 2) {
            for (const std::uint32_t session : sessions) {
                add_view(session, tick);
            }
        }
    }

    /// Adds a view that is `by` ticks ahead of `tick`.
    void add_view_ahead(std::uint32_t session, snapshot::Tick tick, snapshot::Tick by) {
        const record::Timestamp own = epoch;
        epoch -= by * kScriptTick;
        add_view(session, tick + by);
        epoch = own;
    }

    Lines close_worlds() {
        collector.close_all_ticks();
        return closed_worlds;
    }

    /// Returns the number of complete worlds with this many views.
    [[nodiscard]] std::ptrdiff_t count_complete_worlds(int views) const {
        return std::ranges::count_if(closed_worlds, [&](const std::string& world) {
            return world.ends_with(fmt::format(":{}", views));
        });
    }
};

} // namespace tw::test
