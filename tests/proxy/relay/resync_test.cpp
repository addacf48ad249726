// Covers: proxy/relay/options.cpp, proxy/pipeline/resync.cpp
#include "proxy/relay/options.h"
#include "proxy/relay/relay.h"
#include "tests/proxy/relay/udp_peers.h"

#include <algorithm>
#include <optional>

#include <doctest/doctest.h>

namespace {

using namespace tw::base;
using namespace tw::relay;
using namespace tw::relay::test;

constexpr std::uint32_t kBeforeWrap = 4'294'967'000; // the clock wraps during the test

TEST_CASE("the client knows nothing until the server says everything, and from then on that") {
    ResyncState turn;
    CHECK_FALSE(turn.is_in_progress());
    CHECK_FALSE(turn.next_acknowledgement(kBeforeWrap));
    REQUIRE(turn.begin_resync(kBeforeWrap, kBeforeWrap - 10));
    CHECK(turn.is_in_progress());
    CHECK(turn.next_acknowledgement(kBeforeWrap + 10) == ResyncFunctions::kNoSnapshot);
    CHECK(turn.on_datagram_rewritten());
    CHECK(turn.next_acknowledgement(kBeforeWrap + 30) == ResyncFunctions::kNoSnapshot);
    CHECK_FALSE(turn.on_datagram_rewritten());
    turn.on_full_snapshot(kBeforeWrap + 40, 4711);
    turn.on_full_snapshot(kBeforeWrap + 80,
                          4713); // a later full snapshot that was already in transit
    CHECK(turn.is_in_progress());
    CHECK(turn.next_acknowledgement(kBeforeWrap + 400) == 4711);
    CHECK_FALSE(turn.on_datagram_rewritten());
    CHECK(turn.next_acknowledgement(kBeforeWrap + 40 + ResyncState::kRewriteTimeMs) == 4711);
    CHECK_FALSE(turn.next_acknowledgement(kBeforeWrap + 41 + ResyncState::kRewriteTimeMs));
    CHECK_FALSE(turn.is_in_progress());
}

TEST_CASE("who sends little is left alone") {
    ResyncState slow;
    REQUIRE(slow.begin_resync(kBeforeWrap, kBeforeWrap - 900));
    for (std::uint32_t ms = 100; ms <= 1000; ms += 300) {
        CHECK_FALSE(slow.next_acknowledgement(kBeforeWrap + ms));
    }
    // A pause during a request: no datagram is rewritten until the client sends regularly again.
    ResyncState opens_menu;
    REQUIRE(opens_menu.begin_resync(kBeforeWrap, kBeforeWrap));
    CHECK(opens_menu.next_acknowledgement(kBeforeWrap + 10) == ResyncFunctions::kNoSnapshot);
    opens_menu.on_full_snapshot(kBeforeWrap + 20, 4711);
    CHECK(opens_menu.next_acknowledgement(kBeforeWrap + 1010) == 4711);
}

TEST_CASE(
    "no session is asked for more often than every five seconds, and no wish lasts for ever") {
    ResyncState turn;
    REQUIRE(turn.begin_resync(kBeforeWrap, kBeforeWrap));
    CHECK(turn.next_acknowledgement(kBeforeWrap + 10));
    CHECK(turn.on_datagram_rewritten());
    CHECK_FALSE(turn.begin_resync(kBeforeWrap + 4999, kBeforeWrap));
    CHECK_FALSE(turn.next_acknowledgement(kBeforeWrap + ResyncState::kSnapshotTimeoutMs + 1));
    CHECK_FALSE(turn.is_in_progress());
    turn.on_full_snapshot(kBeforeWrap + 1100, 4711); // too late
    CHECK_FALSE(turn.is_in_progress());
    CHECK(turn.begin_resync(kBeforeWrap + 5000, kBeforeWrap + 4990));
    CHECK(turn.is_in_progress());
    CHECK(turn.next_acknowledgement(kBeforeWrap + 5001) == ResyncFunctions::kNoSnapshot);
    CHECK(turn.on_datagram_rewritten());
}

/// The byte that marks a full snapshot between these peers; the next byte is its tick.
constexpr std::byte kEverything{0xee};
constexpr std::int32_t kNumber = 7;

ResyncFunctions marked() {
    return {.rewrite = [](std::span<const std::byte> datagram, std::int32_t known,
                          std::span<std::byte> out) -> std::size_t {
                if (datagram.size() < 10 || datagram[0] == kEverything) {
                    return 0;
                }
                std::ranges::copy(datagram.subspan(2), out.begin());
                out[0] = kEverything;
                out[1] = static_cast<std::byte>(known);
                return datagram.size() - 2;
            },
            .find_full_snapshot =
                [](std::span<const std::byte> datagram) -> std::optional<std::int32_t> {
                return !datagram.empty() && datagram[0] == kEverything ? std::optional{kNumber}
                                                                       : std::nullopt;
            }};
}

TEST_CASE("the session that is blind is asked for, and the observer sees what came") {
    EchoServer server;
    Options options = options_for(server.endpoint());
    options.resync_functions = marked();
    TestRelay relay{options, Ring::kMinBytes};
    Peer blind;
    Peer other;
    /// What the server was told that the client knows, if not what the client said.
    const auto plays = [&](Peer& peer, const Bytes& sent) -> std::optional<std::byte> {
        peer.send(sent, relay.address());
        const auto answer = peer.receive();
        REQUIRE(answer);
        return *answer == sent ? std::nullopt : std::optional{answer->at(1)};
    };
    std::uint32_t round = 0;
    for (; round < 5; ++round) {
        CHECK_FALSE(plays(blind, payload(100, round)));
        CHECK_FALSE(plays(other, payload(100, round)));
    }
    relay.request_full_snapshot(1);
    relay.request_full_snapshot(1);
    relay.request_full_snapshot(99);
    std::optional<std::byte> told;
    for (const auto end = Clock::now() + std::chrono::seconds{5}; !told && Clock::now() < end;) {
        told = plays(blind, payload(100, ++round));
        CHECK_FALSE(plays(other, payload(100, round)));
    }
    CHECK(told == std::byte{0xff} /* kNoSnapshot */);
    CHECK(plays(blind, payload(100, ++round)) == std::byte{kNumber});
    Bytes knows = payload(100, ++round);
    knows[0] = kEverything;
    CHECK_FALSE(plays(blind, knows));
    CHECK_FALSE(plays(blind, payload(9, ++round))); // cannot be rewritten
    const auto events = relay.finish();
    CHECK(relay.counters().rewritten_datagrams == 2);
    const auto is_resync = [](const KeptEvent& each) {
        return each.event.kind == EventKind::resync;
    };
    REQUIRE(count_of(events, EventKind::resync) == 1);
    const auto asked = std::ranges::find_if(events, is_resync);
    REQUIRE(events.end() - asked > 1);
    CHECK(asked->event.session == 1);
    CHECK(asked[1].event.session == 1);
    CHECK(asked[1].event.direction == Direction::c2s);
    CHECK(std::ranges::none_of(events, [](const KeptEvent& each) {
        return each.event.direction == Direction::c2s && each.bytes.size() == 98;
    }));
}

TEST_CASE("a relay that was handed nothing to ask with touches nothing") {
    EchoServer server;
    TestRelay relay{options_for(server.endpoint())};
    Peer client;
    for (std::uint32_t i = 0; i < 50; ++i) {
        relay.request_full_snapshot(1);
        client.send(payload(100, i), relay.address());
        CHECK(client.receive() == payload(100, i));
    }
}

} // namespace
