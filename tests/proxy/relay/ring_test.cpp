#include "proxy/base/descriptors.h"
#include "proxy/relay/ring.h"
#include "tests/proxy/relay/udp_peers.h"
#include "tests/support/local_ring.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace tw::base;
using namespace tw::relay;
using namespace tw::relay::test;

RelayEvent make_datagram_event(std::uint32_t session, std::span<const std::byte> bytes,
                               Timestamp time = 0) {
    RelayEvent event;
    event.session = session;
    event.time = time;
    event.direction = Direction::s2c;
    event.bytes = bytes;
    return event;
}

TEST_CASE("events of every kind are consumed as they were pushed") {
    tw::test::LocalRing ring{Ring::kMinBytes};
    const Bytes bytes = make_payload(1400, 1);
    std::vector<RelayEvent> sent(5);
    sent[0].kind = EventKind::open;
    sent[0].session = 7;
    sent[0].time = 1'700'000'000'123'456'789;
    sent[0].client = ipv4_endpoint(0x7f000001, 4711);
    sent[0].upstream.port = 4712;
    sent[0].server = {.port = 8303, .v6 = true};
    sent[0].server_index = 3;
    sent[1] = make_datagram_event(7, bytes, 5);
    sent[2] = make_datagram_event(7, {});
    sent[3].kind = EventKind::gap;
    sent[3].gap = GapReason::kernel_dropped;
    sent[3].direction = Direction::s2c;
    sent[3].lost = std::uint64_t{1} << 40U;
    sent[4].kind = EventKind::close;
    sent[4].reason = CloseReason::shutdown;
    for (const RelayEvent& each : sent) {
        REQUIRE(ring.try_push(each));
    }
    ring.commit_events();
    const auto events = take_all_events(ring);
    REQUIRE(events.size() == sent.size());
    const auto event_fields = [](const RelayEvent& each) {
        return std::tie(each.kind, each.direction, each.reason, each.gap, each.session, each.time,
                        each.lost, each.client, each.upstream, each.server, each.server_index);
    };
    for (std::size_t i = 0; i < sent.size(); ++i) {
        CAPTURE(i);
        CHECK((event_fields(events[i].event) == event_fields(sent[i])));
        CHECK(std::ranges::equal(events[i].bytes, sent[i].bytes));
    }
}

TEST_CASE("pushed events are visible only after commit_events()") {
    tw::test::LocalRing ring{Ring::kMinBytes};
    REQUIRE(ring.try_push(make_datagram_event(1, {})));
    CHECK(take_all_events(ring).empty());
    ring.commit_events();
    CHECK(take_all_events(ring).size() == 1);
    CHECK(take_all_events(ring).empty());
}

