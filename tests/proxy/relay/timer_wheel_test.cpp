#include "proxy/relay/session.h"

#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace {

struct Entry {
    tw::relay::TimerHook timer;
    std::uint64_t due = 0;
};

using Wheel = tw::relay::TimerWheel<Entry>;

TEST_CASE("an entry is seen at its tick, once, and not when it was removed") {
    Wheel wheel{0};
    std::vector<Entry> entries(2000);
    std::mt19937 random{1};
    for (Entry& entry : entries) {
        entry.due = 1 + random() % (Wheel::kTicks - 1);
        wheel.add(entry, entry.due);
    }
    for (std::size_t i = 0; i < entries.size(); i += 2) {
        wheel.remove(entries[i]);
        wheel.remove(entries[i]); // removing twice is harmless
    }
    std::size_t seen = 0;
    for (std::uint64_t now = 0; now < 2 * Wheel::kTicks; ++now) {
        CHECK(wheel.advance(now, entries.size(), [&](const Entry& entry) {
            ++seen;
            CHECK(entry.due == now);
        }));
    }
    CHECK(seen == entries.size() / 2);
}

TEST_CASE("a round sees so many and leaves the rest for the next") {
    Wheel wheel{0};
    std::vector<Entry> entries(100);
    for (Entry& entry : entries) {
        wheel.add(entry, 5);
    }
    std::size_t seen = 0;
    int rounds = 1;
    while (!wheel.advance(50, 32, [&](Entry& entry) {
        ++seen;
        if (seen % 10 == 0) {
            wheel.add(entry, 3); // a time in the past counts from the wheel's current tick
        }
    })) {
        ++rounds;
    }
    CHECK(seen > entries.size());
    CHECK(rounds == 4);
}

} // namespace
