// Covers: proxy/relay/forwarder.cpp
#include "proxy/relay/relay.h"
#include "tests/proxy/relay/udp_peers.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::base;
using namespace tw::relay;
using namespace tw::relay::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The size of the last datagram of a run, which is sent without the relay.
constexpr std::size_t kLastDatagramBytes = 9;

Options make_impaired_options(const Udp::endpoint& server, std::string_view text) {
    Options options = make_relay_options(server);
    options.impairment = parse_impairment_text(text);
    return options;
}

/// The datagrams that a server received through an impaired relay, and those that the observer got.
struct ImpairedRun {
    std::vector<Bytes> received;
    std::vector<Bytes> observed;
    Counters counters;
};

ImpairedRun run_impaired_relay(std::string_view text, std::uint32_t count) {
    Peer server;
    TestRelay relay{make_impaired_options(server.endpoint(), text)};
    ImpairedRun done;
    std::thread reader{[&] { // reads all the time, because a socket's buffer is bounded
        for (auto bytes = server.receive(); bytes && bytes->size() != kLastDatagramBytes;
             bytes = server.receive()) {
            done.received.push_back(*std::move(bytes));
        }
    }};
    Peer client;
    for (std::uint32_t i = 0; i < count; ++i) {
        client.send(make_payload(20, i), relay.listen_address());
        if (i % 64 == 63) {
            CHECK(eventually(
                [&] { return relay.counters().impairment[kC2sIndex].datagrams == i + 1; }));
        }
    }
    CHECK(eventually([&] { return relay.counters().impairment[kC2sIndex].datagrams == count; }));
    relay.stop(); // sends the waiting datagrams
    relay.join();
    client.send(make_payload(kLastDatagramBytes, 0), server.endpoint());
    reader.join();
    for (auto& kept : relay.take_events()) {
        if (kept.event.kind == EventKind::datagram) {
            done.observed.push_back(std::move(kept.bytes));
        }
    }
    done.counters = relay.counters();
    return done;
}

TEST_CASE("the observer gets the datagrams that the receiver gets, and the others are counted") {
    constexpr std::uint32_t kCount = 5000;
    const ImpairedRun got = run_impaired_relay("c2s:delay=3ms,loss=10%,dup=5%,reorder=2%", kCount);
    CHECK((got.observed == got.received));
    const auto& totals = got.counters.impairment[kC2sIndex];
    CHECK(totals.datagrams == kCount);
    CHECK(got.received.size() == kCount - totals.dropped_by_chance + totals.duplicated);
    CHECK(std::abs(static_cast<double>(totals.dropped_by_chance) / kCount - 0.1) < 0.02);
    CHECK(totals.duplicated > kCount / 40);
    CHECK(totals.reordered > kCount / 100);
    CHECK(totals.dropped_by_full_queue == 0);
    CHECK(got.counters.impairment[kS2cIndex].datagrams == 0);
    CHECK(got.counters.directions[kC2sIndex].dropped == 0);
}

TEST_CASE("with the same seed and traffic, the same datagrams arrive") {
    const ImpairedRun first = run_impaired_relay("c2s:loss=10%,dup=5%", 2000);
    CHECK((run_impaired_relay("c2s:loss=10%,dup=5%", 2000).received == first.received));
    CHECK((run_impaired_relay("c2s:loss=11%,dup=5%", 2000).received != first.received));
}

/// Returns the round-trip times through the relay to a server that echoes.
std::vector<Clock::duration> measure_round_trips(TestRelay& relay, std::uint32_t count) {
    Peer client;
    std::vector<Clock::duration> times;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto sent = Clock::now();
        client.send(make_payload(100, i), relay.listen_address());
        REQUIRE(client.receive());
        times.push_back(Clock::now() - sent);
    }
    std::ranges::sort(times);
    return times;
}

// There is no upper bound here, because other processes may delay the test. impairment_test checks
// exact delays with simulated time.
TEST_CASE("a delay is never shorter than its setting") {
    constexpr std::uint32_t kCount = 41;
    for (const bool busy_poll : {false, true}) {
        CAPTURE(busy_poll);
        EchoServer server;
        Options options = make_impaired_options(server.endpoint(), "s2c:delay=15ms");
        options.busy_poll = busy_poll;
        TestRelay relay{options};
        const auto times = measure_round_trips(relay, kCount);
        CHECK(times.front() >= 15ms);
        MESSAGE("a delay of 15 ms took "
                << std::chrono::duration_cast<std::chrono::microseconds>(times[kCount / 2]).count()
                << " us there and back at the median");
    }
}

TEST_CASE("if the impairment changes, waiting datagrams are sent at once") {
    EchoServer server;
    TestRelay relay{make_impaired_options(server.endpoint(), "s2c:delay=10s")};
    CHECK(to_string(relay.impairment()) == "s2c:delay=10s");
    Peer client;
    client.send(make_payload(10, 1), relay.listen_address());
    REQUIRE(eventually([&] { return relay.counters().impairment[kS2cIndex].datagrams == 1; }));
    const auto changed = Clock::now();
    relay.set_impairment(parse_impairment_text("c2s:loss=100%"));
    CHECK(client.receive() == make_payload(10, 1));
    CHECK(Clock::now() - changed < 5s);
    client.send(make_payload(10, 2), relay.listen_address());
    REQUIRE(
        eventually([&] { return relay.counters().impairment[kC2sIndex].dropped_by_chance == 1; }));
    relay.set_impairment({});
    CHECK_FALSE(relay.impairment().is_active());
    CHECK(eventually([&] { // the relay's thread applies the setting later
        client.send(make_payload(10, 3), relay.listen_address());
        return client.receive(50ms) == make_payload(10, 3);
    }));
}

TEST_CASE("a stopping relay sends waiting datagrams, and their session does not time out") {
    Peer server;
    Options options = make_impaired_options(server.endpoint(), "c2s:delay=10s");
    options.idle_timeout = 50ms;
    TestRelay relay{options};
    Peer client;
    for (std::uint32_t i = 0; i < 10; ++i) {
        client.send(make_payload(30, i), relay.listen_address());
    }
    REQUIRE(eventually([&] { return relay.counters().impairment[kC2sIndex].datagrams == 10; }));
    CHECK_FALSE(server.receive(200ms)); // four times the idle timeout
    CHECK(relay.counters().sessions_closed == 0);
    const auto events = relay.stop_and_take_events();
    for (std::uint32_t i = 0; i < 10; ++i) {
        CHECK(server.receive() == make_payload(30, i));
    }
    CHECK(relay.counters().sessions_closed == 1);
    CHECK(events.size() == 12);
}

} // namespace
