// Covers: proxy/relay/session_maker.cpp, proxy/relay/listen_socket.cpp, proxy/relay/counters.cpp
#include "proxy/relay/relay.h"
#include "tests/proxy/relay/udp_peers.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::base;
using namespace tw::relay;
using namespace tw::relay::test;

constexpr std::size_t kRingBytes = std::size_t{4} << 20U;

ServerOptions another(const Udp::endpoint& server) {
    const Options options = options_for(server);
    return {.host = options.server_host, .port = options.server_port, .listen = options.listen};
}

/// Sends a client's datagram to a server's listener. Returns whether the echo comes from that server.
bool echoes(Peer& client, const Relay& relay, ServerIndex server, std::uint32_t number) {
    const Udp::endpoint& where = relay.listen_endpoints(server)[0];
    const Bytes sent = payload(100, number);
    client.send(sent, where);
    return client.receive() == sent && client.sender() == where;
}

TEST_CASE("each server has its own clients, and the observer hears whose a session is") {
    for (const unsigned threads : {1U, 2U}) {
        CAPTURE(threads);
        EchoServer first;
        EchoServer second;
        Ring one{kRingBytes};
        Ring two{kRingBytes};
        Ring* const rings[] = {&one, &two};
        Options options = options_for(first.endpoint());
        options.threads = threads;
        Relay relay{options, std::span{rings}.first(threads)};
        CHECK(relay.next_server_index() == 1);
        REQUIRE(relay.add_server(another(second.endpoint())) == 1);
        relay.start();
        Peer client; // the same client at both servers
        for (std::uint32_t i = 0; i < 20; ++i) {
            CHECK(echoes(client, relay, static_cast<ServerIndex>(i % 2), i));
        }
        CHECK(relay.num_sessions() == 2);
        relay.stop();
        relay.join();
        std::map<std::uint16_t, Endpoint> servers;
        for (Ring* const ring : rings) {
            for (const KeptEvent& kept : take_all(*ring)) {
                if (kept.event.kind == EventKind::open) {
                    servers[kept.event.server_index] = kept.event.server;
                }
            }
        }
        CHECK(servers ==
              std::map<std::uint16_t, Endpoint>{{0, endpoint_from(first.endpoint().data())},
                                                {1, endpoint_from(second.endpoint().data())}});
        CHECK(relay.counters().directions[0].datagrams == 20);
    }
}

TEST_CASE("servers come and go while others are played on") {
    EchoServer server;
    EchoServer other;
    auto observation = std::make_unique<ObserverSharedMemory>();
    observation->observer = 1;
    Ring ring{kRingBytes};
    Ring* const rings[] = {&ring};
    Relay relay{options_for(server.endpoint()), rings, observation.get()};
    relay.start();
    Peer stays;
    Peer goes;
    std::set<Udp::endpoint> were_there;
    for (std::uint32_t i = 0; i < 10; ++i) {
        CAPTURE(i);
        const ServerIndex index = relay.add_server(another(other.endpoint()));
        CHECK(index == i + 1);
        CHECK(echoes(goes, relay, index, i));
        CHECK(echoes(stays, relay, 0, i));
        CHECK(relay.num_sessions() == 2);
        were_there.insert(relay.listen_endpoints(index)[0]);
        relay.remove_server(index);
        CHECK(relay.num_sessions() == 1);
        CHECK(totals_of(*observation, index).directions[1].datagrams == 1);
        CHECK(totals_of(*observation, index).sessions_closed == 1);
    }
    CHECK(totals_of(*observation, 0).directions[1].datagrams == 10);
    CHECK(relay.counters().directions[1].datagrams == 20);
    Peer late;
    late.send(payload(1, 1), *were_there.begin());
    CHECK_FALSE(late.receive(std::chrono::milliseconds{50}));
    relay.stop();
    relay.join();
    const auto events = take_all(ring);
    CHECK(std::ranges::count_if(events, [](const KeptEvent& kept) {
              return kept.event.kind == EventKind::close &&
                     kept.event.reason == CloseReason::removed;
          }) == 10);
    CHECK(std::ranges::none_of(
        events, [](const KeptEvent& kept) { return kept.event.kind == EventKind::gap; }));
}

