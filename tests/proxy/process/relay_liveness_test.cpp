// Covers: proxy/process/admin_run.cpp
#include "proxy/process/admin_run.h"

#include <memory>

#include <doctest/doctest.h>

using namespace tw;
using namespace std::chrono_literals;
using process::RelayLiveness;

TEST_CASE("a relay is alive while all its threads make progress and the counters are read") {
    const auto observation = std::make_unique<relay::Observation>();
    RelayLiveness pulse;
    const RelayLiveness::Time start{};
    CHECK_FALSE(pulse.is_alive(start));
    pulse.look(start, *observation, 2);
    CHECK(pulse.is_alive(start));
    // Both threads make progress.
    for (auto time = start; time <= start + 20s; time += 1s) {
        observation->counters[0].turns.add(10);
        observation->counters[1].turns.add(1);
        pulse.look(time, *observation, 2);
        CHECK(pulse.is_alive(time));
    }
    // One thread hangs from now on.
    for (auto time = start + 21s; time <= start + 40s; time += 1s) {
        observation->counters[0].turns.add(10);
        pulse.look(time, *observation, 2);
        CHECK(pulse.is_alive(time) == (time - (start + 20s) <= RelayLiveness::kPatience));
    }
    observation->counters[1].turns.add(1);
    pulse.look(start + 41s, *observation, 2);
    CHECK(pulse.is_alive(start + 41s));
    // The counters are not read any more.
    CHECK_FALSE(pulse.is_alive(start + 60s));
}
