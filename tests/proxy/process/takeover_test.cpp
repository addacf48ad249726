#include "proxy/base/archive.h"
#include "tests/proxy/process/takeover_peers.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace tw::process;
using namespace tw::process::peers;
using namespace tw::relay::test;
using tw::relay::Options;
using tw::relay::Relay;
using tw::relay::ServerIndex;
using tw::relay::ServerOptions;
using tw::relay::TakeoverError;

std::size_t num_sessions(const TakeoverState& state) {
    std::size_t sum = 0;
    for (const tw::relay::HandedOverServer& server : state.relay.servers) {
        sum += server.sessions.size();
    }
    return sum;
}

TEST_CASE("a relay takes over from another, and the next one can ask there") {
    Running running;
    Peer client;
    REQUIRE(running.echoes(client));
    TakeoverRequester requester{running.file};
    CHECK(requester.offer().observer == 5);
    auto any_port = running.configured();
    any_port[0].where.listen[0].port(0);
    const auto next = make_next(requester, running.options, any_port);
    CHECK(next->listen_endpoints() == running.relay->listen_endpoints());
    const TakeoverState state = requester.take_sessions(*next);
    CHECK(num_sessions(state) == 1);
    CHECK(state.last_recorded_session == 9);
    next->start();
    requester.confirm_forwarding();
    running.end();
    CHECK(running.echoes(client));
    CHECK(next->counters().sessions_opened == 1);
    CHECK_FALSE(requester.receive_end_report());
    boost::asio::post(running.io, [&] { running.responder->report_end(11); });
    std::optional<TakeoverRequester::EndReport> left;
    REQUIRE(eventually([&] { return (left = requester.receive_end_report()).has_value(); }));
    CHECK(left->last_recorded_session == 11);
    const auto door = requester.take_takeover_socket();
    const auto asking = TakeoverSocket::connect(running.file);
    CHECK(asking);
}

TEST_CASE(
    "a server of the same name may have moved, and its players stay where they are answered") {
    Running running;
    Peer client;
    REQUIRE(running.echoes(client));
    EchoServer elsewhere;
    std::unique_ptr<TakeoverRequester> requester;
    std::unique_ptr<Relay> next;
    const auto take = [&](const std::string& host) {
        requester.reset();
        requester = make_requester(running.file);
        auto servers = running.configured();
        servers[0].where.host = host;
        auto begun = requester->prepare_server(servers[0], 0);
        Options options = running.options;
        options.server.listen = begun.where.listen;
        options.server.port = elsewhere.endpoint().port(); // as if the name led there
        next = std::make_unique<Relay>(options, std::span<tw::relay::Ring* const>{}, nullptr,
                                       std::move(begun.listening));
        return requester->take_sessions(*next);
    };
    CHECK_THROWS_AS(std::ignore = take("other.test"), TakeoverError);
    CHECK_THROWS_AS(std::ignore = take("127.0.0.1"), TakeoverError);
    CHECK(running.echoes(client));
    running.change([&] {
        running.served[0].host_name = host_and_port(
            {.host = "game.test", .port = running.configured()[0].where.port, .listen = {}});
    });
    CHECK(num_sessions(take("game.test")) == 1);
    next->start();
    requester->confirm_forwarding();
    running.end();
    CHECK(running.echoes(client)); // still by the old server
    CHECK(next->server_endpoint() != running.relay->server_endpoint());
}

