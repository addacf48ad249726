#include "proxy/relay/datagram_copier.h"
#include "tests/proxy/relay/udp_peers.h"
#include "tests/support/local_ring.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <list>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::base;
using namespace tw::relay;
using namespace tw::relay::test;

/// An observer that is always present.
const std::atomic<std::uint32_t> kObserver{1};

ObservedSession make_observed_session(std::uint32_t id) {
    ObservedSession made;
    made.id = id;
    made.client.port = static_cast<std::uint16_t>(id);
    return made;
}

/// A copier with a ring that is not read.
struct CopierFixture {
    /// Fills the ring so that not even the smallest event fits.
    void fill_ring() {
        RelayEvent event;
        while (ring.try_push(event)) {
        }
        ring.commit_events();
    }

    tw::test::LocalRing ring{Ring::kMinBytes};
    std::atomic<std::uint32_t> observer{1};
    DatagramCopier copier{&ring, observer};
    ObservedSession one = make_observed_session(1);
};

/// Returns an event as text: "1 open at 5", "1 c2s at 7", "1 s2c gap of 2".
std::string event_text(const RelayEvent& event) {
    const std::string session = std::to_string(event.session);
    const std::string side = event.direction == Direction::c2s ? " c2s" : " s2c";
    const std::string time = " at " + std::to_string(event.time);
    switch (event.kind) {
    case EventKind::open:
        return session + " open" + time;
    case EventKind::datagram:
        return session + side + time;
    case EventKind::close:
        return session + " close" + time;
    case EventKind::gap:
        return session + side + " gap of " + std::to_string(event.lost) +
               (event.gap == GapReason::new_observer ? " for a new observer" : "");
    case EventKind::new_observer:
        return "observer " + session;
    default:
        return "?";
    }
}

using EventTexts = std::vector<std::string>;

EventTexts take_event_texts(Ring& ring) {
    EventTexts texts;
    ring.consume_events([&](const RelayEvent& event) { texts.push_back(event_text(event)); });
    return texts;
}

TEST_CASE_FIXTURE(
    CopierFixture,
    "an `open` that did not fit is reported with the next datagram that fits, followed by a gap") {
    REQUIRE(copier.retry_events(0)); // makes the copier push the new_observer event
    fill_ring();
    const Bytes bytes = make_payload(50, 1);
    copier.open_session(one, 100);
    copier.copy_datagram(one, 101, Direction::c2s, bytes);
    copier.copy_datagram(one, 102, Direction::s2c, bytes);
    copier.copy_datagram(one, 103, Direction::s2c, bytes);
    copier.commit_events();
    CHECK(copier.num_lost_datagrams() == 3);
    take_all_events(ring);
    REQUIRE(copier.retry_events(103));
    copier.copy_datagram(one, 104, Direction::c2s, bytes);
    copier.commit_events();
    CHECK(take_event_texts(ring) ==
          EventTexts{"1 open at 100", "1 c2s gap of 1", "1 s2c gap of 2", "1 c2s at 104"});
}

TEST_CASE_FIXTURE(
    CopierFixture,
    "a `close` that did not fit is reported before other events, with the missing datagrams") {
    copier.open_session(one, 1);
    fill_ring();
    copier.copy_datagram(one, 2, Direction::s2c, {});
    copier.close_session(one, 3, CloseReason::idle);
    CHECK_FALSE(copier.retry_events(4));
    take_all_events(ring);
    ObservedSession two = make_observed_session(2);
    copier.open_session(two, 5);
    copier.commit_events();
    CHECK(take_event_texts(ring) == EventTexts{"1 s2c gap of 1", "1 close at 3", "2 open at 5"});
    CHECK(copier.retry_events(6));
}

TEST_CASE_FIXTURE(
    CopierFixture,
    "sessions that began and ended while the ring was full are one gap of session 0") {
    REQUIRE(copier.retry_events(0)); // makes the copier push the new_observer event
    fill_ring();
    for (std::uint32_t id = 1; id <= 100; ++id) {
        ObservedSession gone = make_observed_session(id);
        copier.open_session(gone, 1);
        copier.copy_datagram(gone, 2, Direction::c2s, {});
        copier.close_session(gone, 3, CloseReason::idle);
    }
    take_all_events(ring);
    CHECK(copier.retry_events(4));
    CHECK(take_event_texts(ring) == EventTexts{"0 c2s gap of 100"});
}

