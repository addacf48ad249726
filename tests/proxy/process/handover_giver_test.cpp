#include "tests/proxy/process/handover_peers.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace tw::process;
using namespace tw::process::test;
using namespace tw::relay::test;
using tw::relay::ServerIndex;

void greet(const TakeoverLink& link, std::uint32_t version = TakeoverHello::kVersion) {
    REQUIRE(
        link.send(TakeoverMessage::hello, written(TakeoverHello{.version = version}), {}, soon()));
}

/// Says hello and hears the offer with its sockets.
TakeoverOffer hear_offer(TakeoverLink& link) {
    greet(link);
    const auto offered = link.receive(soon());
    REQUIRE(offered);
    REQUIRE(offered->word == TakeoverMessage::offer);
    CHECK(offered->descriptors.size() == 1);
    TakeoverOffer offer = read_offer(offered->body);
    for (std::uint32_t i = 0; i < offer.servers; ++i) {
        const auto described = link.receive(soon());
        REQUIRE(described);
        CHECK(described->word == TakeoverMessage::server);
        const TakeoverServer server = read_server(described->body);
        CHECK(server.number == i);
        const auto listening = link.receive(soon());
        REQUIRE(listening);
        CHECK(listening->word == TakeoverMessage::listening);
        CHECK(listening->descriptors.size() == server.listening_sockets);
    }
    return offer;
}

bool say_ready(const TakeoverLink& link, const std::vector<ServerIndex>& servers = {0}) {
    return link.send(TakeoverMessage::ready, written(TakeoverSelection{.servers = servers}), {},
                     soon());
}

/// Goes on until the old one has said all, and holds.
void hear_all(TakeoverLink& link) {
    std::ignore = hear_offer(link);
    REQUIRE(say_ready(link));
    while (true) {
        const auto message = link.receive(soon());
        REQUIRE(message);
        if (message->word == TakeoverMessage::rest) {
            return;
        }
        CHECK((message->word == TakeoverMessage::sessions ||
               message->word == TakeoverMessage::totals));
    }
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
        {"leaves after the offer", [](TakeoverLink& link) { std::ignore = hear_offer(link); }},
        {"says that it has taken what it has not",
         [](TakeoverLink& link) {
             std::ignore = hear_offer(link);
             std::ignore = link.send(TakeoverMessage::taken, soon());
         }},
        {"says that it is ready, and not for what",
         [](TakeoverLink& link) {
             std::ignore = hear_offer(link);
             std::ignore = link.send(TakeoverMessage::ready, soon());
         }},
        {"wishes for no server",
         [](TakeoverLink& link) {
             std::ignore = hear_offer(link);
             std::ignore = say_ready(link, {});
         }},
        {"wishes for a server that there is not",
         [](TakeoverLink& link) {
             std::ignore = hear_offer(link);
             std::ignore = say_ready(link, {0, 60000});
         }},
        {"wishes for one twice",
         [](TakeoverLink& link) {
             std::ignore = hear_offer(link);
             std::ignore = say_ready(link, {0, 0});
         }},
        {"leaves when it has all", [](TakeoverLink& link) { hear_all(link); }},
        {"says another word when it has all",
         [](TakeoverLink& link) {
             hear_all(link);
             std::ignore = link.send(TakeoverMessage::going, soon());
             CHECK_FALSE(link.receive(soon()));
         }},
        {"falls silent when it has all",
         [](TakeoverLink& link) {
             hear_all(link);
             CHECK_FALSE(link.receive(soon()));
             CHECK(link.closed());
         }},
        {"falls silent when it may forward",
         [](TakeoverLink& link) {
             hear_all(link);
             REQUIRE(link.send(TakeoverMessage::taken, soon()));
             CHECK(link.receive(soon()));
             CHECK_FALSE(link.receive(soon()));
             CHECK(link.closed());
             CHECK_FALSE(link.send(TakeoverMessage::going, soon())); // so that it does not, either
         }},
        {"leaves before it forwards",
         [](TakeoverLink& link) {
             hear_all(link);
             REQUIRE(link.send(TakeoverMessage::taken, soon()));
             const auto go = link.receive(soon());
             REQUIRE(go);
             CHECK(go->word == TakeoverMessage::go);
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

/// Goes on as hear_all(), and keeps the sockets.
std::vector<TakeoverLink::Message> keep_all(TakeoverLink& link) {
    std::ignore = hear_offer(link);
    REQUIRE(say_ready(link, {0, 1}));
    std::vector<TakeoverLink::Message> kept;
    while (kept.empty() || kept.back().word != TakeoverMessage::rest) {
        auto message = link.receive(soon());
        REQUIRE(message);
        kept.push_back(*std::move(message));
    }
    return kept;
}

TEST_CASE("what another one holds of sockets it did not take over wakes nobody when their sessions "
          "are gone") {
    Running running{{"ctf", "race"}};
    Peer client;
    Peer other;
    REQUIRE(running.echoes(client));
    REQUIRE(running.echoes(other, 1));
    TakeoverLink link = running.ask_when_free();
    const auto kept = keep_all(link);
    int held = -1; // the session's with the second server
    for (const auto& message : kept) {
        for (const auto& descriptor : message.descriptors) {
            Udp::endpoint peer;
            auto length = static_cast<socklen_t>(peer.capacity());
            const bool connected = ::getpeername(descriptor.get(), peer.data(), &length) == 0;
            held = connected && peer == running.others[0]->endpoint() ? descriptor.get() : held;
        }
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
    std::ignore = hear_offer(another);
}

TEST_CASE("one of another version is told so, and one that asks while another does, too") {
    Running running;
    Peer client;
    constexpr std::uint32_t kBeforeNames = 2; // servers had no names
    for (const std::uint32_t version : {kBeforeNames, TakeoverHello::kVersion + 1}) {
        TakeoverLink other = running.ask_when_free();
        greet(other, version);
        const auto refusal = other.receive(soon());
        REQUIRE(refusal);
        CHECK(refusal->word == TakeoverMessage::refusal);
        CHECK_FALSE(other.receive(soon()));
    }
    TakeoverLink first = running.ask_when_free();
    std::ignore = hear_offer(first);
    TakeoverLink second = running.ask();
    const auto busy = second.receive(soon());
    REQUIRE(busy);
    CHECK(busy->word == TakeoverMessage::busy);
    CHECK_THROWS_AS(HandoverTaker{running.file}, NoTakeoverPeer);
    CHECK(running.echoes(client));
}

} // namespace
