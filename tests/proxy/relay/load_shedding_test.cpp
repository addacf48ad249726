// Covers: proxy/relay/tap.cpp
#include "proxy/relay/tap.h"

#include <list>

#include <doctest/doctest.h>

namespace {

using namespace tw::relay;

TEST_CASE("the fuller the ring, the fewer sessions are shown") {
    std::list<TapSession> sessions(100);
    LoadShedding watch;
    for (TapSession& each : sessions) {
        watch.add(each);
    }
    constexpr std::size_t kCapacity = 1 << 20;

    struct Row {
        std::size_t sixteenths;
        std::size_t num_affordable;
    };

    for (const Row row : {Row{0, 100}, Row{10, 100}, Row{11, 80}, Row{12, 60}, Row{14, 20},
                          Row{15, 0}, Row{16, 0}, Row{1000, 0}}) {
        CAPTURE(row.sixteenths);
        CHECK(watch.num_affordable(row.sixteenths * (kCapacity / 16), kCapacity) ==
              row.num_affordable);
    }
    // A single session is copied as long as there is room for it.
    LoadShedding alone;
    TapSession one;
    alone.add(one);
    CHECK(alone.num_affordable(14 * (kCapacity / 16), kCapacity) == 1);
    CHECK(alone.num_affordable(15 * (kCapacity / 16), kCapacity) == 0);
}

TEST_CASE("sessions are set aside and brought back in the order of their age") {
    std::list<TapSession> sessions(5);
    LoadShedding watch;
    std::uint32_t id = 0;
    for (TapSession& each : sessions) {
        each.id = ++id;
        watch.add(each);
    }
    for (std::uint32_t newest = 5; newest > 2; --newest) {
        REQUIRE(watch.newest()->id == newest);
        watch.set_aside(*watch.newest());
    }
    TapSession late;
    late.id = 6;
    watch.add(late);
    CHECK(late.is_aside);
    CHECK(watch.num_shown() == 2);
    CHECK(watch.num_aside() == 4);
    // Removing a session does not change the others.
    watch.remove(*std::next(sessions.begin(), 3));
    watch.remove(*std::next(sessions.begin(), 3));
    watch.remove(sessions.front());
    for (const std::uint32_t next : {3U, 5U, 6U}) {
        watch.resume_oldest(1);
        CHECK(watch.newest()->id == next);
    }
    watch.resume_oldest(7);
    CHECK(watch.num_shown() == 4);
    CHECK(watch.num_aside() == 0);
    TapSession after;
    watch.add(after);
    CHECK_FALSE(after.is_aside);
}

} // namespace