TEST_CASE("other addresses, another server or another mode are no upgrade") {
    Running running;
    Peer client;
    const ConfiguredServer own = running.configured()[0];
    const std::function<void(ServerOptions&)> elsewheres[]{
        [](ServerOptions& where) { where.listen.push_back(where.listen[0]); },
        [](ServerOptions& where) { where.listen.clear(); },
        [](ServerOptions& where) { where.listen[0].port(1); },
        [](ServerOptions& where) {
            where.listen[0] = {boost::asio::ip::address_v6::loopback(), 0};
        },
    };
    {
        TakeoverRequester requester{running.file};
        for (const auto& change : elsewheres) {
            ConfiguredServer other = own;
            change(other.where);
            CHECK_THROWS_AS(std::ignore = requester.prepare_server(other, 0), TakeoverError);
        }
    }
    EchoServer elsewhere;
    const std::function<void(Options&, ConfiguredServer&)> changes[]{
        [&](Options& /*options*/, ConfiguredServer& served) {
            served.where.port = elsewhere.endpoint().port();
        },
        [](Options& options, ConfiguredServer& /*served*/) {
            options.client_address = tw::relay::ClientAddressMode::loopback;
        },
    };
    for (const auto& change : changes) {
        const auto requester = make_requester(running.file);
        Options options = running.options;
        ConfiguredServer served = own;
        change(options, served);
        const auto next = make_next(*requester, options, {served});
        CHECK_THROWS_AS(std::ignore = requester->take_sessions(*next), TakeoverError);
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
    TakeoverRequester requester{running.file};
    const auto next = make_next(requester, running.options, servers);
    CHECK(requester.find_server("dm") != nullptr);
    CHECK(requester.find_server("late") == nullptr);
    CHECK(num_sessions(requester.take_sessions(*next)) == 2);
    next->start();
    requester.confirm_forwarding();
    running.end();
    CHECK(running.responder->servers_not_continued() == std::vector<ServerIndex>{2});
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
    CHECK(requester.prepare_server(again, 3).listening.empty());
}

TEST_CASE("servers that have none in common, or swap names, are not handed over") {
    const Running running{{"ctf", "race"}};
    TakeoverRequester requester{running.file};
    const auto own = running.configured();
    CHECK_NOTHROW(requester.check_servers(own));
    CHECK_NOTHROW(requester.check_servers({own[1]}));
    CHECK_THROWS_AS(requester.check_servers({{.name = "", .where = own[0].where}}), TakeoverError);
    auto renamed = own;
    renamed[1].name = "racing"; // it would listen where the other one still does
    CHECK_THROWS_WITH_AS(requester.check_servers(renamed),
                         doctest::Contains("for race, which should now be racing"), TakeoverError);
    auto swapped = own;
    std::swap(swapped[0].name, swapped[1].name);
    CHECK_THROWS_AS(requester.check_servers(swapped), TakeoverError);
}

TEST_CASE("servers that change while another one prepares are not handed over") {
    Running running{{"ctf", "race"}};
    Peer client;
    REQUIRE(running.echoes(client));
    TakeoverRequester requester{running.file};
    const auto next = make_next(requester, running.options, running.configured());
    running.change([&] { running.served.pop_back(); });
    CHECK_THROWS_WITH_AS(std::ignore = requester.take_sessions(*next),
                         doctest::Contains("have changed"), TakeoverError);
    CHECK(running.echoes(client));
    CHECK_FALSE(running.given);
}

TEST_CASE("an old one that lies is not believed") {
    const Running running; // whose offer is true
    const auto file = TakeoverSocket::path_of(running.folder.path(), "liar");
    const auto door = TakeoverSocket::open(file);
    REQUIRE(door);
    const int own = running.relay->listening_sockets()[0];

    struct Said {
        TakeoverMessage kind = TakeoverMessage::offer;
        TakeoverOffer offer;
        std::size_t sockets = 2;
        std::optional<TakeoverState> state{};
        std::size_t cut = 0;       ///< bytes that are missing at the end of the last message
        std::size_t upstreams = 0; ///< sockets of sessions
    };

    const TakeoverServer server{
        .listen = {tw::base::endpoint_from(running.relay->listen_endpoints()[0].data())},
        .listening_sockets = 1,
        .server = running.relay->server_endpoint(),
        .mode = running.relay->client_address_mode()};
    const Said truth{
        .offer = {.network = own_network_namespace(), .observer = 1, .servers = {server}}};
    TakeoverState empty;
    empty.relay.impairment = "none";
    empty.relay.servers = {{.counters = {}, .listener_drops = {0}, .sessions = {}}};

    struct Row {
        const char* name;
        std::function<void(Said&)> change;
    };

    const Row rows[]{
        {"a refusal", [](Said& said) { said.kind = TakeoverMessage::refusal; }},
        {"another word", [](Said& said) { said.kind = TakeoverMessage::state; }},
        {"a damaged offer", [](Said& said) { said.cut = 1; }},
        {"no server", [](Said& said) { said.offer.servers.clear(); }},
        {"no listening sockets", [](Said& said) { said.sockets = 1; }},
        {"nothing but words", [](Said& said) { said.sockets = 0; }},
        {"a server without sockets",
         [](Said& said) {
             said.offer.servers[0].listening_sockets = 0;
             said.sockets = 1;
         }},
        {"more sockets than can be",
         [](Said& said) { said.offer.servers[0].listening_sockets = 0xffffffff; }},
        {"a server without an address", [](Said& said) { said.offer.servers[0].listen.clear(); }},
        {"a mode that there is not",
         [](Said& said) {
             said.offer.servers[0].mode = static_cast<tw::relay::ClientAddressMode>(200);
         }},
        {"a name that a terminal obeys",
         [](Said& said) { said.offer.servers[0].name = "ctf\x1b[2J"; }},
        {"a server twice",
         [](Said& said) {
             said.offer.servers.push_back(said.offer.servers[0]);
             said.sockets = 3;
         }},
        {"another network", [](Said& said) { ++said.offer.network; }},
        {"an end where it was to hand over", [](Said& /*said*/) {}},
        {"a damaged state",
         [&](Said& said) {
             said.state = empty;
             said.cut = 1;
         }},
        {"no totals of the server",
         [&](Said& said) { said.state.emplace(empty).relay.servers.clear(); }},
        {"another server, too",
         [&](Said& said) { said.state.emplace(empty).relay.servers.emplace_back(); }},
        {"fewer sessions than sockets",
         [&](Said& said) {
             said.state = empty;
             said.upstreams = 1;
         }},
        {"a session that is damaged",
         [&](Said& said) {
             said.state.emplace(empty).relay.servers[0].sessions.emplace_back();
             said.upstreams = 1;
         }},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Said said = truth;
        row.change(said);
        std::thread old{[&] {
            std::optional<TakeoverLink> link;
            REQUIRE(eventually([&] { return (link = door->accept()).has_value(); }));
            std::ignore = link->receive(soon());
            Bytes offer = tw::base::to_archive(said.offer);
            offer.resize(offer.size() - (said.state ? 0 : said.cut));
            std::ignore = link->send(said.kind, offer, std::vector<int>(said.sockets, own), soon());
            if (said.state) {
                std::ignore = link->receive(soon());
                Bytes state = tw::base::to_archive(*said.state);
                state.resize(state.size() - said.cut);
                std::ignore = link->send(TakeoverMessage::state, state,
                                         std::vector<int>(said.upstreams, own), soon());
            }
        }};
        const auto take = [&] {
            TakeoverRequester requester{file};
            const auto next = make_next(requester, running.options, running.configured());
            std::ignore = requester.take_sessions(*next);
        };
        CHECK_THROWS_AS(take(), TakeoverError);
        old.join();
    }
}

using tw::base::from_archive;
using tw::base::to_archive;

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

void say(const TakeoverLink& link, TakeoverMessage kind, const Bytes& body = {}) {
    std::ignore = link.send(kind, body, {}, soon());
}

void wish_for(TakeoverLink& link, const std::vector<ServerIndex>& servers) {
    hear_offer(link);
    say(link, TakeoverMessage::ready, to_archive(servers));
}

/// Goes on until the old one has said all, and holds.
TakeoverLink::Message hear_all(TakeoverLink& link, const std::vector<ServerIndex>& servers = {0}) {
    wish_for(link, servers);
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
        {"says nonsense", [](TakeoverLink& link) { say(link, TakeoverMessage{77}); }},
        {"does not greet", [](TakeoverLink& link) { say(link, TakeoverMessage::ready); }},
        {"greets with nonsense",
         [](TakeoverLink& link) { say(link, TakeoverMessage::hello, Bytes(30)); }},
        {"sends descriptors",
         [](TakeoverLink& link) {
             const std::vector<int> descriptors(50, link.descriptor());
             std::ignore = link.send(TakeoverMessage::hello, Bytes(3), descriptors, soon());
         }},
        {"talks without an end",
         [](TakeoverLink& link) { say(link, TakeoverMessage::hello, Bytes(5'000'000)); }},
        {"leaves after the offer", [](TakeoverLink& link) { hear_offer(link); }},
        {"says that it forwards what it has not",
         [](TakeoverLink& link) {
             hear_offer(link);
             say(link, TakeoverMessage::forwarding);
         }},
        {"says that it is ready, and not for what",
         [](TakeoverLink& link) {
             hear_offer(link);
             say(link, TakeoverMessage::ready);
         }},
        {"wishes for no server", [](TakeoverLink& link) { wish_for(link, {}); }},
        {"wishes for a server that there is not",
         [](TakeoverLink& link) {
             wish_for(link, {0, 60000});
         }},
        {"wishes for one twice",
         [](TakeoverLink& link) {
             wish_for(link, {0, 0});
         }},
        {"leaves when it has all", [](TakeoverLink& link) { std::ignore = hear_all(link); }},
        {"says another word when it has all",
         [](TakeoverLink& link) {
             std::ignore = hear_all(link);
             say(link, TakeoverMessage::ready, to_archive(std::vector<ServerIndex>{0}));
             CHECK_FALSE(link.receive(soon()));
         }},
        {"falls silent when it has all",
         [](TakeoverLink& link) {
             std::ignore = hear_all(link);
             CHECK_FALSE(link.receive(soon()));
             CHECK(link.is_closed());
             CHECK_FALSE(
                 link.send(TakeoverMessage::forwarding, soon())); // so that it does not forward
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
    CHECK(link.is_closed());
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
    CHECK_THROWS_AS(TakeoverRequester{running.file}, NoTakeoverPeerError);
    CHECK(running.echoes(client));
}

TEST_CASE("one that would show clients in another way is rejected") {
    const std::string plain{kExampleClient};

    struct Row {
        std::string running;
        std::string next;
        const char* refusal; ///< null if it may take over
    };

    const Row rows[]{
        {plain, plain, nullptr},
        {"client-1:8303", "client-1:8303", nullptr},
        {"client-1:8303", "", nullptr}, // an older version, or one without an observer
        {"", "client-1:8303", nullptr},
        {"client-1:8303", plain, "but the new one has no secret for pseudonyms"},
        {plain, "client-1:8303", "the new one would replace them by pseudonyms"},
        {"client-1:8303", "client-2:8303", "has another secret for pseudonyms"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.running);
        CAPTURE(row.next);
        Running running{{""}, row.running};
        Peer client;
        std::string refusal;
        try {
            const TakeoverRequester requester{running.file, row.next};
        } catch (const tw::relay::TakeoverError& error) {
            refusal = error.what();
        }
        if (row.refusal == nullptr) {
            CHECK(refusal.empty());
        } else {
            CHECK_MESSAGE(refusal.find(row.refusal) != refusal.npos, refusal);
        }
        CHECK(running.echoes(client));
    }
    Running running{{""}, "client-1:8303"};
    TakeoverLink older = running.ask();
    Bytes greeting = to_archive(TakeoverHello{});
    greeting.resize(greeting.size() - sizeof(std::uint32_t)); // without the example
    REQUIRE(older.send(TakeoverMessage::hello, greeting, {}, soon()));
    const auto offered = older.receive(soon());
    REQUIRE(offered);
    CHECK(offered->kind == TakeoverMessage::offer);
}

} // namespace
