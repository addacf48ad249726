// Covers: proxy/process/live_page.cpp
#include "proxy/process/live_page.h"

#include <memory>

#include <doctest/doctest.h>

using namespace tw;
using namespace std::chrono_literals;
using process::RelayLiveness;

TEST_CASE("a relay is alive while all its threads make progress and the counters are read") {
    const auto observation = std::make_unique<relay::Observation>();
    RelayLiveness liveness;
    const RelayLiveness::Time start{};
    CHECK_FALSE(liveness.is_alive(start));
    liveness.update(start, *observation, 2);
    CHECK(liveness.is_alive(start));
    // Both threads make progress.
    for (auto time = start; time <= start + 20s; time += 1s) {
        observation->counters[0].turns.add(10);
        observation->counters[1].turns.add(1);
        liveness.update(time, *observation, 2);
        CHECK(liveness.is_alive(time));
    }
    // One thread hangs from now on.
    for (auto time = start + 21s; time <= start + 40s; time += 1s) {
        observation->counters[0].turns.add(10);
        liveness.update(time, *observation, 2);
        CHECK(liveness.is_alive(time) == (time - (start + 20s) <= RelayLiveness::kHangTime));
    }
    observation->counters[1].turns.add(1);
    liveness.update(start + 41s, *observation, 2);
    CHECK(liveness.is_alive(start + 41s));
    // The counters are not read any more.
    CHECK_FALSE(liveness.is_alive(start + 60s));
}
