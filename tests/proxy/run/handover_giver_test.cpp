// Covers: proxy/run/handover_taker.cpp
#include "proxy/run/handover_giver.h"
#include "proxy/run/handover_taker.h"
#include "tests/proxy/relay/udp_peers.h"
#include "tests/support/program.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <boost/asio/post.hpp>
#include <doctest/doctest.h>

namespace {

using namespace tw::run;
using namespace tw::relay::test;
using tw::relay::Clock;
using tw::relay::HandoverError;
using tw::relay::Options;
using tw::relay::Relay;
using tw::relay::UniqueFd;

TakeoverLink::Time soon() {
    return Clock::now() + kPatience;
}

/// A relay that runs and can be taken over from.
class Running {
  public:
    static constexpr const char* kServerName = "game.test:8303";

    Running() {
        options.listen[0] = {boost::asio::ip::address_v4::loopback(), 0};
        relay = std::make_unique<Relay>(options);
        relay->start();
        auto door = TakeoverDoor::open(file);
        REQUIRE(door);
        giver.emplace(HandoverGiver::Parts{.io = &io,
                                           .relay = relay.get(),
                                           .server_name = kServerName,
                                           .observer = [] { return 5U; },
                                           .numbered_sessions = [] { return 9U; },
                                           .given = [this] { given = true; }},
                      std::move(*door));
        giver->start();
        thread = std::thread{[this] { io.run(); }};
    }

    // NOLINTNEXTLINE(bugprone-exception-escape): where a join fails there is no way on
    ~Running() {
        boost::asio::post(io, [this] {
            giver->stop();
            io.stop();
        });
        thread.join();
        giver.reset();
        relay.reset();
    }

    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    Running(Running&&) = delete;
    Running& operator=(Running&&) = delete;

    [[nodiscard]] TakeoverLink ask() const {
        auto link = TakeoverDoor::ask(file);
        REQUIRE(link);
        return std::move(*link);
    }

    /// Asks until the one that asked before has been seen to leave.
    [[nodiscard]] TakeoverLink ask_when_free() const {
        constexpr std::chrono::milliseconds kAnswer{200};
        while (true) {
            TakeoverLink link = ask();
            if (!link.receive(tw::relay::Clock::now() + kAnswer)) {
                return link; // nobody is told that another one is about to take over
            }
        }
    }

    bool echoes(Peer& client) const {
        const Bytes sent = payload(40, 1);
        client.send(sent, relay->listen_endpoints()[0]);
        const auto echoed = client.receive();
        return echoed && *echoed == sent;
    }

    tw::test::TemporaryFolder folder;
    std::filesystem::path file = TakeoverDoor::path_of(folder.path(), "test");
    EchoServer server;
    Options options = options_for(server.endpoint());
    boost::asio::io_context io;
    std::unique_ptr<Relay> relay;
    std::optional<HandoverGiver> giver;
    std::atomic<bool> given{false};
    std::thread thread;
};

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
    const auto listening = link.receive(soon());
    REQUIRE(listening);
    CHECK(listening->word == TakeoverWord::listening);
    CHECK(listening->descriptors.size() == offer.listening_sockets);
    return offer;
}

