#include "proxy/relay/relay.h"
#include "proxy/relay/resync.h"
#include "tests/proxy/relay/udp_peers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::relay;
using namespace tw::relay::test;

constexpr std::uint32_t kStart = 4'294'967'000; // the clock wraps on the way

TEST_CASE("the datagram to write anew comes some while after an answer, of a client that plays") {
    ResyncTurn turn;
    CHECK_FALSE(turn.wanted());
    REQUIRE(turn.ask(kStart, kStart - 10));
    CHECK(turn.wanted());
    CHECK_FALSE(turn.is_turn(kStart + 10, kStart + 5)); // another one will come before the answer
    CHECK(turn.is_turn(kStart + 30, kStart + 5));
    turn.on_written(kStart + 30);
    CHECK_FALSE(turn.is_turn(kStart + 60, kStart + 10)); // its answer is on its way
    turn.on_answer();
    CHECK_FALSE(turn.wanted());
    CHECK_FALSE(turn.is_turn(kStart + 400, kStart + 10));
}

TEST_CASE("a server that answers all the time gets the next one") {
    ResyncTurn turn;
    REQUIRE(turn.ask(kStart, kStart));
    for (std::uint32_t ms = 5; ms < ResyncTurn::kImpatientMs; ms += 5) {
        CHECK_FALSE(turn.is_turn(kStart + ms, kStart + ms));
    }
    CHECK(turn.is_turn(kStart + ResyncTurn::kImpatientMs, kStart + ResyncTurn::kImpatientMs));
}

TEST_CASE("who sends little is left alone, and what has no effect is tried a few times") {
    ResyncTurn slow;
    REQUIRE(slow.ask(kStart, kStart - 900));
    for (std::uint32_t ms = 100; ms <= 1000; ms += 300) {
        CHECK_FALSE(slow.is_turn(kStart + ms, kStart));
    }

    // Every ten milliseconds: one alone at first, then all of a short while.
    ResyncTurn turn;
    REQUIRE(turn.ask(kStart, kStart));
    std::vector<std::uint32_t> written;
    for (std::uint32_t ms = 0; turn.wanted(); ms += 10) {
        REQUIRE(ms < 2000);
        if (turn.is_turn(kStart + ms, kStart - 25)) {
            written.push_back(ms);
            turn.on_written(kStart + ms);
        }
    }
    CHECK(written == std::vector<std::uint32_t>{0, 100, 110, 120, 130, 140, 200, 210, 220, 230, 240,
                                                300, 310, 320, 330, 340});
}

TEST_CASE(
    "no session is asked for more often than every five seconds, and no wish lasts for ever") {
    ResyncTurn turn;
    REQUIRE(turn.ask(kStart, kStart));
    CHECK_FALSE(turn.ask(kStart + 4999, kStart));
    CHECK_FALSE(turn.is_turn(kStart + ResyncTurn::kGiveUpMs + 1, kStart));
    CHECK_FALSE(turn.wanted());
    CHECK(turn.ask(kStart + 5000, kStart + 4990));
    CHECK(turn.wanted());
}

/// What these peers call everything.
constexpr std::byte kEverything{0xee};

Resync marked() {
    return {.rewrite = [](std::span<const std::byte> datagram,
                          std::span<std::byte> out) -> std::size_t {
                if (datagram.size() < 10) {
                    return 0;
                }
                std::copy(datagram.begin() + 1, datagram.end(), out.begin());
                out[0] = kEverything;
                return datagram.size() - 1;
            },
            .is_answer =
                [](std::span<const std::byte> datagram) {
                    return !datagram.empty() && datagram[0] == kEverything;
                }};
}

TEST_CASE(
    "one datagram of the session that is blind leaves anew, and the observer sees what came") {
    EchoServer server;
    Ring ring{Ring::kMinBytes};
    Ring* const rings[] = {&ring};
    Options options = options_for(server.endpoint());
    options.resync = marked();
    Relay relay{options, rings};
    relay.start();
    Peer blind;
    Peer other;
    const auto plays = [&](Peer& peer, std::uint32_t round) {
        const Bytes sent = payload(100, round);
        peer.send(sent, relay.listen_endpoints()[0]);
        const auto answer = peer.receive();
        REQUIRE(answer);
        return *answer != sent;
    };
    for (std::uint32_t i = 0; i < 5; ++i) {
        CHECK_FALSE(plays(blind, i));
        CHECK_FALSE(plays(other, i));
    }
    relay.resync(1);
    relay.resync(1);
    relay.resync(99);
    std::uint32_t anew = 0;
    std::uint32_t rounds = 5;
    for (const auto end = Clock::now() + std::chrono::milliseconds{1500}; Clock::now() < end;
         ++rounds) {
        anew += plays(blind, rounds) ? 1U : 0U;
        CHECK_FALSE(plays(other, rounds));
        if (rounds % 8 == 0) { // as game clients pause
            std::this_thread::sleep_for(std::chrono::milliseconds{25});
        }
    }
    CHECK(anew >= 1); // one, unless this thread was kept from sending for a while
    relay.stop();
    relay.join();
    const auto events = take_all(ring);
    std::optional<std::size_t> told;
    for (std::size_t i = 0; i < events.size(); ++i) {
        const auto& event = events[i].event;
        if (event.kind == EventKind::resync) {
            told = i;
            CHECK(event.session == 1);
        }
        if (event.kind == EventKind::datagram && event.direction == Direction::c2s) {
            CHECK(events[i].bytes.size() == 100);
        }
    }
    if (told) { // else the ring was full by then
        CHECK(events[*told + 1].event.session == 1);
        CHECK(events[*told + 1].event.direction == Direction::c2s);
    }
}

TEST_CASE("a relay that was handed nothing to ask with touches nothing") {
    EchoServer server;
    Relay relay{options_for(server.endpoint())};
    relay.start();
    Peer client;
    for (std::uint32_t i = 0; i < 50; ++i) {
        relay.resync(1);
        client.send(payload(100, i), relay.listen_endpoints()[0]);
        CHECK(client.receive() == payload(100, i));
    }
}

} // namespace