TEST_CASE("without a ring, a copier does nothing") {
    DatagramCopier copier{nullptr, kObserver};
    ObservedSession one = make_observed_session(1);
    copier.open_session(one, 1);
    copier.copy_datagram(one, 2, Direction::c2s, {});
    copier.close_session(one, 3, CloseReason::idle);
    CHECK(copier.retry_events(4));
    CHECK(copier.num_lost_datagrams() == 0);
}

TEST_CASE_FIXTURE(
    CopierFixture,
    "a later observer gets running sessions with the number of datagrams that it missed") {
    const Bytes bytes = make_payload(50, 1);
    ObservedSession two = make_observed_session(2);
    copier.open_session(one, 1);
    copier.copy_datagram(one, 2, Direction::c2s, bytes);
    copier.commit_events();

    observer = 0; // the observer ended before it read anything
    copier.copy_datagram(one, 3, Direction::c2s, bytes);
    copier.copy_datagram(one, 4, Direction::s2c, bytes);
    copier.open_session(two, 5);
    ObservedSession gone = make_observed_session(3);
    copier.open_session(gone, 5);
    copier.close_session(gone, 6, CloseReason::idle);
    observer = 2;
    copier.copy_datagram(one, 7, Direction::s2c, bytes);
    copier.copy_datagram(two, 8, Direction::c2s, bytes);
    copier.close_session(two, 9, CloseReason::idle);
    copier.commit_events();

    EventTexts events = take_event_texts(ring);
    events.erase(events.begin(), std::ranges::find(events, "observer 2"));
    CHECK(events == EventTexts{"observer 2", "1 open at 7", "1 c2s gap of 2 for a new observer",
                               "1 s2c at 7", "2 open at 8", "2 c2s gap of 0 for a new observer",
                               "2 c2s at 8", "2 close at 9"});
    CHECK(copier.num_lost_datagrams() == 2);
}

TEST_CASE_FIXTURE(
    CopierFixture,
    "if the ring is full of old events, a new observer gets its first event when there is room") {
    copier.open_session(one, 1);
    fill_ring();
    observer = 2;
    copier.copy_datagram(one, 2, Direction::c2s, {});
    copier.commit_events();
    ring.consume_events([](const RelayEvent& event) { CHECK(event.session != 2); });
    copier.copy_datagram(one, 3, Direction::c2s, {});
    copier.commit_events();
    CHECK(take_event_texts(ring) == EventTexts{"observer 2", "1 open at 3",
                                               "1 c2s gap of 1 for a new observer", "1 c2s at 3"});
}

/// Reads the events like an observer and checks the order that the copier guarantees.
struct EventChecker {
    std::map<std::uint32_t, bool> open; ///< false: the session was closed
    std::uint64_t datagrams = 0;
    std::uint64_t lost = 0;
    std::uint32_t violations = 0;

    void check_event(const RelayEvent& event) {
        if (event.kind == EventKind::new_observer) {
            return;
        }
        const auto known = open.find(event.session);
        const bool is_open = known != open.end() && known->second;
        datagrams += event.kind == EventKind::datagram ? 1 : 0;
        lost += event.lost;
        if (event.kind == EventKind::open) {
            violations += known != open.end() ? 1U : 0U;
            open[event.session] = true;
        } else if (event.session != 0 || event.kind != EventKind::gap) {
            violations += is_open ? 0U : 1U;
            if (event.kind == EventKind::close) {
                open[event.session] = false;
            }
        }
    }
};

