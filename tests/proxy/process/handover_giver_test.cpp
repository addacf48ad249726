// Covers: proxy/process/handover.cpp
#include "tests/proxy/process/handover_peers.h"

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace tw::process;
using namespace tw::process::test;
using namespace tw::relay::test;
using tw::base::from_archive;
using tw::base::to_archive;
using tw::relay::ServerIndex;

void greet(const TakeoverLink& link, std::uint32_t version = TakeoverHello::kVersion) {
    REQUIRE(link.send(TakeoverMessage::hello, to_archive(TakeoverHello{.version = version}), {},
                      soon()));
}

/// Says hello and hears the offer with its sockets.
void hear_offer(TakeoverLink& link) {
    greet(link);
    const auto offered = link.receive(soon());
    REQUIRE(offered);
    REQUIRE(offered->kind == TakeoverMessage::offer);
    const auto offer = from_archive<TakeoverOffer>(offered->body);
    REQUIRE(offer);
    std::size_t sockets = 1; // the door
    for (const TakeoverServer& server : offer->servers) {
        sockets += server.listening_sockets;
    }
    CHECK(offered->descriptors.size() == sockets);
}

bool say_ready(const TakeoverLink& link, const std::vector<ServerIndex>& servers = {0}) {
    return link.send(TakeoverMessage::ready, to_archive(TakeoverSelection{.servers = servers}), {},
                     soon());
}

/// Goes on until the old one has said all, and holds.
TakeoverLink::Message hear_all(TakeoverLink& link, const std::vector<ServerIndex>& servers = {0}) {
    hear_offer(link);
    REQUIRE(say_ready(link, servers));
    auto state = link.receive(soon());
    REQUIRE(state);
    CHECK(state->kind == TakeoverMessage::state);
    return std::move(*state);
}

TEST_CASE("whatever the one that takes over does, the players play on") {
    struct Row {
        const char* name;
        void (*act)(TakeoverLink&);
    };

    const Row rows[]{
        {"leaves without a word", [](TakeoverLink&) {}},
        {"says nonsense",
         [](TakeoverLink& link) {
             std::ignore = link.send(static_cast<TakeoverMessage>(77), soon());
         }},
        {"does not greet",
         [](TakeoverLink& link) { std::ignore = link.send(TakeoverMessage::ready, soon()); }},
        {"greets with nonsense",
         [](TakeoverLink& link) {
             std::ignore = link.send(TakeoverMessage::hello, Bytes(30), {}, soon());
         }},
        {"sends descriptors",
         [](TakeoverLink& link) {
             const std::vector<int> descriptors(50, link.descriptor());
             std::ignore = link.send(TakeoverMessage::hello, Bytes(3), descriptors, soon());
         }},
        {"talks without an end",
         [](TakeoverLink& link) {
             std::ignore = link.send(TakeoverMessage::hello, Bytes(5'000'000), {}, soon());
         }},
        {"leaves after the offer", [](TakeoverLink& link) { hear_offer(link); }},
        {"says that it forwards what it has not",
         [](TakeoverLink& link) {
             hear_offer(link);
             std::ignore = link.send(TakeoverMessage::going, soon());
         }},
        {"says that it is ready, and not for what",
         [](TakeoverLink& link) {
             hear_offer(link);
             std::ignore = link.send(TakeoverMessage::ready, soon());
         }},
        {"wishes for no server",
         [](TakeoverLink& link) {
             hear_offer(link);
             std::ignore = say_ready(link, {});
         }},
        {"wishes for a server that there is not",
         [](TakeoverLink& link) {
             hear_offer(link);
             std::ignore = say_ready(link, {0, 60000});
         }},
        {"wishes for one twice",
         [](TakeoverLink& link) {
             hear_offer(link);
             std::ignore = say_ready(link, {0, 0});
         }},
        {"leaves when it has all", [](TakeoverLink& link) { std::ignore = hear_all(link); }},
        {"says another word when it has all",
         [](TakeoverLink& link) {
             std::ignore = hear_all(link);
             std::ignore = say_ready(link);
             CHECK_FALSE(link.receive(soon()));
         }},
        {"falls silent when it has all",
         [](TakeoverLink& link) {
             std::ignore = hear_all(link);
             CHECK_FALSE(link.receive(soon()));
             CHECK(link.closed());
             CHECK_FALSE(link.send(TakeoverMessage::going, soon())); // so that it does not forward
         }},
    };
    Running running;
    Peer client;
    REQUIRE(running.echoes(client));
    for (const Row& row : rows) {
        CAPTURE(row.name);
        {
            TakeoverLink link = running.ask_when_free();
            row.act(link);
        }
        CHECK(running.echoes(client));
        CHECK_FALSE(running.given);
    }
    CHECK(running.relay->counters().sessions_opened == 1);
}

