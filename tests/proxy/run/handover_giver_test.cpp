#include "tests/proxy/run/handover_peers.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::run;
using namespace tw::run::test;
using namespace tw::relay::test;
using tw::relay::ServerIndex;

void greet(const TakeoverLink& link, std::uint32_t version = TakeoverGreeting::kVersion) {
    REQUIRE(
        link.send(TakeoverWord::hello, written(TakeoverGreeting{.version = version}), {}, soon()));
}

/// Says hello and hears the offer with its sockets.
TakeoverOffer hear_offer(TakeoverLink& link) {
    greet(link);
    const auto offered = link.receive(soon());
    REQUIRE(offered);
    REQUIRE(offered->word == TakeoverWord::offer);
    CHECK(offered->descriptors.size() == 1);
    TakeoverOffer offer = read_offer(offered->body);
    for (std::uint32_t i = 0; i < offer.servers; ++i) {
        const auto described = link.receive(soon());
        REQUIRE(described);
        CHECK(described->word == TakeoverWord::server);
        const TakeoverServer server = read_server(described->body);
        CHECK(server.number == i);
        const auto listening = link.receive(soon());
        REQUIRE(listening);
        CHECK(listening->word == TakeoverWord::listening);
        CHECK(listening->descriptors.size() == server.listening_sockets);
    }
    return offer;
}

bool say_ready(const TakeoverLink& link, const std::vector<ServerIndex>& servers = {0}) {
    return link.send(TakeoverWord::ready, written(TakeoverWish{.servers = servers}), {}, soon());
}

/// Goes on until the old one has said all, and holds.
void hear_all(TakeoverLink& link) {
    std::ignore = hear_offer(link);
    REQUIRE(say_ready(link));
    while (true) {
        const auto message = link.receive(soon());
        REQUIRE(message);
        if (message->word == TakeoverWord::rest) {
            return;
        }
        CHECK((message->word == TakeoverWord::sessions || message->word == TakeoverWord::totals));
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
             std::ignore = link.send(static_cast<TakeoverWord>(77), soon());
         }},
        {"does not greet",
         [](TakeoverLink& link) { std::ignore = link.send(TakeoverWord::ready, soon()); }},
        {"greets with nonsense",
         [](TakeoverLink& link) {
             std::ignore = link.send(TakeoverWord::hello, Bytes(30), {}, soon());
         }},
        {"sends descriptors",
         [](TakeoverLink& link) {
             const std::vector<int> descriptors(50, link.descriptor());
             std::ignore = link.send(TakeoverWord::hello, Bytes(3), descriptors, soon());
         }},
        {"leaves after the offer", [](TakeoverLink& link) { std::ignore = hear_offer(link); }},
        {"says that it has taken what it has not",
         [](TakeoverLink& link) {
             std::ignore = hear_offer(link);
             std::ignore = link.send(TakeoverWord::taken, soon());
         }},
        {"says that it is ready, and not for what",
         [](TakeoverLink& link) {
             std::ignore = hear_offer(link);
             std::ignore = link.send(TakeoverWord::ready, soon());
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
             std::ignore = link.send(TakeoverWord::going, soon());
             CHECK_FALSE(link.receive(soon()));
         }},
        {"falls silent when it has all",
         [](TakeoverLink& link) {
             hear_all(link);
             CHECK_FALSE(link.receive(soon()));
             CHECK(link.closed());
         }},
        {"leaves before it forwards",
         [](TakeoverLink& link) {
             hear_all(link);
             REQUIRE(link.send(TakeoverWord::taken, soon()));
             const auto go = link.receive(soon());
             REQUIRE(go);
             CHECK(go->word == TakeoverWord::go);
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

TEST_CASE("one of another version is told so, and one that asks while another does, too") {
    Running running;
    Peer client;
    constexpr std::uint32_t kBeforeNames = 2; // servers had no names
    for (const std::uint32_t version : {kBeforeNames, TakeoverGreeting::kVersion + 1}) {
        TakeoverLink other = running.ask_when_free();
        greet(other, version);
        const auto refusal = other.receive(soon());
        REQUIRE(refusal);
        CHECK(refusal->word == TakeoverWord::refusal);
        CHECK_FALSE(other.receive(soon()));
    }
    TakeoverLink first = running.ask_when_free();
    std::ignore = hear_offer(first);
    TakeoverLink second = running.ask();
    const auto busy = second.receive(soon());
    REQUIRE(busy);
    CHECK(busy->word == TakeoverWord::busy);
    CHECK_THROWS_AS(HandoverTaker{running.file}, NobodyThere);
    CHECK(running.echoes(client));
}

} // namespace