TEST_CASE(
    "in any order of calls, each datagram is copied or counted, and each `open` has a `close`") {
    constexpr std::size_t kSessions = 16;
    for (unsigned seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        std::minstd_rand random{seed};
        tw::test::LocalRing ring{Ring::kMinBytes};
        DatagramCopier copier{&ring, kObserver};
        std::list<ObservedSession> live; // a list, because a session must not be moved
        EventChecker checker;
        const Bytes bytes = make_payload(2000, seed);
        std::uint32_t next_id = 0;
        std::uint64_t offered = 0;
        for (int step = 0; step < 20'000; ++step) {
            const auto dice = random() % 1000;
            const auto at = live.empty() ? 0 : random() % live.size();
            if (dice < 50 && live.size() < kSessions) {
                live.push_back(make_observed_session(++next_id));
                copier.open_session(live.back(), step);
            } else if (dice < 80 && !live.empty()) {
                const auto gone = std::next(live.begin(), static_cast<std::ptrdiff_t>(at));
                copier.close_session(*gone, step, CloseReason::idle);
                live.erase(gone);
            } else if (dice < 85) {
                static_cast<void>(copier.retry_events(step));
                ring.consume_events([&](const RelayEvent& event) { checker.check_event(event); },
                                    random() % 200);
            } else if (!live.empty()) {
                ++offered;
                ObservedSession& speaks = *std::next(live.begin(), static_cast<std::ptrdiff_t>(at));
                copier.copy_datagram(speaks, step, Direction{static_cast<std::uint8_t>(dice & 1U)},
                                     std::span{bytes}.first(random() % bytes.size()));
            }
        }
        for (auto& left : live) {
            copier.close_session(left, 0, CloseReason::shutdown);
        }
        for (int tries = 0; tries < 2; ++tries) {
            ring.consume_events([&](const RelayEvent& event) { checker.check_event(event); });
            static_cast<void>(copier.retry_events(0));
        }
        ring.consume_events([&](const RelayEvent& event) { checker.check_event(event); });
        CHECK(copier.retry_events(0));
        CHECK(checker.violations == 0);
        CHECK(checker.datagrams + checker.lost == offered);
        CHECK(checker.lost == copier.num_lost_datagrams());
        CHECK(checker.lost > 0);
        for (const auto& [id, is_open] : checker.open) {
            CHECK_FALSE(is_open);
        }
    }
}

/// What the observer received of one session: the times of its datagrams, and its gaps.
struct ReceivedCopies {
    std::vector<Timestamp> times;
    std::uint64_t lost = 0;
    std::size_t gaps = 0;
};

/// Sessions that all send equally often, and an observer that reads a limited number of events per
/// round.
class OverloadBench {
  public:
    explicit OverloadBench(std::uint32_t sessions) : copier_{&ring_, kObserver} {
        for (std::uint32_t id = 1; id <= sessions; ++id) {
            copier_.open_session(sessions_.emplace_back(make_observed_session(id)), 0);
        }
    }

    /// Each session sends a datagram, the observer reads `num_consumed` events, and pending events
    /// are retried.
    void run_round(std::size_t num_consumed) {
        ++round_;
        for (ObservedSession& each : sessions_) {
            copier_.copy_datagram(each, round_, Direction::s2c, bytes_);
        }
        copier_.commit_events();
        consume_events(num_consumed);
        static_cast<void>(copier_.retry_events(round_));
    }

    void consume_events(std::size_t events) {
        ring_.consume_events(
            [&](const RelayEvent& event) {
                ReceivedCopies& seen = copies_[event.session];
                if (event.kind == EventKind::datagram) {
                    seen.times.push_back(event.time);
                } else if (event.kind == EventKind::gap) {
                    seen.lost += event.lost;
                    ++seen.gaps;
                }
            },
            events);
    }