/// Goes on until the old one has said all, and holds.
void hear_all(TakeoverLink& link) {
    std::ignore = hear_offer(link);
    REQUIRE(link.send(TakeoverWord::ready, soon()));
    while (true) {
        const auto message = link.receive(soon());
        REQUIRE(message);
        if (message->word == TakeoverWord::rest) {
            return;
        }
        CHECK(message->word == TakeoverWord::sessions);
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
    TakeoverLink newer = running.ask();
    greet(newer, TakeoverGreeting::kVersion + 1);
    const auto refusal = newer.receive(soon());
    REQUIRE(refusal);
    CHECK(refusal->word == TakeoverWord::refusal);
    CHECK_FALSE(newer.receive(soon()));
    TakeoverLink first = running.ask_when_free();
    std::ignore = hear_offer(first);
    TakeoverLink second = running.ask();
    const auto busy = second.receive(soon());
    REQUIRE(busy);
    CHECK(busy->word == TakeoverWord::busy);
    CHECK_THROWS_AS(HandoverTaker{running.file}, NobodyThere);
    CHECK(running.echoes(client));
}

TEST_CASE("a relay takes over from another, and the next one can ask there") {
    Running running;
    Peer client;
    REQUIRE(running.echoes(client));
    HandoverTaker taker{running.file};
    CHECK(taker.offer().observer == 5);
    Options options = running.options;
    options.listen = taker.addresses(options.listen);
    CHECK(options.listen == running.relay->listen_endpoints());
    Relay next{options, {}, nullptr, taker.take_listening_sockets()};
    const TakeoverRest rest = taker.take(next);
    CHECK(rest.sessions == 1);
    CHECK(rest.numbered_sessions == 9);
    next.start();
    taker.say_going();
    REQUIRE(eventually([&] { return running.given.load(); }));
    running.relay->leave();
    running.relay->join();
    CHECK(running.echoes(client));
    CHECK(next.counters().sessions_opened == 1);
    CHECK_FALSE(taker.left());
    boost::asio::post(running.io, [&] { running.giver->leave({.numbered_sessions = 11}); });
    std::optional<HandoverTaker::Left> left;
    REQUIRE(eventually([&] { return (left = taker.left()).has_value(); }));
    CHECK(left->said.numbered_sessions == 11);
    const auto door = taker.take_door();
    REQUIRE(door);
    const auto asking = TakeoverDoor::ask(running.file);
    CHECK(asking);
}

TEST_CASE(
    "a server of the same name may have moved, and its players stay where they are answered") {
    Running running;
    Peer client;
    REQUIRE(running.echoes(client));
    EchoServer elsewhere;
    Options options = running.options;
    options.server_port = elsewhere.endpoint().port(); // as if the name led there
    std::optional<HandoverTaker> taker;
    std::unique_ptr<Relay> next;
    const auto take = [&](const std::string& name) {
        REQUIRE(eventually([&] {
            try {
                taker.emplace(running.file);
                return true;
            } catch (const NobodyThere&) {
                return false; // the last one has not been seen to leave yet
            }
        }));
        options.listen = taker->addresses(running.relay->listen_endpoints());
        next = std::make_unique<Relay>(options, std::span<tw::relay::Ring* const>{}, nullptr,
                                       taker->take_listening_sockets());
        return taker->take(*next, name);
    };
    CHECK_THROWS_AS(std::ignore = take("other.test:1"), HandoverError);
    CHECK_THROWS_AS(std::ignore = take(""), HandoverError);
    CHECK(running.echoes(client));
    CHECK(take(Running::kServerName).sessions == 1);
    next->start();
    taker->say_going();
    REQUIRE(eventually([&] { return running.given.load(); }));
    running.relay->leave();
    running.relay->join();
    CHECK(running.echoes(client)); // still by the old server
    CHECK(next->former_servers().back() == running.relay->server_endpoint());
    CHECK(next->server_endpoint() != running.relay->server_endpoint());
}

TEST_CASE("other addresses, another server or another mode are no upgrade") {
    Running running;
    Peer client;
    const auto own = running.relay->listen_endpoints()[0];
    {
        const HandoverTaker taker{running.file};
        CHECK_NOTHROW(std::ignore = taker.addresses({own}));
        CHECK_THROWS_AS(std::ignore = taker.addresses({own, own}), HandoverError);
        CHECK_THROWS_AS(std::ignore = taker.addresses({}), HandoverError);
        CHECK_THROWS_AS(std::ignore = taker.addresses({{own.address(), 1}}), HandoverError);
        CHECK_THROWS_AS(std::ignore =
                            taker.addresses({{boost::asio::ip::address_v6::loopback(), 0}}),
                        HandoverError);
    }
    EchoServer elsewhere;
    const std::function<void(Options&)> changes[]{
        [&](Options& options) { options.server_port = elsewhere.endpoint().port(); },
        [](Options& options) { options.client_address = tw::relay::ClientAddress::loopback; },
    };
    for (const auto& change : changes) {
        REQUIRE(eventually([&] {
            try {
                HandoverTaker taker{running.file};
                Options options = running.options;
                options.listen = {own};
                change(options);
                Relay next{options, {}, nullptr, taker.take_listening_sockets()};
                CHECK_THROWS_AS(std::ignore = taker.take(next), HandoverError);
                return true;
            } catch (const NobodyThere&) {
                return false; // the last one has not been seen to leave yet
            }
        }));
        CHECK(running.echoes(client));
    }
}

/// An old one that says what the test says.
void play_old(const TakeoverDoor& door, const std::function<void(TakeoverLink&)>& act) {
    std::optional<TakeoverLink> link;
    REQUIRE(eventually([&] { return (link = door.accept()).has_value(); }));
    std::ignore = link->receive(soon());
    act(*link);
}

TEST_CASE("an old one that lies is not believed") {
    const Running running; // whose offer is true
    const auto file = TakeoverDoor::path_of(running.folder.path(), "liar");
    const auto door = TakeoverDoor::open(file);
    REQUIRE(door);
    TakeoverOffer offer{
        .network = own_network(),
        .listen = {tw::relay::endpoint_from(running.relay->listen_endpoints()[0].data())},
        .listening_sockets = 1,
        .server = running.relay->server_endpoint(),
        .mode = running.relay->client_address(),
        .observer = 1};
    const int own = running.relay->listening_sockets()[0];
    const auto say_offer = [&](const TakeoverLink& link, const TakeoverOffer& said) {
        std::ignore = link.send(TakeoverWord::offer, written(said), {}, soon());
        std::ignore = link.send(TakeoverWord::listening, {}, std::span{&own, 1}, soon());
    };

    struct Row {
        const char* name;
        std::function<void(TakeoverLink&)> act;
    };

    const Row rows[]{
        {"no offer", [](TakeoverLink&) {}},
        {"a refusal",
         [](TakeoverLink& link) {
             std::ignore = link.send(TakeoverWord::refusal, Bytes(5, std::byte{'x'}), {}, soon());
         }},
        {"a damaged offer",
         [](TakeoverLink& link) {
             std::ignore = link.send(TakeoverWord::offer, Bytes(5), {}, soon());
         }},
        {"no listening sockets",
         [&](TakeoverLink& link) {
             std::ignore = link.send(TakeoverWord::offer, written(offer), {}, soon());
             std::ignore = link.send(TakeoverWord::listening, soon());
         }},
        {"another network",
         [&](TakeoverLink& link) {
             TakeoverOffer other = offer;
             ++other.network;
             say_offer(link, other);
         }},
        {"fewer sessions than it says",
         [&](TakeoverLink& link) {
             say_offer(link, offer);
             std::ignore = link.receive(soon());
             TakeoverRest rest{.held_at = 0, .sessions = 1, .numbered_sessions = 0, .relay = {}};
             tw::relay::write(rest.relay, {.counters = {},
                                           .last_session = 0,
                                           .last_number = 0,
                                           .impairment = {},
                                           .listener_drops = {0}});
             std::ignore = link.send(TakeoverWord::rest, written(rest), {}, soon());
         }},
        {"damaged totals",
         [&](TakeoverLink& link) {
             say_offer(link, offer);
             std::ignore = link.receive(soon());
             const TakeoverRest rest{
                 .held_at = 0, .sessions = 0, .numbered_sessions = 0, .relay = Bytes(7)};
             std::ignore = link.send(TakeoverWord::rest, written(rest), {}, soon());
         }},
        {"damaged sessions",
         [&](TakeoverLink& link) {
             say_offer(link, offer);
             std::ignore = link.receive(soon());
             std::ignore = link.send(TakeoverWord::sessions, Bytes(30), std::span{&own, 1}, soon());
         }},
        {"an end where it was to say go",
         [&](TakeoverLink& link) {
             say_offer(link, offer);
             std::ignore = link.receive(soon());
             TakeoverRest rest{.held_at = 0, .sessions = 0, .numbered_sessions = 0, .relay = {}};
             tw::relay::write(rest.relay, {.counters = {},
                                           .last_session = 0,
                                           .last_number = 0,
                                           .impairment = {},
                                           .listener_drops = {0}});
             std::ignore = link.send(TakeoverWord::rest, written(rest), {}, soon());
             std::ignore = link.receive(soon());
         }},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        std::thread old{[&] { play_old(*door, row.act); }};
        const auto take = [&] {
            HandoverTaker taker{file};
            Options options = running.options;
            options.listen = taker.addresses(options.listen);
            Relay next{options, {}, nullptr, taker.take_listening_sockets()};
            std::ignore = taker.take(next);
        };
        CHECK_THROWS_AS(take(), HandoverError);
        old.join();
    }
}

} // namespace