TEST_CASE("a consumer gets at most as many events as it requests") {
    tw::test::LocalRing ring{Ring::kMinBytes};
    for (std::uint32_t i = 0; i < 10; ++i) {
        REQUIRE(ring.try_push(make_datagram_event(i, {})));
    }
    ring.commit_events();
    std::vector<std::uint32_t> seen;
    const auto store_session = [&](const RelayEvent& event) { seen.push_back(event.session); };
    CHECK(ring.consume_events(store_session, 3) == 3);
    CHECK(ring.consume_events(store_session, 100) == 7);
    CHECK((seen == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_CASE("an event contains the payload of the next event if that is already visible") {
    tw::test::LocalRing ring{Ring::kMinBytes};
    const Bytes one = make_payload(100, 1);
    const Bytes two = make_payload(200, 2);
    const auto consume_next_payloads = [&] {
        std::vector<Bytes> seen;
        ring.consume_events([&](const RelayEvent& event) {
            seen.emplace_back(event.next.begin(), event.next.end());
        });
        return seen;
    };
    REQUIRE(ring.try_push(make_datagram_event(1, one)));
    REQUIRE(ring.try_push(make_datagram_event(2, two)));
    RelayEvent close;
    close.kind = EventKind::close;
    REQUIRE(ring.try_push(close));
    REQUIRE(ring.try_push(make_datagram_event(2, one)));
    ring.commit_events();
    REQUIRE(ring.try_push(make_datagram_event(3, two))); // not committed yet
    CHECK((consume_next_payloads() == std::vector<Bytes>{two, {}, one, {}}));
    ring.commit_events();
    CHECK((consume_next_payloads() == std::vector<Bytes>{{}}));
}

TEST_CASE("the next payload is correct at the end of the ring, too") {
    tw::test::LocalRing ring{Ring::kMinBytes};
    std::size_t right = 0;
    for (std::uint8_t round = 0; round < 200; ++round) {
        std::vector<Bytes> sent;
        for (std::uint8_t i = 0; i < 7; ++i) {
            sent.push_back(make_payload(900 + 37U * i, static_cast<std::uint8_t>(round + i)));
            REQUIRE(ring.try_push(make_datagram_event(1, sent.back())));
        }
        ring.commit_events();
        std::size_t at = 0;
        ring.consume_events([&](const RelayEvent& event) {
            ++at;
            const Bytes next{event.next.begin(), event.next.end()};
            const bool last = at == sent.size();
            // A padding record at the end of the ring hides the next event.
            REQUIRE((next.empty() || (!last && next == sent[at])));
            right += next.empty() ? 0U : 1U;
        });
    }
    CHECK(right > 200 * 6 - 10);
}

TEST_CASE("a full ring rejects events, and accepts events again when there is room") {
    tw::test::LocalRing ring{1};
    CHECK(ring.capacity() == Ring::kMinBytes);
    const Bytes bytes = make_payload(1000, 1);
    std::size_t fitted = 0;
    while (ring.try_push(make_datagram_event(1, bytes))) {
        ++fitted;
    }
    CHECK(fitted >= Ring::kMinBytes / 1100);
    CHECK_FALSE(ring.has_room(bytes.size()));
    CHECK_FALSE(ring.try_push(make_datagram_event(1, bytes)));
    ring.commit_events();
    CHECK(take_all_events(ring).size() == fitted);
    CHECK(ring.num_unconsumed_bytes() == 0);
    CHECK(ring.has_room(65'507));
    CHECK(ring.try_push(make_datagram_event(1, bytes)));
}

TEST_CASE("the longest datagram fits an empty ring at every position") {
    tw::test::LocalRing ring{Ring::kMinBytes};
    const Bytes longest = make_payload(65'527, 1);
    for (std::uint32_t i = 0; i < 1000; ++i) {
        REQUIRE(ring.try_push(make_datagram_event(i, std::span{longest}.first(i * 37 % 3000))));
        ring.commit_events();
        REQUIRE(take_all_events(ring).size() == 1);
        REQUIRE(ring.has_room(longest.size()));
        REQUIRE(ring.try_push(make_datagram_event(i, longest)));
        ring.commit_events();
        const auto events = take_all_events(ring);
        REQUIRE(events.size() == 1);
        REQUIRE((events[0].bytes == longest));
    }
}

TEST_CASE("between two threads nothing is lost, torn or out of order") {
    tw::test::LocalRing ring{Ring::kMinBytes};
    constexpr std::uint32_t kEvents = 200'000;
    std::thread producer{[&] {
        std::minstd_rand random{1};
        Bytes bytes;
        for (std::uint32_t i = 1; i <= kEvents;) {
            const std::size_t size = random() % 300;
            bytes.assign(size, static_cast<std::byte>(i));
            while (!ring.try_push(make_datagram_event(i, bytes, i * 3))) {
                ring.commit_events();
                std::this_thread::yield();
            }
            if (random() % 8 == 0 || i == kEvents) {
                ring.commit_events();
            }
            ++i;
        }
    }};
    std::uint32_t expected = 1;
    std::uint32_t wrong = 0;
    while (expected <= kEvents) {
        const auto taken = ring.consume_events(
            [&](const RelayEvent& event) {
                bool right = event.session == expected && event.time == Timestamp{expected} * 3;
                for (const auto byte : event.bytes) {
                    right = right && byte == static_cast<std::byte>(expected);
                }
                wrong += right ? 0 : 1;
                ++expected;
            },
            500);
        if (taken == 0) {
            std::this_thread::yield();
        }
    }
    producer.join();
    CHECK(wrong == 0);
    CHECK(ring.num_unconsumed_bytes() == 0);
}

using namespace std::chrono_literals;

/// A time that never comes, so a missed wake-up makes the test time out.
const Clock::time_point kNever = Clock::now() + 24h;

TEST_CASE("a thread with work does not sleep") {
    ThreadWaker waker;
    int asked = 0;
    waker.sleep_until(kNever, [&] { return ++asked == 1; });
    CHECK(asked == 1);
}

TEST_CASE("a sleeping thread wakes at its time, also if that time is over") {
    ThreadWaker waker;
    const auto begin = Clock::now();
    for (const auto time : {begin - 1h, begin, begin + 5ms}) {
        while (Clock::now() < time) {
            waker.sleep_until(time, [] { return false; });
        }
        waker.sleep_until(begin, [] { return false; });
    }
    CHECK(Clock::now() >= begin + 5ms);
}

TEST_CASE("no call of wake() is lost") {
    ThreadWaker waker;
    std::atomic<int> said{0};
    std::atomic<int> heard{0};
    constexpr int kCalls = 20'000;
    std::thread sleeper{[&] {
        for (int next = 1; next <= kCalls; ++next) {
            while (said < next) {
                waker.sleep_until(kNever, [&] { return said >= next; });
            }
            heard = next;
        }
    }};
    std::minstd_rand random{1};
    for (int next = 1; next <= kCalls; ++next) {
        for (auto spin = random() % 300; spin != 0; --spin) {
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        said = next;
        waker.wake();
        while (next % 2 == 0 && heard < next) {
            std::this_thread::yield();
        }
    }
    sleeper.join();
    CHECK(heard == kCalls);
}

TEST_CASE("a consumer in another process is woken by commit_events()") {
    const SharedMemory memory = SharedMemory::create(Ring::shared_memory_size(Ring::kMinBytes));
    constexpr std::uint32_t kEvents = 2000;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        Ring ring{memory.bytes()};
        std::uint32_t next = 1;
        while (next <= kEvents) {
            if (ring.consume_events([&](const RelayEvent& event) {
                    next += event.session == next ? 1U : 0U;
                }) == 0) {
                ring.sleep_until(kNever, [] { return false; });
            }
        }
        ::_exit(42);
    }
    Ring ring{memory.bytes()};
    for (std::uint32_t next = 1; next <= kEvents; ++next) {
        RelayEvent event;
        event.session = next;
        REQUIRE(ring.try_push(event));
        ring.commit_events();
        while (next % 3 == 0 && ring.num_unconsumed_bytes() != 0) {
            std::this_thread::yield();
        }
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 42);
}

TEST_CASE("wake_consumer() wakes a consumer without an event") {
    tw::test::LocalRing ring{Ring::kMinBytes};
    std::atomic<bool> ending{false};
    std::thread consumer{[&] {
        while (!ending) {
            ring.sleep_until(kNever, [&] { return ending.load(); });
        }
    }};
    ending = true;
    ring.wake_consumer();
    consumer.join();
    CHECK(ring.num_unconsumed_bytes() == 0);
}

} // namespace