    void close_all_sessions() {
        for (ObservedSession& each : sessions_) {
            copier_.close_session(each, round_, CloseReason::idle);
        }
        while (!copier_.retry_events(round_)) {
            consume_events(10'000);
        }
        consume_events(1'000'000);
    }

    [[nodiscard]] std::size_t num_uncopied_sessions() const {
        return static_cast<std::size_t>(std::ranges::count_if(
            sessions_, [](const ObservedSession& each) { return each.is_copying_stopped; }));
    }

    [[nodiscard]] const ReceivedCopies& received_copies(std::uint32_t id) { return copies_[id]; }

    [[nodiscard]] const std::list<ObservedSession>& sessions() const { return sessions_; }

    [[nodiscard]] Timestamp num_rounds() const { return round_; }

    DatagramCopier& copier() { return copier_; }

  private:
    tw::test::LocalRing ring_{Ring::kMinBytes};
    DatagramCopier copier_;
    std::list<ObservedSession> sessions_;
    std::map<std::uint32_t, ReceivedCopies> copies_;
    const Bytes bytes_ = make_payload(480, 1); // takes 512 bytes of the ring
    Timestamp round_ = 0;
};

TEST_CASE("a slow observer gets the oldest sessions, and all datagrams of each") {
    constexpr std::uint32_t kSessions = 50;
    for (const std::size_t sees : {5U, 20U, 30U, 45U, 49U}) {
        CAPTURE(sees);
        OverloadBench bench{kSessions};
        for (int i = 0; i < 2000; ++i) {
            bench.run_round(sees);
        }
        const std::size_t shown = kSessions - bench.num_uncopied_sessions();
        CHECK(shown <= sees);
        bench.close_all_sessions();
        std::uint64_t lost = 0;
        std::size_t whole = 0;
        for (std::uint32_t id = 1; id <= kSessions; ++id) {
            CAPTURE(id);
            const ReceivedCopies& seen = bench.received_copies(id);
            CHECK(seen.times.size() + seen.lost == static_cast<std::size_t>(bench.num_rounds()));
            CHECK((seen.lost == 0) == (seen.gaps == 0));
            lost += seen.lost;
            const bool is_whole = seen.lost == 0 && whole + 1 == id; // as all older sessions
            whole += is_whole ? 1 : 0;
        }
        CHECK(lost == bench.copier().num_lost_datagrams());
        // Events about the other sessions take a part of what the observer reads.
        CHECK(whole + 2 + sees / 10 >= sees);
    }
}

TEST_CASE("no datagram is missing while a session is copied") {
    OverloadBench bench{40};
    for (int i = 0; i < 1000; ++i) {
        // The observer falls behind and catches up repeatedly.
        bench.run_round(i % 100 < 50 ? 5 : 60);
    }
    bench.close_all_sessions();
    for (std::uint32_t id = 1; id <= 40; ++id) {
        CAPTURE(id);
        const ReceivedCopies& seen = bench.received_copies(id);
        std::size_t holes = seen.times.front() == 1 ? 0 : 1;
        for (std::size_t i = 1; i < seen.times.size(); ++i) {
            holes += seen.times[i] != seen.times[i - 1] + 1 ? 1U : 0U;
        }
        // Each time the session is not copied, there is a gap at the start and one at the end.
        CHECK(seen.gaps >= holes);
        CHECK(seen.gaps <= 2 * holes + 2);
    }
}

TEST_CASE("when the observer keeps up, all sessions are copied again, the oldest first") {
    OverloadBench bench{40};
    for (int i = 0; i < 200; ++i) {
        bench.run_round(4);
    }
    const std::size_t num_uncopied_sessions = bench.num_uncopied_sessions();
    CHECK(num_uncopied_sessions >= 30);
    bench.consume_events(1'000'000);
    for (int i = 0; i < 100; ++i) {
        bench.run_round(1000);
        bool before = false;
        for (const ObservedSession& each : bench.sessions()) {
            CHECK(before <= each.is_copying_stopped); // newer sessions are not copied either
            before = each.is_copying_stopped;
        }
    }
    CHECK(bench.num_uncopied_sessions() == 0);
}

TEST_CASE("an observer that pauses gets a gap of each session when it continues") {
    OverloadBench bench{10};
    for (int i = 0; i < 1000; ++i) {
        bench.run_round(0);
    }
    CHECK(bench.num_uncopied_sessions() == 10);
    bench.close_all_sessions();
    for (std::uint32_t id = 1; id <= 10; ++id) {
        const ReceivedCopies& seen = bench.received_copies(id);
        CHECK(seen.times.size() + seen.lost == 1000);
        CHECK(seen.gaps >= 1);
    }
}

TEST_CASE_FIXTURE(CopierFixture,
                  "a new observer gets the sessions for which the previous observer was too slow") {
    std::list<ObservedSession> sessions;
    const Bytes bytes = make_payload(1000, 1);
    for (std::uint32_t id = 1; id <= 4; ++id) {
        copier.open_session(sessions.emplace_back(make_observed_session(id)), 1);
    }
    for (int i = 0; i < 1000; ++i) {
        copier.copy_datagram(sessions.front(), 2, Direction::s2c, bytes);
        copier.copy_datagram(sessions.back(), 2, Direction::s2c, bytes);
    }
    REQUIRE(sessions.back().is_copying_stopped);
    observer = 2;
    // The ring is full of events for an earlier observer.
    copier.copy_datagram(sessions.back(), 3, Direction::s2c, bytes);
    copier.commit_events();
    take_all_events(ring);
    for (ObservedSession& each : sessions) {
        copier.copy_datagram(each, 4, Direction::s2c, bytes);
        CHECK_FALSE(each.is_copying_stopped);
    }
    copier.commit_events();
    std::vector<EventKind> kinds;
    ring.consume_events([&](const RelayEvent& event) { kinds.push_back(event.kind); });
    CHECK(std::ranges::count(kinds, EventKind::datagram) == 4);
}

TEST_CASE("the fuller the ring, the fewer sessions are copied") {
    std::list<ObservedSession> sessions(100);
    LoadShedding shedding;
    for (ObservedSession& each : sessions) {
        shedding.add_session(each);
    }
    constexpr std::size_t kCapacity = 1 << 20;

    struct Row {
        std::size_t sixteenths;
        std::size_t max_copied_sessions;
    };

    for (const Row row : {Row{0, 100}, Row{10, 100}, Row{11, 80}, Row{12, 60}, Row{14, 20},
                          Row{15, 0}, Row{16, 0}, Row{1000, 0}}) {
        CAPTURE(row.sixteenths);
        CHECK(shedding.max_copied_sessions(row.sixteenths * (kCapacity / 16), kCapacity) ==
              row.max_copied_sessions);
    }
    // A single session is copied as long as there is room for it.
    LoadShedding alone;
    ObservedSession one;
    alone.add_session(one);
    CHECK(alone.max_copied_sessions(14 * (kCapacity / 16), kCapacity) == 1);
    CHECK(alone.max_copied_sessions(15 * (kCapacity / 16), kCapacity) == 0);
}

TEST_CASE(
    "the newest session is the first whose copying stops and the last whose copying resumes") {
    std::list<ObservedSession> sessions(5);
    LoadShedding shedding;
    std::uint32_t id = 0;
    for (ObservedSession& each : sessions) {
        each.id = ++id;
        shedding.add_session(each);
    }
    for (std::uint32_t newest = 5; newest > 2; --newest) {
        REQUIRE(shedding.newest_copied_session()->id == newest);
        shedding.stop_copying_session(*shedding.newest_copied_session());
    }
    ObservedSession late;
    late.id = 6;
    shedding.add_session(late);
    CHECK(late.is_copying_stopped);
    CHECK(shedding.num_copied_sessions() == 2);
    CHECK(shedding.num_uncopied_sessions() == 4);
    // Removing a session does not change the others.
    shedding.remove_session(*std::next(sessions.begin(), 3));
    shedding.remove_session(*std::next(sessions.begin(), 3));
    shedding.remove_session(sessions.front());
    for (const std::uint32_t next : {3U, 5U, 6U}) {
        shedding.resume_copying_oldest_sessions(1);
        CHECK(shedding.newest_copied_session()->id == next);
    }
    shedding.resume_copying_oldest_sessions(7);
    CHECK(shedding.num_copied_sessions() == 4);
    CHECK(shedding.num_uncopied_sessions() == 0);
    ObservedSession after;
    shedding.add_session(after);
    CHECK_FALSE(after.is_copying_stopped);
}

} // namespace
