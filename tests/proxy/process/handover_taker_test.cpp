#include "tests/proxy/process/handover_peers.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <doctest/doctest.h>

namespace {

using namespace tw::process;
using namespace tw::process::test;
using namespace tw::relay::test;
using tw::relay::HandoverError;
using tw::relay::Options;
using tw::relay::Relay;
using tw::relay::ServerIndex;
using tw::relay::ServerOptions;

TEST_CASE("a relay takes over from another, and the next one can ask there") {
    Running running;
    Peer client;
    REQUIRE(running.echoes(client));
    HandoverTaker taker{running.file};
    CHECK(taker.offer().observer == 5);
    auto any_port = running.configured();
    any_port[0].where.listen[0].port(0);
    const auto next = make_next(taker, running.options, any_port);
    CHECK(next->listen_endpoints() == running.relay->listen_endpoints());
    const TakeoverRest rest = taker.take(*next);
    CHECK(rest.sessions == 1);
    CHECK(rest.numbered_sessions == 9);
    next->start();
    taker.confirm_forwarding();
    running.end();
    CHECK(running.echoes(client));
    CHECK(next->counters().sessions_opened == 1);
    CHECK_FALSE(taker.left());
    boost::asio::post(running.io, [&] { running.giver->leave({.numbered_sessions = 11}); });
    std::optional<HandoverTaker::Left> left;
    REQUIRE(eventually([&] { return (left = taker.left()).has_value(); }));
    CHECK(left->said.numbered_sessions == 11);
    const auto door = taker.take_socket();
    REQUIRE(door);
    const auto asking = TakeoverSocket::ask(running.file);
    CHECK(asking);
}

TEST_CASE(
    "a server of the same name may have moved, and its players stay where they are answered") {
    Running running;
    Peer client;
    REQUIRE(running.echoes(client));
    EchoServer elsewhere;
    std::unique_ptr<HandoverTaker> taker;
    std::unique_ptr<Relay> next;
    const auto take = [&](const std::string& host) {
        taker.reset();
        taker = make_taker(running.file);
        auto servers = running.configured();
        servers[0].where.host = host;
        auto begun = taker->begin(servers[0], 0);
        Options options = running.options;
        options.listen = begun.where.listen;
        options.server_port = elsewhere.endpoint().port(); // as if the name led there
        next = std::make_unique<Relay>(options, std::span<tw::relay::Ring* const>{}, nullptr,
                                       std::move(begun.listening));
        return taker->take(*next);
    };
    CHECK_THROWS_AS(std::ignore = take("other.test"), HandoverError);
    CHECK_THROWS_AS(std::ignore = take("127.0.0.1"), HandoverError);
    CHECK(running.echoes(client));
    running.change([&] {
        running.served[0].host_name = host_name(
            {.host = "game.test", .port = running.configured()[0].where.port, .listen = {}});
    });
    CHECK(take("game.test").sessions == 1);
    next->start();
    taker->confirm_forwarding();
    running.end();
    CHECK(running.echoes(client)); // still by the old server
    CHECK(next->former_servers().back() == running.relay->server_endpoint());
    CHECK(next->server_endpoint() != running.relay->server_endpoint());
}

TEST_CASE("other addresses, another server or another mode are no upgrade") {
    Running running;
    Peer client;
    const ServedServer own = running.configured()[0];
    const std::function<void(ServerOptions&)> elsewheres[]{
        [](ServerOptions& where) { where.listen.push_back(where.listen[0]); },
        [](ServerOptions& where) { where.listen.clear(); },
        [](ServerOptions& where) { where.listen[0].port(1); },
        [](ServerOptions& where) {
            where.listen[0] = {boost::asio::ip::address_v6::loopback(), 0};
        },
    };
    {
        HandoverTaker taker{running.file};
        for (const auto& change : elsewheres) {
            ServedServer other = own;
            change(other.where);
            CHECK_THROWS_AS(std::ignore = taker.begin(other, 0), HandoverError);
        }
    }
    EchoServer elsewhere;
    const std::function<void(Options&, ServedServer&)> changes[]{
        [&](Options& /*options*/, ServedServer& served) {
            served.where.port = elsewhere.endpoint().port();
        },
        [](Options& options, ServedServer& /*served*/) {
            options.client_address = tw::relay::ClientAddress::loopback;
        },
    };
    for (const auto& change : changes) {
        const auto taker = make_taker(running.file);
        Options options = running.options;
        ServedServer served = own;
        change(options, served);
        const auto next = make_next(*taker, options, {served});
        CHECK_THROWS_AS(std::ignore = taker->take(*next), HandoverError);
        CHECK(running.echoes(client));
    }
}

TEST_CASE(
    "servers go on by their names; one that is not there any more ends, and a new one begins") {
    Running running{{"ctf", "race", "dm"}};
    Peer client;
    for (const ServerIndex server : {ServerIndex{0}, ServerIndex{1}, ServerIndex{2}}) {
        REQUIRE(running.echoes(client, server));
    }
    EchoServer late;
    auto servers = running.configured();
    servers[2] = {.name = "late", .where = where_of(late.endpoint())};
    std::swap(servers[0], servers[1]);
    HandoverTaker taker{running.file};
    const auto next = make_next(taker, running.options, servers);
    REQUIRE(taker.taken().size() == 2);
    CHECK(taker.find("dm") != nullptr);
    CHECK(taker.find("late") == nullptr);
    const TakeoverRest rest = taker.take(*next);
    CHECK(rest.sessions == 2);
    next->start();
    taker.confirm_forwarding();
    running.end();
    CHECK(running.giver->let_go() == std::vector<ServerIndex>{2});
    CHECK(running.echoes(client, 0));
    CHECK(running.echoes(client, 1));
    Peer other;
    const Bytes sent = payload(40, 7);
    other.send(sent, next->listen_endpoints(2)[0]);
    CHECK(other.receive() == sent);
    CHECK(next->num_sessions() == 3);
    CHECK(next->server_endpoint(0) == running.relay->server_endpoint(1));
    CHECK(next->server_endpoint(1) == running.relay->server_endpoint(0));
    // After the takeover a name is as any other: its server begins anew.
    auto again = running.configured()[2];
    again.where.listen[0].port(0);
    CHECK(taker.begin(again, 3).listening.empty());
}

TEST_CASE("servers that have none in common, or swap names, are not handed over") {
    const Running running{{"ctf", "race"}};
    HandoverTaker taker{running.file};
    const auto own = running.configured();
    CHECK_NOTHROW(taker.check(own));
    CHECK_NOTHROW(taker.check({own[1]}));
    CHECK_THROWS_AS(taker.check({{.name = "", .where = own[0].where}}), HandoverError);
    auto renamed = own;
    renamed[1].name = "racing"; // it would listen where the other one still does
    CHECK_THROWS_WITH_AS(taker.check(renamed),
                         doctest::Contains("for race, which should now be racing"), HandoverError);
    auto swapped = own;
    std::swap(swapped[0].name, swapped[1].name);
    CHECK_THROWS_AS(taker.check(swapped), HandoverError);
}

TEST_CASE("servers that change while another one prepares are not handed over") {
    Running running{{"ctf", "race"}};
    Peer client;
    REQUIRE(running.echoes(client));
    HandoverTaker taker{running.file};
    const auto next = make_next(taker, running.options, running.configured());
    running.change([&] { running.served.pop_back(); });
    CHECK_THROWS_WITH_AS(std::ignore = taker.take(*next), doctest::Contains("have changed"),
                         HandoverError);
    CHECK(running.echoes(client));
    CHECK_FALSE(running.given);
}

/// An old one that says what the test says.
void play_old(const TakeoverSocket& door, const std::function<void(TakeoverLink&)>& act) {
    std::optional<TakeoverLink> link;
    REQUIRE(eventually([&] { return (link = door.accept()).has_value(); }));
    std::ignore = link->receive(soon());
    act(*link);
}

TEST_CASE("an old one that lies is not believed") {
    const Running running; // whose offer is true
    const auto file = TakeoverSocket::path_of(running.folder.path(), "liar");
    const auto door = TakeoverSocket::open(file);
    REQUIRE(door);
    const TakeoverOffer offer{.network = own_network(), .servers = 1, .observer = 1};
    const TakeoverServer server{
        .listen = {tw::base::endpoint_from(running.relay->listen_endpoints()[0].data())},
        .listening_sockets = 1,
        .server = running.relay->server_endpoint(),
        .mode = running.relay->client_address()};
    const int own = running.relay->listening_sockets()[0];
    const auto say_server = [&](const TakeoverLink& link, const TakeoverServer& said) {
        std::ignore = link.send(TakeoverMessage::server, written(said), {}, soon());
        std::ignore = link.send(TakeoverMessage::listening, {}, std::span{&own, 1}, soon());
    };
    const auto say_offer = [&](const TakeoverLink& link, const TakeoverOffer& said) {
        std::ignore = link.send(TakeoverMessage::offer, written(said), {}, soon());
        say_server(link, server);
    };
    const auto say_totals = [&](const TakeoverLink& link, ServerIndex of) {
        Bytes totals;
        tw::relay::write(
            totals, tw::relay::ServerState{.server = of, .counters = {}, .listener_drops = {0}});
        std::ignore = link.send(TakeoverMessage::totals, totals, {}, soon());
    };
    const auto say_rest = [&](const TakeoverLink& link, std::uint32_t sessions) {
        TakeoverRest rest{.held_at = 0, .sessions = sessions, .numbered_sessions = 0, .relay = {}};
        tw::relay::write(rest.relay, tw::relay::RelayState{});
        std::ignore = link.send(TakeoverMessage::rest, written(rest), {}, soon());
    };

    struct Row {
        const char* name;
        std::function<void(TakeoverLink&)> act;
    };

    const Row rows[]{
        {"no offer", [](TakeoverLink&) {}},
        {"a refusal",
         [](TakeoverLink& link) {
             std::ignore =
                 link.send(TakeoverMessage::refusal, Bytes(5, std::byte{'x'}), {}, soon());
         }},
        {"a damaged offer",
         [](TakeoverLink& link) {
             std::ignore = link.send(TakeoverMessage::offer, Bytes(5), {}, soon());
         }},
        {"a damaged server",
         [&](TakeoverLink& link) {
             std::ignore = link.send(TakeoverMessage::offer, written(offer), {}, soon());
             std::ignore = link.send(TakeoverMessage::server, Bytes(9), {}, soon());
         }},
        {"no listening sockets",
         [&](TakeoverLink& link) {
             std::ignore = link.send(TakeoverMessage::offer, written(offer), {}, soon());
             std::ignore = link.send(TakeoverMessage::server, written(server), {}, soon());
             std::ignore = link.send(TakeoverMessage::listening, soon());
         }},
        {"fewer servers than it says",
         [&](TakeoverLink& link) {
             TakeoverOffer more = offer;
             more.servers = 2;
             say_offer(link, more);
         }},
        {"a server twice",
         [&](TakeoverLink& link) {
             TakeoverOffer more = offer;
             more.servers = 2;
             say_offer(link, more);
             TakeoverServer same = server;
             same.number = 1;
             say_server(link, same);
         }},
        {"a number twice",
         [&](TakeoverLink& link) {
             TakeoverOffer more = offer;
             more.servers = 2;
             say_offer(link, more);
             TakeoverServer same = server;
             same.name = "other";
             say_server(link, same);
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
             say_totals(link, 0);
             say_rest(link, 1);
         }},
        {"no totals of the server",
         [&](TakeoverLink& link) {
             say_offer(link, offer);
             std::ignore = link.receive(soon());
             say_rest(link, 0);
         }},
        {"totals of another server",
         [&](TakeoverLink& link) {
             say_offer(link, offer);
             std::ignore = link.receive(soon());
             say_totals(link, 1);
             say_rest(link, 0);
         }},
        {"damaged totals of the server",
         [&](TakeoverLink& link) {
             say_offer(link, offer);
             std::ignore = link.receive(soon());
             std::ignore = link.send(TakeoverMessage::totals, Bytes(7), {}, soon());
         }},
        {"damaged totals",
         [&](TakeoverLink& link) {
             say_offer(link, offer);
             std::ignore = link.receive(soon());
             say_totals(link, 0);
             const TakeoverRest rest{
                 .held_at = 0, .sessions = 0, .numbered_sessions = 0, .relay = Bytes(7)};
             std::ignore = link.send(TakeoverMessage::rest, written(rest), {}, soon());
         }},
        {"a session of another server",
         [&](TakeoverLink& link) {
             say_offer(link, offer);
             std::ignore = link.receive(soon());
             tw::relay::SessionState session;
             session.client.port = 1;
             session.id = session.number = 1;
             session.has_place = true;
             session.server = 1;
             Bytes bytes;
             tw::relay::write(bytes, session);
             SessionBatch batch;
             std::ignore = batch.add(bytes, own);
             std::ignore =
                 link.send(TakeoverMessage::sessions, batch.body(), batch.sockets(), soon());
         }},
        {"damaged sessions",
         [&](TakeoverLink& link) {
             say_offer(link, offer);
             std::ignore = link.receive(soon());
             std::ignore =
                 link.send(TakeoverMessage::sessions, Bytes(30), std::span{&own, 1}, soon());
         }},
        {"an end where it was to say go",
         [&](TakeoverLink& link) {
             say_offer(link, offer);
             std::ignore = link.receive(soon());
             say_totals(link, 0);
             say_rest(link, 0);
             std::ignore = link.receive(soon());
         }},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        std::thread old{[&] { play_old(*door, row.act); }};
        const auto take = [&] {
            HandoverTaker taker{file};
            const auto next = make_next(taker, running.options, running.configured());
            std::ignore = taker.take(*next);
        };
        CHECK_THROWS_AS(take(), HandoverError);
        old.join();
    }
}

} // namespace
