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

ServerOptions make_server_options(const Udp::endpoint& server) {
    return make_relay_options(server).server;
}

struct TwoServersFixture {
    EchoServer server;
    EchoServer other;
    Options options = make_relay_options(server.endpoint());
    ServerOptions other_options = make_server_options(other.endpoint());
};

TEST_CASE("each server has its own clients, and the observer gets each session's server") {
    for (const unsigned threads : {1U, 2U}) {
        CAPTURE(threads);
        EchoServer first;
        EchoServer second;
        Options options = make_relay_options(first.endpoint());
        options.threads = threads;
        TestRelay relay{options, TestRelay::kRingBytes, false};
        CHECK(relay.next_server_index() == 1);
        REQUIRE(relay.add_server(make_server_options(second.endpoint())) == 1);
        relay.start();
        Peer client; // the same client at both servers
        for (std::uint32_t i = 0; i < 20; ++i) {
            CHECK(relay.echoes_datagram(client, i, static_cast<ServerIndex>(i % 2)));
        }
        CHECK(relay.num_sessions() == 2);
        std::map<std::uint16_t, Endpoint> servers;
        for (const EventCopy& kept : relay.stop_and_take_events()) {
            if (kept.event.kind == EventKind::open) {
                servers[kept.event.server_index] = kept.event.server;
            }
        }
        CHECK(servers ==
              std::map<std::uint16_t, Endpoint>{{0, endpoint_from(first.endpoint().data())},
                                                {1, endpoint_from(second.endpoint().data())}});
        CHECK(relay.counters().directions[0].datagrams == 20);
    }
}

TEST_CASE_FIXTURE(TwoServersFixture, "servers are added and removed while others are in use") {
    TestRelay relay{options};
    Peer stays;
    Peer goes;
    std::set<Udp::endpoint> were_there;
    for (std::uint32_t i = 0; i < 10; ++i) {
        CAPTURE(i);
        const ServerIndex index = relay.add_server(other_options);
        CHECK(index == i + 1);
        CHECK(relay.echoes_datagram(goes, i, index));
        CHECK(relay.echoes_datagram(stays, i));
        CHECK(relay.num_sessions() == 2);
        were_there.insert(relay.listen_address(index));
        relay.remove_server(index);
        CHECK(relay.num_sessions() == 1);
        CHECK(relay.counters().sessions_closed == i + 1);
    }
    CHECK(relay.counters().directions[1].datagrams == 20);
    Peer late;
    late.send(make_payload(1, 1), *were_there.begin());
    CHECK_FALSE(late.receive(std::chrono::milliseconds{50}));
    const auto events = relay.stop_and_take_events();
    CHECK(count_events(events, CloseReason::removed) == 10);
    CHECK(count_events(events, EventKind::gap) == 0);
}

TEST_CASE_FIXTURE(TwoServersFixture, "a server with many sessions is removed in several steps") {
    constexpr std::size_t kSessions = 100;
    TestRelay relay{options, TestRelay::kRingBytes, false};
    const ServerIndex index = relay.add_server(other_options);
    const auto begin_all_sessions = [&] {
        std::vector<Peer> clients(kSessions);
        for (Peer& client : clients) {
            client.send(make_payload(10, 1), relay.listen_address(index));
        }
        return eventually([&] { return relay.num_sessions() == kSessions; });
    };
    SUBCASE("while it forwards") {
        relay.start();
        REQUIRE(begin_all_sessions());
    }
    SUBCASE("before it does") {}
    relay.remove_server(index);
    CHECK(relay.num_sessions() == 0);
}

TEST_CASE_FIXTURE(TwoServersFixture, "no delayed datagram remains after its server was removed") {
    options.impairment = parse_impairment("c2s:delay=10s", 1).value();
    TestRelay relay{options};
    const ServerIndex index = relay.add_server(other_options);
    Peer client;
    client.send(make_payload(10, 1), relay.listen_address(index));
    REQUIRE(eventually([&] { return relay.num_sessions() == 1; }));
    relay.remove_server(index);
    CHECK(relay.num_sessions() == 0);
    CHECK(relay.counters().directions[0].datagrams == 1); // the relay forwarded it at once
    CHECK(relay.impairment() == options.impairment);
}

TEST_CASE_FIXTURE(TwoServersFixture, "each server has its own session limit") {
    options.max_sessions = 2;
    TestRelay relay{options};
    const ServerIndex index = relay.add_server(other_options);
    std::vector<std::unique_ptr<Peer>> clients;
    for (std::uint32_t i = 0; i < 2; ++i) {
        CHECK(relay.echoes_datagram(*clients.emplace_back(std::make_unique<Peer>()), i));
    }
    Peer third;
    third.send(make_payload(1, 3), relay.listen_address());
    CHECK(eventually([&] { return relay.counters().datagrams_without_session == 1; }));
    CHECK(relay.echoes_datagram(*clients.front(), 4));
    CHECK(relay.echoes_datagram(third, 4, index));
    CHECK(relay.num_sessions() == 3);
}

TEST_CASE_FIXTURE(TwoServersFixture, "a server that cannot be added changes nothing") {
    TestRelay relay{options};
    Peer client;
    CHECK(relay.echoes_datagram(client, 1));

    ServerOptions port_in_use = other_options;
    port_in_use.listen = {other.endpoint()};
    ServerOptions no_address = other_options;
    no_address.listen.clear();
    for (const ServerOptions& each :
         {port_in_use, no_address, make_server_options(relay.listen_address())}) {
        CAPTURE(each.port);
        CHECK_THROWS_AS(static_cast<void>(relay.add_server(each)), StartError);
        CHECK(relay.echoes_datagram(client, 2));
    }
    const ServerIndex index = relay.add_server(other_options);
    CHECK(relay.echoes_datagram(client, 3, index));
    CHECK_THROWS_AS(relay.set_server_address(relay.listen_address(), index), StartError);
}

TEST_CASE_FIXTURE(TwoServersFixture, "the number of servers in a relay's lifetime is limited") {
    TestRelay relay{options, TestRelay::kRingBytes, false};
    for (std::size_t i = 1; i < kMaxServers; ++i) {
        relay.remove_server(relay.add_server(other_options));
    }
    CHECK_THROWS_AS(static_cast<void>(relay.add_server(other_options)), StartError);
    relay.start();
    Peer client;
    CHECK(relay.echoes_datagram(client, 1));
}

} // namespace