TEST_CASE("a server with many sessions is taken out in steps, all of it") {
    constexpr std::size_t kSessions = 100;
    EchoServer server;
    EchoServer other;
    Relay relay{options_for(server.endpoint())};
    const ServerIndex index = relay.add_server(another(other.endpoint()));
    const auto fill = [&] {
        std::vector<Peer> clients(kSessions);
        for (Peer& client : clients) {
            client.send(payload(10, 1), relay.listen_endpoints(index)[0]);
        }
        return eventually([&] { return relay.num_sessions() == kSessions; });
    };
    SUBCASE("while it forwards") {
        relay.start();
        REQUIRE(fill());
    }
    SUBCASE("before it does") {}
    relay.remove_server(index);
    CHECK(relay.num_sessions() == 0);
}

TEST_CASE("a server that is taken out leaves nothing on a bad line") {
    EchoServer server;
    EchoServer other;
    Options options = options_for(server.endpoint());
    options.impairment = parse_impairment("c2s:delay=10s", 1).value();
    Relay relay{options};
    const ServerIndex index = relay.add_server(another(other.endpoint()));
    relay.start();
    Peer client;
    client.send(payload(10, 1), relay.listen_endpoints(index)[0]);
    REQUIRE(eventually([&] { return relay.num_sessions() == 1; }));
    relay.remove_server(index);
    CHECK(relay.num_sessions() == 0);
    CHECK(relay.counters().directions[0].datagrams == 1); // the relay forwarded it at once
    CHECK(relay.impairment() == options.impairment);
}

TEST_CASE("limits hold for each server") {
    EchoServer server;
    EchoServer other;
    Options options = options_for(server.endpoint());
    options.max_sessions = 2;
    Relay relay{options};
    const ServerIndex index = relay.add_server(another(other.endpoint()));
    relay.start();
    std::vector<std::unique_ptr<Peer>> clients;
    for (std::uint32_t i = 0; i < 2; ++i) {
        CHECK(echoes(*clients.emplace_back(std::make_unique<Peer>()), relay, 0, i));
    }
    Peer third;
    third.send(payload(1, 3), relay.listen_endpoints()[0]);
    CHECK(eventually([&] { return relay.counters().sessions_refused == 1; }));
    CHECK(echoes(third, relay, index, 4));
    CHECK(relay.num_sessions() == 3);
}

TEST_CASE("a server that cannot be there changes nothing") {
    EchoServer server;
    EchoServer other;
    Relay relay{options_for(server.endpoint())};
    relay.start();
    Peer client;
    CHECK(echoes(client, relay, 0, 1));

    struct Row {
        std::string_view name;
        ServerOptions options;
    };

    ServerOptions taken = another(other.endpoint());
    taken.listen = {other.endpoint()};
    ServerOptions nowhere = another(other.endpoint());
    nowhere.listen.clear();
    ServerOptions circle = another(relay.listen_endpoints()[0]);
    ServerOptions back = another(other.endpoint());
    const Row rows[] = {{"a port in use", taken}, {"no address", nowhere}, {"a circle", circle}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK_THROWS_AS(static_cast<void>(relay.add_server(row.options)), StartError);
        CHECK(echoes(client, relay, 0, 2));
    }
    const ServerIndex index = relay.add_server(back);
    CHECK(echoes(client, relay, index, 3));
    CHECK_THROWS_AS(relay.set_server_address(relay.listen_endpoints()[0], index), StartError);
}

TEST_CASE("a relay has so many servers in its life") {
    EchoServer server;
    EchoServer other;
    Relay relay{options_for(server.endpoint())};
    for (std::size_t i = 1; i < kMaxServers; ++i) {
        relay.remove_server(relay.add_server(another(other.endpoint())));
    }
    CHECK_THROWS_AS(static_cast<void>(relay.add_server(another(other.endpoint()))), StartError);
    relay.start();
    Peer client;
    CHECK(echoes(client, relay, 0, 1));
}

} // namespace
