// Covers: proxy/pipeline/resync.cpp
#include "proxy/relay/options.h"
#include "proxy/relay/relay.h"
#include "tests/proxy/relay/udp_peers.h"

#include <algorithm>
#include <optional>
#include <thread>

#include <doctest/doctest.h>
#include <sys/resource.h>

namespace {

using namespace tw::base;
using namespace tw::relay;
using namespace tw::relay::test;

constexpr std::uint32_t kBeforeWrap = 4'294'967'000; // the clock wraps during the test

TEST_CASE("datagrams acknowledge no snapshot until a full snapshot comes, then that snapshot") {
    ResyncState resync;
    CHECK_FALSE(resync.is_in_progress());
    CHECK_FALSE(resync.next_acknowledgement(kBeforeWrap));
    REQUIRE(resync.begin_resync(kBeforeWrap, kBeforeWrap - 10));
    CHECK(resync.is_in_progress());
    CHECK(resync.next_acknowledgement(kBeforeWrap + 10) == ResyncFunctions::kNoSnapshot);
    CHECK(resync.on_datagram_rewritten());
    CHECK(resync.next_acknowledgement(kBeforeWrap + 30) == ResyncFunctions::kNoSnapshot);
    CHECK_FALSE(resync.on_datagram_rewritten());
    resync.on_full_snapshot(kBeforeWrap + 40, 4711);
    resync.on_full_snapshot(kBeforeWrap + 80,
                            4713); // a later full snapshot that was already in transit
    CHECK(resync.is_in_progress());
    CHECK(resync.next_acknowledgement(kBeforeWrap + 400) == 4711);
    CHECK_FALSE(resync.on_datagram_rewritten());
    CHECK(resync.next_acknowledgement(kBeforeWrap + 40 + ResyncState::kRewriteTimeMs) == 4711);
    CHECK_FALSE(resync.next_acknowledgement(kBeforeWrap + 41 + ResyncState::kRewriteTimeMs));
    CHECK_FALSE(resync.is_in_progress());
}

TEST_CASE("no resync begins for a client that sends rarely") {
    ResyncState slow;
    REQUIRE(slow.begin_resync(kBeforeWrap, kBeforeWrap - 900));
    for (std::uint32_t ms = 100; ms <= 1000; ms += 300) {
        CHECK_FALSE(slow.next_acknowledgement(kBeforeWrap + ms));
    }
    // A pause during a request: no datagram is rewritten until the client sends regularly again.
    ResyncState paused;
    REQUIRE(paused.begin_resync(kBeforeWrap, kBeforeWrap));
    CHECK(paused.next_acknowledgement(kBeforeWrap + 10) == ResyncFunctions::kNoSnapshot);
    paused.on_full_snapshot(kBeforeWrap + 20, 4711);
    CHECK(paused.next_acknowledgement(kBeforeWrap + 1010) == 4711);
}

TEST_CASE("resync requests are at least five seconds apart, and end after a timeout") {
    ResyncState resync;
    REQUIRE(resync.begin_resync(kBeforeWrap, kBeforeWrap));
    CHECK(resync.next_acknowledgement(kBeforeWrap + 10));
    CHECK(resync.on_datagram_rewritten());
    CHECK_FALSE(resync.begin_resync(kBeforeWrap + 4999, kBeforeWrap));
    CHECK_FALSE(resync.next_acknowledgement(kBeforeWrap + ResyncState::kSnapshotTimeoutMs + 1));
    CHECK_FALSE(resync.is_in_progress());
    resync.on_full_snapshot(kBeforeWrap + 1100, 4711); // too late
    CHECK_FALSE(resync.is_in_progress());
    CHECK(resync.begin_resync(kBeforeWrap + 5000, kBeforeWrap + 4990));
    CHECK(resync.is_in_progress());
    CHECK(resync.next_acknowledgement(kBeforeWrap + 5001) == ResyncFunctions::kNoSnapshot);
    CHECK(resync.on_datagram_rewritten());
}

/// The byte that marks a full snapshot between these peers; the next byte is its tick.
constexpr std::byte kFullSnapshotMark{0xee};
constexpr std::int32_t kFullSnapshotTick = 7;

ResyncFunctions make_resync_functions() {
    return {.rewrite_acknowledgement = [](std::span<const std::byte> datagram, std::int32_t known,
                                          std::span<std::byte> out) -> std::size_t {
                if (datagram.size() < 10 || datagram[0] == kFullSnapshotMark) {
                    return 0;
                }
                std::ranges::copy(datagram.subspan(2), out.begin());
                out[0] = kFullSnapshotMark;
                out[1] = static_cast<std::byte>(known);
                return datagram.size() - 2;
            },
            .find_full_snapshot =
                [](std::span<const std::byte> datagram) -> std::optional<std::int32_t> {
                return !datagram.empty() && datagram[0] == kFullSnapshotMark
                           ? std::optional{kFullSnapshotTick}
                           : std::nullopt;
            }};
}

TEST_CASE(
    "a full snapshot is requested for one session, and the observer gets original datagrams") {
    EchoServer server;
    Options options = make_relay_options(server.endpoint());
    options.resync_functions = make_resync_functions();
    TestRelay relay{options, Ring::kMinBytes};
    Peer undecoded;
    Peer other;
    /// Returns the tick that the server sees acknowledged; nullopt if the datagram is unchanged.
    const auto acknowledged_at_server = [&](Peer& peer,
                                            const Bytes& sent) -> std::optional<std::byte> {
        peer.send(sent, relay.listen_address());
        const auto answer = peer.receive();
        REQUIRE(answer);
        return *answer == sent ? std::nullopt : std::optional{answer->at(1)};
    };
    std::uint32_t round = 0;
    for (; round < 5; ++round) {
        CHECK_FALSE(acknowledged_at_server(undecoded, make_payload(100, round)));
        CHECK_FALSE(acknowledged_at_server(other, make_payload(100, round)));
    }
    relay.request_full_snapshot(1);
    relay.request_full_snapshot(1);
    relay.request_full_snapshot(99);
    std::optional<std::byte> told;
    for (const auto end = Clock::now() + std::chrono::seconds{5}; !told && Clock::now() < end;) {
        told = acknowledged_at_server(undecoded, make_payload(100, ++round));
        CHECK_FALSE(acknowledged_at_server(other, make_payload(100, round)));
    }
    CHECK(told == std::byte{0xff} /* kNoSnapshot */);
    CHECK(acknowledged_at_server(undecoded, make_payload(100, ++round)) ==
          std::byte{kFullSnapshotTick});
    Bytes knows = make_payload(100, ++round);
    knows[0] = kFullSnapshotMark;
    CHECK_FALSE(acknowledged_at_server(undecoded, knows));
    CHECK_FALSE(acknowledged_at_server(undecoded, make_payload(9, ++round))); // cannot be rewritten
    const auto events = relay.stop_and_take_events();
    CHECK(relay.counters().rewritten_datagrams == 2);
    const auto is_resync = [](const EventCopy& each) {
        return each.event.kind == EventKind::resync;
    };
    REQUIRE(count_events(events, EventKind::resync) == 1);
    const auto asked = std::ranges::find_if(events, is_resync);
    REQUIRE(events.end() - asked > 1);
    CHECK(asked->event.session == 1);
    CHECK(asked[1].event.session == 1);
    CHECK(asked[1].event.direction == Direction::c2s);
    CHECK(std::ranges::none_of(events, [](const EventCopy& each) {
        return each.event.direction == Direction::c2s && each.bytes.size() == 98;
    }));
}

TEST_CASE("without resync functions, a relay changes no datagram") {
    EchoServer server;
    TestRelay relay{make_relay_options(server.endpoint())};
    Peer client;
    for (std::uint32_t i = 0; i < 50; ++i) {
        relay.request_full_snapshot(1);
        client.send(make_payload(100, i), relay.listen_address());
        CHECK(client.receive() == make_payload(100, i));
    }
}

constexpr int kLeastPriority = 19;

int current_niceness() {
    return ::getpriority(PRIO_PROCESS, 0);
}

TEST_CASE("analysing threads get a lower priority, forwarding threads keep theirs") {
    const int before = current_niceness();
    int forwarding = 0;
    int looking = 0;
    int writing = 0;
    std::thread{[&] {
        raise_thread_priority();
        forwarding = current_niceness();
    }}.join();
    std::thread{[&] {
        lower_thread_priority();
        looking = current_niceness();
        std::thread{[&] { writing = current_niceness(); }}.join();
    }}.join();
    CHECK(forwarding == before);
    CHECK(looking == std::min(before + 5, kLeastPriority));
    CHECK(writing == looking);
    CHECK(current_niceness() == before);
}

} // namespace
