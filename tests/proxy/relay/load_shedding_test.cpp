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
        std::size_t max_copied_sessions;
    };

    for (const Row row : {Row{0, 100}, Row{10, 100}, Row{11, 80}, Row{12, 60}, Row{14, 20},
                          Row{15, 0}, Row{16, 0}, Row{1000, 0}}) {
        CAPTURE(row.sixteenths);
        CHECK(watch.max_copied_sessions(row.sixteenths * (kCapacity / 16), kCapacity) ==
              row.max_copied_sessions);
    }
    // A single session is copied as long as there is room for it.
    LoadShedding alone;
    TapSession one;
    alone.add(one);
    CHECK(alone.max_copied_sessions(14 * (kCapacity / 16), kCapacity) == 1);
    CHECK(alone.max_copied_sessions(15 * (kCapacity / 16), kCapacity) == 0);
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
        REQUIRE(watch.newest_copied()->id == newest);
        watch.set_aside(*watch.newest_copied());
    }
    TapSession late;
    late.id = 6;
    watch.add(late);
    CHECK(late.is_aside);
    CHECK(watch.num_copied() == 2);
    CHECK(watch.num_set_aside() == 4);
    // Removing a session does not change the others.
    watch.remove(*std::next(sessions.begin(), 3));
    watch.remove(*std::next(sessions.begin(), 3));
    watch.remove(sessions.front());
    for (const std::uint32_t next : {3U, 5U, 6U}) {
        watch.resume_oldest(1);
        CHECK(watch.newest_copied()->id == next);
    }
    watch.resume_oldest(7);
    CHECK(watch.num_copied() == 4);
    CHECK(watch.num_set_aside() == 0);
    TapSession after;
    watch.add(after);
    CHECK_FALSE(after.is_aside);
}

} // namespace