TEST_CASE("what another one holds of sockets it did not take over wakes nobody when their sessions "
          "are gone") {
    Running running{{"ctf", "race"}};
    Peer client;
    Peer other;
    REQUIRE(running.echoes(client));
    REQUIRE(running.echoes(other, 1));
    TakeoverLink link = running.ask_when_free();
    const auto kept = hear_all(link, {0, 1});
    int held = -1; // the session's with the second server
    for (const auto& descriptor : kept.descriptors) {
        Udp::endpoint peer;
        auto length = static_cast<socklen_t>(peer.capacity());
        const bool connected = ::getpeername(descriptor.get(), peer.data(), &length) == 0;
        held = connected && peer == running.others[0]->endpoint() ? descriptor.get() : held;
    }
    REQUIRE(held >= 0);
    CHECK_FALSE(link.receive(soon())); // it is given up
    REQUIRE(running.echoes(client));
    running.change([&] { running.relay->remove_server(1); });
    // The second server still talks to it: it echoes what is said by the socket that was kept.
    const Bytes late = payload(40, 2);
    REQUIRE(::send(held, late.data(), late.size(), 0) == static_cast<ssize_t>(late.size()));
    REQUIRE(eventually([&] {
        std::array<std::byte, 64> room{};
        return ::recv(held, room.data(), room.size(), MSG_PEEK | MSG_DONTWAIT) > 0;
    }));
    CHECK(running.echoes(client));
    CHECK(running.echoes(client));
}

TEST_CASE("the process that reads what strangers send takes nothing over") {
    Running running;
    running.observer_process = ::getpid();
    TakeoverLink link = running.ask();
    CHECK_FALSE(link.receive(soon()));
    CHECK(link.closed());
    running.observer_process = 0;
    TakeoverLink another = running.ask_when_free();
    hear_offer(another);
}

TEST_CASE("one of another version is told so, and one that asks while another does, too") {
    Running running;
    Peer client;
    for (const std::uint32_t version : {TakeoverHello::kVersion - 1, TakeoverHello::kVersion + 1}) {
        TakeoverLink other = running.ask_when_free();
        Bytes greeting = to_archive(TakeoverHello{.version = version});
        greeting.resize(greeting.size() + 20); // what a later version may add
        REQUIRE(other.send(TakeoverMessage::hello, greeting, {}, soon()));
        const auto refusal = other.receive(soon());
        REQUIRE(refusal);
        CHECK(refusal->kind == TakeoverMessage::refusal);
        const std::string why{reinterpret_cast<const char*>(refusal->body.data()),
                              refusal->body.size()};
        CHECK_MESSAGE(why.find("restart it once") != why.npos, why);
        CHECK_FALSE(other.receive(soon()));
    }
    TakeoverLink first = running.ask_when_free();
    hear_offer(first);
    TakeoverLink second = running.ask();
    const auto busy = second.receive(soon());
    REQUIRE(busy);
    CHECK(busy->kind == TakeoverMessage::busy);
    CHECK_THROWS_AS(HandoverTaker{running.file}, NoTakeoverPeer);
    CHECK(running.echoes(client));
}

} // namespace
